"""Makes and parses the records of the progress topic, `mm2-progress.<source>.internal` on the target.

Compacted; one partition. The key distinguishes the kinds of records: the progress of a source partition,
which its task reports each second; what the task measures of itself; the copy job of a connector, by which
the driver lets its tasks run or stop; the connector's rate limits; that its state topics were lost; and what
a connector can't do.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

from sparkmirror.batches.log_records import LogRecord, compact_json, parsed_json
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import ConnectorName, TopicPartition
from sparkmirror.domain.latency import LatencyHistogram
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord, by_cause
from sparkmirror.policies.rate_limits import RateLimits

_PROGRESS = "progress"
_GENERATION = "generation"
_LIMITS = "limits"
_TASK = "task"
_LOST = "lost"
_TROUBLES = "troubles"
_TROUBLES_MAX = 500_000
"""The most characters of names in a record, which stays below a broker's default limit."""
_ORDER_KEYS = (b'["generation",', b'["limits",', b'["lost",')


class PartitionState(Enum):
    RUNNING = "RUNNING"
    STANDBY = "STANDBY"
    """The opposite flow has copied its source from its target: nothing is to be done before a failback."""
    RETRYING = "RETRYING"
    """Something failed that may pass."""
    FAILED = "FAILED"
    """A user must act; it is retried all the same, now and then."""


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """`records`, `bytes` and `latency` count acknowledged records since the task started.

    `position` is the last replicated upstream offset; `lag` is in records; `updated_at` in epoch seconds.
    `lost` counts records that were gone from the source before they were copied, `looped` those that were
    left out because they had been mirrored from the target, `filtered` those that transforms left out;
    `notice` is the last incident that users should know of although the partition runs; `incidents` counts
    them by their kind (`IncidentKind`), since the task started. `attempt` is how often Spark had started the
    task before.
    """

    connector: ConnectorName
    task: int
    job_epoch: int
    source: TopicPartition
    target_topic: str
    records: int
    bytes: int
    position: int | None
    lag: int | None
    latency: LatencyHistogram
    state: PartitionState
    error: str | None
    updated_at: float
    lost: int = 0
    looped: int = 0
    filtered: int = 0
    notice: str | None = None
    incidents: Mapping[str, int] = field(default_factory=dict)
    attempt: int = 0

    def is_late(self, known: "PartitionProgress", newest: "JobEpoch | None") -> bool:
        """Whether its task has a successor, which has reported already: it was frozen, or ended slowly.

        `newest` is the newest copy job. Numbers begin again where their topic is lost.
        """
        if newest is not None and known.job_epoch > newest.number:
            return False
        return (self.job_epoch, self.attempt) < (known.job_epoch, known.attempt)

    def to_record(self) -> LogRecord:
        value = {
            "task": self.task,
            "generation": self.job_epoch,
            "attempt": self.attempt,
            "target": self.target_topic,
            "records": self.records,
            "bytes": self.bytes,
            "position": self.position,
            "lag": self.lag,
            "latency": {str(bucket): count for bucket, count in self.latency.counts.items()},
            "state": self.state.value,
            "error": self.error,
            "time": self.updated_at,
            "lost": self.lost,
            "looped": self.looped,
            "filtered": self.filtered,
            "notice": self.notice,
            "incidents": dict(self.incidents),
        }
        return LogRecord(compact_json([_PROGRESS, self.connector, *self.source]), compact_json(value))


