"""Shows how the flows of a mirror are: `sparkmirror status FILE` and `status URL`."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from sparkmirror.cli.commands.connectors.rest_commands import print_error
from sparkmirror.cli.commands.connectors.views import View, show
from sparkmirror.cli.exit_codes import CANNOT_TELL, of_all, of_word
from sparkmirror.cli.mirrors import FlowAnswer, mirror_of
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.incidents import AT_LEAST_ONCE, LASTING
from sparkmirror.domain.quantities import as_ago, counted
from sparkmirror.domain.troubles import REMARKS
from sparkmirror.migrate.steps import some_of
from sparkmirror.storage.promotions import promotions_json
from sparkmirror.view.values import PartitionView
from sparkmirror.view.words import CALM, Word, severity, worst_of

_SHOWN_MAX: Final = 20


def run(arguments: argparse.Namespace, of: str | None) -> int:
    """`of` is a FILE or a URL, None for a worker on this machine."""
    try:
        with mirror_of(arguments, of) as mirror:
            found = mirror.flows(with_groups=True)
    except (SparkmirrorError, OSError) as error:
        print_error(arguments.prog, error)
        return CANNOT_TELL
    view = status_view(found)
    show(view, arguments.output)
    return view.code


def status_view(found: Sequence[FlowAnswer]) -> View:
    """A row for each topic, the worst first; below them a line for each flow, and what is wrong with it."""
    rows = [row for flow in found for row in _rows(flow)]
    notes = [note for flow in found for note in ("", *_notes(flow))]
    columns = ("flow", "topic", "partitions", "lag", "state")
    code = of_all(of_word(flow.state.word) for flow in found)
    return View([to_json(flow) for flow in found], columns, rows, notes, code, causes_of(found))


def causes_of(found: Sequence[FlowAnswer]) -> list[str]:
    """A line for each reason why flows are not well: a cluster that is away concerns several."""
    flows: dict[str, list[str]] = {}
    for flow in found:
        if flow.state.word not in CALM and flow.cause is not None:
            flows.setdefault(f"{flow.state.word}: {flow.cause}", []).append(str(flow.flow))
    return [f"{', '.join(names)}: {cause}" for cause, names in flows.items()]


def to_json(flow: FlowAnswer) -> Mapping[str, Any]:
    return {
        "flow": str(flow.flow),
        "state": flow.state.word.value,
        "cause": None if flow.state.word in CALM else flow.cause,
        "running": flow.is_running,
        "lag_records": flow.lag_records,
        "unknown_partitions": _unknown(flow),
        "heartbeat_age_s": flow.heartbeat_age_s,
        "report_age_s": flow.report_age_s,
        "process": flow.process,
        "topics": [
            {"topic": topic, "partitions": len(of), "lag_records": _records(of)}
            for topic, of in _topics(flow)
        ],
        "unfenced_partitions": len(_unfenced(flow)),
        "failed": _errors(flow, Word.ACTION_REQUIRED),
        "retrying": _errors(flow, Word.RETRYING),
        "groups": flow.groups,
        "promoted": promotions_json(flow.promoted),
    }


def _errors(flow: FlowAnswer, word: Word) -> dict[str, str | None]:
    return {str(it.source): it.state.error for it in flow.partitions if it.state.word is word}


def _unknown(flow: FlowAnswer) -> int:
    return sum(it.lag.records is None for it in flow.partitions)


def _unfenced(flow: FlowAnswer) -> Sequence[PartitionView]:
    """The partitions that are copied at least once."""
    return [it for it in flow.partitions if any(kind.value in it.incidents for kind in LASTING)]


def _topics(flow: FlowAnswer) -> list[tuple[str, list[PartitionView]]]:
    """The worst first, then the largest lag."""
    by_name = sorted(flow.partitions, key=lambda it: it.source)
    topics = [(name, list(of)) for name, of in groupby(by_name, lambda it: it.source.topic)]
    return sorted(topics, key=lambda it: (severity(_word(it[1])), -(_records(it[1]) or 0), it[0]))


def _word(partitions: Sequence[PartitionView]) -> Word:
    return worst_of(it.state.word for it in partitions)


def _records(partitions: Sequence[PartitionView]) -> int | None:
    """Add up lags; None where that of any partition is unknown."""
    records = [it.lag.records for it in partitions]
    return None if None in records else sum(it for it in records if it is not None)


def _rows(flow: FlowAnswer) -> Iterator[tuple[str, ...]]:
    """The first 20 of the topics that are mirrored, then of those that are promoted."""
    name, topics = str(flow.flow), _topics(flow)
    for topic, partitions in topics[:_SHOWN_MAX]:
        records = _records(partitions)
        word = _word(partitions)
        lag = "-" if word is Word.STANDBY else "?" if records is None else f"{records:,}"
        yield name, topic, str(len(partitions)), lag, word.value
    for topic, each in sorted(flow.promoted.items())[: max(0, _SHOWN_MAX - len(topics))]:
        yield name, topic, str(len(each.partings) or ""), "-", str(each)
    left = len(topics) + len(flow.promoted) - _SHOWN_MAX
    if left > 0:
        yield name, f"… and {left:,} more, see -o json", "", "", ""


def _notes(flow: FlowAnswer) -> Iterator[str]:
    yield ", ".join((f"{flow.flow}: {flow.state.word}", *_facts(flow)))
    failing = {name: state.error for name, state in flow.connectors.items() if state.error}
    failing |= {str(it.source): it.state.error for it in flow.partitions if it.state.error}
    for what, error in list(failing.items())[:_SHOWN_MAX]:
        yield f"  {what}: {error}"
    if len(failing) > _SHOWN_MAX:
        yield f"  and {len(failing) - _SHOWN_MAX:,} more errors; -o json has all"
    for it in flow.troubles:
        if it["word"] in REMARKS:
            more = f" and {it['count'] - 1:,} more" if it["count"] > 1 else ""
            yield f"  {it['names'][0]}{more} {it['word']}: {it['reason']}; {it['remedy']}"
    unfenced = _unfenced(flow)
    if unfenced:
        known = (it.notice for it in unfenced if it.notice is not None and AT_LEAST_ONCE in it.notice)
        yield f"  {counted(len(unfenced), 'partition')}: {next(known, AT_LEAST_ONCE)}"
    if flow.groups:
        names = some_of(sorted(flow.groups))
        yield f"  {counted(len(flow.groups), 'consumer group')} with checkpoints: {names}"


def _facts(flow: FlowAnswer) -> Iterator[str]:
    unknown = _unknown(flow)
    copied = [it for it in flow.partitions if it.state.word is not Word.STANDBY]
    if unknown and unknown == len(copied):
        yield f"lag unknown of {counted(unknown, 'partition')}"
    elif copied:
        records = sum(it.lag.records or 0 for it in copied)
        places = counted(len(copied), "partition")
        yield f"{counted(records, 'record')} to copy in {places}" + (
            f", {unknown:,} unknown" if unknown else ""
        )
    elif flow.partitions:
        yield f"{counted(len(flow.partitions), 'partition')} until a failback"
    elif flow.only_heartbeats:
        yield "only heartbeats"
    elif flow.state.word is not Word.UNKNOWN:
        yield "no partition to copy"
    if flow.heartbeat_age_s is not None:
        yield f"last heartbeat {as_ago(flow.heartbeat_age_s)}"
    if flow.promoted:
        yield f"{counted(len(flow.promoted), 'topic')} promoted"
    if flow.process is not None:
        yield flow.process
    if flow.is_running is None:
        why = "it emits no heartbeats" if flow.heartbeat_age_s is None else "clocks differ"
        yield f"whether it runs can't be told: {why}, and it has reported no change just now"
