"""Defines our own metrics: name, labels and value. `mbeans` has those of Java, which rules name.

`destination` is the label of rules written for Kafka ≤ 3.9, whose MBeans begin with the target; `source` and
`target` are the tags of 4.0 (KIP-911). Samples carry all three, so queries of both kinds work. What Kafka
would quote in an object name is quoted, as in the metrics of the MBeans.

Pure.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from sparkmirror.domain.ids import Flow
from sparkmirror.domain.incidents import IncidentKind
from sparkmirror.metrics.family import Family
from sparkmirror.metrics.mbeans import jmx_value
from sparkmirror.metrics.readings import (
    CheckpointReading,
    ConnectorReading,
    HeartbeatReading,
    JvmReading,
    NodeReading,
    PartitionReading,
    SourceReading,
)
from sparkmirror.storage.verified import Verified


def families(readings: Collection[ConnectorReading], node: NodeReading | None = None) -> Iterator[Family]:
    """Yield our own metrics of these connectors, each name once; `node` is a node of a Connect group."""
    yield from _node(node)
    yield _troubles(readings)
    yield from _sources([reading for reading in readings if isinstance(reading, SourceReading)])
    yield from _checkpoints([reading for reading in readings if isinstance(reading, CheckpointReading)])
    yield from _heartbeats([reading for reading in readings if isinstance(reading, HeartbeatReading)])


def _node(node: NodeReading | None) -> Iterator[Family]:
    if node is not None and node.jvm is not None:
        yield from _jvm_families(node.jvm)
    if node is None or node.is_leader is None:
        return
    yield Family(
        "sparkmirror_leader",
        "1 on the node of the Connect group that leads, else 0; `leader` is the one that this node knows of.",
        ("leader",),
        [((node.leader or "",), int(node.is_leader))],
    )


_CONNECTOR = ("source", "target", "connector")


def _connector_labels(reading: ConnectorReading) -> tuple[str, ...]:
    return tuple(map(jmx_value, (*reading.flow, reading.connector)))


def _troubles(readings: Collection[ConnectorReading]) -> Family:
    """List samples of connectors that can't do all that they were asked for."""
    return Family(
        "sparkmirror_troubles",
        "Topics, groups, internal topics and actions that were asked for and can't be done, by the word for "
        "it; all but throttled, waiting, differs and shared require action.",
        (*_CONNECTOR, "word"),
        [
            ((*_connector_labels(reading), word.value), count)
            for reading in readings
            for word, count in sorted(Counter(it.word for it in reading.troubles).items())
        ],
    )


# MirrorSourceConnector

_PARTITION = ("source", "target", "destination", "topic", "partition")

