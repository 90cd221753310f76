"""Looks up where an attempt ended: its last sequence in the target's log leads to an offset of the source.

No content is compared and the source is not read. The log is read backwards from its end, since the last
batch of the attempt is near it, as a rule, and the stored position may be another attempt's.

Then what is behind the stored position, and just before it, is counted batch by batch: others may have
written there as well, or a leader has taken what it should have refused, since it had forgotten the producer.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import CONTROL, SEQUENCE_MODULUS, BatchHeader
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_reader import SpanReader
from sparkmirror.kafka.net.metadata import Metadata
from sparkmirror.offsets.offset_runs import Run
from sparkmirror.offsets.sequence_ends import NoSuchEndError, SequenceEnd, end_behind, last_records
from sparkmirror.storage.attempts import Attempt, KnownEnd, Stage
from sparkmirror.storage.positions import Position

_SPAN: Final = 100

_ON_THEIR_WAY_MAX: Final = 5
"""The most batches of a partition that can be in flight, as with any idempotent producer."""

_WALKED_MAX: Final = 100_000
"""The most offsets that are looked at without a sign of trouble; they fit between two positions."""


class LogEnd(NamedTuple):
    """The end of the target's log. Nothing that is fenced is added behind the offset of the own `marker`."""

    offset: int
    marker: int | None = None

    @property
    def fenced(self) -> int:
        return self.offset if self.marker is None else self.marker


class TargetLogs:
    """Reads the logs of many partitions, one after the other, over the same connections.

    For those expected, starts and last records are asked for together. Not thread-safe: one owner.
    """

    def __init__(
        self,
        settings: ConsumerSettings,
        expected: Mapping[TopicPartition, int],
        metadata: Metadata | None = None,
    ) -> None:
        """`expected` says around which offset each is read first. `metadata` is as in `list_offsets`."""
        self._expected = dict(expected)
        self._starts: dict[TopicPartition, int | SparkmirrorError] = {}
        self.reader = SpanReader(settings, metadata)

    def start(self, partition: TopicPartition) -> int:
        """The start of the partition's log. Raises KafkaError."""
        if partition not in self._starts:
            expected, self._expected = self._expected, {}
            self._starts.update(self.reader.starts({*expected, partition}))
            self.reader.expect(
                {
                    each: max(start, expected[each] - _SPAN)
                    for each in expected
                    if isinstance(start := self._starts[each], int) and start < expected[each]
                }
            )
        start = self._starts[partition]
        if isinstance(start, SparkmirrorError):
            raise start
        return start

    def close(self) -> None:
        self.reader.close()


class Repeated(NamedTuple):
    """Target offsets of batches that a leader should have refused: their records may be there twice."""

    first: int
    last: int


class LastCopied(NamedTuple):
    """Copying continues at the upstream offset `end.offset`.

    `records` are behind the stored position, None where there is none of that attempt. `acknowledged` is
    where the target ended before it lost records, None where it has all. `is_uncertain` says that the log has
    expired behind what is known, and what is left of the attempt does not tell what it wrote there.
    `run` has the attempt's last records, None where their places on both sides are not known.
    """

    end: SequenceEnd
    records: int | None
    acknowledged: int | None = None
    repeated: Repeated | None = None
    is_uncertain: bool = False
    run: Run | None = None


class _Found(NamedTuple):
    """The end behind the attempt's last batch, and the target offset behind that."""

    end: SequenceEnd
    target_offset: int


class _Walked(NamedTuple):
    """The result of reading the log: so many `records` of the attempt in order, before what is `repeated`.

    `is_short` says that the target lost acknowledged records and the attempt wrote over their offsets,
    `is_vague` that what was before the log's start is unknown.
    """

    records: int
    repeated: Repeated | None = None
    is_short: bool = False
    is_vague: bool = False


