"""What a process knows of its connectors at one moment; `metrics.families` makes metrics of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.domain.ids import Alias, ConnectorName, Flow, GroupId, TopicPartition
from sparkmirror.metrics.windows import Summary


class PartitionReading(NamedTuple):
    """The values of one partition since its connector started. Rates are per second, latencies in ms.

    `lag` is in records, `lag_s` the age of the oldest record that is not on the target; None before the
    source's end offset is known. `incidents` are counted by `IncidentKind`.
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
    incidents: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ConnectorReading:
    """`tasks` maps each task to its state in Connect's words, in lower case."""

    flow: Flow
    connector: ConnectorName
    tasks: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class SourceReading(ConnectorReading):
    """`states` counts partitions; `retries` and `failures` count their changes to such a state.

    `lost`, `looped` and `incidents` include partitions that are no longer copied. `gone` is the number of
    topics that were deleted on the source while the target has copies of them, as far as is known. `up` tells
    by alias whether a cluster answers, as far as is known.
    """

    partitions: Sequence[PartitionReading]
    states: Mapping[str, int]
    retries: int
    failures: int
    stalls: int
    stalled: int
    lost: int
    looped: int
    incidents: Mapping[str, int]
    gone: int = 0
    up: Mapping[Alias, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckpointReading(ConnectorReading):
    """`latencies` has the latency in ms of each group's partition on the target, up to a maximum number.

    `left_out` counts the rest. `groups` is None before groups were listed; `last_at` is in epoch seconds.
    Look-ups are those of offsets in the records of both clusters.
    """

    groups: int | None
    checkpoints: int
    last_at: float | None
    latencies: Mapping[tuple[GroupId, TopicPartition], Summary]
    left_out: int
    lookups_waiting: int
    lookup_bytes: int


@dataclass(frozen=True, slots=True)
class HeartbeatReading(ConnectorReading):
    """`last_at` is in epoch seconds."""

    heartbeats: int
    last_at: float | None
