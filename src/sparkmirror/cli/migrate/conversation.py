"""What a migration says while it runs: the plan, the question whether to begin, what is new at each look."""

import sys
from collections.abc import Sequence

from rich.console import Console

from sparkmirror.cli.terminal import StatusLines
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.migrate.steps import Step, StepState

Told = Sequence[tuple[str, Sequence[Step]]]
"""What moves, by name, with its steps."""

_MARKS = {
    StepState.DONE: "✓",
    StepState.WAITING: "…",
    StepState.TO_DO: "→",
    StepState.IMPOSSIBLE: "✗",
}


def plan_lines(title: str, told: Told) -> list[str]:
    """A plan for people. What is done already says so by its mark."""
    lines = [title]
    for name, steps in told:
        lines += ["", name]
        lines += [f"  {_MARKS[step.state]} {step.name:<9} {step.text}" for step in steps]
    return [*lines, "", "  ✓ done already   … has to be waited for   → will be done   ✗ not possible"]


def agreed(*, is_sure: bool) -> bool:
    """Whether to begin. Raises SparkmirrorError where nobody can be asked."""
    if is_sure:
        return True
    if not sys.stdin.isatty():
        raise SparkmirrorError("nobody is there to be asked: --yes begins without, --dry-run shows the plan")
    sys.stderr.write("Begin? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


class Commentary:
    """Says on standard error what has changed since the last look."""

    def __init__(self) -> None:
        self._status = StatusLines(Console(stderr=True))
        self._said: dict[tuple[str, str], tuple[StepState, str]] = {}

    def tell(self, told: Told) -> None:
        """Of each, the steps up to the first that is not done."""
        for name, steps in told:
            for step in steps:
                self._say_news(name, step)
                if step.state is not StepState.DONE:
                    break

    def say(self, text: str) -> None:
        self._status.print(text)

    def _say_news(self, name: str, step: Step) -> None:
        now = (step.state, step.text)
        if self._said.get((name, step.name)) != now:
            self._said[name, step.name] = now
            self._status.print(f"{name}: {_MARKS[step.state]} {step.name}: {step.text}")