def last_copied(
    logs: TargetLogs, partition: TopicPartition, last: Attempt, position: Position | None, log: LogEnd
) -> LastCopied:
    """Look up where the attempt ended, of which nothing is added any more.

    Blocks. Raises KafkaError, AuthorizationError where the target may not be read.
    """
    stored = _stored(last, position)
    known = known_end(last, position)
    if last.stage is Stage.CLOSED and log.offset == known.target_offset and log.marker is None:
        return LastCopied(known.end, None if stored is None else 0)
    search = _Search(logs.reader, partition, last, logs.start(partition))
    found = search.found(log.fenced)
    walked = search.walked(known, found, log)
    end = None if found is None else found.end
    # A leader that forgot the producer takes batches behind the marker: those in order are copied.
    is_ahead = walked.records > (known.end if end is None else end).records
    if walked.repeated is not None or is_ahead:
        end = end_behind(last.ends, walked.records % SEQUENCE_MODULUS)
    is_dense = found is not None and walked.repeated is None and _is_dense(found, known)
    is_short = (
        log.offset < known.target_offset
        or is_dense
        or walked.is_short
        or _is_before(end, known, log, search.first)
    )
    reached = known
    if end is not None and end.records > known.end.records:
        reached = KnownEnd(end, known.target_offset if found is None else found.target_offset)
    is_uncertain = walked.is_vague and last.stage is Stage.OPEN
    is_known = not (is_short or is_ahead or walked.repeated or is_uncertain)
    return LastCopied(
        reached.end,
        None if stored is None else reached.end.records - known.end.records,
        known.target_offset if is_short else None,
        walked.repeated,
        is_uncertain=is_uncertain,
        run=_run(last.ends, known, reached) if is_known else None,
    )


def _run(ends: Sequence[SequenceEnd], known: KnownEnd, reached: KnownEnd) -> Run | None:
    """The attempt's last records on both sides, as far as they follow each other behind what is known."""
    try:
        offsets = last_records(ends, reached.end.records)
    except NoSuchEndError:
        return None
    records = reached.end.records - known.end.records
    is_alone = records == reached.target_offset - known.target_offset
    return Run.ending(
        offsets[-1], reached.target_offset - 1, max(1, min(records, len(offsets))) if is_alone else 1
    )


def _is_dense(found: _Found, known: KnownEnd) -> bool:
    """Whether it has more records than offsets: it continued in the place of records that were lost."""
    return found.target_offset - known.target_offset < found.end.records - known.end.records


def _is_before(end: SequenceEnd | None, known: KnownEnd, log: LogEnd, first: int) -> bool:
    """Whether records that were acknowledged are gone: the own marker may stand in their place."""
    if end is not None:
        return end.records < known.end.records
    marker = first - 1 if log.marker is None else log.marker
    return known.end.records > 0 and first <= marker < known.target_offset


def known_end(last: Attempt, position: Position | None) -> KnownEnd:
    """The end that an attempt's record and the stored position tell."""
    recorded = last.recorded_end
    stored = _stored(last, position)
    return recorded if stored is None or stored.end.records < recorded.end.records else stored


def _stored(last: Attempt, position: Position | None) -> KnownEnd | None:
    """The end that the stored position tells, None where that is of another attempt."""
    if position is None or position.producer is None or position.producer.producer != last.producer:
        return None
    following = position.offset + 1
    try:
        records = end_behind(last.ends, position.producer.next_sequence).records
    except NoSuchEndError:
        return None  # older than an end that was acknowledged since
    end = SequenceEnd(records, following, position.logs.source_epoch)
    return KnownEnd(end, position.producer.next_offset)


