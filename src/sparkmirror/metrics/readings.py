"""Holds the values of a process's connectors for `/metrics`; `metrics.families` makes metrics of them.

Values of a partition are made of the same look at it as the view.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from typing import NamedTuple, Self

import numpy as np

from sparkmirror.domain.ids import Alias, ConnectorName, Flow, GroupId, TopicPartition
from sparkmirror.domain.troubles import Subject, Trouble
from sparkmirror.metrics.looks import PartitionLook, SourceLook
from sparkmirror.metrics.partition_table import NOT_REPORTED, lags_of, table_of
from sparkmirror.metrics.windows import NO_VALUES, Summary, summary_of_latencies
from sparkmirror.storage.verified import Verified


class PartitionReading(NamedTuple):
    """A look at one partition, or at a topic's partitions together, as numbers. Latencies are in ms.

    `lag` is in records, `lag_s` the age of the oldest record that is not on the target; None where they are
    unknown. `incidents` are counted by `IncidentKind`.
    """

    task: int
    source: TopicPartition
    target_topic: str
    records: int
    bytes: int
    record_rate: float
    byte_rate: float
    latency: Summary
    lag: int | None
    lag_s: float | None
    lost: int
    looped: int
    filtered: int
    incidents: Mapping[str, int]

    @classmethod
    def of(cls, look: PartitionLook, lag: float, lag_s: float) -> Self | None:
        """Return a partition's values, or None before its first report. A lag is NaN where it is unknown."""
        report, latencies = look.report, look.latencies
        if report is None:
            return None
        latency = NO_VALUES if latencies is None else summary_of_latencies(latencies.recent)
        return cls(
            task=look.task or 0,
            source=look.source,
            target_topic=report.target_topic,
            records=look.records,
            bytes=look.bytes,
            record_rate=look.record_rate,
            byte_rate=look.byte_rate or 0.0,
            latency=latency._replace(last=look.last_latency_ms),
            lag=None if isnan(lag) else int(lag),
            lag_s=None if isnan(lag_s) else lag_s,
            lost=look.lost,
            looped=look.looped,
            filtered=look.filtered,
            incidents=look.incidents,
        )

    @property
    def is_one(self) -> bool:
        """False for the partitions of a topic together, whose number is -1."""
        return self.source.partition >= 0

    @property
    def partition_label(self) -> str:
        return str(self.source.partition) if self.is_one else "all"


def partition_readings(look: SourceLook) -> list[PartitionReading]:
    """Return the values of each partition that was reported. Promoted topics have no lag."""
    table = table_of(look.partitions or ())
    age_s = nan if look.report_age_s is None else look.report_age_s
    lags = lags_of(table.columns, age_s, look.is_source_away)
    found = (
        PartitionReading.of(it, *((nan, nan) if it.source.topic in look.promoted else known))
        for it, *known in zip(table, lags.records.tolist(), lags.seconds.tolist(), strict=True)
    )
    return [it for it in found if it is not None]


def incomplete_topics(look: SourceLook) -> frozenset[str]:
    """Return the topics with partitions that no task has reported yet, or that can't be copied."""
    table = table_of(look.partitions or ())
    unreported = np.flatnonzero(table.columns.state == NOT_REPORTED).tolist()
    held_back = (it for it in look.troubles if it.cause.subject is Subject.TOPIC and range(*it.partitions))
    return frozenset(table.sources[row].topic for row in unreported) | {it.what for it in held_back}


class Traffic(NamedTuple):
    """Bytes to and from a cluster since the task started, open connections, and how long it was throttled."""

    bytes_in: int
    bytes_out: int
    connections: int
    throttled_s: float = 0.0


