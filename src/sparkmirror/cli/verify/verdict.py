"""Prints the result of `sparkmirror verify` as a table with a sentence, as JSON, or as JUnit XML."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from xml.etree import ElementTree as ET

from rich.console import Console

from sparkmirror.cli.terminal import aligned
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.printable import printable
from sparkmirror.verify.comparison import Comparison
from sparkmirror.verify.plan import Offsets

_SHOWN_PARTITIONS = 20


class State(StrEnum):
    EQUAL = "equal"
    DIFFERENT = "different"
    UNREADABLE = "unreadable"
    """Not all of it could be compared, and nothing of the rest differs."""
    NOT_BEGUN = "not begun"


@dataclass(frozen=True, slots=True)
class PartitionVerdict:
    """One partition. `upto` are the offsets where the comparison ended; `not_begun` tells why it is none."""

    source: TopicPartition
    target: TopicPartition
    comparison: Comparison
    upto: Offsets | None = None
    errors: Sequence[str] = ()
    not_begun: str | None = None

    @property
    def state(self) -> State:
        if not self.comparison.is_equal:
            return State.DIFFERENT
        if self.errors:
            return State.UNREADABLE
        return State.EQUAL if self.not_begun is None else State.NOT_BEGUN

    @property
    def problems(self) -> list[str]:
        """As lines of text, differences first."""
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


_COUNTS: Final[Mapping[str, Callable[[FlowVerdict], int]]] = {
    "equal": lambda found: found.total.equal,
    "different": lambda found: found.total.difference_count,
    "foreign": lambda found: found.total.foreign,
    "not comparable": lambda found: found.total.not_comparable,
}


def print_table(console: Console, verdicts: Sequence[FlowVerdict], *, brief: bool = False) -> None:
    """A row for each topic; `brief` leaves out columns in which nothing is counted."""
    for verdict in verdicts:
        for line in (verdict.flow, *_table(verdict, brief=brief), ""):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        for line in _summary(verdict):
            console.print(line, highlight=False, soft_wrap=True)
        wrong = [partition for partition in verdict.partitions if partition.problems]
        for partition in wrong[:_SHOWN_PARTITIONS]:
            for problem in partition.problems:
                console.print(f"  {printable(problem)}", highlight=False, markup=False, soft_wrap=True)
        if len(wrong) > _SHOWN_PARTITIONS:
            console.print(f"  … and {len(wrong) - _SHOWN_PARTITIONS} more partitions; -o json has them all")


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
            skipped=str(verdict.count(State.NOT_BEGUN)),
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
        case State.NOT_BEGUN:
            ET.SubElement(case, "skipped", message=_printable(partition.not_begun or ""))
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
    }


def _table(verdict: FlowVerdict, *, brief: bool) -> list[str]:
    """Never folded: topics that begin alike could not be told apart."""
    counts = {name: count for name, count in _COUNTS.items() if not brief or count(verdict)}
    by_topic: dict[tuple[str, str], list[PartitionVerdict]] = {}
    for partition in verdict.partitions:
        by_topic.setdefault((partition.source.topic, partition.target.topic), []).append(partition)
    rows = []
    for (source, target), partitions in by_topic.items():
        found = FlowVerdict(verdict.flow, partitions)
        cells = [f"{count(found):,}" for count in counts.values()]
        rows.append((source, target, str(len(partitions)), *cells, _mark(found)))
    headings = ("source", "target", "partitions", *counts, "")
    return [f"  {line}" for line in aligned([headings, *rows], right=range(2, 3 + len(counts)))]


def _mark(found: FlowVerdict) -> str:
    if not found.is_equal:
        return "✗"
    return State.NOT_BEGUN if found.count(State.NOT_BEGUN) else "✓"


def _summary(verdict: FlowVerdict) -> list[str]:
    total, lines = verdict.total, []
    if different := verdict.count(State.DIFFERENT):
        lines.append(f"[bold red]✗ {different:,} of {len(verdict.partitions):,} partitions differ[/]:")
    elif unreadable := verdict.count(State.UNREADABLE):
        lines.append(f"[bold red]✗ {unreadable:,} partitions could not be compared[/]:")
    else:
        lines.append(
            f"[bold green]✓ {total.equal:,} records are the same on both clusters[/]: "
            "count, order, key, value, headers, timestamp."
        )
    if total.foreign:
        lines.append(f"  {total.foreign:,} records on the target were written by other producers.")
    if total.not_comparable:
        lines.append(
            f"  {total.not_comparable:,} could not be compared: "
            "one side has lost them by retention or compaction."
        )
    if not_begun := verdict.count(State.NOT_BEGUN):
        lines.append(f"  {not_begun:,} partitions hold records, but the flow has not started with them.")
    return lines
