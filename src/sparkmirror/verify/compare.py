"""Compares a partition with its mirror, record by record: count, order, key, value, headers, timestamp.

`Alignment` finds equal records and the gaps between. Records in a gap were lost on one side by retention or
compaction and can't be compared, or they are differences, or another producer wrote them.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from sparkmirror.batches.record_batch import FetchedBatch
from sparkmirror.verify.alignment import Alignment, Gap
from sparkmirror.verify.cleaner import Cleaner
from sparkmirror.verify.comparison import DIFFERENCES_SHOWN_MAX, Comparison, GaveUpError, Rules
from sparkmirror.verify.findings import Findings
from sparkmirror.verify.records import END, Span
from sparkmirror.verify.side import Side, SourceSide


class Log(NamedTuple):
    """One side: batches without control batches and aborted records, and the offsets to compare.

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
    return _Comparing(source, target, rules).run()


class _Comparing:
    def __init__(self, source: Log, target: Log, rules: Rules) -> None:
        bytes_max, timestamps = rules.decompressed_bytes_max, rules.timestamps
        source_side = SourceSide(
            source.batches, source.span, timestamps=timestamps, decompressed_bytes_max=bytes_max
        )
        target_side = Side(
            target.batches, target.span, timestamps=timestamps, decompressed_bytes_max=bytes_max
        )
        self._rules = rules
        self._source_log, self._target_log = source, target
        self._source_cleaner = Cleaner(is_on=rules.source_is_compacted)
        self._target_cleaner = Cleaner(is_on=rules.target_is_compacted)
        self._alignment = Alignment(
            source_side,
            target_side,
            (self._source_cleaner, self._target_cleaner),
            to_target_end=rules.target_end_is_known,
        )
        self._findings = Findings(source_side, rules)
        self._not_comparable = 0

    def run(self) -> Comparison:
        gave_up = None
        try:
            for gap in self._alignment.gaps():
                self._explain(self._without_lost_beginning(gap))
            self._settle_cleaned()
        except GaveUpError as reason:
            gave_up = str(reason)
        differences = self._findings.differences
        return Comparison(
            self._alignment.equal,
            self._findings.foreign,
            self._not_comparable,
            dict(Counter(difference.what for difference in differences)),
            tuple(differences[:DIFFERENCES_SHOWN_MAX]),
            gave_up,
        )

    def _without_lost_beginning(self, gap: Gap) -> Gap:
        if self._alignment.equal:
            return gap
        if gap.extra and self._rules.source_lost_beginning:
            self._not_comparable += len(gap.extra)
            return gap._replace(extra=[])
        if gap.missing and self._rules.target_lost_beginning:
            self._not_comparable += len(gap.missing)
            return gap._replace(missing=[])
        return gap

    def _explain(self, gap: Gap) -> None:
        """First moved and changed records, then removals by the cleaner; the rest is missing or extra."""
        missing, extra = self._findings.pair_up(gap)
        for record in missing:
            self._source_cleaner.saw(record.body)
            if self._target_cleaner.may_have_removed(record):
                self._not_comparable += 1
            else:
                self._findings.add_missing(record)
        for copy in extra:
            self._target_cleaner.saw(copy.body)
            if self._source_cleaner.may_have_removed(copy):
                self._not_comparable += 1
            else:
                self._findings.add_extra(copy)

    def _settle_cleaned(self) -> None:
        """Search behind the spans for keys that must follow there if the cleaner removed their records."""
        bytes_max = self._rules.decompressed_bytes_max
        for record in self._target_cleaner.not_removed(*self._target_log.rest, bytes_max):
            self._not_comparable -= 1
            self._findings.add_missing(record)
        for copy in self._source_cleaner.not_removed(*self._source_log.rest, bytes_max):
            self._not_comparable -= 1
            self._findings.add_extra(copy)