class TaskLoad(NamedTuple):
    """Holds what a task measures since it started. The buffer is in bytes, `in_flight` in records.

    `commit_ms` is how long its last write of positions took, None without one; `fetch_ms` how long its
    `fetches` took together. Bytes are from and to the source and the target. Quotas throttled it for
    `…_throttled_s`, and in the share `…_throttled` of the last minute.
    """

    in_flight: int
    commit_ms: float | None
    fetches: int
    fetch_ms: float
    source_in: int
    source_out: int
    source_connections: int
    target_in: int
    target_out: int
    target_connections: int
    buffer_total: int
    buffer_used: int
    source_throttled_s: float = 0.0
    target_throttled_s: float = 0.0
    source_throttled: float = 0.0
    target_throttled: float = 0.0


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """`updated_at` is in epoch seconds. `unwritten` has the state topics that it can't write to, and why."""

    connector: ConnectorName
    task: int
    job_epoch: int
    load: TaskLoad
    updated_at: float
    unwritten: Mapping[str, str] = field(default_factory=dict)

    def to_record(self) -> LogRecord:
        value = {
            "generation": self.job_epoch,
            "load": self.load._asdict(),
            "time": self.updated_at,
            "unwritten": dict(self.unwritten),
        }
        return LogRecord(compact_json([_TASK, self.connector, self.task]), compact_json(value))


class Driver(NamedTuple):
    """A process that runs a connector, `since` in epoch seconds."""

    host: str
    pid: int
    since: float

    def __str__(self) -> str:
        since = datetime.fromtimestamp(int(self.since), UTC).isoformat(" ")
        return f"process {self.pid} on {self.host}, running since {since}"


@dataclass(frozen=True, slots=True)
class JobEpoch:
    """Tells which copy job of a connector may run. A lower number must stop; so must a stopped one.

    `partitions` is how many its tasks share: each reports within seconds, whether it has data or not.
    `transactional_tasks` is how many transactional ids may be in use, by it or by one before it.
    `driver` announced it. If two drivers take the same number at the same time, the later record counts.
    `written_ms` is the record's timestamp, in epoch ms; None before it was written.
    """

    connector: ConnectorName
    number: int
    partitions: int = 0
    stopped: bool = False
    transactional_tasks: int = 0
    driver: Driver | None = None
    written_ms: int | None = field(default=None, compare=False)

    def to_record(self) -> LogRecord:
        value = {
            "generation": self.number,
            "partitions": self.partitions,
            "stopped": self.stopped,
            "transactional_tasks": self.transactional_tasks,
            "driver": None if self.driver is None else self.driver._asdict(),
        }
        return LogRecord(compact_json([_GENERATION, self.connector]), compact_json(value))

    def ends(self, job_epoch: "JobEpoch") -> bool:
        """Whether the given copy job must stop by this record, which follows its own."""
        other = self.driver != job_epoch.driver and None not in (self.driver, job_epoch.driver)
        newer = self.number > job_epoch.number
        ended = self.number == job_epoch.number and (self.stopped or other)
        return self.connector == job_epoch.connector and (newer or ended)


@dataclass(frozen=True, slots=True)
class FlowLimits:
    """Limits how fast all tasks of a connector together may copy from now on."""

    connector: ConnectorName
    limits: RateLimits

    def to_record(self) -> LogRecord:
        value = {"flow": self.limits.flow, "topics": self.limits.topics}
        return LogRecord(compact_json([_LIMITS, self.connector]), compact_json(value))


@dataclass(frozen=True, slots=True)
class StateLost:
    """Tells the tasks of a connector that a state topic was created again: they write all that they know."""

    connector: ConnectorName

    def to_record(self) -> LogRecord:
        return LogRecord(compact_json([_LOST, self.connector]), b"{}")


@dataclass(frozen=True, slots=True)
class ConnectorTroubles:
    """Lists what a connector can't do; the least bad is left out where a record is too small."""

    connector: ConnectorName
    troubles: Sequence[Trouble]
    is_stopped: bool = False

    def to_record(self) -> LogRecord:
        left, causes = _TROUBLES_MAX, []
        for cause, of in by_cause(self.troubles).items():
            things = []
            for it in of:
                left -= len(it.what) + len(it.name) + 30
                if left > 0:
                    things.append([it.what, it.name, it.since, *it.partitions])
            causes.append({"cause": list(cause), "things": things})
        return LogRecord(
            compact_json([_TROUBLES, self.connector]),
            compact_json({"causes": causes, "stopped": self.is_stopped}),
        )


