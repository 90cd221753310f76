"""Keeps the results of `sparkmirror verify` in a file, from which the next run continues."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from sparkmirror.batches.agreement.compared_log import Span
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.files import written_whole
from sparkmirror.verify.range_comparison import RangePlan, Sides
from sparkmirror.verify.range_planning import Offsets, merged
from sparkmirror.verify.rules_and_result import Comparison, Rules

_FORMAT = 1


@dataclass(slots=True)
class RangeReport:
    """A range. `comparison` is None until it's finished; `error` is of this run only."""

    plan: RangePlan
    comparison: Comparison | None = None
    error: str | None = None

    @property
    def is_different(self) -> bool:
        return self.comparison is not None and not self.comparison.is_equal


@dataclass(slots=True)
class PartitionReport:
    """The ranges of one partition, in order and without gaps."""

    source: TopicPartition
    target: TopicPartition
    ranges: list[RangeReport] = field(default_factory=list)

    @property
    def comparison(self) -> Comparison:
        """The sum of the finished ranges."""
        finished = (each.comparison for each in self.ranges if each.comparison is not None)
        return reduce(add, finished, Comparison())

    @property
    def errors(self) -> list[str]:
        return [each.error for each in self.ranges if each.error is not None]

    @property
    def end(self) -> Offsets | None:
        """The start of the next range."""
        if not self.ranges:
            return None
        last = self.ranges[-1].plan
        return Offsets(last.source_span.end, last.target_span.end)

    def drop_uncertain(self) -> None:
        """Drop what can't be continued, so that it's planned again.

        That is a plan of which nothing was finished, because retention may have removed records since, and a
        last range whose end on the target is unknown.
        """
        if self.ranges and not self.ranges[-1].plan.rules.target_end_is_known:
            self.ranges.pop()
        if all(each.comparison is None for each in self.ranges):
            self.ranges.clear()

    def merge_differences(self) -> bool:
        """Make one range, to be compared again, of those from the first to the last that differ.

        Equal ranges stay equal, whatever their boundaries are. Two differences side by side may mean that the
        boundary between them is wrong. False when there is nothing to merge.
        """
        different = [at for at, each in enumerate(self.ranges) if each.is_different]
        if len(different) < 2 or self.errors:
            return False
        first, last = different[0], different[-1] + 1
        whole = merged([each.plan for each in self.ranges[first:last]])
        self.ranges[first:last] = [RangeReport(whole)]
        return True


class Report:
    """The results per flow and partition, kept in memory only if there is no path."""

    def __init__(self, path: Path | None, sides: Mapping[str, Sides]) -> None:
        """Read the file, if it exists. Raises SparkmirrorError for a file of another kind."""
        self._path = path
        self._flows: dict[str, dict[TopicPartition, PartitionReport]] = {flow: {} for flow in sides}
        self._other_flows: dict[str, Any] = {}
        self._selected: list[PartitionReport] = []
        if path is not None and path.exists():
            self._load(path, sides)

    def select(self, flow: str, source: TopicPartition, target: TopicPartition) -> PartitionReport:
        """A partition of this run. It's compared from the start if the target has another name now."""
        known = self._flows[flow].get(source)
        if known is None or known.target != target:
            known = self._flows[flow][source] = PartitionReport(source, target)
        known.drop_uncertain()
        self._selected.append(known)
        return known

    def unfinished(self) -> list[RangeReport]:
        """The ranges of this run without a result."""
        return [each for partition in self._selected for each in partition.ranges if each.comparison is None]

    def merge_differences(self) -> bool:
        """Whether there is something to compare again."""
        are_merged = [partition.merge_differences() for partition in self._selected]
        return any(are_merged)

    def save(self) -> None:
        """Whole or not at all."""
        if self._path is None:
            return
        flows = {
            flow: [_partition_to_json(partition) for partition in partitions.values() if partition.ranges]
            for flow, partitions in self._flows.items()
        }
        content = json.dumps({"format": _FORMAT, "flows": {**self._other_flows, **flows}}, indent=1)
        with written_whole(self._path) as draft:
            draft.write_text(content, encoding="utf-8")

    def _load(self, path: Path, sides: Mapping[str, Sides]) -> None:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            for flow, partitions in _flows_of(content).items():
                if flow in sides:
                    read = [_partition_from_json(partition, sides[flow]) for partition in partitions]
                    self._flows[flow] = {partition.source: partition for partition in read}
                else:
                    self._other_flows[flow] = partitions
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise SparkmirrorError(
                f"{path} is not a report of sparkmirror verify ({error!r}); name another file, or delete it"
            ) from error


def _flows_of(content: Mapping[str, Any]) -> Mapping[str, Any]:
    if content["format"] != _FORMAT:
        raise ValueError(f"format {content['format']}")
    flows: Mapping[str, Any] = content["flows"]
    return flows


def _partition_to_json(partition: PartitionReport) -> dict[str, Any]:
    return {
        "source": list(partition.source),
        "target": list(partition.target),
        "ranges": [_range_to_json(each) for each in partition.ranges],
    }


def _range_to_json(each: RangeReport) -> dict[str, Any]:
    plan = each.plan
    return {
        "source": list(plan.source_span),
        "target": list(plan.target_span),
        "rules": asdict(plan.rules),
        "lost": plan.lost,
        "result": None if each.comparison is None else each.comparison.to_json(),
    }


def _partition_from_json(saved: Mapping[str, Any], sides: Sides) -> PartitionReport:
    source, target = TopicPartition(*saved["source"]), TopicPartition(*saved["target"])
    ranges = [
        RangeReport(
            RangePlan(
                sides,
                source,
                target,
                Span(*each["source"]),
                Span(*each["target"]),
                Rules(**each["rules"]),
                each["lost"],
            ),
            None if each["result"] is None else Comparison.from_json(each["result"]),
        )
        for each in saved["ranges"]
    ]
    return PartitionReport(source, target, ranges)
