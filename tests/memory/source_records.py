"""Writes to a flow's source as its producers do, and notes in a ledger what must become of each record."""

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from sparkmirror.batches.record_batch import NO_PRODUCER_ID, TRANSACTIONAL
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.wire.error_codes import NONE
from tests.memory import compaction
from tests.memory.cluster import MemoryCluster
from tests.memory.committed import decoded
from tests.memory.ledger import Due, Ledger
from tests.memory.partition_log import PartitionLog, Stored
from tests.memory.transformed import Transforms
from tests.support.batches import Rec, encode

LARGE_KEY: Final = b"k" * 400
FITS_BYTES: Final = 300
"""A target that accepts batches of so many bytes refuses a record with a large key."""


class BadKind(Enum):
    """Why a batch can't be copied."""

    TOO_LARGE = auto()
    NO_KEY = auto()
    """A compacted target refuses it."""
    CORRUPT = auto()
    """The source's disk changed a byte."""


@dataclass
class _OpenTransaction:
    """The writes of a producer since its transaction began: the logs, and the numbers by partition."""

    logs: dict[int, PartitionLog] = field(default_factory=dict)
    numbers: dict[int, list[int]] = field(default_factory=dict)
    dues: dict[int, list[Due]] = field(default_factory=dict)


class SourceRecords:
    """`mark` tells the records of one flow from those of another in the same topic."""

    def __init__(
        self,
        cluster: MemoryCluster,
        topic: str,
        partitions: int,
        mark: bytes = b"",
        transforms: Transforms | None = None,
    ) -> None:
        self._transforms = transforms
        self.cluster = cluster
        self.topic = topic
        self.mark = mark
        self.ledgers = [
            Ledger() if transforms is None else Ledger(transforms.due_of) for _ in range(partitions)
        ]
        self.due = Due.MUST
        """The due of records from now on: MAY while the source can lose it."""
        self._open: dict[int, _OpenTransaction] = {}
        """By producer id."""
        self._damaged: dict[tuple[int, int], Stored] = {}
        """By partition and base offset: what the batch was."""
        self._epoch_s = int(time.time()) - int(cluster.scheduler.time())

    def log(self, partition: int) -> PartitionLog:
        return self.cluster.log(TopicPartition(self.topic, partition))

    def number_of(self, value: bytes | None) -> int:
        """The number of a record by its value, -1 for one of another flow."""
        digits = (value or b"").removeprefix(self.mark)
        is_own = value is not None and value.startswith(self.mark) and digits.isdigit()
        return int(digits) if is_own else -1

    def write(
        self, partition: int, count: int, *, producer_id: int = NO_PRODUCER_ID, removed: Collection[int] = ()
    ) -> None:
        """So many records as one batch; the log cleaner removes some of them, by their place, at once."""
        numbers = self._append(partition, [_key_of(partition)] * count, self.due, producer_id)
        if removed:
            self._remove(partition, [numbers[at] for at in removed], Due.NEVER)
        self.cluster.changed()

    def write_bad(self, partition: int, kind: BadKind, *, before: int, after: int, skipped: bool) -> None:
        """A batch with one bad record between good ones; a corrupt one is bad as a whole.

        `skipped` says whether bad records are left out by the task.
        """
        key = _key_of(partition)
        bad_key = {BadKind.TOO_LARGE: LARGE_KEY, BadKind.NO_KEY: None, BadKind.CORRUPT: key}[kind]
        numbers = self._append(partition, [*[key] * before, bad_key, *[key] * after], Due.MUST)
        bad = numbers if kind is BadKind.CORRUPT else numbers[before : before + 1]
        ledger = self.ledgers[partition]
        ledger.bad.update(bad)
        if skipped:
            ledger.change(bad, Due.NEVER)
        if kind is BadKind.CORRUPT:
            log = self.log(partition)
            self._damaged[partition, log.batches[-1].base_offset] = log.batches[-1]
            log.damage(-1)
        self.cluster.changed()

    def repair(self) -> None:
        """The damaged batches are as they were."""
        for (partition, _), good in self._damaged.items():
            self.log(partition).restore(good)
        self._damaged.clear()
        self.cluster.changed()

    def compact(self, partition: int, numbers: Collection[int]) -> None:
        """The log cleaner removes these records: the target has them or will never get them."""
        self._remove(partition, numbers, Due.MAY)
        self.cluster.changed()

    # transactions

    def write_in_transaction(self, producer_id: int, partition: int, count: int) -> None:
        """Write one batch of the producer's transaction, which begins with its first batch."""
        transaction = self._open.setdefault(producer_id, _OpenTransaction())
        numbers = self._append(partition, [_key_of(partition)] * count, Due.UNDECIDED, producer_id)
        transaction.logs[partition] = self.log(partition)
        transaction.numbers.setdefault(partition, []).extend(numbers)
        transaction.dues.setdefault(partition, []).extend([self.due] * count)
        self.cluster.changed()

    @property
    def open_transactions(self) -> Collection[int]:
        """The producer ids that have one."""
        return list(self._open)

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        """Write its markers, except into logs that were replaced meanwhile."""
        transaction = self._open.pop(producer_id, _OpenTransaction())
        for partition, log in transaction.logs.items():
            ledger, numbers = self.ledgers[partition], transaction.numbers[partition]
            if commit:
                for number, due in zip(numbers, transaction.dues[partition], strict=True):
                    ledger.change([number], due)
            else:
                ledger.change(numbers, Due.NEVER)
                ledger.aborted.update(numbers)
            if log is self.log(partition):
                log.append_marker(producer_id, 0, self.cluster.now_ms(), commit=commit)
        self.cluster.changed()

    def truncate(self, partition: int, end: int) -> None:
        """Truncate by an unclean election. Transactions whose markers are lost end."""
        log = self.log(partition)
        log.truncate(end, self.cluster.now_ms())
        self._lose(partition, log.end)
        for producer_id, entry in log.producers.entries.items():
            start = entry.transaction_start
            if start is not None and start != self._began(producer_id, partition):
                log.append_marker(producer_id, entry.epoch, self.cluster.now_ms(), commit=False)
                self._abort_in(producer_id, partition)
        self.cluster.changed()

    def _began(self, producer_id: int, partition: int) -> int | None:
        """The offset at which the producer's open transaction has begun there."""
        numbers = self._open.get(producer_id, _OpenTransaction()).numbers.get(partition)
        return self.ledgers[partition].offsets[numbers[0]] if numbers else None

    def _abort_in(self, producer_id: int, partition: int) -> None:
        """End what an open transaction has there with the one before, whose marker was lost."""
        transaction = self._open.get(producer_id)
        if transaction is not None and transaction.logs.pop(partition, None) is not None:
            ledger, numbers = self.ledgers[partition], transaction.numbers.pop(partition)
            ledger.change(numbers, Due.NEVER)
            ledger.aborted.update(numbers)
            del transaction.dues[partition]

    def replaced(self) -> None:
        """The topic is another one, without records."""
        for partition in range(len(self.ledgers)):
            self._lose(partition, 0)

    def _lose(self, partition: int, end: int) -> None:
        """Note records of open transactions that are lost: they were not readable, and will never arrive."""
        ledger = self.ledgers[partition]
        for number, offset in enumerate(ledger.offsets):
            if offset >= end and ledger.dues[number] is Due.UNDECIDED:
                ledger.change([number], Due.NEVER)

    def _append(
        self, partition: int, keys: list[bytes | None], due: Due, producer_id: int = NO_PRODUCER_ID
    ) -> range:
        ledger, log, first = self.ledgers[partition], self.log(partition), self.ledgers[partition].count
        # Differences of timestamps, and so the sizes of batches, depend on virtual time only.
        now_ms = 1000 * self._epoch_s + int(1000 * self.cluster.scheduler.time())
        headers_of = (lambda _: ()) if self._transforms is None else self._transforms.headers_of
        records = [
            Rec(at, now_ms, key, b"%s%d" % (self.mark, first + at), headers_of(first + at))
            for at, key in enumerate(keys)
        ]
        header = {"attributes": TRANSACTIONAL if due is Due.UNDECIDED else 0}
        if producer_id != NO_PRODUCER_ID:
            entry = log.producers.entries.get(producer_id)
            sequence = 0 if entry is None else entry.last_sequence + 1
            header |= {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        appended = log.append(bytes(encode(records, **header)), self.cluster.now_ms())
        assert appended.error == NONE, appended
        return ledger.add(decoded(log.batches[-1].data).records, due)

    def _remove(self, partition: int, numbers: Collection[int], due: Due) -> None:
        ledger = self.ledgers[partition]
        compaction.remove(self.log(partition), {ledger.offsets[number] for number in numbers})
        ledger.removed.update(numbers)
        for number in numbers:
            if ledger.dues[number] is Due.MUST:
                ledger.change([number], due)


def _key_of(partition: int) -> bytes:
    """So that a record tells where it belongs."""
    return b"key-%d" % partition
