"""Remembers the producers of a partition as a broker does, and judges their sequences (KIP-98).

The rules are those of Kafka's ProducerStateManager and ProducerAppendInfo.
"""

from collections import deque
from typing import Final, NamedTuple

from sparkmirror.batches.record_batch import SEQUENCE_MODULUS, BatchHeader
from sparkmirror.kafka.wire.error_codes import INVALID_PRODUCER_EPOCH, NONE, OUT_OF_ORDER_SEQUENCE_NUMBER

BATCHES_KEPT: Final = 5
EXPIRATION_MS: Final = 24 * 3_600_000
SWEEP_MS: Final = 600_000
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1


class KeptBatch(NamedTuple):
    first_sequence: int
    last_sequence: int
    base_offset: int


class ProducerEntry:
    """One producer id on one partition."""

    def __init__(self) -> None:
        self.epoch = NO_EPOCH
        self.batches: deque[KeptBatch] = deque(maxlen=BATCHES_KEPT)
        self.last_timestamp = -1
        self.transaction_start: int | None = None

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def begin_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


class ProducerStates:
    """The producers of one partition."""

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self.expiration_ms = EXPIRATION_MS
        """`producer.id.expiration.ms`."""
        self.sweep_ms = SWEEP_MS
        """The interval at which a broker looks for expired producers: until then it knows them."""
        self._swept_at: int | None = None

    def duplicate(self, header: BatchHeader) -> int | None:
        """The base offset under which this very batch is in the log; only the last five are remembered."""
        entry = self.entries.get(header.producer_id)
        if entry is None or entry.epoch != header.producer_epoch:
            return None
        asked = header.base_sequence, header.last_sequence
        return next((kept.base_offset for kept in entry.batches if kept[:2] == asked), None)

    def error_of(self, header: BatchHeader) -> int:
        """NONE when the batch may be appended. A producer without state may begin anywhere."""
        entry = self.entries.get(header.producer_id)
        if entry is None:
            return NONE
        if header.producer_epoch < entry.epoch:
            return INVALID_PRODUCER_EPOCH
        if header.producer_epoch > entry.epoch:
            is_next = header.base_sequence == 0
        else:
            is_next = header.base_sequence == (entry.last_sequence + 1) % SEQUENCE_MODULUS
        return NONE if is_next else OUT_OF_ORDER_SEQUENCE_NUMBER

    def note(self, header: BatchHeader, base_offset: int, *, transactional: bool) -> None:
        entry = self.entries.setdefault(header.producer_id, ProducerEntry())
        entry.begin_epoch(header.producer_epoch)
        entry.batches.append(KeptBatch(header.base_sequence, header.last_sequence, base_offset))
        entry.last_timestamp = header.max_timestamp
        if transactional and entry.transaction_start is None:
            entry.transaction_start = base_offset

    def end_transaction(self, producer_id: int, epoch: int, now_ms: int) -> int | None:
        """A marker is in the log; where the transaction began there, None if it has nothing there."""
        entry = self.entries.setdefault(producer_id, ProducerEntry())
        entry.begin_epoch(epoch)
        entry.last_timestamp = now_ms
        start, entry.transaction_start = entry.transaction_start, None
        return start

    def sweep(self, now_ms: int) -> None:
        """Expire producers if that is due."""
        if self._swept_at is None:
            self._swept_at = now_ms
        elif now_ms - self._swept_at >= self.sweep_ms:
            self._swept_at = now_ms
            self.expire(now_ms)

    def expire(self, now_ms: int) -> None:
        """Forget producers whose last batch has old records, whenever it was written."""
        for producer_id, entry in list(self.entries.items()):
            if entry.transaction_start is None and now_ms - entry.last_timestamp >= self.expiration_ms:
                del self.entries[producer_id]

    def forget(self) -> None:
        """Forget all, as a broker that has none of the partition's records."""
        self.entries.clear()

    def reload(self, now_ms: int) -> None:
        """Keep the last batch of each producer, as a broker that restarts."""
        self.expire(now_ms)
        for entry in self.entries.values():
            while len(entry.batches) > 1:
                entry.batches.popleft()

    @property
    def first_open_offset(self) -> int | None:
        """Return where the oldest open transaction began."""
        starts = [e.transaction_start for e in self.entries.values() if e.transaction_start is not None]
        return min(starts, default=None)
