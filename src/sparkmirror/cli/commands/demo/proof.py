"""Proves the demo's copy as `sparkmirror verify` does, and that it holds every record that the shop wrote."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from rich.console import Console

from sparkmirror.cli.commands.verify.table import print_table
from sparkmirror.cli.terminal import StatusLines
from sparkmirror.policies.java_regex import compile_list
from sparkmirror.settings.configured import MirroringFlow
from sparkmirror.verify.range_comparison import RangeOutcome, RangePlan, outcome_of
from sparkmirror.verify.verdict import FlowVerdict
from sparkmirror.verify.verification_run import Verification

_OPTION: Final = "topics"


def verify_topics(flow: MirroringFlow, topics: Sequence[str], status: StatusLines) -> FlowVerdict:
    """Compare these topics up to the positions that the flow has stored. Raises SparkmirrorError."""
    verification = Verification([flow], compile_list(topics, _OPTION))
    verification.compare(_compare_here, status)
    (verdict,) = verification.verdicts()
    return verdict


def lacking(verdict: FlowVerdict, written: Mapping[str, int]) -> list[str]:
    """A line for each topic of which more or fewer records are equal on both clusters than were written."""
    equal = dict.fromkeys(written, 0)
    for partition in verdict.partitions:
        equal[partition.source.topic] += partition.comparison.equal
    return [
        f"{topic}: {count:,} records were written, {equal[topic]:,} are equal on both clusters"
        for topic, count in written.items()
        if equal[topic] != count
    ]


def print_proof(console: Console, verdict: FlowVerdict, written: Mapping[str, int]) -> bool:
    """Print what was found; whether the copy is exact and whole."""
    print_table(console, [verdict], brief=True)
    lines = lacking(verdict, written)
    for line in lines:
        console.print(f"[bold red]✗[/] {line}", highlight=False, soft_wrap=True)
    return verdict.is_equal and not lines


def _compare_here(plans: Sequence[RangePlan], on_outcome: Callable[[RangeOutcome], None]) -> None:
    """Without Spark: a demo's records are few."""
    for number, plan in enumerate(plans):
        on_outcome(outcome_of(number, plan))
