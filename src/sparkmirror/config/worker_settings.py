"""Reads a Connect worker's settings: its group, its three topics, its intervals and time-outs."""

from dataclasses import dataclass
from typing import Final

from sparkmirror.config.definitions import Values
from sparkmirror.config.properties import Properties
from sparkmirror.config.worker_options import WORKER
from sparkmirror.domain.leader_election import GroupOptions

_SESSION_TIMEOUT_S: Final = 8.0
_HEARTBEAT_INTERVAL_S: Final = 1.0
"""Shorter than Java's defaults of 10 and 3 s: records should flow again 15 s after a crash. Java's workers
don't need that, because they wait minutes for a lost worker to return."""


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """One of Connect's own topics. -1 partitions or replicas leave the number to the broker (KIP-605)."""

    name: str
    partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """A worker's own settings; `client_layers` reads those of its clients."""

    group_id: str
    config_topic: InternalTopic
    offset_topic: InternalTopic
    status_topic: InternalTopic
    offset_flush_interval_s: float
    exactly_once_source: bool = False
    """Whether source connectors write in transactions (KIP-618). `preparing` is the first of the two rounds
    in which the nodes of a Java cluster are restarted: nothing is written in transactions yet."""
    session_timeout_s: float = _SESSION_TIMEOUT_S
    """The time without a heartbeat after which the other nodes take over a node's work."""
    heartbeat_interval_s: float = _HEARTBEAT_INTERVAL_S
    rebalance_timeout_s: float = 60.0
    session_key_ttl_s: float = 3600.0
    """The time for which nodes sign with the same key; 0 means without end."""
    topic_tracking: bool = True
    standby_session: bool = True
    """Whether a node starts Spark before it leads, as in dedicated mode."""

    @property
    def state_topics(self) -> frozenset[str]:
        """The names of Connect's three topics."""
        return frozenset((self.config_topic.name, self.offset_topic.name, self.status_topic.name))

    def group(self, *, spreads: bool = False) -> GroupOptions:
        """The settings of the group that the worker's nodes form."""
        return GroupOptions(
            self.group_id,
            self.session_timeout_s,
            self.heartbeat_interval_s,
            self.rebalance_timeout_s,
            spreads,
        )


def worker_settings(worker: Properties) -> WorkerSettings:
    """Parse a worker's properties. Raises ConfigError with everything that is wrong."""
    values = WORKER.parse(worker)
    session_timeout_s, heartbeat_interval_s = _group_times(values)
    return WorkerSettings(
        group_id=values.string("group.id"),
        config_topic=_topic(worker, values, "config", partitions=1),
        offset_topic=_topic(worker, values, "offset"),
        status_topic=_topic(worker, values, "status"),
        offset_flush_interval_s=values.seconds("offset.flush.interval.ms"),
        exactly_once_source=values.string("exactly.once.source.support").lower() == "enabled",
        session_timeout_s=session_timeout_s,
        heartbeat_interval_s=heartbeat_interval_s,
        rebalance_timeout_s=values.seconds("rebalance.timeout.ms"),
        session_key_ttl_s=values.seconds("inter.worker.key.ttl.ms"),
        standby_session=_standby_session(worker, values),
        topic_tracking=values.boolean("topic.tracking.enable"),
    )


def _group_times(values: Values) -> tuple[float, float]:
    """Session time-out and heartbeat interval. If only one is set, the other has Java's default."""
    names = "session.timeout.ms", "heartbeat.interval.ms"
    if not any(map(values.given, names)):
        return _SESSION_TIMEOUT_S, _HEARTBEAT_INTERVAL_S
    session_timeout_s, heartbeat_interval_s = map(values.seconds, names)
    return session_timeout_s, heartbeat_interval_s


def _standby_session(worker: Properties, values: Values) -> bool:
    """Decide on a standby session, by default only for a local Spark.

    On a cluster it would hold idle executors.
    """
    if values.given("standby.spark.session"):
        return values.boolean("standby.spark.session")
    return (worker.get("spark.master") or "local").startswith("local")


def _topic(worker: Properties, values: Values, kind: str, partitions: int | None = None) -> InternalTopic:
    prefix = f"{kind}.storage."
    own = {"topic", "partitions", "replication.factor", "cleanup.policy"}
    configs = worker.under(prefix).where(lambda key: key not in own)
    return InternalTopic(
        name=values.string(prefix + "topic"),
        partitions=partitions or values.integer(prefix + "partitions"),
        replication_factor=values.integer(prefix + "replication.factor"),
        configs=(*sorted(configs.items()), ("cleanup.policy", "compact")),
    )