class TaskReading(NamedTuple):
    """Holds what a copy task measures besides its partitions.

    `in_flight` counts records that were fetched and are not acknowledged yet. `commit` is how long its writes
    of positions took, `fetch` its Fetch requests, in ms. The buffer is in bytes. `failures` and `retries`
    count how often one of its partitions began to fail or to retry.
    """

    in_flight: int
    commit: Summary
    fetch: Summary
    source: Traffic
    target: Traffic
    buffer_total: int
    buffer_available: int
    failures: int
    retries: int


class MemoryReading(NamedTuple):
    """Counts bytes; `most` is -1 where there is no limit."""

    used: int
    committed: int
    most: int


class GcReading(NamedTuple):
    """Collections of one garbage collector since the JVM started."""

    collections: int
    seconds: float


class JvmReading(NamedTuple):
    """The driver's JVM. `memory` is by `heap` and `nonheap`, `collectors` by their names."""

    memory: Mapping[str, MemoryReading]
    collectors: Mapping[str, GcReading]
    threads: int


@dataclass(frozen=True, slots=True)
class NodeReading:
    """A process that runs connectors. `leader` is the one that it knows of its Connect group, None for none.

    `is_leader` is None where no group decides who runs them. `jvm` is None where none runs, or none is known.
    """

    client_id: str
    leader: str | None
    is_leader: bool | None
    is_rebalancing: bool
    jvm: JvmReading | None = None


@dataclass(frozen=True, slots=True)
class ConnectorReading:
    """`tasks` maps each task to its state in Connect's words, in lower case. `troubles`: what it can't do."""

    flow: Flow
    connector: ConnectorName
    tasks: Mapping[int, str]
    troubles: Sequence[Trouble] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True)
class SourceReading(ConnectorReading):
    """`states` counts partitions; `retries` and `failures` count their changes to such a state.

    `lost`, `looped`, `filtered` and `incidents` include partitions that are no longer copied. `gone` is the
    number of topics that were deleted on the source while the target has copies of them, as far as is known.
    `up` tells by alias whether a cluster answers, as far as is known. `of_tasks` has the tasks that measured
    something. `verified` has the last comparison of each partition. `incomplete` are topics with partitions
    of which nothing was reported.
    """

    partitions: Sequence[PartitionReading]
    states: Mapping[str, int]
    retries: int
    failures: int
    stalls: int
    stalled: int
    lost: int
    looped: int
    filtered: int
    incidents: Mapping[str, int]
    gone: int = 0
    up: Mapping[Alias, bool] = field(default_factory=dict)
    of_tasks: Mapping[int, TaskReading] = field(default_factory=dict)
    verified: Mapping[TopicPartition, Verified] = field(default_factory=dict)
    incomplete: frozenset[str] = frozenset()


class GroupTranslation(NamedTuple):
    """Counts how a group's partitions are translated to the target, as of `at` in epoch seconds.

    Places are exact, approximate, or unknown for offsets that no offset sync covers. `reread_max` is how many
    records it would read again there at most, as far as that is known.
    """

    at: float
    exact: int
    approximate: int
    unknown: int
    reread_max: int


@dataclass(frozen=True, slots=True)
class CheckpointReading(ConnectorReading):
    """`latencies` has the latency in ms of each group's partition on the target, up to a maximum number.

    `left_out` counts the rest. `groups` is None before groups were listed; `last_at` is in epoch seconds.
    Look-ups are those of offsets in the records of both clusters. `translated_at` is when all groups' offsets
    were translated last, whether that made checkpoints or not. `not_committed` counts groups whose offsets
    the target refused last.
    """

    groups: int | None
    checkpoints: int
    last_at: float | None
    latencies: Mapping[tuple[GroupId, TopicPartition], Summary]
    left_out: int
    lookups_waiting: int
    lookup_bytes: int
    translated_at: float | None = None
    translations: Mapping[GroupId, GroupTranslation] = field(default_factory=dict)
    not_committed: int = 0


@dataclass(frozen=True, slots=True)
class HeartbeatReading(ConnectorReading):
    """`last_at` is in epoch seconds."""

    heartbeats: int
    last_at: float | None
