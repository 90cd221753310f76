"""One partition: its log as bytes, its leader and epochs, and what a leader answers about it."""

import bisect
import struct
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from sparkmirror.batches.record_batch import (
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
    FetchedBatch,
    has_valid_crc,
    iterate_batches,
)
from sparkmirror.domain.errors import CorruptBatchError
from sparkmirror.kafka.wire.error_codes import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    NONE,
    RECORD_LIST_TOO_LARGE,
)
from tests.memory.producer_states import ProducerStates
from tests.memory.topic_configs import RECORDS_MAX
from tests.support.batches import decode, marker, patch

_MAX_MESSAGE_BYTES: Final = 1048588
_SEGMENT_BYTES: Final = 1 << 30
_HOUR_MS: Final = 3_600_000
_BEFORE: Final = "message.timestamp.before.max.ms"
_AFTER: Final = "message.timestamp.after.max.ms"
_OFFSET = struct.Struct(">q")
_EPOCH = struct.Struct(">i")


class Appended(NamedTuple):
    error: int
    base_offset: int
    message: str | None = None


class Aborted(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """The marker's offset."""


class Stored(NamedTuple):
    base_offset: int
    last_offset: int
    epoch: int
    data: bytes


class PartitionLog:
    """Followers are not simulated: they have what the leader has, but for `hold` and `truncate`."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self.config = config
        self.leader: int | None = None
        self.epoch = 0
        self.start = 0
        self.end = 0
        self.replicated_end: int | None = None
        """The offset that followers have reached, None for as far as the leader; see `hold`."""
        self.batches: list[Stored] = []
        self.producers = ProducerStates()
        self.aborted: list[Aborted] = []
        self.begun: list[tuple[int, int]] = [(0, 0)]
        """Leader epochs, each with its first offset."""
        self.replicas = self.in_sync = 1
        """The number of replicas, and how many of them are in sync."""
        self.changes = 0
        """Grows whenever a reader may see something else than before."""

    @property
    def is_under_min_isr(self) -> bool:
        """A topic can't want more replicas in sync than it has."""
        return self.in_sync < min(int(self.config.get("min.insync.replicas", 1)), self.replicas)

    @property
    def high_watermark(self) -> int:
        return self.end if self.replicated_end is None else min(self.end, self.replicated_end)

    @property
    def last_stable_offset(self) -> int:
        first_open = self.producers.first_open_offset
        return self.high_watermark if first_open is None else min(first_open, self.high_watermark)

    # writing

    def append(self, records: bytes, now_ms: int) -> Appended:
        """Append one batch that a client produces."""
        found = _only_batch(records)
        if not isinstance(found, FetchedBatch):
            return found
        header = found.header
        error = self._refusal(found, now_ms)
        if error is not None:
            return error
        if header.producer_id >= 0:
            self.producers.sweep(now_ms)
            known = self.producers.duplicate(header)
            if known is not None:
                return Appended(NONE, known)
            code = self.producers.error_of(header)
            if code != NONE:
                return Appended(code, -1)
        base_offset = self._store(bytearray(records), header, now_ms)
        self._note_producer(self.batches[-1])
        return Appended(NONE, base_offset)

    def append_marker(self, producer_id: int, epoch: int, now_ms: int, *, commit: bool) -> None:
        self.changes += 1
        base_offset = self.end
        data = patch(marker(base_offset, producer_id, commit=commit), producer_epoch=epoch)
        self.batches.append(Stored(base_offset, base_offset, self.epoch, _led_by(self.epoch, data)))
        self.end += 1
        start = self.producers.end_transaction(producer_id, epoch, now_ms)
        if start is not None and not commit:
            self.aborted.append(Aborted(producer_id, start, base_offset))

    def _refusal(self, batch: FetchedBatch, now_ms: int) -> Appended | None:
        """Why the broker would not take the batch, from what it checks before sequences."""
        return next((refusal for refused, refusal in self._checks(batch, now_ms) if refused), None)

    def _checks(self, batch: FetchedBatch, now_ms: int) -> Iterator[tuple[bool, Appended]]:
        """Check a batch in a broker's order."""
        header, size = batch.header, len(batch.data)
        is_whole = header.record_count > 0 and header.record_count == header.last_offset_delta + 1
        stamps = self.config.get("message.timestamp.type") == "LogAppendTime"
        compacts = "compact" in self.config.get("cleanup.policy", "")
        yield not has_valid_crc(batch), Appended(CORRUPT_MESSAGE, -1)
        yield (
            header.base_offset != 0 or not is_whole or bool(header.attributes & CONTROL),
            Appended(INVALID_RECORD, -1, "One or more records have been rejected"),
        )
        yield stamps and bool(header.attributes & LOG_APPEND_TIME), Appended(INVALID_TIMESTAMP, -1)
        before_ms, after_ms = (int(self.config.get(name, _HOUR_MS)) for name in (_BEFORE, _AFTER))
        is_past = _BEFORE in self.config and any(
            record.timestamp < now_ms - before_ms for record in decode(batch.data)
        )
        is_future = header.max_timestamp > now_ms + after_ms
        yield not stamps and (is_past or is_future), Appended(INVALID_TIMESTAMP, -1)
        yield (
            compacts and any(record.key is None for record in decode(batch.data)),
            Appended(INVALID_RECORD, -1, "Compacted topic cannot accept message without key"),
        )
        yield (
            size > int(self.config.get("max.message.bytes", _MAX_MESSAGE_BYTES)),
            Appended(MESSAGE_TOO_LARGE, -1),
        )
        yield (
            size > int(self.config.get("segment.bytes", _SEGMENT_BYTES)),
            Appended(RECORD_LIST_TOO_LARGE, -1),
        )
        most = int(self.config.get(RECORDS_MAX, header.record_count))
        yield header.record_count > most, Appended(INVALID_RECORD, -1, "Too many records in a batch")

    def _store(self, data: bytearray, header: BatchHeader, now_ms: int) -> int:
        self.changes += 1
        base_offset, last_offset = self.end, self.end + header.last_offset_delta
        if self.config.get("message.timestamp.type") == "LogAppendTime":
            attributes = header.attributes | LOG_APPEND_TIME
            data = patch(data, attributes=attributes, max_timestamp=now_ms)
        elif header.attributes & LOG_APPEND_TIME:
            latest = max(record.timestamp for record in decode(data))
            data = patch(data, attributes=header.attributes & ~LOG_APPEND_TIME, max_timestamp=latest)
        _OFFSET.pack_into(data, 0, base_offset)
        self.batches.append(Stored(base_offset, last_offset, self.epoch, _led_by(self.epoch, data)))
        self.end = last_offset + 1
        return base_offset

    # reading

    def read(self, offset: int, bytes_max: int, end: int, *, whole_first: bool) -> bytes:
        """Batches from that which holds the offset; the last one is cut unless it is the first."""
        at = bisect.bisect_left(self.batches, offset, key=lambda batch: batch.last_offset)
        parts: list[bytes] = []
        left = bytes_max
        for batch in self.batches[at:]:
            if batch.base_offset >= end or left <= 0:
                break
            if len(batch.data) > left and not (whole_first and not parts):
                parts.append(batch.data[:left])
                break
            parts.append(batch.data)
            left -= len(batch.data)
        return b"".join(parts)

    def first_since(self, timestamp: int) -> tuple[int, int]:
        """The first record of that time or later, and its time; (-1, -1) for none."""
        for batch in self.batches:
            for record in decode(batch.data):
                if record.timestamp >= timestamp:
                    return record.offset, record.timestamp
        return -1, -1

    def aborted_between(self, offset: int, end: int) -> list[Aborted]:
        return [a for a in self.aborted if a.last_offset >= offset and a.first_offset < end]

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch that is not above this one, and where it ends."""
        found = -1
        for begun_epoch, start in self.begun:
            if begun_epoch > epoch:
                return (found, start)
            found = begun_epoch
        return (found, self.end)

    # what happens to a log

    def begin_at(self, offset: int) -> None:
        """Begin at an offset, as if what was before had expired. The log must be empty."""
        assert not self.batches
        self.start = self.end = offset
        self.begun = [(0, offset)]

    def lead(self, leader: int | None) -> None:
        """Another leader, with everything; one that is None leaves the partition without."""
        self.leader = leader
        if leader is not None:
            self.epoch += 1
            self.begun.append((self.epoch, self.end))

    def hold(self) -> None:
        """The followers fall behind: what comes is not acknowledged before `release`."""
        self.changes += 1
        self.replicated_end = self.high_watermark

    def release(self) -> None:
        self.changes += 1
        self.replicated_end = None

    def truncate(self, end: int, now_ms: int) -> None:
        """An unclean election: the new leader lacks what comes from there on; the leader is the same here."""
        self.changes += 1
        self.batches = [batch for batch in self.batches if batch.last_offset < end]
        self.end = self.batches[-1].last_offset + 1 if self.batches else self.start
        self.begun = [(epoch, start) for epoch, start in self.begun if start <= self.end]
        self.aborted = [aborted for aborted in self.aborted if aborted.last_offset < self.end]
        self.lead(self.leader)
        self.producers.forget()
        for batch in self.batches:
            self._replay(batch, now_ms)

    def wipe(self) -> None:
        """An unclean election of a replica whose disk was replaced: the new leader has nothing."""
        self.changes += 1
        self.batches, self.aborted, self.begun = [], [], []
        self.start = self.end = 0
        self.producers.forget()
        self.lead(self.leader)

    def damage(self, at: int) -> None:
        """The disk changes the last byte of a batch."""
        self.changes += 1
        stored = self.batches[at]
        self.batches[at] = stored._replace(data=stored.data[:-1] + b"?")

    def restore(self, good: Stored) -> None:
        """The batch with that base offset is as it was."""
        self.changes += 1
        self.batches = [good if batch.base_offset == good.base_offset else batch for batch in self.batches]

    def delete_before(self, offset: int) -> None:
        """Delete records as retention and DeleteRecords do."""
        self.changes += 1
        self.start = max(self.start, offset)
        self.batches = [batch for batch in self.batches if batch.last_offset >= self.start]

    def _replay(self, batch: Stored, now_ms: int) -> None:
        (found,) = iterate_batches(memoryview(bytearray(batch.data)))
        header = found.header
        if header.attributes & CONTROL:
            self.producers.end_transaction(header.producer_id, header.producer_epoch, now_ms)
        else:
            self._note_producer(batch)

    def _note_producer(self, stored: Stored) -> None:
        """Note the batch as it is stored: LogAppendTime changes its timestamp."""
        (batch,) = iterate_batches(memoryview(bytearray(stored.data)))
        header = batch.header
        if header.producer_id >= 0:
            transactional = bool(header.attributes & TRANSACTIONAL)
            self.producers.note(header, stored.base_offset, transactional=transactional)


def _only_batch(records: bytes) -> FetchedBatch | Appended:
    try:
        found = list(iterate_batches(memoryview(bytearray(records))))
    except CorruptBatchError:
        return Appended(CORRUPT_MESSAGE, -1)
    if len(found) != 1:
        return Appended(INVALID_RECORD if found else CORRUPT_MESSAGE, -1)
    return found[0]


def _led_by(epoch: int, data: bytearray) -> bytes:
    """The CRC does not cover the leader's epoch."""
    _EPOCH.pack_into(data, 12, epoch)
    return bytes(data)
