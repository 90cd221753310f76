"""Lists the MBeans that Kafka's own MirrorMaker 2 has for what these connectors do, with our values.

Names, tags and their order are those of Kafka 4 (`MirrorSourceMetrics`, `MirrorCheckpointMetrics`,
`ConnectMetricsRegistry`, the clients' metrics). An attribute is there only if its value is measured.

Pure.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from sparkmirror import __version__
from sparkmirror.metrics.readings import (
    CheckpointReading,
    ConnectorReading,
    HeartbeatReading,
    NodeReading,
    PartitionReading,
    SourceReading,
    TaskReading,
)

Properties = tuple[tuple[str, str], ...]
"""Keys and values of an object name, in order; values are not quoted."""

_UNQUOTED: Final = re.compile(r"[\w\-%. \t]*", re.ASCII)
_ESCAPED: Final = re.compile(r'(["*?\\])')


class MBean(NamedTuple):
    """`values` are those of `attributes`; `older` are the properties of Kafka 3.9, where they differ."""

    domain: str
    properties: Properties
    attributes: tuple[str, ...]
    values: Sequence[float | str]
    older: Properties | None = None


_CONNECT: Final = "kafka.connect"
_MIRROR: Final = "kafka.connect.mirror"

_PACKAGE: Final = "org.apache.kafka.connect.mirror."
_CLASSES: Final[Mapping[type[ConnectorReading], str]] = {
    SourceReading: _PACKAGE + "MirrorSourceConnector",
    CheckpointReading: _PACKAGE + "MirrorCheckpointConnector",
    HeartbeatReading: _PACKAGE + "MirrorHeartbeatConnector",
}

_TASK_STATES: Final = ("running", "paused", "failed", "unassigned", "destroyed", "restarting")
_COUNTS: Final = (
    "connector-total-task-count",
    *(f"connector-{state}-task-count" for state in _TASK_STATES),
)

_PARTITION: Final = (
    "record-count",
    "record-rate",
    "byte-count",
    "byte-rate",
    *(
        f"{name}-ms{suffix}"
        for name in ("record-age", "replication-latency")
        for suffix in ("", "-min", "-max", "-avg")
    ),
)
_TOPIC: Final = (
    "record-count",
    "record-rate",
    "byte-rate",
    "replication-latency-ms-max",
    "replication-latency-ms-avg",
)
"""The attributes that remain where a topic's partitions are added up, which keeps large pages small."""
_CHECKPOINT: Final = tuple(f"checkpoint-latency-ms{suffix}" for suffix in ("", "-min", "-max", "-avg"))


def jmx_value(text: str) -> str:
    """Quote a value as Kafka does in an object name (`Sanitizer.jmxSanitize`)."""
    if _UNQUOTED.fullmatch(text):
        return text
    escaped = _ESCAPED.sub(r"\\\1", text).replace("\n", "\\n")
    return f'"{escaped}"'


def mbeans(readings: Collection[ConnectorReading], node: NodeReading | None = None) -> Iterator[MBean]:
    """Yield the MBeans of these connectors; `node` adds those of the process."""
    yield from _worker(readings)
    if node is not None:
        yield from _node(readings, node)
    for reading in readings:
        if isinstance(reading, SourceReading):
            yield from _partitions(reading)
            yield from _clients(reading)
        elif isinstance(reading, CheckpointReading):
            yield from _checkpoints(reading)
    yield from _source_tasks([reading for reading in readings if isinstance(reading, SourceReading)])


def _worker(readings: Collection[ConnectorReading]) -> Iterator[MBean]:
    """Connectors of several flows may have the same name: they are counted together."""
    tasks: dict[str, list[tuple[int, str]]] = {}
    for reading in readings:
        tasks.setdefault(reading.connector, []).extend(reading.tasks.items())
    count = sum(map(len, tasks.values()))
    of_worker = (("type", "connect-worker-metrics"),)
    yield MBean(_CONNECT, of_worker, ("connector-count", "task-count"), (len(readings), count))
    for connector, its in tasks.items():
        states = Counter(state for _, state in its)
        counts = (len(its), *(states[state] for state in _TASK_STATES))
        yield MBean(_CONNECT, (*of_worker, ("connector", connector)), _COUNTS, counts)
        for task, state in dict.fromkeys(its):
            yield MBean(_CONNECT, _of_task("connector-task-metrics", connector, task), ("status",), (state,))
    for connector, kind in {reading.connector: type(reading) for reading in readings}.items():
        yield MBean(
            _CONNECT,
            (("type", "connector-metrics"), ("connector", connector)),
            ("connector-class", "connector-type", "connector-version"),
            (_CLASSES[kind], "source", __version__),
        )


def _node(readings: Collection[ConnectorReading], node: NodeReading) -> Iterator[MBean]:
    yield MBean(
        _CONNECT,
        (("type", "connect-coordinator-metrics"), ("client-id", node.client_id)),
        ("assigned-connectors", "assigned-tasks"),
        (len(readings), sum(len(reading.tasks) for reading in readings)),
    )
    rebalance = (("type", "connect-worker-rebalance-metrics"),)
    yield MBean(_CONNECT, rebalance, ("rebalancing",), (int(node.is_rebalancing),))
    if node.leader is not None:
        yield MBean(_CONNECT, rebalance, ("leader-name",), (node.leader,))


def _of_task(kind: str, connector: str, task: int) -> Properties:
    return ("type", kind), ("connector", connector), ("task", str(task))


