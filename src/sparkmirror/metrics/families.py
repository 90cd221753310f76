"""Defines every metric: its name, as dashboards and alerts for Java MM2 query it, its labels and its value.

Names and values are what Prometheus' JMX exporter makes of Kafka's MBeans with the rules in use for Connect:
`-metrics` is taken off the type, dashes become underscores, and a value that Kafka quotes in an object name
(`ObjectName.quote`, for example of a client id with `>` in it) keeps its quotes. Everything is a gauge there,
counts included; only `sparkmirror_…_total` are counters.

`destination` is the label of rules written for Kafka ≤ 3.9, whose MBeans begin with the target; `source` and
`target` are the tags of 4.0 (KIP-911). Samples carry all three, so that queries of both kinds work.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.domain.ids import Flow
from sparkmirror.domain.incidents import IncidentKind
from sparkmirror.metrics.readings import (
    CheckpointReading,
    ConnectorReading,
    HeartbeatReading,
    PartitionReading,
    SourceReading,
)
from sparkmirror.metrics.windows import Summary


class Family(NamedTuple):
    """A metric and its samples: the labels' values, in the order of `labels`, and a number."""

    name: str
    help: str
    labels: tuple[str, ...]
    samples: Sequence[tuple[tuple[str, ...], float]]

    @property
    def is_counter(self) -> bool:
        return self.name.startswith("sparkmirror_") and self.name.endswith("_total")


_UNQUOTED = re.compile(r"[\w\-%. \t]*", re.ASCII)
_ESCAPED = re.compile(r'(["*?\\])')


def jmx_value(text: str) -> str:
    """Quote a value as Kafka does in an object name (`Sanitizer.jmxSanitize`)."""
    if _UNQUOTED.fullmatch(text):
        return text
    escaped = _ESCAPED.sub(r"\\\1", text).replace("\n", "\\n")
    return f'"{escaped}"'


def families(readings: Collection[ConnectorReading]) -> Iterator[Family]:
    """Yield every metric of these connectors, each name once."""
    yield from _worker(readings)
    yield from _sources([reading for reading in readings if isinstance(reading, SourceReading)])
    yield from _checkpoints([reading for reading in readings if isinstance(reading, CheckpointReading)])
    yield from _heartbeats([reading for reading in readings if isinstance(reading, HeartbeatReading)])


# A Connect worker's connectors and tasks

_TASK_STATES = ("running", "paused", "failed", "unassigned", "destroyed", "restarting")


def _worker(readings: Collection[ConnectorReading]) -> Iterator[Family]:
    tasks: dict[str, list[tuple[int, str]]] = {}  # Connectors of several flows may have the same name.
    for reading in readings:
        tasks.setdefault(jmx_value(reading.connector), []).extend(reading.tasks.items())
    count = sum(map(len, tasks.values()))
    yield Family(
        "kafka_connect_worker_connector_count", "Connectors that run here.", (), [((), len(readings))]
    )
    yield Family("kafka_connect_worker_task_count", "Tasks that run here.", (), [((), count)])
    yield Family(
        "kafka_connect_worker_connector_total_task_count",
        "Tasks of the connector.",
        ("connector",),
        [((connector,), len(its)) for connector, its in tasks.items()],
    )
    for state in _TASK_STATES:
        yield Family(
            f"kafka_connect_worker_connector_{state}_task_count",
            f"Tasks of the connector that are {state}.",
            ("connector",),
            [((connector,), Counter(now for _, now in its)[state]) for connector, its in tasks.items()],
        )
    yield Family(
        "kafka_connect_connector_status",
        "1 for the state of the task.",
        ("connector", "task", "status"),
        [
            ((connector, str(task), state), 1)
            for connector, its in tasks.items()
            for task, state in dict.fromkeys(its)
        ],
    )


# MirrorSourceConnector

_PARTITION = ("source", "target", "destination", "topic", "partition")

_SOURCE = "kafka_connect_mirror_source_connector_"

