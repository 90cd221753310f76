"""Compares a partition with its mirror, record by record: count, order, key, value, headers, timestamp.

`Alignment` finds equal records and the gaps between. Records in a gap were lost on one side by retention or
compaction and can't be compared, or they are differences, or another producer wrote them. Compaction is
accepted as a reason only where offsets are without a record.

Pure.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import NamedTuple

from sparkmirror.batches.agreement.alignment import Alignment, EqualBatches, EqualRecords, Gap
from sparkmirror.batches.agreement.compared_log import END, ComparedLog, GaveUpError, Record, Records, Span
from sparkmirror.batches.agreement.equality import RecordKey
from sparkmirror.batches.record_batch import FetchedBatch
from sparkmirror.verify.compaction import Cleaner, Holes, holes
from sparkmirror.verify.differences import Findings, are_nearly_equal
from sparkmirror.verify.recent_records import RecentRecords
from sparkmirror.verify.rules_and_result import DIFFERENCES_SHOWN_MAX, Comparison, Rules


class Log(NamedTuple):
    """A side: batches without control batches and aborted records, and the offsets to compare.

    `later` follows the span, and is read only to explain compaction.
    """

    batches: Iterable[FetchedBatch]
    span: Span
    later: Iterable[FetchedBatch] = ()

    @property
    def rest(self) -> tuple[Iterable[FetchedBatch], Span]:
        return self.later, Span(self.span.end, END)


def compare(source: Log, target: Log, rules: Rules) -> Comparison:
    """Raises CorruptBatchError for a batch that can't be opened."""
    return _RecordComparison(source, target, rules).run()