def _partitions(reading: SourceReading) -> Iterator[MBean]:
    kind = ("type", "MirrorSourceConnector")
    source, target = ("source", str(reading.flow.source)), ("target", str(reading.flow.target))
    client = [client_id(reading, task) for task in range(len(reading.tasks))]
    for it in reading.partitions:
        topic, partition = ("topic", it.target_topic), ("partition", it.partition_label)
        rates = (it.record_rate, it.bytes, it.byte_rate) if it.is_one else (it.record_rate, it.byte_rate)
        latencies = (*_latencies(it), *_latencies(it)) if it.is_one else _latencies(it)[-2:]
        yield MBean(
            _MIRROR,
            (kind, source, target, topic, partition),
            _PARTITION if it.is_one else _TOPIC,
            (it.records, *rates, *latencies),
            (kind, target, topic, partition),
        )
        if it.lag is not None and it.is_one:
            consumer = client[it.task] if it.task < len(client) else client_id(reading, it.task)
            yield MBean(
                "kafka.consumer",
                (
                    *_of_client("consumer-fetch-manager-metrics", consumer),
                    ("topic", it.source.topic),
                    partition,
                ),
                ("records-lag",),
                (it.lag,),
            )


def _latencies(it: PartitionReading) -> tuple[float, float, float, float]:
    latency = it.latency
    return latency.last, latency.low, latency.high, latency.mean


def _of_client(kind: str, client: str) -> Properties:
    return ("type", kind), ("client-id", client)


def client_id(reading: SourceReading, task: int) -> str:
    """The client id of Java MM2's consumer (KAFKA-14672, since 3.5)."""
    return f"{reading.flow}|{reading.connector}-{task}|replication-consumer"


def _clients(reading: SourceReading) -> Iterator[MBean]:
    """Derive what Java's consumer and producer of a task would count from what a copy task measures."""
    totals = _by_task([reading])
    for task, its in reading.of_tasks.items():
        records, _, copied, _ = totals.get((reading.connector, task), (0, 0.0, 0, 0.0))
        consumer = client_id(reading, task)
        yield MBean(
            "kafka.consumer",
            _of_client("consumer-fetch-manager-metrics", consumer),
            ("fetch-latency-avg", "records-consumed-total", "bytes-consumed-total"),
            (its.fetch.mean, records, copied),
        )
        yield MBean(
            "kafka.consumer",
            _of_client("consumer-metrics", consumer),
            ("incoming-byte-total", "outgoing-byte-total", "connection-count"),
            (its.source.bytes_in, its.source.bytes_out, its.source.connections),
        )
        yield MBean(
            "kafka.producer",
            _of_client("producer-metrics", f"connector-producer-{reading.connector}-{task}"),
            (
                "incoming-byte-total",
                "outgoing-byte-total",
                "connection-count",
                "buffer-total-bytes",
                "buffer-available-bytes",
            ),
            (*its.target[:3], its.buffer_total, its.buffer_available),
        )


_Totals = tuple[int, float, int, float]
"""Records, records per second, bytes, bytes per second."""


def _by_task(readings: Sequence[SourceReading]) -> Mapping[tuple[str, int], _Totals]:
    """Sum up by the connector's name and the task's number; tasks without partitions are there with 0."""
    sums: dict[tuple[str, int], _Totals] = {}
    for reading in readings:
        for task in reading.tasks:
            sums.setdefault((reading.connector, task), (0, 0.0, 0, 0.0))
        for it in reading.partitions:
            of = reading.connector, it.task
            records, rate, copied, byte_rate = sums.get(of, (0, 0.0, 0, 0.0))
            sums[of] = (
                records + it.records,
                rate + it.record_rate,
                copied + it.bytes,
                byte_rate + it.byte_rate,
            )
    return sums


def _source_tasks(readings: Sequence[SourceReading]) -> Iterator[MBean]:
    measured: dict[tuple[str, int], list[TaskReading]] = {}
    for reading in readings:
        for task, its in reading.of_tasks.items():
            measured.setdefault((reading.connector, task), []).append(its)
    for (connector, task), (records, rate, _, _) in _by_task(readings).items():
        names = ["source-record-write-total", "source-record-write-rate"]
        values: list[float] = [records, rate]
        if found := measured.get((connector, task)):
            names.append("source-record-active-count")
            values.append(sum(its.in_flight for its in found))
            yield from _task_details(connector, task, found)
        yield MBean(_CONNECT, _of_task("source-task-metrics", connector, task), tuple(names), values)


def _task_details(connector: str, task: int, found: Sequence[TaskReading]) -> Iterator[MBean]:
    commits = [its.commit for its in found]
    yield MBean(
        _CONNECT,
        _of_task("connector-task-metrics", connector, task),
        ("offset-commit-avg-time-ms", "offset-commit-max-time-ms"),
        (_mean(commit.mean for commit in commits), max(commit.high for commit in commits)),
    )
    yield MBean(
        _CONNECT,
        _of_task("task-error-metrics", connector, task),
        ("total-record-failures", "total-retries"),
        (sum(its.failures for its in found), sum(its.retries for its in found)),
    )


def _mean(values: Iterable[float]) -> float:
    every = list(values)
    return sum(every) / len(every)


def _checkpoints(reading: CheckpointReading) -> Iterator[MBean]:
    kind = ("type", "MirrorCheckpointConnector")
    source, target = ("source", str(reading.flow.source)), ("target", str(reading.flow.target))
    for (group, partition), latency in reading.latencies.items():
        yield MBean(
            _MIRROR,
            (
                kind,
                source,
                target,
                ("group", group),
                ("topic", partition.topic),
                ("partition", str(partition.partition)),
            ),
            _CHECKPOINT,
            tuple(latency),
        )
