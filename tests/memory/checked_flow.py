"""One flow between two clusters in memory, and what holds for it whatever happens.

Each record, position, offset sync and dead letter is judged as soon as a broker has it.
"""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from sparkmirror.batches.log_records import Headers, LogRecord
from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerId
from sparkmirror.domain.ids import Flow, TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.storage.offset_sync_topic import RunSync, parse_offset_sync
from sparkmirror.storage.positions import parse_source_position_value
from sparkmirror.storage.progress import PartitionProgress, PartitionState, parse
from tests.memory.cluster import MemoryCluster
from tests.memory.committed import committed_records, decoded
from tests.memory.partition_log import PartitionLog, Stored
from tests.memory.source_records import SourceRecords
from tests.memory.transformed import Transforms

POSITIONS: Final = "positions"
ATTEMPTS: Final = "attempts"
SYNCS: Final = "syncs"
POSITION_PARTITIONS: Final = 2
_COMPACTED: Final = {"cleanup.policy": "compact"}


class Ends(NamedTuple):
    """The source and target cluster of a flow, its topic, and the topic's name on the target."""

    flow: Flow
    source: MemoryCluster
    target: MemoryCluster
    topic: str
    remote: str
    mark: bytes = b""
    """The prefix of the records that are written to its source."""


class CheckedFlow:
    """`violated` is called with what must never happen."""

    def __init__(
        self,
        ends: Ends,
        partitions: int,
        violated: Callable[[str], None],
        *,
        is_transactional: bool,
        is_lossy: bool,
        is_fenced: bool = True,
        preserves_offsets: bool = False,
        reads_committed: bool = False,
        added: Headers = (),
        transforms: Transforms | None = None,
    ) -> None:
        """`added` are the headers that the flow adds to its records.

        Attempts that are not fenced may repeat records, each in their order.
        """
        self.ends = ends
        self.records = SourceRecords(ends.source, ends.topic, partitions, ends.mark, transforms)
        self.reported: dict[int, PartitionProgress] = {}
        """The last progress record of each partition."""
        self.reads_committed = reads_committed
        self._is_transactional = is_transactional
        self._is_lossy = is_lossy
        self._preserves_offsets = preserves_offsets
        self._added = added if transforms is None else (*added, *transforms.added)
        self.violated = violated
        self._repeats = not (is_fenced or is_transactional)
        self._last: dict[tuple[int, ProducerId], int] = {}
        """Outside of transactions: the number of each partition's last record on the target.

        By producer where attempts may repeat records.
        """
        self._letters: list[set[tuple[int, int]]] = [set() for _ in range(partitions)]
        self._copied: dict[int, tuple[PartitionLog, int, list[int]]] = {}
        self.letters_topic = StateTopic.DEAD_LETTERS.of(ends.flow.source)
        self.progress_topic = StateTopic.PROGRESS.of(ends.flow.source)
        ends.source.create(SYNCS)
        ends.target.create(POSITIONS, POSITION_PARTITIONS, _COMPACTED)
        ends.target.create(ATTEMPTS, 1, _COMPACTED)
        ends.target.create(self.progress_topic, 1, _COMPACTED)
        ends.target.create(self.letters_topic, 1, _COMPACTED)
        ends.target.observers.append(self._target_has)
        ends.source.observers.append(self._source_has)
        self._judges: Mapping[str, Callable[[TopicPartition, Stored], None]] = {
            ends.remote: self._judge_records,
            POSITIONS: self._judge_positions,
            self.progress_topic: self._note_progress,
            self.letters_topic: self._judge_letters,
        }

    @property
    def partitions(self) -> range:
        return range(len(self.records.ledgers))

    def target_log(self, partition: int) -> PartitionLog:
        """One that has nothing while there is no such topic."""
        if self.ends.remote not in self.ends.target.topics:
            return PartitionLog({})
        return self.ends.target.log(TopicPartition(self.ends.remote, partition))

    def lose(self, *topics: str) -> None:
        """Somebody deletes topics of the mirror's own, by their names."""
        for topic in topics:
            if topic in self.ends.target.topics:
                self.ends.target.delete(topic)

    def create_own_topics(self) -> None:
        """Create the topics that are missing, as the driver does."""
        for topic, partitions in ((POSITIONS, POSITION_PARTITIONS), (self.progress_topic, 1)):
            if topic not in self.ends.target.topics:
                self.ends.target.create(topic, partitions, _COMPACTED)

    def target_is_replaced(self) -> None:
        """The new topic has none of the records."""
        self._last.clear()

    # what the target has

    def copied(self, partition: int) -> list[int]:
        """The numbers of the flow's records that are committed in the target."""
        log = self.target_log(partition)
        known_log, changes, numbers = self._copied.get(partition, (None, -1, []))
        if known_log is not log or changes != log.changes:
            found = (self.records.number_of(record.value) for record in committed_records(log))
            numbers = [number for number in found if number >= 0]
            self._copied[partition] = log, log.changes, numbers
        return numbers

    def missing(self, partition: int) -> set[int]:
        """The numbers of the records that are due, can be read from the source, and are not there."""
        log = self.records.log(partition)
        end = log.last_stable_offset if self.reads_committed else log.high_watermark
        return set(self.records.ledgers[partition].due(end)).difference(self.copied(partition))

    def is_copied(self, partition: int, *, before: int | None = None) -> bool:
        """Whether all records that are due are there, or all before this source offset."""
        ledger = self.records.ledgers[partition]
        return set(ledger.due(before)).issubset(self.copied(partition))

    @property
    def is_complete(self) -> bool:
        return all(map(self.is_copied, self.partitions))

    @property
    def has_positions(self) -> bool:
        """Whether each partition has a stored position."""
        return len(self._positions()) == len(self.partitions)

    @property
    def is_stored(self) -> bool:
        """Whether the stored positions are the ends of the source: transactions' markers count too."""
        stored = self._positions()
        ends = ((partition, self.records.log(partition).end) for partition in self.partitions)
        return all(stored.get(partition, -1) == end - 1 for partition, end in ends)

    @property
    def is_synced(self) -> bool:
        """Whether a group that has read all of the source continues behind all copies on the target."""
        return all(map(self._is_synced, self.partitions))

    def _is_synced(self, partition: int) -> bool:
        copies = [
            (number, record.offset)
            for record in committed_records(self.target_log(partition))
            if (number := self.records.number_of(record.value)) >= 0
        ]
        history: SyncHistory | None = None
        for record in committed_records(self.ends.source.log(TopicPartition(SYNCS, 0))):
            found = parse_offset_sync(record)
            if found is None or found.sync.topic_partition.partition != partition:
                continue
            if history is None:
                history = SyncHistory(*found)
            else:
                history.add(*found)
        if not copies or history is None:
            return not copies
        number, there = copies[-1]
        return history.translate(self.records.ledgers[partition].offset_of(number) + 1) == there + 1

    def is_failed(self, partition: int) -> bool:
        """Whether the task reports that a user must act, and why."""
        report = self.reported.get(partition)
        return report is not None and report.state is PartitionState.FAILED and bool(report.error)

    @property
    def stopped_partitions(self) -> Collection[int]:
        """Return the partitions with a bad record that has not arrived."""
        ledgers = enumerate(self.records.ledgers)
        return [at for at, ledger in ledgers if not ledger.bad.issubset(self.copied(at))]

    @property
    def waits_for_repair(self) -> bool:
        """Whether partitions with a bad batch have failed right before it, and all others are complete."""
        stopped = self.stopped_partitions
        return all(
            self._is_failed_before_the_bad_batch(at) if at in stopped else self.is_copied(at)
            for at in self.partitions
        )

    def _is_failed_before_the_bad_batch(self, partition: int) -> bool:
        ledger = self.records.ledgers[partition]
        first = min(ledger.bad - set(self.copied(partition)))
        return self.is_failed(partition) and self.is_copied(partition, before=ledger.offsets[first])

    def check_committed(self) -> None:
        """Check at any time that what is committed is in order, and so are positions."""
        for partition in self.partitions:
            self._check_order(partition)
        if not self._is_lossy:
            for at in range(POSITION_PARTITIONS):
                for record in committed_records(self.ends.target.log(TopicPartition(POSITIONS, at))):
                    self._judge_position(record)

    @property
    def has_bounds(self) -> bool:
        """Whether both logs start and end alike, where offsets are preserved."""
        pairs = [(self.records.log(at), self.target_log(at)) for at in self.partitions]
        return not self._preserves_offsets or all(
            (source.start, source.end) == (target.start, target.end) for source, target in pairs
        )

    def check_letters(self) -> None:
        """Check at the end that each record that was skipped is named."""
        for ledger, letters in zip(self.records.ledgers, self._letters, strict=True):
            if failure := ledger.without_letter(letters):
                self.violated(failure)

    def _check_order(self, partition: int) -> None:
        if self._repeats:
            return  # each record was judged when it arrived
        before = -1
        for number in self.copied(partition):
            if failure := self.records.ledgers[partition].misplaced(number, before):
                self.violated(f"{self.ends.remote}-{partition}: {failure}")
            before = number

    def _positions(self) -> Mapping[int, int]:
        """The last replicated offset of each partition, as it is stored; -1 before the first record."""
        return {
            _partition_of(record): -1 if offset is None else offset
            for at in range(POSITION_PARTITIONS)
            for record in committed_records(self.ends.target.log(TopicPartition(POSITIONS, at)))
            for offset in (parse_source_position_value(record.value),)
        }

    # what arrives

    def _target_has(self, partition: TopicPartition, stored: Stored) -> None:
        judge = self._judges.get(partition.topic)
        if judge is not None:
            judge(partition, stored)

    def _judge_records(self, partition: TopicPartition, stored: Stored) -> None:
        at = partition.partition
        ledger = self.records.ledgers[at]
        batch = decoded(stored.data)
        header = batch.header
        writer = ProducerId(header.producer_id, header.producer_epoch) if self._repeats else NOT_IDEMPOTENT
        for record in batch.records:
            number = self.records.number_of(record.value)
            if self._preserves_offsets:
                if record.value is None and record.offset < self.records.log(at).start:
                    continue  # filler
                if record.offset != ledger.offset_of(number):
                    wanted = ledger.offset_of(number)
                    self.violated(f"{partition}: record {number} of offset {wanted} is at {record.offset}")
            failure = ledger.misplaced(number, self._before(at, number, writer))
            if 0 <= number < ledger.count:
                failure = failure or ledger.altered(number, record, self._added)
            if failure:
                self.violated(f"{partition}: {failure}")
            self._last[at, writer] = number

    def _before(self, partition: int, number: int, writer: ProducerId) -> int:
        """The number of the record that this one follows."""
        if self._is_transactional:  # it may come again after an abort: see `check_committed`
            return number - 1
        if (partition, writer) in self._last or not self._repeats:
            return self._last.get((partition, writer), -1)
        arrived = set(self.copied(partition))
        missing = (due for due in self.records.ledgers[partition].due() if due not in arrived)
        return min(number, next(missing, number)) - 1

    def _judge_positions(self, partition: TopicPartition, stored: Stored) -> None:
        del partition
        if not self._is_transactional and not self._is_lossy:
            for record in decoded(stored.data).records:
                self._judge_position(record)

    def _judge_position(self, record: LogRecord) -> None:
        partition, offset = _partition_of(record), parse_source_position_value(record.value)
        if offset is None:
            return
        ledger = self.records.ledgers[partition]
        failure = ledger.not_ready(offset, set(self.copied(partition)))
        if failure:
            self.violated(f"position {offset} of partition {partition} is stored: {failure}")

    def _note_progress(self, partition: TopicPartition, stored: Stored) -> None:
        del partition
        for record in decoded(stored.data).records:
            report = parse(record)
            if isinstance(report, PartitionProgress):
                self.reported[report.source.partition] = report

    def _judge_letters(self, partition: TopicPartition, stored: Stored) -> None:
        del partition
        for record in decoded(stored.data).records:
            letter = json.loads(record.value or b"null")
            at = letter["partition"]
            self._letters[at].add((letter["first"], letter["last"]))
            if failure := self.records.ledgers[at].wrongly_named(self._letters[at]):
                self.violated(failure)

    def _source_has(self, partition: TopicPartition, stored: Stored) -> None:
        if partition.topic != SYNCS or self._is_lossy:
            return
        for record in decoded(stored.data).records:
            found = parse_offset_sync(record)
            assert found is not None
            self._judge_sync(found)

    def _judge_sync(self, found: RunSync) -> None:
        """The pairs of offsets of its run are those of the same records, or of the same gap."""
        sync, at = found.sync, found.sync.topic_partition.partition
        is_committed = self.ends.target.transactions.is_committed
        numbers = {
            record.offset: self.records.number_of(record.value)
            for record in committed_records(self.target_log(at), is_committed)
        }
        for back in range(found.run):
            upstream, downstream = sync.upstream_offset - back, sync.downstream_offset - back
            if self._preserves_offsets and downstream not in numbers:
                if upstream != downstream or downstream >= self.target_log(at).end:
                    self.violated(f"{found}: offset {upstream} is {downstream} on the target")
                continue
            number = numbers.get(downstream, -1)
            if self.records.ledgers[at].offset_of(number) != upstream:
                self.violated(f"{found}: at {downstream} the target has record {number}")
                return


def _partition_of(position: LogRecord) -> int:
    return int((position.key or b"").split(b'"partition":')[1].split(b",")[0])
