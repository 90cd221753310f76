"""Prints the result of `sparkmirror verify` as a table with a sentence."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from rich.console import Console

from sparkmirror.cli.terminal import aligned
from sparkmirror.domain.printable import printable
from sparkmirror.domain.quantities import counted
from sparkmirror.verify.verdict import FlowVerdict, PartitionVerdict, State, left_out_text

_SHOWN_PARTITIONS: Final = 20

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
            console.print(f"  … and {len(wrong) - _SHOWN_PARTITIONS:,} more; -o json has them all")


def _table(verdict: FlowVerdict, *, brief: bool) -> list[str]:
    """Return a table that is never folded: folded names of topics look the same."""
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
    if found.count(State.PROMOTED):
        return State.PROMOTED
    return State.NOT_BEGUN if found.count(State.NOT_BEGUN) else "✓"


def _summary(verdict: FlowVerdict) -> list[str]:
    total, lines = verdict.total, []
    if different := verdict.count(State.DIFFERENT):
        lines.append(f"[bold red]✗ {different:,} of {len(verdict.partitions):,} partitions differ[/]:")
    elif unreadable := verdict.count(State.UNREADABLE):
        lines.append(f"[bold red]✗ {counted(unreadable, 'partition')} could not be compared[/]:")
    elif verdict.count(State.PROMOTED) < len(verdict.partitions):
        lines.append(
            f"[bold green]✓ {counted(total.equal, 'record')} {'is' if total.equal == 1 else 'are'} "
            "the same on both clusters[/]: "
            "count, order, key, value, headers, timestamp."
        )
    if total.foreign:
        were = "was" if total.foreign == 1 else "were"
        foreign = counted(total.foreign, "record")
        lines.append(f"  {foreign} on the target {were} written by other producers.")
    if total.not_comparable:
        lines.append(
            f"  {total.not_comparable:,} could not be compared: "
            "one side has lost them by retention or compaction, or auto.offset.reset=latest left them out."
        )
    if total.left_out:
        lines.append(f"  {left_out_text(total.left_out)}.")
    if promoted := [it for it in verdict.partitions if it.state is State.PROMOTED]:
        lines.append(
            f"  {counted(len(promoted), 'partition')} not compared: applications write on the target."
        )
        lines += [f"    {printable(str(it.source))}: {it.promoted}" for it in promoted[:_SHOWN_PARTITIONS]]
    if not_begun := verdict.count(State.NOT_BEGUN):
        lines.append(f"  {counted(not_begun, 'partition')} with records that the flow has not started with.")
    return lines
