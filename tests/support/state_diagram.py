"""Renders tables of states as Mermaid diagrams; run as a module, it writes them into their page."""

import re
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Final

from sparkmirror.copy.copy_state import Phase
from sparkmirror.copy.partition_states import TABLE
from sparkmirror.kafka.data.partition_queue import PHASES, QueuePhase

PAGE: Final = Path(__file__).parents[2] / "docs" / "design" / "partition-states.md"
Moves = Iterable[tuple[Enum, str, Enum]]


def moves_of_partition() -> Moves:
    for phase, row in TABLE.items():
        for event, transition in row.items():
            yield phase, _words(event.__name__), transition.to


def moves_of_queue() -> Moves:
    for phase, row in PHASES.items():
        for event, to in row.items():
            yield phase, event.value, to


DIAGRAMS: Final = {
    "a partition's states": (moves_of_partition, Phase.WAITING),
    "a target queue's states": (moves_of_queue, QueuePhase.CLOSED),
}


def rendered(moves: Moves, first: Enum) -> str:
    """Mermaid's `stateDiagram-v2`. What all but two phases do alike is drawn once, staying is not drawn."""
    events: dict[tuple[Enum, Enum], list[str]] = {}
    sources: dict[tuple[str, Enum], set[Enum]] = {}
    for phase, event, to in moves:
        if phase is not to:
            events.setdefault((phase, to), []).append(event)
            sources.setdefault((event, to), set()).add(phase)
    common = {move for move, phases in sources.items() if len(phases) >= len(type(first)) - 2}
    lines = ["stateDiagram-v2", f"    [*] --> {_id(first)}"]
    lines += ['    state "any other" as any'] if common else []
    lines += [f'    state "{phase.value}" as {_id(phase)}' for phase in type(first) if " " in phase.value]
    lines += sorted(f"    any --> {_id(to)}: {event}" for event, to in common)
    for (phase, to), labels in events.items():
        drawn = ", ".join(event for event in labels if (event, to) not in common)
        lines += [f"    {_id(phase)} --> {_id(to)}: {drawn}"] if drawn else []
    return "\n".join(lines)


def section(name: str) -> str:
    """The part of the page that holds a diagram, with its markers."""
    moves, first = DIAGRAMS[name]
    return f"<!-- {name}: begin -->\n```mermaid\n{rendered(moves(), first)}\n```\n<!-- {name}: end -->"


def updated(text: str) -> str:
    for name in DIAGRAMS:
        pattern = f"<!-- {re.escape(name)}: begin -->.*<!-- {re.escape(name)}: end -->"
        text = re.sub(pattern, lambda _, name=name: section(name), text, flags=re.DOTALL)  # type: ignore[misc]
    return text


def _id(phase: Enum) -> str:
    return phase.name.lower()


def _words(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text()))