_OF_PARTITIONS: tuple[tuple[str, str, Callable[[PartitionReading], float | None]], ...] = (
    (_SOURCE + "record_count", "Records written to the target.", lambda it: it.records),
    (_SOURCE + "record_rate", "Records written per second.", lambda it: it.record_rate),
    (_SOURCE + "byte_count", "Bytes of the batches written to the target.", lambda it: it.bytes),
    (_SOURCE + "byte_rate", "Bytes written per second.", lambda it: it.byte_rate),
    (_SOURCE + "record_age_ms", "Age of records, as replication_latency_ms.", lambda it: it.latency.last),
    (_SOURCE + "record_age_ms_min", "Lowest age of a record.", lambda it: it.latency.low),
    (_SOURCE + "record_age_ms_max", "Highest age of a record.", lambda it: it.latency.high),
    (_SOURCE + "record_age_ms_avg", "Mean age of records.", lambda it: it.latency.mean),
    (
        _SOURCE + "replication_latency_ms",
        "From a record's timestamp to its acknowledgement by the target, the last ones.",
        lambda it: it.latency.last,
    ),
    (_SOURCE + "replication_latency_ms_min", "The lowest replication latency.", lambda it: it.latency.low),
    (_SOURCE + "replication_latency_ms_max", "The highest replication latency.", lambda it: it.latency.high),
    (_SOURCE + "replication_latency_ms_avg", "The mean replication latency.", lambda it: it.latency.mean),
    (
        "sparkmirror_lag_records",
        "Records that the source has and the target has not, by offsets.",
        lambda it: it.lag,
    ),
    (
        "sparkmirror_lag_seconds",
        "How long the oldest record that the target does not have has been in the source.",
        lambda it: it.lag_s,
    ),
    (
        "sparkmirror_partition_lost_records",
        "Deleted from the source before they were copied; only partitions that lost some.",
        lambda it: it.lost or None,
    ),
    (
        "sparkmirror_partition_looped_records",
        "Left out because they had been mirrored from the target; only partitions with such records.",
        lambda it: it.looped or None,
    ),
)
"""Metrics of a partition: name, help and value; a partition without a value has no sample."""


def _sources(readings: Sequence[SourceReading]) -> Iterator[Family]:
    partitions = [
        (_partition_labels(reading.flow, it), it) for reading in readings for it in reading.partitions
    ]
    for name, text, value in _OF_PARTITIONS:
        samples = [(labels, number) for labels, it in partitions if (number := value(it)) is not None]
        yield Family(name, text, _PARTITION, samples)
    yield Family(
        "sparkmirror_partition_incidents",
        "Incidents of the partition, by kind; only partitions with incidents.",
        (*_PARTITION, "kind"),
        [
            ((*labels, kind), count)
            for labels, it in partitions
            for kind, count in sorted(it.incidents.items())
        ],
    )
    yield from _of_tasks(readings)
    yield from _of_connectors(readings)


def _partition_labels(flow: Flow, reading: PartitionReading) -> tuple[str, ...]:
    source, target = jmx_value(flow.source), jmx_value(flow.target)
    return source, target, target, jmx_value(reading.target_topic), str(reading.source.partition)


def _of_tasks(readings: Sequence[SourceReading]) -> Iterator[Family]:
    """Yield the metrics of MM2's consumers and Connect's tasks."""
    yield Family(
        "kafka_consumer_fetch_manager_records_lag",
        "Records that the source has and the target has not, by the source's topics.",
        ("clientId", "clientid", "topic", "partition"),
        [
            ((client, client, jmx_value(it.source.topic), str(it.source.partition)), it.lag)
            for reading in readings
            for it in reading.partitions
            if it.lag is not None
            for client in [_consumer(reading, it.task)]
        ],
    )
    tasks = _by_task(readings).items()
    name, labels = "kafka_connect_source_task_source_record_write", ("connector", "task")
    yield Family(
        f"{name}_total", "Records written to the target.", labels, [(of, total[0]) for of, total in tasks]
    )
    yield Family(
        f"{name}_rate", "Records written per second.", labels, [(of, total[1]) for of, total in tasks]
    )


def _consumer(reading: SourceReading, task: int) -> str:
    """The client id of Java MM2's consumer (KAFKA-14672, since 3.5)."""
    return jmx_value(f"{reading.flow}|{reading.connector}-{task}|replication-consumer")


def _by_task(readings: Sequence[SourceReading]) -> Mapping[tuple[str, str], tuple[int, float]]:
    """Sum up records, and records per second, by the connector's name and the task's number."""
    sums: dict[tuple[str, str], tuple[int, float]] = {}
    for reading in readings:
        connector = jmx_value(reading.connector)
        for task in reading.tasks:
            sums.setdefault((connector, str(task)), (0, 0.0))
        for it in reading.partitions:
            records, rate = sums.get((connector, str(it.task)), (0, 0.0))
            sums[connector, str(it.task)] = records + it.records, rate + it.record_rate
    return sums


_CONNECTOR = ("source", "target", "connector")


def _connector_labels(reading: ConnectorReading) -> tuple[str, ...]:
    return tuple(map(jmx_value, (*reading.flow, reading.connector)))


_OF_CONNECTORS: tuple[tuple[str, str, Callable[[SourceReading], int]], ...] = (
    (
        "sparkmirror_lost_records_total",
        "Deleted from the source before they were copied.",
        lambda it: it.lost,
    ),
    ("sparkmirror_looped_records_total", "Left out: mirrored from the target.", lambda it: it.looped),
    ("sparkmirror_retries_total", "How often a partition started to retry.", lambda it: it.retries),
    (
        "sparkmirror_failures_total",
        "How often a partition failed and needs an operator.",
        lambda it: it.failures,
    ),
    ("sparkmirror_stalls_total", "How often a partition stalled without an error.", lambda it: it.stalls),
    (
        "sparkmirror_stalled_partitions",
        "Partitions with lag, no progress for a minute and no error.",
        lambda it: it.stalled,
    ),
    (
        "sparkmirror_topics_gone",
        "Topics deleted on the source while the target has copies of them.",
        lambda it: it.gone,
    ),
)
"""Metrics of a source connector: name, help and value."""