Record: TypeAlias = PartitionProgress | TaskProgress | JobEpoch | FlowLimits | StateLost | ConnectorTroubles


def _troubles(key: list[Any], value: dict[str, Any]) -> ConnectorTroubles:
    found = []
    for each in value["causes"]:
        word, subject, reason, remedy = each["cause"]
        cause = Cause(TroubleWord(word), Subject(subject), reason, remedy)
        found += [
            Trouble(cause, what, name, since, (first, stop))
            for what, name, since, first, stop in each["things"]
        ]
    return ConnectorTroubles(ConnectorName(key[1]), found, bool(value["stopped"]))


def parse_order(record: LogRecord) -> JobEpoch | FlowLimits | StateLost | None:
    """Parse for tasks, which skip records of progress by the first bytes of the key."""
    if not (record.key or b"").startswith(_ORDER_KEYS):
        return None
    parsed = parse(record)
    return parsed if isinstance(parsed, JobEpoch | FlowLimits | StateLost) else None


def parse(record: LogRecord) -> Record | None:
    """Parse a record; None for one that this project did not write."""
    try:
        key = parsed_json(record.key)
        value = parsed_json(record.value)
        parse_kind = _KINDS.get(key[0])
        parsed = None if parse_kind is None else parse_kind(key, value)
    except (ValueError, TypeError, KeyError, IndexError, ConfigError):
        return None
    return replace(parsed, written_ms=record.timestamp_ms) if isinstance(parsed, JobEpoch) else parsed


def _job_epoch(key: list[Any], value: dict[str, Any]) -> JobEpoch:
    return JobEpoch(
        connector=ConnectorName(key[1]),
        number=int(value["generation"]),
        partitions=int(value["partitions"]),
        stopped=bool(value["stopped"]),
        transactional_tasks=int(value.get("transactional_tasks", 0)),
        driver=_driver(value.get("driver")),
    )


def _driver(value: Any) -> Driver | None:
    """Parse the driver; None in records of versions that did not name it."""
    return None if value is None else Driver(str(value["host"]), int(value["pid"]), float(value["since"]))


def _limits(key: list[Any], value: dict[str, Any]) -> FlowLimits:
    topics = tuple((str(pattern), _rate(rate)) for pattern, rate in value["topics"])
    flow = None if value["flow"] is None else _rate(value["flow"])
    return FlowLimits(ConnectorName(key[1]), RateLimits(flow, topics))


def _rate(value: Any) -> int:
    if int(value) < 1:
        raise ValueError("not a rate")
    return int(value)


def _progress(key: list[Any], value: dict[str, Any]) -> PartitionProgress:
    return PartitionProgress(
        connector=ConnectorName(key[1]),
        task=value["task"],
        job_epoch=value["generation"],
        source=TopicPartition(key[2], key[3]),
        target_topic=value["target"],
        records=value["records"],
        bytes=value["bytes"],
        position=value["position"],
        lag=value["lag"],
        latency=LatencyHistogram({int(bucket): count for bucket, count in value["latency"].items()}),
        state=PartitionState(value["state"]),
        error=value["error"],
        updated_at=value["time"],
        lost=value["lost"],
        looped=value.get("looped", 0),
        filtered=value.get("filtered", 0),
        notice=value["notice"],
        incidents=value["incidents"],
        attempt=value.get("attempt", 0),
    )


def _task(key: list[Any], value: dict[str, Any]) -> TaskProgress:
    load = TaskLoad(**value["load"])
    unwritten = {str(topic): str(why) for topic, why in value.get("unwritten", {}).items()}
    return TaskProgress(
        ConnectorName(key[1]), int(key[2]), value["generation"], load, value["time"], unwritten
    )


_KINDS: Final[Mapping[str, Callable[[list[Any], dict[str, Any]], Record]]] = {
    _PROGRESS: _progress,
    _TASK: _task,
    _GENERATION: _job_epoch,
    _LIMITS: _limits,
    _LOST: lambda key, _: StateLost(ConnectorName(key[1])),
    _TROUBLES: _troubles,
}
