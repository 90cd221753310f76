"""Holds a snapshot of a process' connectors, a *look*: what they know at one moment, by reference.

A look is taken at most once a second, and only for an open page or a request. It computes nothing that these
may not ask for: latencies stay histograms, and reports are those of the tasks.

Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from sparkmirror.domain.ids import Alias, ConnectorName, Flow, GroupId, TopicPartition
from sparkmirror.domain.latency import LatencyHistogram
from sparkmirror.domain.troubles import Trouble
from sparkmirror.metrics.flow_history import HistoryPoint
from sparkmirror.storage.events import Event
from sparkmirror.storage.migrations import Migrations
from sparkmirror.storage.progress import Driver, PartitionProgress
from sparkmirror.storage.promotions import Promotion, Promotions
from sparkmirror.storage.verified import Verified

ConnectorKind = Literal["source", "checkpoint", "heartbeat"]
Standstill = Literal["starting", "standby", "paused", "stopped", "failed"]
CUT_OFF_AFTER_S: Final = 10.0
"""Reports are read once a second."""
STARTING_S: Final = 20.0
"""A copy job's partitions report within seconds; one that has not by then may hang."""
THROTTLED_FROM: Final = 0.1
"""A partition that lags is throttled from this share of the last minute on."""
_NONE: Final[Mapping[str, int]] = MappingProxyType({})


class Latencies(NamedTuple):
    """A partition's latencies of the last 30 to 60 s: `now` less `before`, both counted from one start."""

    now: LatencyHistogram
    before: LatencyHistogram

    @property
    def recent(self) -> LatencyHistogram:
        return self.now.minus(self.before)


def throttled_by(flow: Flow, source: float, target: float) -> str:
    """Name the clusters that throttle, with the share of the last minute in which they did."""
    shares = zip(flow, (source, target), strict=True)
    return " and ".join(
        f"{alias} ({100 * share:.0f} % of the last minute)"
        for alias, share in shares
        if share >= THROTTLED_FROM
    )


class Motion(NamedTuple):
    """Says by how many offsets a partition's lag fell in the last 10 to 40 s, and how many seconds passed."""

    seconds: float
    closed: int


class PartitionLook(NamedTuple):
    """A partition that a task copies. `report` is the last one since this process started, None before it.

    `task` and `byte_rate` are None where nobody reports them. `slack_s` is how old the position may be.
    `error_for_s` is the age of the report's error; `quiet_since` when the source's end was first seen to be
    where it is, of the clock of `SourceLook.now`. None where there is none, or nothing is known. `is_silent`:
    the present copy job has not reported it. `promotion` is that of its topic, which no task copies then.
    `source_throttled` and `target_throttled` are the shares of the last minute in which a quota of that
    cluster throttled its task. `records`, `bytes`, `lost`, `looped`, `filtered` and `incidents` are since
    this process started; `last_latency_ms` is the mean of the records that were reported last.
    """

    source: TopicPartition
    task: int | None
    report: PartitionProgress | None = None
    is_silent: bool = True
    is_stalled: bool = False
    record_rate: float = 0.0
    byte_rate: float | None = 0.0
    lag_s: float | None = None
    error_for_s: float | None = None
    quiet_since: float | None = None
    motion: Motion | None = None
    latencies: Latencies | None = None
    incidents: Mapping[str, int] = _NONE
    lost: int = 0
    slack_s: float = 0.0
    promotion: Promotion | None = None
    source_throttled: float = 0.0
    target_throttled: float = 0.0
    records: int = 0
    bytes: int = 0
    looped: int = 0
    filtered: int = 0
    last_latency_ms: float = 0.0


class ClusterLook(NamedTuple):
    """Tells whether a cluster answers, None before it was asked, and for how many seconds it has not."""

    alias: Alias
    is_up: bool | None
    away_for_s: float | None = None
    error: str | None = None


class GroupPartitionLook(NamedTuple):
    """A group's offset in a partition of the source, and its place on the target.

    `translated` is None where nothing can be told of the place; `behind_max` is 0 for an exact one, and None
    where nothing newer is known; `why` is a word of `groups.group_explanation.Translation`. `written` is what
    the group has committed on the target, None if nothing is known.
    """

    group: GroupId
    source: TopicPartition
    target: TopicPartition
    committed: int
    translated: int | None
    behind_max: int | None
    why: str
    checkpoint: int | None
    written: int | None = None