_OF_PARTITIONS: tuple[tuple[str, str, Callable[[PartitionReading], float | None]], ...] = (
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
    (
        "sparkmirror_partition_filtered_records",
        "Left out by a transform; only partitions with such records.",
        lambda it: it.filtered or None,
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
    yield from _of_connectors(readings)
    yield from _verified(readings)


def _verified(readings: Sequence[SourceReading]) -> Iterator[Family]:
    """List samples of comparisons. Partitions that were never compared have none."""
    named = [(_connector_labels(it), it.verified.values()) for it in readings if it.verified]
    yield Family(
        "sparkmirror_verify_last_timestamp_seconds",
        "When both clusters were compared last, by sparkmirror verify or from a page.",
        _CONNECTOR,
        [(of, max(each.at for each in found)) for of, found in named],
    )
    yield Family(
        "sparkmirror_verify_differences",
        "Differences in the last comparison of each partition.",
        _CONNECTOR,
        [(of, sum(each.differences for each in found)) for of, found in named],
    )
    yield Family(
        "sparkmirror_verify_partitions",
        "Partitions by their last comparison: equal, different, or unreadable, where not all was compared.",
        (*_CONNECTOR, "result"),
        [
            ((*of, result), sum(_result(each) == result for each in found))
            for of, found in named
            for result in ("equal", "different", "unreadable")
        ],
    )
    yield Family(
        "sparkmirror_verify_offset",
        "Everything of the source before this offset was compared; only partitions that were.",
        _PARTITION,
        [
            (_partition_labels(reading.flow, it), known.upto)
            for reading in readings
            if reading.verified
            for it in reading.partitions
            if (known := reading.verified.get(it.source)) is not None and known.upto is not None
        ],
    )


def _result(found: Verified) -> str:
    if found.differences:
        return "different"
    return "unreadable" if found.upto is None else "equal"


def _partition_labels(flow: Flow, reading: PartitionReading) -> tuple[str, ...]:
    source, target = jmx_value(flow.source), jmx_value(flow.target)
    return source, target, target, jmx_value(reading.target_topic), reading.partition_label


_OF_CONNECTORS: tuple[tuple[str, str, Callable[[SourceReading], int]], ...] = (
    (
        "sparkmirror_lost_records_total",
        "Deleted from the source before they were copied.",
        lambda it: it.lost,
    ),
    ("sparkmirror_looped_records_total", "Left out: mirrored from the target.", lambda it: it.looped),
    ("sparkmirror_filtered_records_total", "Left out by a transform.", lambda it: it.filtered),
    ("sparkmirror_retries_total", "How often a partition started to retry.", lambda it: it.retries),
    (
        "sparkmirror_failures_total",
        "How often a partition failed with an error that requires action.",
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
        "sparkmirror_throttle_seconds_total",
        "How long quotas of the cluster throttled the task since it started.",
        (*_CONNECTOR, "task", "cluster"),
        [
            ((*of, str(task), jmx_value(alias)), traffic.throttled_s)
            for of, it in named
            for task, its in it.of_tasks.items()
            for alias, traffic in zip(it.flow, (its.source, its.target), strict=True)
        ],
    )
    yield Family(
        "sparkmirror_partitions",
        "Partitions by state: running, standby (until a failback), retrying, failed, silent (their task does "
        "not report), or unknown (no report can be read from the target).",
        (*_CONNECTOR, "state"),
        [((*of, state), count) for of, it in named for state, count in it.states.items()],
    )


# MirrorCheckpointConnector and MirrorHeartbeatConnector


def _checkpoints(readings: Sequence[CheckpointReading]) -> Iterator[Family]:
    named = [(_connector_labels(reading), reading) for reading in readings]
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
        "sparkmirror_groups_not_committed",
        "Groups whose offsets the target refused when they were to be committed last.",
        _CONNECTOR,
        [(of, reading.not_committed) for of, reading in named],
    )
    yield Family(
        "sparkmirror_last_translation_timestamp_seconds",
        "When the offsets of all groups were translated last, whether that made checkpoints or not.",
        _CONNECTOR,
        [(of, it.translated_at) for of, it in named if it.translated_at is not None],
    )
    yield from _translations(named)
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


_GROUP = ("source", "target", "group")


def _translations(named: Sequence[tuple[tuple[str, ...], CheckpointReading]]) -> Iterator[Family]:
    groups = [
        ((*of[:2], jmx_value(group)), its) for of, it in named for group, its in it.translations.items()
    ]
    yield Family(
        "sparkmirror_group_reread_records",
        "Records that the group would read again on the target at most, as far as that is known.",
        _GROUP,
        [(of, its.reread_max) for of, its in groups],
    )
    yield Family(
        "sparkmirror_group_translation_timestamp_seconds",
        "When the group's offsets were translated last.",
        _GROUP,
        [(of, its.at) for of, its in groups],
    )
    yield Family(
        "sparkmirror_group_partitions",
        "The group's partitions, by what their place on the target is: exact, approximate, or unknown.",
        (*_GROUP, "translation"),
        [
            ((*of, kind), count)
            for of, its in groups
            for kind, count in (
                ("exact", its.exact),
                ("approximate", its.approximate),
                ("unknown", its.unknown),
            )
        ],
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


def _jvm_families(jvm: JvmReading) -> Iterator[Family]:
    """A part of memory without a limit has -1 as its most, as the exporter says."""
    for name, text, at in (
        ("used", "Memory that is used.", 0),
        ("committed", "Memory that the operating system guarantees.", 1),
        ("max", "Memory that may be used at most.", 2),
    ):
        samples = [((area,), float(its[at])) for area, its in sorted(jvm.memory.items())]
        yield Family(f"jvm_memory_{name}_bytes", f"{text} Of the driver's JVM.", ("area",), samples)
    collectors = sorted(jvm.collectors.items())
    yield Family(
        "jvm_gc_collection_seconds_count",
        "Garbage collections of the driver's JVM.",
        ("gc",),
        [((name,), its.collections) for name, its in collectors],
    )
    yield Family(
        "jvm_gc_collection_seconds_sum",
        "Seconds that garbage collections of the driver's JVM took.",
        ("gc",),
        [((name,), its.seconds) for name, its in collectors],
    )
    yield Family("jvm_threads_current", "Threads of the driver's JVM.", (), [((), jvm.threads)])
