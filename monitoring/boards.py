"""The Grafana dashboards: panels by title, unit and queries, laid out three in a row."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from monitoring.alerts import STALE_RATIO

_OF: Final = 'source=~"$source",target=~"$target"'
_JAVA: Final = "kafka_connect_mirror_source_connector_"
_WIDTH: Final = 8
_HEIGHT: Final = 8
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


class Query(NamedTuple):
    expr: str
    legend: str


class Panel(NamedTuple):
    """`kind` is Grafana's: timeseries, stat, table. `note` says what the panel shows."""

    title: str
    note: str
    unit: str
    queries: tuple[Query, ...]
    kind: str = "timeseries"


class Board(NamedTuple):
    """`variables` are label names that a user chooses among, of the metric that is named."""

    name: str
    title: str
    variables: tuple[tuple[str, str], ...]
    panels: tuple[Panel, ...]


def _flow(metric: str, by: str = "source, target", how: str = "sum") -> str:
    return f"{how} by ({by}) ({metric}{{{_OF}}})"


_FLOW: Final = "{{source}}->{{target}}"
_TOPIC: Final = "{{topic}}"
_FLOWS: Final = (("source", "sparkmirror_partitions"), ("target", "sparkmirror_partitions"))

MIRROR: Final = Board(
    "mirror",
    "sparkmirror: mirror",
    _FLOWS,
    (
        Panel(
            "Action required",
            "Partitions that failed, are stalled, or of which nothing is known.",
            "short",
            (
                Query(f'sum(sparkmirror_partitions{{{_OF},state="failed"}})', "failed"),
                Query(f"sum(sparkmirror_stalled_partitions{{{_OF}}})", "stalled"),
                Query(f'sum(sparkmirror_partitions{{{_OF},state=~"silent|unknown"}})', "unknown"),
            ),
            "stat",
        ),
        Panel(
            "Clusters",
            "1 while a broker of the cluster answers.",
            "short",
            (
                Query(
                    _flow("sparkmirror_cluster_up", "source, target, cluster", "min"),
                    f"{_FLOW} {{{{cluster}}}}",
                ),
            ),
            "stat",
        ),
        Panel(
            "Stale partitions",
            "How many are more than a minute behind; the objective's measure.",
            "percentunit",
            (Query(f"{STALE_RATIO}{{{_OF}}}", _FLOW),),
            "stat",
        ),
        Panel(
            "Lag in seconds",
            "The age of the oldest missing record; grows by the clock in an outage.",
            "s",
            (Query(_flow("sparkmirror_lag_seconds", how="max"), _FLOW),),
        ),
        Panel(
            "Lag in records",
            "No value while it is not known.",
            "short",
            (Query(_flow("sparkmirror_lag_records"), _FLOW),),
        ),
        Panel(
            "Topics furthest behind",
            "The ten with the highest lag.",
            "s",
            (Query(f"topk(10, {_flow('sparkmirror_lag_seconds', 'topic', 'max')})", _TOPIC),),
        ),
        Panel(
            "Records per second",
            "Acknowledged by the target.",
            "cps",
            (Query(_flow(_JAVA + "record_rate"), _FLOW),),
        ),
        Panel(
            "Bytes per second",
            "Batches as they are written, compressed.",
            "Bps",
            (Query(_flow(_JAVA + "byte_rate"), _FLOW),),
        ),
        Panel(
            "Replication latency",
            "From a record's timestamp to its acknowledgement.",
            "ms",
            (
                Query(_flow(_JAVA + "replication_latency_ms_avg", how="avg"), f"{_FLOW} mean"),
                Query(_flow(_JAVA + "replication_latency_ms_max", how="max"), f"{_FLOW} max"),
            ),
        ),
        Panel(
            "Partitions by state",
            "",
            "short",
            (Query(_flow("sparkmirror_partitions", "state"), "{{state}}"),),
        ),
        Panel(
            "Incidents",
            "Losses, recreated topics, skipped batches and so on, in 10 minutes.",
            "short",
            (
                Query(
                    f"sum by (source, target, kind) (increase(sparkmirror_incidents_total{{{_OF}}}[10m])) > 0",
                    f"{_FLOW} {{{{kind}}}}",
                ),
            ),
        ),
        Panel(
            "Lost, failed, retried",
            "In 10 minutes.",
            "short",
            (
                Query(f"sum(increase(sparkmirror_lost_records_total{{{_OF}}}[10m]))", "records lost"),
                Query(f"sum(increase(sparkmirror_failures_total{{{_OF}}}[10m]))", "failures"),
                Query(f"sum(increase(sparkmirror_retries_total{{{_OF}}}[10m]))", "retries"),
            ),
        ),
    ),
)

