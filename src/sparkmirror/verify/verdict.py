"""Judges what a comparison found of a flow and its partitions; writes it as JSON and as JUnit XML. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from xml.etree import ElementTree as ET

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.quantities import counted
from sparkmirror.storage.verified import Verified
from sparkmirror.verify.range_planning import Offsets
from sparkmirror.verify.rules_and_result import Comparison


class State(StrEnum):
    EQUAL = "equal"
    DIFFERENT = "different"
    UNREADABLE = "unreadable"
    """A part could not be compared, and the rest has no difference."""
    NOT_BEGUN = "not begun"
    PROMOTED = "promoted"
    """Applications write it on the target, so it is not compared."""


@dataclass(frozen=True, slots=True)
class PartitionVerdict:
    """The result of a partition. `upto` are the offsets where the comparison ended.

    `not_begun` tells why it was not compared, `promoted` where both logs part.
    """

    source: TopicPartition
    target: TopicPartition
    comparison: Comparison
    upto: Offsets | None = None
    errors: Sequence[str] = ()
    not_begun: str | None = None
    promoted: str | None = None

    @property
    def state(self) -> State:
        if not self.comparison.is_equal:
            return State.DIFFERENT
        if self.errors:
            return State.UNREADABLE
        if self.promoted is not None:
            return State.PROMOTED
        return State.EQUAL if self.not_begun is None else State.NOT_BEGUN

    @property
    def is_compared(self) -> bool:
        return self.state not in (State.NOT_BEGUN, State.PROMOTED)

    @property
    def problems(self) -> list[str]:
        """Lines of text, differences first."""
        found = self.comparison
        lines = [str(difference) for difference in found.differences]
        left = found.difference_count - len(found.differences)
        lines += [f"{left:,} more differences"] if left > 0 else []
        lines += [f"gave up: {found.gave_up}"] if found.gave_up else []
        return [*(f"{self.source} and {self.target}: {line}" for line in lines), *self.errors]


@dataclass(frozen=True, slots=True)
class FlowVerdict:
    flow: str
    partitions: Sequence[PartitionVerdict]

    def count(self, state: State) -> int:
        return sum(partition.state is state for partition in self.partitions)

    @property
    def is_equal(self) -> bool:
        """All that the flow has copied was read, and nothing differs."""
        return not self.count(State.DIFFERENT) and not self.count(State.UNREADABLE)

    @property
    def total(self) -> Comparison:
        return sum((partition.comparison for partition in self.partitions), Comparison())


def in_words(verdict: FlowVerdict) -> str:
    """Describe the result in a sentence."""
    total, promoted = verdict.total, verdict.count(State.PROMOTED)
    count = len(verdict.partitions) - promoted
    if different := verdict.count(State.DIFFERENT):
        found = f"{different:,} of {count:,} partitions differ, in {counted(total.difference_count, 'place')}"
    elif unreadable := verdict.count(State.UNREADABLE):
        found = f"{unreadable:,} of {count:,} partitions could not be compared"
    else:
        found = (
            f"{counted(total.equal, 'record')} of {counted(count, 'partition')} are the same on both clusters"
        )
    not_comparable = total.not_comparable
    found += f"; {not_comparable:,} could not be compared" if not_comparable else ""
    found += f"; {left_out_text(total.left_out)}" if total.left_out else ""
    return found + (f"; {counted(promoted, 'partition')} promoted, and not compared" if promoted else "")


def left_out_text(records: int) -> str:
    """Say how many records a flow has left out where it began."""
    return f"{records:,} records before the flow's first start are left out (auto.offset.reset, start.at)"


def verified(verdict: FlowVerdict, at: float) -> Mapping[TopicPartition, Verified]:
    """List compared partitions with their results, at that time in epoch seconds.

    A partition that was empty is verified up to 0; one that is missing on the target is a difference.
    """
    return {
        it.source: Verified(at, _upto(it), it.comparison.difference_count or int(it.state is State.DIFFERENT))
        for it in verdict.partitions
        if it.is_compared
    }


def _upto(partition: PartitionVerdict) -> int | None:
    if partition.errors or partition.comparison.gave_up is not None:
        return None
    return 0 if partition.upto is None else partition.upto.source


def to_json(verdicts: Sequence[FlowVerdict]) -> str:
    flows = [
        {"flow": verdict.flow, "partitions": [_partition_json(each) for each in verdict.partitions]}
        for verdict in verdicts
    ]
    is_equal = all(verdict.is_equal for verdict in verdicts)
    return json.dumps({"equal": is_equal, "flows": flows}, indent=2)


def to_junit(verdicts: Sequence[FlowVerdict]) -> str:
    """A suite per flow, a case per partition: what differs fails, what can't be read is an error."""
    root = ET.Element("testsuites", name="sparkmirror verify")
    for verdict in verdicts:
        suite = ET.SubElement(
            root,
            "testsuite",
            name=verdict.flow,
            tests=str(len(verdict.partitions)),
            failures=str(verdict.count(State.DIFFERENT)),
            errors=str(verdict.count(State.UNREADABLE)),
            skipped=str(verdict.count(State.NOT_BEGUN) + verdict.count(State.PROMOTED)),
        )
        for partition in verdict.partitions:
            _add_case(suite, verdict.flow, partition)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True)


def _add_case(suite: ET.Element, flow: str, partition: PartitionVerdict) -> None:
    case = ET.SubElement(suite, "testcase", classname=flow, name=str(partition.source))
    problems = [_printable(problem) for problem in partition.problems]
    match partition.state:
        case State.DIFFERENT:
            ET.SubElement(case, "failure", message=problems[0]).text = "\n".join(problems)
        case State.UNREADABLE:
            ET.SubElement(case, "error", message=problems[0]).text = "\n".join(problems)
        case State.NOT_BEGUN | State.PROMOTED:
            why = partition.promoted or partition.not_begun or ""
            ET.SubElement(case, "skipped", message=_printable(why))
    found = partition.comparison
    ET.SubElement(case, "system-out").text = (
        f"{partition.target}: {found.equal} equal, {found.foreign} foreign, "
        f"{found.not_comparable} not comparable"
    )


def _printable(text: str) -> str:
    """XML can't hold control characters."""
    return "".join(char if char.isprintable() or char in "\n\t" else "�" for char in text)


def _partition_json(partition: PartitionVerdict) -> dict[str, Any]:
    return {
        "source": str(partition.source),
        "target": str(partition.target),
        "state": partition.state,
        "upto_source_offset": None if partition.upto is None else partition.upto.source,
        "upto_target_offset": None if partition.upto is None else partition.upto.target,
        **partition.comparison.to_json(),
        "errors": list(partition.errors),
        "not_begun": partition.not_begun,
        "promoted": partition.promoted,
    }
