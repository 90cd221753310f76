"""What a migration found and left, for people (a table) and for programs (JSON)."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sparkmirror.domain.ids import Flow
from sparkmirror.migrate.group_moves import GroupBack, GroupMove
from sparkmirror.migrate.steps import Step
from sparkmirror.migrate.topic_drains import TopicsDrain

Row = Mapping[str, str | int | None]
"""A column's name says `source` and `target`; people read the aliases instead."""


class Reported(NamedTuple):
    """One group, or all topics together. `failure` is why it's not done, None if it is, or in a dry run."""

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


def back_rows(back: GroupBack) -> list[Row]:
    return [
        {
            "target": str(each.offset.partition),
            "target_offset": each.current,
            "written": each.offset.written,
            "earlier": each.offset.earlier,
            "state": each.state.value,
        }
        for each in back.partitions
    ]


def drain_rows(drain: TopicsDrain) -> list[Row]:
    """`target_next` is where the record comes that is written to the source next."""
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
    """As wide as it has to be: an offset that is cut off helps nobody."""
    if not reported.rows:
        return []
    headings = [_heading(flow, name) for name in reported.rows[0]]
    table = [headings, *([_cell(value) for value in row.values()] for row in reported.rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    is_text = [isinstance(value, str) for value in reported.rows[0].values()]
    lines = [
        "  ".join(
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(cells, widths, is_text, strict=True)
        ).rstrip()
        for cells in table
    ]
    return [reported.name, *(f"  {line}" for line in lines), ""]


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
