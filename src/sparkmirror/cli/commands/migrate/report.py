"""Formats the state of a migration as tables and as JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sparkmirror.cli.terminal import aligned
from sparkmirror.domain.ids import Flow
from sparkmirror.domain.printable import printable
from sparkmirror.migrate.moves.group_move_steps import GroupMove, GroupRollback
from sparkmirror.migrate.moves.topic_drain_steps import TopicsDrain
from sparkmirror.migrate.steps import Step

Row = Mapping[str, str | int | None]
"""Columns are named `source…` and `target…`; tables show the aliases instead."""


class Reported(NamedTuple):
    """A group, or all topics together. `failure` is None if it is done, or in a dry run."""

    name: str
    steps: Sequence[Step]
    rows: Sequence[Row]
    failure: str | None = None


def move_rows(move: GroupMove) -> list[Row]:
    """The exact position of each partition."""
    return [
        {
            "source": str(each.source),
            "source_offset": each.source_offset,
            "source_lag": each.source_lag,
            "target": str(each.target),
            "target_offset": each.target_offset,
            "target_lag": each.target_lag,
            "translated": each.translated,
            "state": each.state.value,
        }
        for each in move.partitions
    ]


def rollback_rows(rollback: GroupRollback) -> list[Row]:
    return [
        {
            "target": str(each.offset.partition),
            "target_offset": each.current,
            "written": each.offset.written,
            "earlier": each.offset.earlier,
            "state": each.state.value,
        }
        for each in rollback.partitions
    ]


def drain_rows(drain: TopicsDrain) -> list[Row]:
    """`target_next` is the target offset of the record that is written to the source next."""
    return [
        {
            "source": str(each.source),
            "source_end": each.source_end,
            "mirrored_to": each.mirrored_to,
            "lag": each.lag,
            "target": str(each.target),
            "target_end": each.target_end,
            "target_next": each.target_next,
        }
        for each in drain.partitions
    ]


def table_lines(flow: Flow, reported: Reported) -> list[str]:
    """The name, a table of its rows, an empty line; nothing without rows."""
    if not reported.rows:
        return []
    headings = [_heading(flow, name) for name in reported.rows[0]]
    numbers = {at for at, value in enumerate(reported.rows[0].values()) if not isinstance(value, str)}
    rows = [[_cell(value) for value in row.values()] for row in reported.rows]
    return [
        printable(reported.name),
        *(f"  {line}" for line in aligned([headings, *rows], right=numbers)),
        "",
    ]


def to_json(flow: Flow, reported: Sequence[Reported], *, is_dry_run: bool) -> str:
    return json.dumps(
        {
            "flow": str(flow),
            "dry_run": is_dry_run,
            "done": not is_dry_run and all(each.failure is None for each in reported),
            "migrations": [_json(each) for each in reported],
        },
        indent=2,
    )


def _json(reported: Reported) -> dict[str, Any]:
    return {
        "name": reported.name,
        "steps": [{"step": step.name, "state": step.state, "text": step.text} for step in reported.steps],
        "partitions": [dict(row) for row in reported.rows],
        "failure": reported.failure,
    }


def _heading(flow: Flow, name: str) -> str:
    aliases = {"source": flow.source, "target": flow.target}
    return " ".join(aliases.get(word, word) for word in name.split("_"))


def _cell(value: str | int | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:,}"