class _Search(NamedTuple):
    """Searches the target's log, which starts at the offset `first`."""

    reader: SpanReader
    partition: TopicPartition
    last: Attempt
    first: int

    def found(self, end: int) -> _Found | None:
        """The end behind the attempt's last batch before this offset, None where there is none."""
        last = self.last
        # What was truncated to before the attempt has been written again.
        begin = self.first if end < last.target_offset else max(self.first, last.target_offset)
        batch = self._last_batch(begin, end)
        if batch is None:
            return None
        try:
            found = end_behind(last.ends, (batch.last_sequence + 1) % SEQUENCE_MODULUS)
        except NoSuchEndError:  # older than what was acknowledged: records are lost
            found = SequenceEnd(0, last.ends[0].offset)
        return _Found(found, batch.last_offset + 1)

    def _last_batch(self, begin: int, end: int) -> BatchHeader | None:
        return next((own[-1] for own in self._own_backwards(begin, end) if own), None)

    def _own_backwards(self, begin: int, end: int) -> Iterator[list[BatchHeader]]:
        """The attempt's batches by spans of the log, from the last span to the first."""
        for headers in self.reader.headers_backwards(self.partition, begin, end):
            yield [each for each in headers if self._has_written(each)]

    def _has_written(self, header: BatchHeader) -> bool:
        return self.last.producer.wrote(header) and not header.attributes & CONTROL

    def _headers(self, begin: int, end: int) -> Iterator[BatchHeader]:
        return (batch.header for batch in self.reader.read(self.partition, begin, end))

    def walked(self, known: KnownEnd, found: _Found | None, log: LogEnd) -> _Walked:
        """Read what is behind `known`, and just before it.

        Also where the offsets there are as many as the attempt's records, since others' may stand in the
        place of a batch that was refused; unless there are too many to look at.
        """
        records = 0 if found is None else found.end.records - known.end.records
        is_as_many = known.target_offset + records == log.fenced and log.offset <= log.fenced + 1
        if is_as_many and records > _WALKED_MAX:
            return _Walked(known.end.records)
        if known.target_offset < self.first:
            return _walk(self._headers(self.first, log.offset), self.last.producer, known, is_expired=True)
        begin = self._unacknowledged_before(known)
        return _walk(self._headers(begin, log.offset), self.last.producer, known)

    def _unacknowledged_before(self, known: KnownEnd) -> int:
        """The offset of a batch that belongs behind `known`, and is in the place of what was lost.

        Or a leader that forgot the producer took it without the one before. Else where `known` is.
        """
        end = known.target_offset
        begin = max(self.first, known.least_offset - _SPAN, end - _WALKED_MAX)
        own: list[BatchHeader] = []
        for some in self._own_backwards(begin, end):
            own += some
            if len(own) >= _ON_THEIR_WAY_MAX:
                break
        ahead = (at for at in own if _difference(at.base_sequence, known.end.records) >= 0)
        return min((at.base_offset for at in ahead), default=end)


def _walk(
    headers: Iterator[BatchHeader], producer: ProducerId, known: KnownEnd, *, is_expired: bool = False
) -> _Walked:
    """Compaction removes batches and leaves their offsets: a hole has less free ones than sequences.

    What was not acknowledged, and begins below the offset where it should, fills the place of what
    was lost: it is no hole. With `is_expired` the log starts behind `known`: if the first batch is not just
    where it should be, others' entries, or the same batches, had the offsets before it.
    """
    records, begin, is_over = known.end.records, known.target_offset, False
    others = 0
    """The number of offsets from `begin` on that have other entries than the records counted."""
    is_vague = is_expired
    repeated: list[BatchHeader] = []
    for header in headers:
        count = header.last_offset_delta + 1
        if header.attributes & CONTROL or not _is_earlier(header, producer):
            others += count if header.base_offset >= begin else 0
            continue
        ahead = _difference(header.base_sequence, records)
        due = records + ahead - known.end.records
        is_next = header.producer_epoch == producer.epoch and ahead >= 0 and not is_over
        if is_next and header.base_offset < known.target_offset:
            begin, others = header.base_offset - due, 0
        elif header.last_offset < known.target_offset:
            continue
        free = header.base_offset - begin - others
        if is_next and free >= due:
            if is_expired:
                begin, others, is_vague, is_expired = header.base_offset - due, 0, free > due, False
            records += ahead + count
        else:
            is_over = is_over or is_next
            others += count
            repeated.append(header)
    is_short = begin < known.target_offset
    there_again = Repeated(repeated[0].base_offset, repeated[-1].last_offset) if repeated else None
    return _Walked(records, there_again, is_short, is_vague)


def _is_earlier(header: BatchHeader, producer: ProducerId) -> bool:
    """Whether the producer's epoch, or one before it, has written the batch."""
    return header.producer_id == producer.id and header.producer_epoch <= producer.epoch


def _difference(sequence: int, records: int) -> int:
    """The number of records by which the sequence is ahead of so many."""
    ahead = (sequence - records) % SEQUENCE_MODULUS
    return ahead if ahead < SEQUENCE_MODULUS // 2 else ahead - SEQUENCE_MODULUS
