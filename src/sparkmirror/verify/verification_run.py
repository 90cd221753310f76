"""Verifies flows: compares what they have mirrored, unless the report file holds it, and judges each flow.

The caller brings the function that compares ranges: `spark_job`, or `child_process`.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Final, Protocol

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.machine import machine_name
from sparkmirror.policies.java_regex import JavaPattern
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.storage.verified import verified_events
from sparkmirror.verify.flow_partitions import FlowPartitions, flow_partitions
from sparkmirror.verify.range_comparison import RangeOutcome, RangePlan
from sparkmirror.verify.range_planning import plan_ranges
from sparkmirror.verify.report_file import PartitionReport, RangeReport, Report
from sparkmirror.verify.rules_and_result import Comparison
from sparkmirror.verify.verdict import FlowVerdict, PartitionVerdict, in_words, verified

_SAVE_EVERY_S: Final = 2.0
_KEEP_TIMEOUT_S: Final = 5.0

CompareRanges = Callable[[Sequence[RangePlan], Callable[[RangeOutcome], None]], None]
"""Passes on each range's outcome as soon as it is known."""


class NothingBegunError(SparkmirrorError):
    """The flow has begun with none of the partitions that have records to compare."""


class ProgressDisplay(Protocol):
    """Shows how far a comparison is: lines that stay, and updates in between."""

    def print(self, text: str) -> object: ...

    def updates(self) -> AbstractContextManager[Callable[[str], object]]: ...


class Verification:
    """Compares some flows once. Everything blocks and raises SparkmirrorError."""

    def __init__(
        self,
        flows: Iterable[tuple[FlowWorker, ConfiguredSource]],
        topics: JavaPattern | None = None,
        report_file: Path | None = None,
    ) -> None:
        """Ask both clusters of each flow, and plan what the report file does not hold yet.

        `topics` selects by whole names on the source.
        """
        self._flows = {str(on.flow): flow_partitions(on, connector, topics) for on, connector in flows}
        _require_something(self._flows.values())
        self._report = Report(report_file, {name: each.sides for name, each in self._flows.items()})
        self._partitions = {name: self._plan(name, each) for name, each in self._flows.items()}
        self._report.save()

    @property
    def is_finished(self) -> bool:
        return not self._report.unfinished()

    def compare(self, compare_ranges: CompareRanges, status: ProgressDisplay) -> None:
        """Compare once, and again where ranges that touch differ: then the boundary may be what is wrong."""
        self._compare(compare_ranges, status)
        if self._report.merge_differences():
            status.print("Comparing again in one piece where neighbouring ranges differ …")
            self._report.save()
            self._compare(compare_ranges, status)

    def verdicts(self) -> list[FlowVerdict]:
        return [_flow_verdict(name, flow, self._partitions[name]) for name, flow in self._flows.items()]

    def _plan(self, name: str, flow: FlowPartitions) -> list[PartitionReport]:
        """List each partition's ranges in the report, and new ones for the records mirrored since."""
        selected = [self._report.select(name, each.plan.source, each.plan.target) for each in flow.mirrored]
        by_source = {partition.source: partition for partition in selected}
        mirrored = [each._replace(done=by_source[each.plan.source].end) for each in flow.mirrored]
        for plan in plan_ranges(flow.sides, mirrored):
            by_source[plan.source].ranges.append(RangeReport(plan))
        return selected

    def _compare(self, compare_ranges: CompareRanges, status: ProgressDisplay) -> None:
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


def _require_something(flows: Collection[FlowPartitions]) -> None:
    if any(flow.mirrored or flow.gone or flow.empty or flow.promoted for flow in flows):
        return
    not_begun = [left for flow in flows for left in flow.not_begun]
    if not not_begun:
        raise SparkmirrorError("there is nothing to compare: no topic of the source is mirrored")
    raise NothingBegunError(
        f"there is nothing to compare: the flow has not begun with any of {len(not_begun):,} partitions "
        f"({not_begun[0].plan.source}: {not_begun[0].why}). Does the mirror run with this file?"
    )


def _flow_verdict(name: str, flow: FlowPartitions, compared: Sequence[PartitionReport]) -> FlowVerdict:
    verdicts = [
        PartitionVerdict(found.source, found.target, found.comparison, found.end, tuple(found.errors))
        for found in compared
    ]
    verdicts += [PartitionVerdict(plan.source, plan.target, Comparison()) for plan in flow.empty]
    verdicts += [
        PartitionVerdict(left.plan.source, left.plan.target, Comparison(gave_up=left.why))
        for left in flow.gone
    ]
    verdicts += [
        PartitionVerdict(
            left.plan.source, left.plan.target, Comparison(left_out=left.left_out), not_begun=left.why
        )
        for left in flow.not_begun
    ]
    verdicts += [
        PartitionVerdict(left.plan.source, left.plan.target, Comparison(), promoted=left.why)
        for left in flow.promoted
    ]
    return FlowVerdict(name, sorted(verdicts, key=lambda verdict: verdict.source))


def keep_verdict(on: FlowWorker, connector: str, verdict: FlowVerdict, at: float) -> None:
    """Write the verdict to the flow's events topic, where the mirror's pages and metrics find it.

    `at` is in epoch seconds. Creates no topic. Raises SparkmirrorError where it can't be written.
    """
    node = f"{machine_name()}:{os.getpid()}"
    events = verified_events(verified(verdict, at), in_words(verdict), connector, node)
    with closing(TopicWriter(on.worker_client)) as writer:
        records = [event.to_record() for event in events]
        writer.write(StateTopic.EVENTS.of(on.flow.source), records, timeout_s=_KEEP_TIMEOUT_S)