def _of_connectors(readings: Sequence[SourceReading]) -> Iterator[Family]:
    """Yield counters, with 0 before the first event, so that an alert sees the first increase; and gauges."""
    named = [(_connector_labels(reading), reading) for reading in readings]
    for name, text, value in _OF_CONNECTORS:
        yield Family(name, text, _CONNECTOR, [(of, value(it)) for of, it in named])
    yield Family(
        "sparkmirror_incidents_total",
        "Incidents of the mirrored topics, by kind.",
        (*_CONNECTOR, "kind"),
        [((*of, kind.value), it.incidents.get(kind.value, 0)) for of, it in named for kind in IncidentKind],
    )
    yield Family(
        "sparkmirror_cluster_up",
        "1 while a broker of the cluster answers the flow's driver, else 0.",
        (*_CONNECTOR, "cluster"),
        [((*of, jmx_value(alias)), int(is_up)) for of, it in named for alias, is_up in it.up.items()],
    )
    yield Family(
        "sparkmirror_partitions",
        "Partitions by state: running, retrying, failed, silent (their task does not report), or unknown "
        "(no report can be read from the target).",
        (*_CONNECTOR, "state"),
        [((*of, state), count) for of, it in named for state, count in it.states.items()],
    )


# MirrorCheckpointConnector and MirrorHeartbeatConnector

_OF_GROUPS: tuple[tuple[str, str, Callable[[Summary], float]], ...] = (
    ("", "From reading the group's offsets to the acknowledgement of its checkpoint.", lambda it: it.last),
    ("_min", "The lowest checkpoint latency.", lambda it: it.low),
    ("_max", "The highest checkpoint latency.", lambda it: it.high),
    ("_avg", "The mean checkpoint latency.", lambda it: it.mean),
)


def _checkpoints(readings: Sequence[CheckpointReading]) -> Iterator[Family]:
    named = [(_connector_labels(reading), reading) for reading in readings]
    groups = [
        ((*of[:2], jmx_value(group), jmx_value(partition.topic), str(partition.partition)), latency)
        for of, reading in named
        for (group, partition), latency in reading.latencies.items()
    ]
    for suffix, text, value in _OF_GROUPS:
        yield Family(
            f"kafka_connect_mirror_checkpoint_connector_checkpoint_latency_ms{suffix}",
            text,
            ("source", "target", "group", "topic", "partition"),
            [(labels, value(latency)) for labels, latency in groups],
        )
    yield Family(
        "sparkmirror_checkpoints_total",
        "Checkpoints written.",
        _CONNECTOR,
        [(of, reading.checkpoints) for of, reading in named],
    )
    yield _since("sparkmirror_last_checkpoint_timestamp_seconds", "When the last one was written.", named)
    yield Family(
        "sparkmirror_checkpoint_groups",
        "Groups that are followed.",
        _CONNECTOR,
        [(of, reading.groups) for of, reading in named if reading.groups is not None],
    )
    yield Family(
        "sparkmirror_checkpoint_latencies_left_out",
        "Partitions of groups without a checkpoint latency of their own, because there are too many.",
        _CONNECTOR,
        [(of, reading.left_out) for of, reading in named],
    )
    yield Family(
        "sparkmirror_checkpoint_lookups_waiting",
        "Offsets of groups that stay approximate until a later interval, because of "
        "translation.resolve.bytes.max.",
        _CONNECTOR,
        [(of, reading.lookups_waiting) for of, reading in named],
    )
    yield Family(
        "sparkmirror_checkpoint_lookup_bytes_total",
        "Bytes of records, of both clusters, that were read to look up offsets of groups.",
        _CONNECTOR,
        [(of, reading.lookup_bytes) for of, reading in named],
    )


def _heartbeats(readings: Sequence[HeartbeatReading]) -> Iterator[Family]:
    named = [(_connector_labels(reading), reading) for reading in readings]
    yield Family(
        "sparkmirror_heartbeats_total",
        "Heartbeats written.",
        _CONNECTOR,
        [(of, reading.heartbeats) for of, reading in named],
    )
    yield _since("sparkmirror_last_heartbeat_timestamp_seconds", "When the last one was written.", named)


def _since(
    name: str, text: str, named: Iterable[tuple[tuple[str, ...], CheckpointReading | HeartbeatReading]]
) -> Family:
    return Family(name, text, _CONNECTOR, [(of, it.last_at) for of, it in named if it.last_at is not None])
