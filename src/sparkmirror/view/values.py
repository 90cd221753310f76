"""The values of a view. None means unknown, and never 0.

Times are ages in seconds at the moment of the view, except `quiet_since`, when the source's end was first
seen to be where it is: `FlowView.age` tells how long ago. So a quiet topic is the same value in each view.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from sparkmirror.domain.ids import Alias, ConnectorName, Flow, GroupId, TopicPartition
from sparkmirror.metrics.flow_history import HistoryPoint
from sparkmirror.metrics.looks import EventsLook, GroupsLook, Latencies, PartitionLook, VerifyLook
from sparkmirror.storage.verified import Verified
from sparkmirror.view.words import Word, severity


class State(NamedTuple):
    """A thing's word; since how many seconds it holds, as far as that is known; the error, and what to do."""

    word: Word
    for_s: float | None = None
    error: str | None = None
    advice: str = ""


class Lag(NamedTuple):
    """In records, by offsets, and how long the oldest of them has been in the source. None: unknown."""

    records: int | None
    seconds: float | None


class Speed(NamedTuple):
    """Per second, of the last 30 to 60 s. Of several, the sum of those that are known."""

    records: float | None
    bytes: float | None


class PartitionView(NamedTuple):
    """`position` is the next source offset to copy; `left_s` is when the lag is gone, as it shrinks now."""

    source: TopicPartition
    target: TopicPartition | None
    task: int | None
    state: State
    position: int | None
    source_end: int | None
    lag: Lag
    left_s: float | None
    quiet_since: float | None
    speed: Speed
    latencies: Latencies | None
    incidents: Mapping[str, int]
    lost: int
    notice: str | None

    def latency_ms(self, quantile: float) -> float | None:
        """Computed when asked for: few partitions are looked at one by one."""
        return None if self.latencies is None else self.latencies.recent.quantile(quantile)


@dataclass(frozen=True)
class TopicView:
    """A topic of the source; `target` is its name on the target, None before a partition has reported.

    `words` counts its partitions, and `of` is from what it was made.
    """

    name: str
    target: str | None
    state: State
    partitions: Sequence[PartitionView]
    lag: Lag
    left_s: float | None
    speed: Speed
    quiet_since: float | None
    words: Mapping[Word, int]
    of: tuple[PartitionLook, ...]

    @cached_property
    def worst_first(self) -> Sequence[PartitionView]:
        return worst_first(self.partitions)


def worst_first(partitions: Iterable[PartitionView]) -> Sequence[PartitionView]:
    return sorted(partitions, key=lambda it: (severity(it.state.word), -(it.lag.records or 0), it.source))


class ClusterView(NamedTuple):
    """`answers` is None before it was asked."""

    alias: Alias
    answers: bool | None
    away_for_s: float | None = None
    error: str | None = None


class ConnectorView(NamedTuple):
    """`settings` are as they were written, without secrets; empty where they are not known."""

    name: ConnectorName
    kind: str
    state: State
    settings: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class GroupPartitionView:
    """`again` is how many records would be read again if the group moved now; None where that is unknown.

    `translated` is its place on the target, exact when `behind` is 0, else at most `behind` too early;
    `written` is what group offset sync has committed there.
    """

    source: TopicPartition
    target: TopicPartition
    committed: int
    lag: int | None
    translated: int | None
    behind: int | None
    checkpoint: int | None
    written: int | None
    again: int | None
    why: str


@dataclass(frozen=True, slots=True)
class GroupView:
    """`is_active` on the target: it has members there; None where the target's groups are not read."""

    name: GroupId
    partitions: Sequence[GroupPartitionView]
    is_active: bool | None

    @property
    def is_exact(self) -> bool:
        return all(partition.behind == 0 for partition in self.partitions)

    @property
    def again(self) -> int | None:
        counts = [partition.again for partition in self.partitions]
        return None if None in counts else sum(count for count in counts if count is not None)


@dataclass(frozen=True, slots=True)
class GroupsView:
    """`groups` is None before the first interval."""

    groups: Sequence[GroupView] | None
    left_out: int
    age_s: float | None
    interval_s: float
    target_age_s: float | None
    reads_target: bool


class Verification(NamedTuple):
    """The last comparisons of a flow's partitions; the newest of them was made at `at`, in epoch seconds."""

    at: float
    partitions: int
    unreadable: int
    differences: int


@dataclass(frozen=True)
class FlowView:
    """`checkpoints` is None where no checkpoint connector runs. `report_age_s`: since reports were read.

    `is_observed`: it is told from Kafka alone, and `position_age_s` since when the mirror has stored one.
    `events` is None where no source connector runs; `slots` are Spark's for the copy tasks. `latency_at` is
    when `latency_ms` was computed, of the clock of `now`: it is of the last minute, and serves for seconds.
    """

    flow: Flow
    now: float
    state: State
    topics: Sequence[TopicView]
    lag: Lag
    left_s: float | None
    speed: Speed
    latency_ms: tuple[float | None, float | None]
    words: Mapping[Word, int]
    connectors: Sequence[ConnectorView]
    history: Sequence[HistoryPoint]
    incidents: Mapping[str, int]
    lost: int
    checkpoints: GroupsLook | None
    heartbeat_age_s: float | None
    report_age_s: float | None
    is_observed: bool = False
    position_age_s: float | None = None
    events: EventsLook | None = None
    slots: int | None = None
    latency_at: float = 0.0
    verify: VerifyLook | None = None

    def age(self, moment: float | None) -> float | None:
        """Seconds, of the clock of `quiet_since`."""
        return None if moment is None else max(0.0, self.now - moment)

    @property
    def verified(self) -> Mapping[TopicPartition, Verified]:
        """The last comparison of each partition, as far as events are read here."""
        return {} if self.events is None else self.events.verified

    @cached_property
    def verification(self) -> Verification | None:
        """None where nothing was compared, or that is not known."""
        found = self.verified.values()
        if not found:
            return None
        return Verification(
            max(it.at for it in found),
            len(found),
            sum(it.upto is None for it in found),
            sum(it.differences for it in found),
        )

    @cached_property
    def worst_first(self) -> Sequence[TopicView]:
        return sorted(self.topics, key=lambda it: (severity(it.state.word), -(it.lag.records or 0), it.name))

    def topic(self, name: str) -> TopicView | None:
        return next((topic for topic in self.topics if topic.name == name), None)


@dataclass(frozen=True, slots=True)
class MirrorView:
    """`made_at` is in epoch seconds; `nodes` are URLs, the leader first."""

    made_at: float
    version: str
    node: str
    nodes: Sequence[str]
    clusters: Sequence[ClusterView]
    flows: Sequence[FlowView]
    state: State

    def flow(self, name: str) -> FlowView | None:
        return next((flow for flow in self.flows if str(flow.flow) == name), None)