@dataclass(frozen=True, slots=True)
class EventsLook:
    """The last events of a flow; None before they were read. `trouble` says why there are no newer ones.

    `verified` has the last comparison of each partition in all events that the topic still has.
    """

    newest_first: Sequence[Event] | None = None
    trouble: str | None = None
    verified: Mapping[TopicPartition, Verified] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MigrationsLook:
    """Lists what a flow has migrated; None before it was read. `trouble` says why nothing newer is known."""

    known: Migrations | None = None
    trouble: str | None = None


class VerifiedRow(NamedTuple):
    """A partition that was compared: everything before `upto`, an offset of the source.

    `problems` are texts, which hold parts of records.
    """

    source: TopicPartition
    state: str
    upto: int | None
    equal: int
    differences: int
    problems: Sequence[str]


@dataclass(frozen=True, slots=True)
class VerifyLook:
    """A comparison of both clusters, which runs while `ended_at` is None. Times are in epoch seconds.

    `progress` is what it does, or what it found; `error` is why it could not be made. `rows`, those that
    differ first, `json` and `junit` are its result.
    """

    began_at: float
    ended_at: float | None = None
    progress: str = ""
    error: str | None = None
    is_equal: bool = False
    rows: Sequence[VerifiedRow] = ()
    json: str = ""
    junit: str = ""


@dataclass(frozen=True, slots=True)
class ConnectorLook:
    """`trouble` is the connector's own error. `settings` are as they were written, without secrets.

    `unread` is why nothing newer is known of it, where it is read from Kafka alone. `troubles` are what it
    can't do, while the rest continues.
    """

    flow: Flow
    connector: ConnectorName
    kind: ConnectorKind
    trouble: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    unread: str | None = field(default=None, kw_only=True)
    troubles: Sequence[Trouble] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True)
class SourceLook(ConnectorLook):
    """`partitions` is None before they are assigned. `report_age_s`: since reports were read last.

    `now` is the time of the look, of any clock. `is_observed`: it is read from Kafka alone, and
    `position_age_s` since when the mirror has stored its last position. `is_running` is None where that can't
    be told; `driver` is the process that has begun the copy job. `slots` of Spark were there for its tasks
    when they were assigned last. `verify` is a comparison that this process makes, or made last.
    `promoted` topics are copied no more, whether they are still assigned or not.
    `waits_for` is what it needs to begin; `begun_s` since when its copy job is known. `is_stopped`: in order.
    """

    partitions: Sequence[PartitionLook] | None = None
    report_age_s: float | None = None
    clusters: Sequence[ClusterLook] = ()
    history: Sequence[HistoryPoint] = ()
    incidents: Mapping[str, int] = field(default_factory=dict)
    lost: int = 0
    tasks: Mapping[int, str] = field(default_factory=dict)
    now: float = 0.0
    is_observed: bool = False
    is_running: bool | None = True
    driver: Driver | None = None
    position_age_s: float | None = None
    events: EventsLook | None = None
    slots: int | None = None
    verify: VerifyLook | None = None
    promoted: Promotions = field(default_factory=dict)
    migrations: MigrationsLook | None = None
    waits_for: str | None = None
    begun_s: float | None = None
    is_stopped: bool = False

    @property
    def is_source_away(self) -> bool:
        """Whether the source does not answer: what it has by now is not known."""
        return any(it.alias == self.flow.source and it.is_up is False for it in self.clusters)


@dataclass(frozen=True, slots=True)
class GroupsLook(ConnectorLook):
    """`partitions` is None before the first interval; `left_out` counts those beyond the maximum number.

    Ages are in seconds: of the translation, and of the last look at the target. `active` are groups that had
    members there then. `reads_target` is false where group offset sync is off: groups there are not read.
    `errors` has the groups whose offsets could not be read or written the last time, and why.
    """

    partitions: Sequence[GroupPartitionLook] | None = None
    left_out: int = 0
    age_s: float | None = None
    interval_s: float = 0.0
    active: frozenset[GroupId] = frozenset()
    target_age_s: float | None = None
    reads_target: bool = True
    errors: Mapping[GroupId, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HeartbeatLook(ConnectorLook):
    """`age_s` is that of the last heartbeat that was acknowledged; `emits` is false where none are wanted."""

    emits: bool = True
    age_s: float | None = None
    interval_s: float = 0.0


@dataclass(frozen=True, slots=True)
class StandingLook(ConnectorLook):
    """A connector that does not run, and why; `waits_for` says what for, where it starts or stands by."""

    standstill: Standstill = "paused"
    waits_for: str | None = None
