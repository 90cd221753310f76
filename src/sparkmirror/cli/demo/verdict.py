"""What the comparison of both clusters says, for people: a table, a sentence, the first differences."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from sparkmirror.cli.demo.compare import Comparison


@dataclass(frozen=True, slots=True)
class TopicVerdict:
    """One topic's comparison beside the number of records that the shop had acknowledged."""

    source_topic: str
    target_topic: str
    partitions: int
    written: int
    comparison: Comparison

    @property
    def problem(self) -> str | None:
        """Why the topic is not mirrored whole; None when it is."""
        if self.comparison.first_difference is not None:
            return str(self.comparison.first_difference)
        if self.comparison.records != self.written:
            return (
                f"{self.source_topic}: {self.written:,} records were written, "
                f"{self.comparison.records:,} are on both clusters"
            )
        return None


def is_whole(verdicts: Sequence[TopicVerdict]) -> bool:
    return all(verdict.problem is None for verdict in verdicts)


def print_verdict(console: Console, verdicts: Sequence[TopicVerdict]) -> None:
    console.print(_table(verdicts))
    records = sum(verdict.comparison.records for verdict in verdicts)
    megabytes = sum(verdict.comparison.bytes for verdict in verdicts) / 1e6
    if is_whole(verdicts):
        console.print(
            f"[bold green]✓ All {records:,} records ({megabytes:.1f} MB) are the same on both clusters[/]: "
            "partition, order, key, value, headers, timestamp.",
            highlight=False,
            soft_wrap=True,
        )
        return
    console.print("[bold red]✗ The clusters differ[/]; the first difference of each topic:", highlight=False)
    for verdict in verdicts:
        if verdict.problem is not None:
            console.print(verdict.problem, highlight=False, markup=False, soft_wrap=True)


def _table(verdicts: Sequence[TopicVerdict]) -> Table:
    table = Table(box=SIMPLE_HEAD)
    table.add_column("source")
    table.add_column("target")
    for name in ("partitions", "written", "equal", "MB"):
        table.add_column(name, justify="right")
    table.add_column("")
    for verdict in verdicts:
        table.add_row(
            verdict.source_topic,
            verdict.target_topic,
            str(verdict.partitions),
            f"{verdict.written:,}",
            f"{verdict.comparison.records:,}",
            f"{verdict.comparison.bytes / 1e6:.2f}",
            "✓" if verdict.problem is None else "✗",
        )
    return table