MIGRATION: Final = Board(
    "migration",
    "sparkmirror: migration",
    _FLOWS,
    (
        Panel(
            "Records left",
            "What the source has and the target has not.",
            "short",
            (Query(f"sum(sparkmirror_lag_records{{{_OF}}})", "records"),),
            "stat",
        ),
        Panel(
            "Last comparison",
            "Partitions by what `sparkmirror verify` or a page found; nothing where none was compared for 7 days.",
            "short",
            (
                Query(f"sum by (result) (sparkmirror_verify_partitions{{{_OF}}})", "{{result}}"),
                Query(f"sum(sparkmirror_verify_differences{{{_OF}}})", "differences"),
            ),
            "stat",
        ),
        Panel(
            "Compared",
            "How long ago.",
            "s",
            (Query(f"time() - {_flow('sparkmirror_verify_last_timestamp_seconds', how='max')}", _FLOW),),
            "stat",
        ),
        Panel(
            "Groups followed",
            "Groups with checkpoints.",
            "short",
            (Query(f"sum(sparkmirror_checkpoint_groups{{{_OF}}})", "groups"),),
            "stat",
        ),
        Panel(
            "Translated",
            "When the offsets of all groups were translated last.",
            "s",
            (
                Query(
                    f"time() - max by (source, target) (sparkmirror_last_translation_timestamp_seconds{{{_OF}}})",
                    _FLOW,
                ),
            ),
            "stat",
        ),
        Panel(
            "Lag by topic",
            "The twenty with the most missing records.",
            "short",
            (Query(f"topk(20, {_flow('sparkmirror_lag_records', 'topic')})", _TOPIC),),
        ),
        Panel(
            "Read again if moved now",
            "At most, for the twenty groups that would read most.",
            "short",
            (Query(f"topk(20, {_flow('sparkmirror_group_reread_records', 'group', 'max')})", "{{group}}"),),
        ),
        Panel(
            "Places on the target",
            "Partitions of groups, by how exactly their place is known.",
            "short",
            (Query(_flow("sparkmirror_group_partitions", "translation"), "{{translation}}"),),
        ),
        Panel(
            "Age of translations",
            "The twenty groups whose offsets were translated longest ago.",
            "s",
            (
                Query(
                    f"topk(20, time() - {_flow('sparkmirror_group_translation_timestamp_seconds', 'group', 'min')})",
                    "{{group}}",
                ),
            ),
        ),
        Panel(
            "Checkpoints per second",
            "",
            "cps",
            (Query(f"sum by (source, target) (rate(sparkmirror_checkpoints_total{{{_OF}}}[5m]))", _FLOW),),
        ),
        Panel(
            "Checkpoint latency",
            "From reading a group's offsets to the acknowledgement of its checkpoint.",
            "ms",
            (
                Query(
                    _flow("kafka_connect_mirror_checkpoint_connector_checkpoint_latency_ms_avg", how="avg"),
                    f"{_FLOW} mean",
                ),
                Query(
                    _flow("kafka_connect_mirror_checkpoint_connector_checkpoint_latency_ms_max", how="max"),
                    f"{_FLOW} max",
                ),
            ),
        ),
        Panel(
            "Look-ups",
            "Offsets that wait to be looked up in the records, and the bytes read for it.",
            "short",
            (
                Query(_flow("sparkmirror_checkpoint_lookups_waiting"), f"{_FLOW} waiting"),
                Query(
                    f"sum by (source, target) (rate(sparkmirror_checkpoint_lookup_bytes_total{{{_OF}}}[5m]))",
                    f"{_FLOW} bytes/s",
                ),
            ),
        ),
        Panel(
            "Topics gone",
            "Deleted on the source, still on the target.",
            "short",
            (Query(_flow("sparkmirror_topics_gone"), _FLOW),),
        ),
        Panel(
            "Heartbeats",
            "Seconds since the last one was written.",
            "s",
            (
                Query(
                    f"time() - max by (source, target) (sparkmirror_last_heartbeat_timestamp_seconds{{{_OF}}})",
                    _FLOW,
                ),
            ),
        ),
    ),
)

