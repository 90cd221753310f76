"""Shows how the flows of an mm2.properties are: `sparkmirror status FILE`."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final

from sparkmirror.cli.commands.connectors.rest_commands import print_error
from sparkmirror.cli.commands.connectors.views import View, show
from sparkmirror.cli.commands.connectors.watch import watch
from sparkmirror.cli.commands.promoted_rows import SHOWN_MAX, last_rows
from sparkmirror.cli.mirror_maker_file import read_mirror_maker_file
from sparkmirror.cli.mirroring_flows import mirroring_flows
from sparkmirror.cli.reachability import clusters_of, require_clusters
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.quantities import as_ago, counted
from sparkmirror.migrate.steps import some_of
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.status.flow_lag import PartitionLag
from sparkmirror.status.flow_status import FlowState, FlowStatus, StatusReader
from sparkmirror.storage.promotions import promotions_json

_WELL: Final = 0
_NOT_WELL: Final = 1
_UNKNOWN: Final = 2


def run(arguments: argparse.Namespace, file: Path) -> int:
    try:
        flows = mirroring_flows(file, read_mirror_maker_file(file).flows, arguments.flow)
        require_clusters(clusters_of(flow.settings for flow in flows))
        with ExitStack() as opened:
            readers = [
                opened.enter_context(closing(StatusReader(FlowAccess.of(flow.settings, flow.connector))))
                for flow in flows
            ]
            if arguments.watch:
                return watch(lambda: status_view([reader.read() for reader in readers]), arguments)
            found = [reader.read() for reader in readers]
    except (SparkmirrorError, OSError) as error:
        print_error(arguments.prog, error)
        return _UNKNOWN
    show(status_view(found), arguments.output)
    if all(status.is_well for status in found):
        return _WELL
    return _UNKNOWN if all(_is_well_or_unknown(status) for status in found) else _NOT_WELL


def status_view(found: Sequence[FlowStatus]) -> View:
    """A row for each topic, those that are furthest behind first; below them a line for each flow."""
    rows = [row for status in found for row in _topic_rows(status)]
    notes = [note for status in found for note in ("", *_notes(status))]
    content = [to_json(status) for status in found]
    columns = ("flow", "topic", "partitions", "lag", "state")
    return View(content, columns, rows, 2, notes, all(status.is_well for status in found))


def to_json(status: FlowStatus) -> dict[str, Any]:
    lag, driver = status.lag, status.driver
    return {
        "flow": str(lag.flow),
        "state": status.state,
        "running": status.is_running,
        "lag_records": None if lag.unknown else lag.records,
        "unknown_partitions": len(lag.unknown),
        "heartbeat_age_s": _rounded(status.heartbeat_age_s),
        "report_age_s": _rounded(status.report_age_s),
        "process": None if driver is None else str(driver),
        "topics": [
            {"topic": topic, "partitions": len(each), "lag_records": _records(each)}
            for topic, each in _topics(status)
        ],
        "failed": {str(partition): error for partition, error in sorted(status.failed.items())},
        "retrying": {str(partition): error for partition, error in sorted(status.retrying.items())},
        "groups": dict(sorted(status.groups.items())),
        "promoted": promotions_json(lag.promoted),
    }


def _topics(status: FlowStatus) -> list[tuple[str, list[PartitionLag]]]:
    """Unknown lags first, then the largest."""
    topics: dict[str, list[PartitionLag]] = {}
    for each in status.lag.partitions:
        topics.setdefault(each.source.topic, []).append(each)
    return sorted(topics.items(), key=lambda item: (-_weight(item[1]), item[0]))


def _weight(partitions: Sequence[PartitionLag]) -> float:
    records = _records(partitions)
    return float("inf") if records is None else records


def _records(partitions: Sequence[PartitionLag]) -> int | None:
    """None where that of any partition is unknown."""
    if any(each.records is None for each in partitions):
        return None
    return sum(each.records or 0 for each in partitions)


def _topic_rows(status: FlowStatus) -> Iterator[tuple[str, ...]]:
    flow, topics = str(status.lag.flow), _topics(status)
    for topic, partitions in topics[:SHOWN_MAX]:
        records = _records(partitions)
        yield (
            flow,
            topic,
            str(len(partitions)),
            "?" if records is None else f"{records:,}",
            _topic_state(status, topic, records),
        )
    yield from last_rows(flow, len(topics), status.lag.promoted)


def _topic_state(status: FlowStatus, topic: str, records: int | None) -> str:
    """What is known of the topic itself, whether the mirror runs or not."""
    for state, partitions in (
        (FlowState.ACTION_REQUIRED, status.failed),
        (FlowState.RETRYING, status.retrying),
    ):
        if any(partition.topic == topic for partition in partitions):
            return state
    if records is None:
        return FlowState.UNKNOWN
    return "behind" if records else FlowState.CAUGHT_UP


def _notes(status: FlowStatus) -> Iterator[str]:
    lag = status.lag
    yield f"{lag.flow}: {status.state}, {', '.join(_facts(status))}"
    for partition, error in [*status.failed.items(), *status.retrying.items()][:SHOWN_MAX]:
        yield f"  {partition}: {error}"
    for each in lag.unknown[:SHOWN_MAX]:
        yield f"  {each.source}: {each.why}"
    if status.groups:
        names = some_of(sorted(status.groups))
        yield f"  {counted(len(status.groups), 'consumer group')} with checkpoints: {names}"


def _facts(status: FlowStatus) -> Iterator[str]:
    lag = status.lag
    if lag.partitions:
        unknown = f", {len(lag.unknown):,} unknown" if lag.unknown else ""
        places = counted(len(lag.partitions), "partition")
        yield f"{counted(lag.records, 'record')} to copy in {places}{unknown}"
    else:
        yield "no topic to mirror"
    if status.heartbeat_age_s is not None:
        yield f"last heartbeat {as_ago(status.heartbeat_age_s)}"
    elif status.heartbeat_interval_s < float("inf"):
        yield "no heartbeat"
    if lag.promoted:
        yield f"{counted(len(lag.promoted), 'topic')} promoted"
    if status.is_stopped:
        yield "its connector was stopped in order"
    elif status.driver is not None:
        yield str(status.driver)
    if status.is_running is None:
        why = "it emits no heartbeats" if status.heartbeat_age_s is None else "clocks differ"
        yield f"whether it runs can't be told: {why}, and it has reported no change just now"


def _rounded(age_s: float | None) -> float | None:
    return None if age_s is None else round(age_s, 1)


def _is_well_or_unknown(status: FlowStatus) -> bool:
    return status.is_well or status.state is FlowState.UNKNOWN
