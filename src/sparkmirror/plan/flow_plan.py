"""Holds what a flow would do, as a value: what it changes, copies and leaves out, and what blocks it.

Every change of a cluster is a `Change`, whichever part of the plan it comes from: a further part is one more
function that makes changes of it.

Pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sparkmirror.domain.acls import AclBinding
from sparkmirror.domain.findings import Finding, Severity
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.domain.topics import AlterConfigOp, AlterConfigOpType, TopicCreation
from sparkmirror.setup.accounts import AccountPlan
from sparkmirror.setup.acl_plan import AclPlan
from sparkmirror.setup.config_plan import ConfigPlan
from sparkmirror.setup.topic_plan import TopicPlan

BROKERS_CHOICE = -1
"""Partitions or replicas whose number is left to the broker."""


class Action(StrEnum):
    CREATE = "create"
    ALTER = "alter"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Change:
    """A change: `text` describes it for people, `details` for programs."""

    action: Action
    kind: str
    cluster: Alias
    name: str
    text: str
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PlannedCopy:
    """A partition, and what of it there is to copy: offsets from `begin` to before `end`.

    `begin` and `end` are None where they can't be details. `bytes` are estimated by the share of the offsets.
    """

    source: TopicPartition
    target_topic: str
    task: int
    begin: int | None = None
    end: int | None = None
    bytes: int | None = None

    @property
    def records(self) -> int | None:
        """The number of records at most: offsets without a record (transactions, compaction) count too."""
        return None if self.begin is None or self.end is None else max(0, self.end - self.begin)


@dataclass(frozen=True, slots=True)
class Rate:
    """Bytes per second, and where the number comes from."""

    bytes_s: float
    origin: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A topic of the source that is not mirrored: by which rule, and why."""

    topic: str
    rule: str
    why: str


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """`target_id` is Kafka's id of the target cluster, by whatever alias it's known."""

    flow: Flow
    connector: ConnectorName | None
    """The source connector's plan; None for a flow that only emits heartbeats."""
    target_id: str = ""
    changes: tuple[Change, ...] = ()
    copies: tuple[PlannedCopy, ...] = ()
    rate: Rate | None = None
    skipped: tuple[Skipped, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def is_blocked(self) -> bool:
        return any(finding.severity is Severity.BLOCKS for finding in self.findings)

    @property
    def tasks(self) -> int:
        return len({copy.task for copy in self.copies})

    @property
    def records(self) -> int:
        return sum(copy.records or 0 for copy in self.copies)

    @property
    def bytes(self) -> int | None:
        """The bytes to copy, or None where the size of a log is unknown."""
        sizes = [copy.bytes for copy in self.copies if copy.records]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def seconds(self) -> float | None:
        """The duration of copying, without the records that are written meanwhile."""
        size = self.bytes
        return None if size is None or self.rate is None else size / self.rate.bytes_s

    def count(self, action: Action) -> int:
        return sum(change.action is action for change in self.changes)


def own_topic_changes(missing: Iterable[tuple[Alias, TopicCreation]]) -> Iterator[Change]:
    """The topics that the mirror keeps for itself, each with its cluster."""
    for cluster, topic in missing:
        yield _creation("internal topic", cluster, topic, {})


def topic_changes(target: Alias, plan: TopicPlan) -> Iterator[Change]:
    for new in plan.creates:
        topic = new.creation
        yield _creation("topic", target, topic, {"source": new.source})
    for grown in plan.grows:
        text = f"{grown.existing} -> {_counted(grown.partitions, 'partition')}"
        details = {"source": grown.source, "before": grown.existing, "partitions": grown.partitions}
        yield Change(Action.ALTER, "partitions", target, grown.name, text, details)
    for gone in plan.deletes:
        when = datetime.fromtimestamp(gone.due, UTC).isoformat(" ", "seconds")
        text = f"after {when}: {gone.source} is gone from the source"
        details = {"source": gone.source, "due": gone.due}
        yield Change(Action.DELETE, "topic", target, gone.name, text, details)


def config_changes(target: Alias, plan: ConfigPlan) -> Iterator[Change]:
    for topic, operations in plan.changes.items():
        text = ", ".join(map(_operation_text, operations))
        wanted = {
            operation.name: operation.value if operation.op is AlterConfigOpType.SET else None
            for operation in operations
        }
        yield Change(Action.ALTER, "configs", target, topic, text, {"configs": wanted})


def acl_changes(target: Alias, plan: AclPlan) -> Iterator[Change]:
    for binding in plan.creates:
        yield _acl(Action.CREATE, target, binding)
    for binding in plan.deletes:
        yield _acl(Action.DELETE, target, binding)


def account_changes(target: Alias, plan: AccountPlan) -> Iterator[Change]:
    for quota in plan.quotas:
        text = ", ".join(f"{key}={value:g}" for key, value in quota.values)
        details = {"entity": dict(quota.entity.names), "values": dict(quota.values)}
        yield Change(Action.ALTER, "quotas", target, str(quota.entity), text, details)
    for credential in plan.users:
        text = f"{credential.mechanism}, {credential.iterations} iterations"
        details = {"mechanism": str(credential.mechanism), "iterations": credential.iterations}
        yield Change(Action.CREATE, "user", target, credential.user, text, details)


def _creation(kind: str, cluster: Alias, topic: TopicCreation, more: Mapping[str, Any]) -> Change:
    words = [
        f"as {more['source']}" if "source" in more else "",
        _counted(topic.partitions, "partition"),
        _counted(topic.replication_factor, "replica"),
        *(f"{name}={value}" for name, value in sorted(topic.configs.items())),
    ]
    details = {
        **more,
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "configs": dict(topic.configs),
    }
    return Change(Action.CREATE, kind, cluster, topic.name, ", ".join(filter(None, words)), details)


def _operation_text(operation: AlterConfigOp) -> str:
    if operation.op is AlterConfigOpType.DELETE:
        return f"{operation.name} reset"
    return f"{operation.name}={operation.value}"


def _acl(action: Action, cluster: Alias, binding: AclBinding) -> Change:
    details = {
        "resource_type": binding.resource_type.name,
        "pattern_type": binding.pattern_type.name,
        "principal": binding.principal,
        "host": binding.host,
        "operation": binding.operation.name,
        "permission": binding.permission.name,
    }
    return Change(action, "ACL", cluster, binding.resource_name, str(binding), details)


def _counted(number: int, word: str) -> str:
    if number == BROKERS_CHOICE:
        return f"the broker's number of {word}s"
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def joined(parts: Iterable[Iterable[Change]]) -> tuple[Change, ...]:
    """Join the changes of all parts, in the order in which they are done."""
    return tuple(change for part in parts for change in part)


def by_task(copies: Sequence[PlannedCopy]) -> Sequence[Sequence[PlannedCopy]]:
    """The partitions of each task."""
    tasks: dict[int, list[PlannedCopy]] = {}
    for copy in copies:
        tasks.setdefault(copy.task, []).append(copy)
    return [tasks[task] for task in sorted(tasks)]
