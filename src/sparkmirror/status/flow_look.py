"""Holds what Kafka tells of one flow's mirror at one moment, and decides from it whether the mirror runs.

Any mirror can be looked at from any machine, Java's included. A task reports what has changed, Java reports
nothing: heartbeats show that either of them runs. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sparkmirror.domain.ids import ConnectorName, TopicPartition
from sparkmirror.domain.quantities import as_ago
from sparkmirror.domain.troubles import NEVER_RUN, Cause, Subject, Trouble, TroubleWord
from sparkmirror.storage.progress import ConnectorTroubles, JobEpoch, PartitionProgress
from sparkmirror.storage.promotions import Promotions

_SILENT_AFTER_S: Final = 15.0
_HEARTBEATS_MISSED: Final = 3
_AFTER_STOP_S: Final = 5.0
"""A heartbeat that is so much newer than the stop is another mirror's: clocks differ."""
LEFT_OUT: Final = Cause(
    TroubleWord.WAITING,
    Subject.TOPIC,
    "it, or some of its partitions, came after the mirror's start, and refresh.topics.enabled=false",
    "restart the mirror to have it copied",
)


@dataclass(frozen=True, slots=True)
class FlowLook:
    """Has what was read. Ages are in seconds by this machine's clock, None where there is no such thing.

    `partitions` are those that are mirrored, in reports made from positions and `ends`, the source's end
    offsets, as far as they are known. `oldest_s` is the age of the oldest record that is not copied, where
    that was found. `stored_ms` is when the last position was stored, in epoch ms. `job` and `reports` are of
    this mirror's last copy job, if there was one; Java's mirror leaves none. `heartbeat_interval_s` is
    infinite for a flow that emits none. `throttled` has the shares of the last minute in which quotas of the
    source and the target throttled a task. `stopped_age_s` is since when the copy job was stopped in order.
    `blocked` topics can't be mirrored by their names; `published` is what this mirror's connectors have said
    last that they can't do; `connector` is the source connector.
    `waiting` partitions are not on the target; `refreshes_topics`: a mirror that runs looks for new ones.
    """

    partitions: Sequence[PartitionProgress]
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    oldest_s: Mapping[TopicPartition, float] = field(default_factory=dict)
    stored_ms: int | None = None
    promoted: Promotions = field(default_factory=dict)
    heartbeat_age_s: float | None = None
    heartbeat_interval_s: float = 1.0
    report_age_s: float | None = None
    job: JobEpoch | None = None
    reports: Mapping[TopicPartition, PartitionProgress] = field(default_factory=dict)
    throttled: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    stopped_age_s: float | None = None
    blocked: Sequence[Trouble] = ()
    connector: ConnectorName | None = None
    published: Mapping[ConnectorName, ConnectorTroubles] = field(default_factory=dict)
    waiting: frozenset[TopicPartition] = frozenset()
    refreshes_topics: bool = True

    @property
    def is_stopped(self) -> bool:
        if self.job is not None:
            return self.job.stopped
        own = self._own
        return own is not None and own.is_stopped

    @property
    def _own(self) -> ConnectorTroubles | None:
        return None if self.connector is None else self.published.get(self.connector)

    def published_by(self, connector: ConnectorName | None) -> Sequence[Trouble]:
        """Returns what the connector can't do, as far as that is known of a mirror that may run."""
        own = None if connector is None else self.published.get(connector)
        return () if own is None or self.is_running is False else own.troubles

    @property
    def troubles(self) -> Sequence[Trouble]:
        """Returns what the source connector can't do, as far as that is known of a mirror that may run."""
        if self.is_running is False:
            return self.blocked
        known = [it for it in self.published_by(self.connector) if it.word is not TroubleWord.BLOCKED]
        return [*self.blocked, *known, *self._left_out()]

    @property
    def mirrored(self) -> Sequence[PartitionProgress]:
        """Returns `partitions` without those that no task copies, for one of the troubles."""
        if not self.troubles:
            return self.partitions
        held_back = {
            TopicPartition(it.what, number)
            for it in self.troubles
            if it.cause.subject is Subject.TOPIC
            for number in range(*it.partitions)
        }
        left_out = {it.what for it in self.troubles if it.cause is LEFT_OUT}
        held_back |= {it for it in self.waiting if it.topic in left_out}
        return [it for it in self.partitions if it.source not in held_back]

    def _left_out(self) -> Sequence[Trouble]:
        """Finds what came after the start of a mirror that looks once only."""
        if self.refreshes_topics:
            return []
        published = self.published_by(self.connector)
        known = {it.what for it in published if not it.is_remark}
        topics = sorted({it.topic for it in self.waiting} - known)
        return [Trouble(LEFT_OUT, topic) for topic in topics]

    @property
    def reported(self) -> Mapping[TopicPartition, PartitionProgress]:
        """Returns what this mirror's tasks report; nothing once it was stopped: another may run instead."""
        return {} if self.is_stopped else self.reports

    def unchanged_s(self, report: PartitionProgress, now: float) -> float:
        """Return for how long its task has had the same lag, as far as that is reported; `now` in epoch s."""
        own = self.reported.get(report.source)
        is_same = own is not None and bool(own.lag) and own.position == report.position
        return max(0.0, now - own.updated_at) if own is not None and is_same else 0.0

    @property
    def is_running(self) -> bool | None:
        """Whether the flow runs; None if neither a recent change nor heartbeats show it.

        Or the clock that dates them is so far ahead that the last one may be old. After this mirror was
        stopped in order, Java's may run instead: then heartbeats show it.
        """
        if self.has_never_run or self._is_stopped_since_the_last_heartbeat:
            return False
        if self.is_stopped:
            return self._beats(_HEARTBEATS_MISSED * self.heartbeat_interval_s)
        if self.report_age_s is not None and self.report_age_s <= _SILENT_AFTER_S:
            return True
        if self.heartbeat_interval_s == float("inf"):
            return None
        return self._beats(max(_SILENT_AFTER_S, _HEARTBEATS_MISSED * self.heartbeat_interval_s))

    @property
    def has_never_run(self) -> bool:
        """Whether nothing shows that a mirror has ever begun: no heartbeat, job, position or sync."""
        is_begun = self.stored_ms is not None or any(it.position is not None for it in self.partitions)
        is_shown = self.heartbeat_age_s is not None or self.report_age_s is not None or self.job is not None
        return not is_begun and not is_shown and self._own is None

    @property
    def _is_stopped_since_the_last_heartbeat(self) -> bool:
        if not self.is_stopped or self.stopped_age_s is None:
            return False
        age_s = self.heartbeat_age_s
        return age_s is None or age_s >= self.stopped_age_s - _AFTER_STOP_S

    @property
    def stopped_in_order(self) -> bool:
        """Whether the mirror that ran last was stopped in order: none has emitted a heartbeat since then."""
        is_last = self._is_stopped_since_the_last_heartbeat or self.stopped_age_s is None
        return self.is_stopped and is_last and self.is_running is False

    @property
    def trouble(self) -> str | None:
        """Says why the mirror does not run."""
        if self.is_running is not False:
            return None
        if self.has_never_run:
            return NEVER_RUN
        if self._is_stopped_since_the_last_heartbeat and self.stopped_age_s is not None:
            return f"the mirror was stopped in order {as_ago(self.stopped_age_s)}"
        if self.heartbeat_age_s is None:
            return "the mirror does not run: it has written no heartbeat"
        last = f"its last heartbeat was {self.heartbeat_age_s:,.0f} s ago"
        if self.stopped_in_order:
            return f"the mirror was stopped in order; {last}"
        return f"the mirror does not run: {last} by this machine's clock"

    def _beats(self, patience_s: float) -> bool | None:
        age_s = self.heartbeat_age_s
        if age_s is None:
            return False
        return None if age_s < -patience_s else age_s <= patience_s
