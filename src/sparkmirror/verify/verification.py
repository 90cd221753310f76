"""Verifies flows: compares what they have mirrored, unless the report file holds it, and judges each flow.

How ranges are compared is the caller's: by a Spark job, or here.
"""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

from sparkmirror.connectors.flow_settings import FlowWorker, SourceConfig
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.policies.java_regex import JavaPattern
from sparkmirror.verify.comparison import Comparison
from sparkmirror.verify.flow_contents import FlowContents, flow_contents
from sparkmirror.verify.plan import plan_ranges
from sparkmirror.verify.ranges import RangeOutcome, RangePlan
from sparkmirror.verify.report_file import PartitionReport, RangeReport, Report
from sparkmirror.verify.verdict import FlowVerdict, PartitionVerdict

_SAVE_EVERY_S: Final = 2.0

CompareRanges = Callable[[Sequence[RangePlan], Callable[[RangeOutcome], None]], None]
"""Passes on each range's outcome as soon as it is known."""


class Told(Protocol):
    """Shows how far a comparison is: lines that stay, and updates in between."""

    def print(self, text: str) -> object: ...

    def updates(self) -> AbstractContextManager[Callable[[str], object]]: ...


class Verification:
    """One run over some flows. Everything blocks and raises SparkmirrorError."""

    def __init__(
        self,
        flows: Iterable[tuple[FlowWorker, SourceConfig]],
        topics: JavaPattern | None = None,
        report_file: Path | None = None,
    ) -> None:
        """Ask both clusters of each flow, and plan what the report file does not hold yet.

        `topics` selects by whole names on the source.
        """
        self._contents = {str(on.flow): flow_contents(on, connector, topics) for on, connector in flows}
        _require_something(self._contents.values())
        self._report = Report(report_file, {name: each.sides for name, each in self._contents.items()})
        self._partitions = {name: self._plan(name, each) for name, each in self._contents.items()}
        self._report.save()

    @property
    def is_finished(self) -> bool:
        return not self._report.unfinished()

    def compare(self, compare_ranges: CompareRanges, status: Told) -> None:
        """Compare once, and again where ranges that touch differ: then the boundary may be what is wrong."""
        self._compare(compare_ranges, status)
        if self._report.merge_differences():
            status.print("Comparing again in one piece where neighbouring ranges differ …")
            self._report.save()
            self._compare(compare_ranges, status)

    def verdicts(self) -> list[FlowVerdict]:
        return [
            _flow_verdict(name, content, self._partitions[name]) for name, content in self._contents.items()
        ]

    def _plan(self, name: str, content: FlowContents) -> list[PartitionReport]:
        """Each partition with its ranges in the report, and new ones for the records mirrored since."""
        selected = [
            self._report.select(name, each.plan.source, each.plan.target) for each in content.mirrored
        ]
        by_source = {partition.source: partition for partition in selected}
        mirrored = [each._replace(done=by_source[each.plan.source].end) for each in content.mirrored]
        for plan in plan_ranges(content.sides, mirrored):
            by_source[plan.source].ranges.append(RangeReport(plan))
        return selected

    def _compare(self, compare_ranges: CompareRanges, status: Told) -> None:
        ranges = self._report.unfinished()
        finished = records = 0
        saved_at = time.monotonic()

        def take(outcome: RangeOutcome) -> None:
            nonlocal finished, records, saved_at
            done = ranges[outcome.number]
            done.comparison, done.error = outcome.comparison, outcome.error
            finished += 1
            records += outcome.comparison.equal if outcome.comparison else 0
            update(f"{finished:,} of {len(ranges):,} ranges, {records:,} equal records")
            if time.monotonic() - saved_at > _SAVE_EVERY_S:
                self._report.save()
                saved_at = time.monotonic()

        with status.updates() as update:
            try:
                compare_ranges([each.plan for each in ranges], take)
            finally:
                self._report.save()


def _require_something(contents: Collection[FlowContents]) -> None:
    if any(content.mirrored or content.gone or content.empty or content.promoted for content in contents):
        return
    not_begun = [left for content in contents for left in content.not_begun]
    if not not_begun:
        raise SparkmirrorError("there is nothing to compare: no topic of the source is mirrored")
    raise SparkmirrorError(
        f"there is nothing to compare: the flow has not begun with any of {len(not_begun):,} partitions "
        f"({not_begun[0].plan.source}: {not_begun[0].why}). Does the mirror run with this file?"
    )


def _flow_verdict(name: str, content: FlowContents, compared: Sequence[PartitionReport]) -> FlowVerdict:
    verdicts = [
        PartitionVerdict(found.source, found.target, found.comparison, found.end, tuple(found.errors))
        for found in compared
    ]
    verdicts += [PartitionVerdict(plan.source, plan.target, Comparison()) for plan in content.empty]
    verdicts += [
        PartitionVerdict(left.plan.source, left.plan.target, Comparison(gave_up=left.why))
        for left in content.gone
    ]
    verdicts += [
        PartitionVerdict(left.plan.source, left.plan.target, Comparison(), not_begun=left.why)
        for left in content.not_begun
    ]
    verdicts += [
        PartitionVerdict(left.plan.source, left.plan.target, Comparison(), promoted=left.why)
        for left in content.promoted
    ]
    return FlowVerdict(name, sorted(verdicts, key=lambda verdict: verdict.source))
