"""Runs a command that moves something on a flow: reads the file, shows the plan, acts, reports the result."""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from rich.console import Console

from sparkmirror.cli.commands.migrate.report import Reported, Row, table_lines, to_json
from sparkmirror.cli.exit_codes import CANNOT_TELL, FINE, INTERRUPTED, NOT_FINE
from sparkmirror.cli.mirroring_flows import mirroring_flows
from sparkmirror.cli.reachability import silent_clusters
from sparkmirror.cli.terminal import StatusLines
from sparkmirror.domain.errors import KafkaError, SparkmirrorError
from sparkmirror.domain.ids import Flow, TopicPartition
from sparkmirror.domain.printable import printable
from sparkmirror.migrate.run import Migration, MigrationResult, MigrationRun
from sparkmirror.migrate.steps import Step, StepState, are_done
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.status.flow_access import FlowAccess

_PLAIN_EVERY_S = 30.0
"""Printed this often where no terminal shows the line that is updated: the wait may last for minutes."""
_MARKS: Final = {
    StepState.DONE: "✓",
    StepState.WAITING: "…",
    StepState.TO_DO: "→",
    StepState.IMPOSSIBLE: "✗",
}

M = TypeVar("M", bound=Migration)
NamedSteps = Sequence[tuple[str, Sequence[Step]]]
"""The steps of each group, or of all topics together."""


@dataclass(frozen=True, slots=True)
class MigrationKind(Generic[M]):
    """A use of a command: its texts, actions and tables. `done` is printed at the end.

    Unless `asks_source`, only the target must answer.
    """

    access: FlowAccess
    title: str
    survey: Callable[[], Sequence[M]]
    apply: Callable[[M], Mapping[TopicPartition, KafkaError]]
    name: Callable[[M], str]
    rows: Callable[[M], Sequence[Row]]
    done: Callable[[Sequence[M]], str]
    close: Callable[[], None] = lambda: None
    asks_source: bool = True

    def named_steps(self, migrations: Sequence[M]) -> NamedSteps:
        return [(self.name(each), each.steps()) for each in migrations]

    def reported(self, migration: M, failure: str | None = None) -> Reported:
        return Reported(self.name(migration), migration.steps(), self.rows(migration), failure)

    def unreachable(self) -> str | None:
        """The clusters that do not answer; None when all do."""
        access = self.access
        asked = [access.source_admin, access.target_admin] if self.asks_source else [access.target_admin]
        return "; ".join(silent_clusters(asked).values()) or None


class NotPossibleError(SparkmirrorError):
    """The flow, as it is configured, can't do what is asked."""


def run_on_flow(
    arguments: argparse.Namespace, kind_of: Callable[[argparse.Namespace, FlowAccess], MigrationKind[Any]]
) -> int:
    """Run what `kind_of` makes of the flow that the arguments name. The exit code."""
    try:
        kind = kind_of(arguments, choose_flow(arguments.file, arguments.flow))
    except SparkmirrorError as error:
        return fail(arguments, error, NOT_FINE if isinstance(error, NotPossibleError) else CANNOT_TELL)
    with closing(kind):
        if (unreachable := kind.unreachable()) is not None:
            return fail(arguments, unreachable, CANNOT_TELL)
        try:
            return _carry_out(arguments, kind)
        except SparkmirrorError as error:
            return fail(arguments, error, NOT_FINE)


def choose_flow(file: Path, wanted: str | None) -> FlowAccess:
    """The only flow of a file that mirrors topics, or the one that is named. Raises SparkmirrorError."""
    flows = read_mirror_maker_file(file).flows
    found = mirroring_flows(file, flows, None if wanted is None else [wanted])
    if len(found) > 1:
        names = ", ".join(flow.name for flow in found)
        raise SparkmirrorError(f"{file} has several flows ({names}): name one with --flow")
    return FlowAccess.of(found[0].settings, found[0].connector)


