"""The views of a flow and of the whole mirror. None means unknown, and never 0."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from sparkmirror.domain.ids import Flow, TopicPartition
from sparkmirror.domain.troubles import Trouble, trouble_lines
from sparkmirror.metrics.flow_history import HistoryPoint
from sparkmirror.metrics.looks import ClusterLook, EventsLook, GroupsLook, MigrationsLook, VerifyLook
from sparkmirror.storage.events import Event
from sparkmirror.storage.progress import Driver
from sparkmirror.storage.promotions import Promotions
from sparkmirror.storage.verified import Verified
from sparkmirror.view.group_index import GroupIndex
from sparkmirror.view.topics import Topics
from sparkmirror.view.values import ConnectorView, Lag, PartitionView, Speed, State
from sparkmirror.view.words import Word


class Verification(NamedTuple):
    """The last comparisons of a flow's partitions; the newest of them was made at `at`, in epoch seconds."""

    at: float
    partitions: int
    unreadable: int
    differences: int


@dataclass(frozen=True)
class FlowView:
    """`checkpoints` is None where no checkpoint connector runs. `report_age_s`: since reports were read.

    `is_observed`: it is read from Kafka alone, and `position_age_s` since when the mirror has stored one.
    `is_running` is None where that can't be told; `driver` is the process that has begun the copy job.
    `events` and `migrations` are None where no source connector runs; `slots` are Spark's for the copy tasks.
    `troubles` are what its connectors can't do, the worst first.
    `latency_at` is when `latency_ms` was computed, of the clock of `now`: it is of the last minute, and
    serves for seconds. `mirrors` is false where it only emits heartbeats.
    """

    flow: Flow
    now: float
    state: State
    topics: Topics
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
    is_running: bool | None = False
    driver: Driver | None = None
    position_age_s: float | None = None
    events: EventsLook | None = None
    slots: int | None = None
    latency_at: float = 0.0
    verify: VerifyLook | None = None
    migrations: MigrationsLook | None = None
    group_index: GroupIndex = field(default_factory=lambda: GroupIndex(None))
    troubles: Sequence[Trouble] = ()
    mirrors: bool = True

    @property
    def only_heartbeats(self) -> bool:
        return not self.mirrors

    @property
    def partitions(self) -> Sequence[PartitionView]:
        """The partitions of topics that are not promoted."""
        return [it for it in self.topics.partitions_worst_first() if it.state.word is not Word.PROMOTED]

    @property
    def promoted(self) -> Promotions:
        return self.topics.promoted

    def age(self, moment: float | None) -> float | None:
        """Seconds, of the clock of `quiet_since`."""
        return None if moment is None else max(0.0, self.now - moment)

    @property
    def remarks(self) -> Sequence[str]:
        """Lines of what operators should know while nothing is ill."""
        return trouble_lines(it for it in self.troubles if it.is_remark)

    def events_matching(self, part: str) -> Sequence[Event]:
        """Return the events whose text has that part, newest first; none before they were read."""
        known = (None if self.events is None else self.events.newest_first) or ()
        return [it for it in known if part in f"{it.kind.value} {it.connector} {it.about} {it.text}"]

    @property
    def verified(self) -> Mapping[TopicPartition, Verified]:
        """The last comparison of each partition, as far as events are read here."""
        return {} if self.events is None else self.events.verified

    @cached_property
    def verification(self) -> Verification | None:
        """Sums up the last comparisons; None where there was none, or none is known."""
        found = self.verified.values()
        if not found:
            return None
        return Verification(
            max(it.at for it in found),
            len(found),
            sum(it.upto is None for it in found),
            sum(it.differences for it in found),
        )


@dataclass(frozen=True, slots=True)
class MirrorView:
    """`made_at` is in epoch seconds; `nodes` are URLs, the leader first."""

    made_at: float
    version: str
    node: str
    nodes: Sequence[str]
    clusters: Sequence[ClusterLook]
    flows: Sequence[FlowView]
    state: State

    @property
    def words(self) -> Sequence[str]:
        """Return a line for each flow: its word, and its error."""
        return [
            f"{it.flow}: {it.state.word}" + (f": {it.state.error}" if it.state.error else "")
            for it in self.flows
        ]

    def flow(self, name: str) -> FlowView | None:
        return next((flow for flow in self.flows if str(flow.flow) == name), None)