class _RecordComparison:
    def __init__(self, source: Log, target: Log, rules: Rules) -> None:
        self._rules = rules
        self._source_recent = RecentRecords(source.span, rules)
        self._target_recent = RecentRecords(target.span, rules)
        copies = target.batches
        if rules.target_is_compacted:
            copies = self._target_recent.keep(copies)
        self._source = _opened(self._source_recent.keep(source.batches), source.span, rules)
        self._target = _opened(copies, target.span, rules)
        self._source_log, self._target_log = source, target
        self._source_cleaner = Cleaner(is_on=rules.source_is_compacted)
        self._target_cleaner = Cleaner(is_on=rules.target_is_compacted)
        self._findings = Findings(self._source, self._source_recent, rules)
        self._equal = 0
        self._not_comparable = 0
        self._left_out = 0

    def run(self) -> Comparison:
        gave_up = None
        try:
            self._walk()
            self._settle_cleaned()
        except GaveUpError as reason:
            gave_up = str(reason)
        differences = self._findings.differences
        return Comparison(
            self._equal,
            self._findings.foreign,
            self._not_comparable,
            dict(Counter(difference.what for difference in differences)),
            tuple(differences[:DIFFERENCES_SHOWN_MAX]),
            gave_up,
            self._left_out,
        )

    def _walk(self) -> None:
        alignment = Alignment(self._source, self._target)
        for found in alignment.differences(to_target_end=self._rules.target_end_is_known):
            match found:
                case EqualBatches(batch, copy):
                    self._equal += batch.header.record_count
                    self._check_offset(batch.header.base_offset, copy.header.base_offset)
                    self._saw_equal_batch(batch)
                case EqualRecords(keys, offsets, copied_to):
                    self._equal += len(keys)
                    self._saw_equal(keys)
                    if self._rules.same_offsets:
                        for pair in zip(offsets, copied_to, strict=True):
                            self._check_offset(*pair)
                case Gap():
                    self._explain(self._without_lost_beginning(found))

    def _check_offset(self, offset: int, copied_to: int) -> None:
        """Compare the offsets of equal records, or of the first of a batch."""
        if self._rules.same_offsets and offset != copied_to:
            self._findings.add_moved(offset, copied_to)

    def _saw_equal_batch(self, batch: FetchedBatch) -> None:
        """Open it only where a cleaner awaits keys."""
        if self._source_cleaner or self._target_cleaner:
            records = Records(self._rules.decompressed_bytes_max)
            records.add([batch], self._source.span, timestamps=self._rules.timestamps)
            self._saw_equal(records.keys)

    def _saw_equal(self, keys: Iterable[RecordKey]) -> None:
        for cleaner in filter(None, (self._source_cleaner, self._target_cleaner)):
            cleaner.saw(body for _, body in keys)

    def _without_lost_beginning(self, gap: Gap) -> Gap:
        """Take records off the first gap that the other side lost at its beginning.

        Only the side that begins earlier has such records, unless a cleaner removed some.
        """
        if self._equal:
            return gap
        rules, altered = self._rules, _altered_at_end(gap)
        lost_extra = len(gap.extra) - altered if rules.source_lost_beginning else 0
        may_be_both = not lost_extra or rules.source_is_compacted or rules.target_is_compacted
        lost_missing = len(gap.missing) - altered if rules.target_lost_beginning and may_be_both else 0
        if not lost_extra and not lost_missing:
            return gap
        self._not_comparable += lost_extra
        if rules.begins_late:
            self._left_out += lost_missing
        else:
            self._not_comparable += lost_missing
        return Gap(gap.missing[lost_missing:], gap.extra[lost_extra:], is_whole=False)

    def _explain(self, gap: Gap) -> None:
        """First moved and changed records, then removals by the cleaner; the rest is missing or extra."""
        at_source, at_target = self._holes(gap)
        rest = self._findings.pair_up(gap, compacted=bool(at_target.possible or at_source.possible))
        self._source_cleaner.saw(record.body for record in rest.missing)
        self._account(rest.missing, self._target_cleaner, at_target, self._findings.add_missing)
        self._target_cleaner.saw(record.body for record in at_target.repeated)
        self._target_cleaner.saw(copy.body for copy in rest.extra)
        self._account(rest.extra, self._source_cleaner, at_source, self._findings.add_extra)
        self._source_cleaner.saw(copy.body for copy in at_source.repeated)

    def _holes(self, gap: Gap) -> tuple[Holes, Holes]:
        """The holes that the cleaners of source and target may have left in this gap."""
        extra = gap.extra if self._source_cleaner.is_on else []
        missing = gap.missing if self._target_cleaner.is_on else []
        if not gap.is_whole:
            return Holes(len(extra)), Holes(len(missing))
        return holes(self._source, self._source_recent, gap.missing, extra), holes(
            self._target, self._target_recent, gap.extra, missing
        )

    def _account(
        self, records: Iterable[Record], cleaner: Cleaner, found: Holes, add: Callable[[Record], None]
    ) -> None:
        """Add the records that the cleaner can't have removed."""
        left = found.possible
        for record in records:
            if left and cleaner.may_have_removed(record):
                left -= 1
                self._not_comparable += 1
            else:
                add(record)

    def _settle_cleaned(self) -> None:
        """Search behind the spans for keys that must follow there if the cleaner removed their records."""
        bytes_max = self._rules.decompressed_bytes_max
        for record in self._target_cleaner.not_removed(*self._target_log.rest, bytes_max):
            self._not_comparable -= 1
            self._findings.add_missing(record)
        for copy in self._source_cleaner.not_removed(*self._source_log.rest, bytes_max):
            self._not_comparable -= 1
            self._findings.add_extra(copy)


def _opened(batches: Iterable[FetchedBatch], span: Span, rules: Rules) -> ComparedLog:
    bytes_max = rules.decompressed_bytes_max
    return ComparedLog(batches, span, timestamps=rules.timestamps, decompressed_bytes_max=bytes_max)


def _altered_at_end(gap: Gap) -> int:
    """Count the last records of both sides that differ in one part only."""
    pairs = zip(reversed(gap.missing), reversed(gap.extra), strict=False)
    return sum(1 for _ in takewhile(lambda pair: are_nearly_equal(*pair), pairs))