WORKER: Final = Board(
    "worker",
    "sparkmirror: worker",
    (("job", "sparkmirror_build_info"),),
    (
        Panel("Nodes", "Nodes that are scraped, and those that lead.", "short", (
            Query('count(sparkmirror_build_info{job=~"$job"})', "nodes"),
            Query('sum(sparkmirror_leader{job=~"$job"})', "leaders"),
        ), "stat"),
        Panel("Connectors and tasks", "", "short", (
            Query('sum(kafka_connect_worker_connector_count{job=~"$job"})', "connectors"),
            Query('sum(kafka_connect_worker_task_count{job=~"$job"})', "tasks"),
        ), "stat"),
        Panel("Failed tasks", "", "short", (
            Query('sum by (connector) (kafka_connect_worker_connector_failed_task_count{job=~"$job"})', "{{connector}}"),
        ), "stat"),
        Panel("Tasks by state", "", "short", (
            Query('sum by (status) (kafka_connect_connector_status{job=~"$job"})', "{{status}}"),
        )),
        Panel("Tasks of each node", "Only the leader runs any.", "short", (
            Query('sum by (instance) (kafka_connect_coordinator_assigned_tasks{job=~"$job"})', "{{instance}}"),
        )),
        Panel("Rebalancing", "1 while a node knows of no leader.", "short", (
            Query('max by (instance) (kafka_connect_worker_rebalance_rebalancing{job=~"$job"})', "{{instance}}"),
        )),
        Panel("Records written by tasks", "Per second.", "cps", (
            Query('sum by (connector, task) (kafka_connect_source_task_source_record_write_rate{job=~"$job"})', "{{connector}}-{{task}}"),
        )),
        Panel("CPU", "Of the process; tasks on executors are not in it.", "percentunit", (
            Query('rate(process_cpu_seconds_total{job=~"$job"}[5m])', "{{instance}}"),
        )),
        Panel("Memory", "Resident, of the process.", "bytes", (
            Query('process_resident_memory_bytes{job=~"$job"}', "{{instance}}"),
        )),
        Panel("Starts", "In an hour.", "short", (
            Query('changes(process_start_time_seconds{job=~"$job"}[1h])', "{{instance}}"),
        )),
        Panel("Versions", "", "short", (
            Query('count by (version) (sparkmirror_build_info{job=~"$job"})', "{{version}}"),
        ), "stat"),
        Panel("Open files", "", "short", (
            Query('process_open_fds{job=~"$job"}', "{{instance}}"),
        )),
    ),
)  # fmt: skip

BOARDS: Final = (MIRROR, MIGRATION, WORKER)


def dashboard(board: Board) -> dict[str, Any]:
    """Grafana's JSON, to be imported as it is; the data source is chosen on the dashboard."""
    return {
        "uid": f"sparkmirror-{board.name}",
        "title": board.title,
        "tags": ["kafka", "sparkmirror"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [_chosen_datasource(), *(_variable(*each) for each in board.variables)]},
        "panels": [_panel(number, panel) for number, panel in enumerate(board.panels)],
    }


def _chosen_datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _variable(label: str, metric: str) -> dict[str, Any]:
    query = f"label_values({metric}, {label})"
    return {
        "name": label,
        "label": label.capitalize(),
        "type": "query",
        "datasource": _DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": "variable"},
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "refresh": 2,
        "sort": 1,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    per_row = 24 // _WIDTH
    return {
        "id": number + 1,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.note,
        "datasource": _DATASOURCE,
        "gridPos": {
            "x": number % per_row * _WIDTH,
            "y": number // per_row * _HEIGHT,
            "w": _WIDTH,
            "h": _HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": _options(panel.kind),
        "targets": [_target(*each) for each in zip("ABCDEFGH", panel.queries, strict=False)],
    }


def _options(kind: str) -> dict[str, Any]:
    if kind == "stat":
        return {"reduceOptions": {"calcs": ["lastNotNull"]}, "textMode": "value_and_name"}
    return {"legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]}}


def _target(ref: str, query: Query) -> dict[str, Any]:
    return {"refId": ref, "datasource": _DATASOURCE, "expr": query.expr, "legendFormat": query.legend}


def queries(boards: Sequence[Board] = BOARDS) -> list[str]:
    """Every query of the dashboards."""
    return [query.expr for board in boards for panel in board.panels for query in panel.queries]