def _carry_out(arguments: argparse.Namespace, kind: MigrationKind[M]) -> int:
    """The exit code. Raises KafkaError when a cluster does not answer."""
    progress = StepProgress(StatusLines(Console(stderr=True), plain_every_s=_PLAIN_EVERY_S))
    run = MigrationRun(
        survey=kind.survey,
        apply=kind.apply,
        report=lambda found: progress.report(kind.named_steps(found)),
        report_error=progress.status.print,
    )
    found = run.first()
    if not arguments.execute:
        return _show_plan(arguments, kind, found)
    sys.stderr.write("\n".join(plan_lines(kind.title, kind.named_steps(found))) + "\n\n")
    try:
        with progress.status.updates() as update:
            progress.begin(update, arguments.timeout)
            results = run.run(arguments.timeout)
    except KeyboardInterrupt:
        return fail(arguments, "interrupted; the same command continues where it stopped", INTERRUPTED)
    return _report(arguments, kind, results)


def plan_lines(title: str, named_steps: NamedSteps) -> list[str]:
    """A plan as text, with a mark for the state of each step."""
    lines = [title]
    for name, steps in named_steps:
        lines += ["", printable(name)]
        lines += [printable(f"  {_mark(step)} {step.name:<9} {step.text}") for step in steps]
    return [
        *lines,
        "",
        "  ✓ done already   ! done, but not for all   … waiting for others   → to do   ✗ not possible",
    ]


def _mark(step: Step) -> str:
    return "!" if step.is_partial else _MARKS[step.state]


def fail(arguments: argparse.Namespace, reason: object, code: int) -> int:
    sys.stderr.write(f"{arguments.prog}: {printable(str(reason))}\n")
    return code


class StepProgress:
    """Prints on standard error which steps have another state, and updates one line while it waits."""

    def __init__(self, status: StatusLines, clock: Callable[[], float] = time.monotonic) -> None:
        self.status = status
        self._clock = clock
        self._printed: dict[tuple[str, str], StepState] = {}
        self._update: Callable[[str], None] | None = None
        self._deadline = 0.0

    def begin(self, update: Callable[[str], None], timeout_s: float) -> None:
        """`update` shows what is waited for, until `timeout_s` from now."""
        self._update = update
        self._deadline = self._clock() + timeout_s

    def report(self, named_steps: NamedSteps) -> None:
        """Print the steps of each migration, up to the first that is not done."""
        waiting = []
        for name, steps in named_steps:
            for step in steps:
                self._print_change(name, step)
                if step.state is not StepState.DONE:
                    waiting.append(f"{name}: {step.text}")
                    break
        if waiting and self._update is not None:
            left_s = max(0.0, self._deadline - self._clock())
            self._update(f"{'; '.join(waiting)} ({left_s:.0f} s left)")

    def _print_change(self, name: str, step: Step) -> None:
        if self._printed.get((name, step.name)) != step.state:
            self._printed[name, step.name] = step.state
            self.status.print(f"{name}: {_mark(step)} {step.name}: {step.text}")


def _show_plan(arguments: argparse.Namespace, kind: MigrationKind[M], found: Sequence[M]) -> int:
    reported = [kind.reported(each) for each in found]
    if arguments.output == "text":
        sys.stdout.write("\n".join(plan_lines(kind.title, kind.named_steps(found))) + "\n\n")
    _print(arguments, kind.access.flow, reported)
    steps = [step for each in reported for step in each.steps]
    if any(step.state is StepState.IMPOSSIBLE for step in steps):
        return NOT_FINE
    if not are_done(steps):
        sys.stderr.write("Nothing was changed: --execute carries it out.\n")
    return FINE


def _report(
    arguments: argparse.Namespace, kind: MigrationKind[M], results: Sequence[MigrationResult[M]]
) -> int:
    reported = [kind.reported(each.found, each.failure) for each in results]
    _print(arguments, kind.access.flow, reported)
    failed = [each for each in reported if each.failure is not None]
    for each in failed:
        fail(arguments, f"{each.name}: {each.failure}", NOT_FINE)
    if not failed:
        sys.stderr.write(f"{kind.done([each.found for each in results])}\n")
    return NOT_FINE if failed else FINE


def _print(arguments: argparse.Namespace, flow: Flow, reported: Sequence[Reported]) -> None:
    if arguments.output == "json":
        sys.stdout.write(to_json(flow, reported, is_dry_run=not arguments.execute) + "\n")
        return
    for each in reported:
        sys.stdout.writelines(f"{line}\n" for line in table_lines(flow, each))
