"""Shows how the flows of a running mirror are, as it says itself: `sparkmirror status URL`."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from sparkmirror.cli.commands.connectors.rest_commands import print_error
from sparkmirror.cli.commands.connectors.views import View, show
from sparkmirror.cli.commands.connectors.watch import watch
from sparkmirror.cli.commands.promoted_rows import SHOWN_MAX, last_rows
from sparkmirror.cli.mirror_api import MirrorApi, SeenFlow, SeenPartition, rest_of, wanted_flows
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.quantities import as_ago, counted
from sparkmirror.storage.promotions import promotions_json
from sparkmirror.view.words import Word, severity, worst_of

_WELL: Final = (Word.CAUGHT_UP, Word.CATCHING_UP, Word.FALLING_BEHIND, Word.PROMOTED)
WELL: Final = 0
NOT_WELL: Final = 1
UNKNOWN: Final = 2


def run(arguments: argparse.Namespace, url: str | None) -> int:
    try:
        with rest_of(arguments, url) as rest:
            api = MirrorApi(rest)

            def read() -> list[SeenFlow]:
                return [api.flow(name) for name in wanted_flows(api, rest.url, arguments.flow)]

            if arguments.watch:
                return watch(lambda: seen_view(read()), arguments)
            found = read()
    except (SparkmirrorError, OSError) as error:
        print_error(arguments.prog, error)
        return UNKNOWN
    show(seen_view(found), arguments.output)
    words = {flow.state.word for flow in found}
    if words <= {*_WELL}:
        return WELL
    return UNKNOWN if words <= {*_WELL, Word.UNKNOWN} else NOT_WELL


def seen_view(found: Sequence[SeenFlow]) -> View:
    """A row for each topic, the worst first; below them a line for each flow."""
    rows = [row for flow in found for row in _rows(flow)]
    notes = [note for flow in found for note in ("", *_notes(flow))]
    columns = ("flow", "topic", "partitions", "lag", "state")
    is_well = all(flow.state.word in _WELL for flow in found)
    return View([to_json(flow) for flow in found], columns, rows, 2, notes, is_well)


def to_json(flow: SeenFlow) -> Mapping[str, Any]:
    """With the keys that the status of a file has, as far as they are known here."""
    unknown = [it for it in flow.partitions if it.lag_records is None]
    return {
        "flow": str(flow.flow),
        "state": flow.state.word.value,
        "lag_records": _records(flow.partitions),
        "unknown_partitions": len(unknown),
        "heartbeat_age_s": flow.heartbeat_age_s,
        "report_age_s": flow.report_age_s,
        "process": flow.node,
        "topics": [
            {"topic": topic, "partitions": len(of), "lag_records": _records(of)}
            for topic, of in _topics(flow)
        ],
        "failed": _errors(flow, Word.ACTION_REQUIRED),
        "retrying": _errors(flow, Word.RETRYING),
        "promoted": promotions_json(flow.promoted),
    }


def _errors(flow: SeenFlow, word: Word) -> dict[str, str | None]:
    return {str(it.source): it.state.error for it in flow.partitions if it.state.word is word}


def _topics(flow: SeenFlow) -> list[tuple[str, list[SeenPartition]]]:
    """The worst first, then the largest lag."""
    by_name = sorted(flow.partitions, key=lambda it: it.source)
    topics = [(name, list(of)) for name, of in groupby(by_name, lambda it: it.source.topic)]
    return sorted(topics, key=lambda it: (severity(_word(it[1])), -(_records(it[1]) or 0), it[0]))


def _word(partitions: Sequence[SeenPartition]) -> Word:
    return worst_of(it.state.word for it in partitions)


def _records(partitions: Sequence[SeenPartition]) -> int | None:
    """None where that of any partition is unknown, and without any."""
    records = [it.lag_records for it in partitions]
    if not records or None in records:
        return None
    return sum(it for it in records if it is not None)


def _rows(flow: SeenFlow) -> Iterator[tuple[str, ...]]:
    name, topics = str(flow.flow), _topics(flow)
    for topic, partitions in topics[:SHOWN_MAX]:
        records = _records(partitions)
        lag = "?" if records is None else f"{records:,}"
        yield name, topic, str(len(partitions)), lag, _word(partitions).value
    yield from last_rows(name, len(topics), flow.promoted)


def _notes(flow: SeenFlow) -> Iterator[str]:
    records = _records(flow.partitions)
    lag = "lag unknown" if records is None else f"{counted(records, 'record')} to copy"
    facts = [f"{lag} in {counted(len(flow.partitions), 'partition')}"]
    if flow.heartbeat_age_s is not None:
        facts.append(f"last heartbeat {as_ago(flow.heartbeat_age_s)}")
    yield f"{flow.flow}: {flow.state.word}, {', '.join(facts)}, told by {flow.node}"
    bad = [it for it in flow.partitions if it.state.error]
    why = flow.state.error or flow.state.advice
    if why and not bad and flow.state.word not in _WELL:
        yield f"  {why}"
    for it in bad[:SHOWN_MAX]:
        yield f"  {it.source}: {it.state.error}"
