"""Lists the rights that a mirror needs, and renders them in docs/rights.md.

`python -m tests.support.rights_page` writes it. A test gives a real mirror exactly these.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from sparkmirror.domain.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from sparkmirror.domain.rights import CLUSTER_NAME, Need, Right, grant_command

PAGE: Final = Path(__file__).parents[2] / "docs" / "rights.md"
BEGIN: Final = "<!-- least rights: begin -->"
END: Final = "<!-- least rights: end -->"


class Side(Enum):
    SOURCE = "A"
    TARGET = "B"


class Mode(Enum):
    """When a right is needed; the value says it."""

    DEFAULT = "by default"
    GROUPS = "`sync.group.offsets.enabled=true`"
    LAG = "`lag.group.id`"
    TRANSACTIONS = "`exactly.once.source.support=enabled`"
    WORKER = "a Connect worker"
    SYNCED_ACLS = "`sync.acls.delete=true`"
    DELETES = "`sync.topic.deletes=true`"
    PRESERVED = "`offsets.preserve=true`"
    BAD_BATCHES = "`on.bad.batch=skip`"
    OTHER_NAMES = "`IdentityReplicationPolicy`, and policies like it"
    QUOTAS = "`sync.quotas=true`"
    USERS = "`sync.users`"
    OLD = "brokers before Kafka 2.8, and MSK with IAM"
    MOVED_GROUPS = "`sparkmirror migrate consumers`"
    ROLLED_BACK = "`sparkmirror migrate consumers --roll-back`"
    MOVED_PRODUCERS = "`sparkmirror migrate producers`"
    PROMOTED = "`sparkmirror promote`"
    FAILED_BACK = "`sparkmirror failback`"
    REMADE = "`sparkmirror offsets preserve`"


class Who(Enum):
    SOURCE = "MirrorSourceConnector"
    CHECKPOINT = "MirrorCheckpointConnector"
    HEARTBEAT = "MirrorHeartbeatConnector"
    WORKER = "the process"
    COMMAND = "the command"


class Resource(NamedTuple):
    """A name that ends with `*` is a prefix."""

    type: ResourceType
    name: str


@dataclass(frozen=True, slots=True)
class Grant:
    """Rights on one resource of one cluster."""

    side: Side
    who: Who
    mode: Mode
    resource: Resource
    needs: tuple[Need, ...]
    why: str

    @property
    def rights(self) -> tuple[Right, ...]:
        name = self.resource.name
        pattern = PatternType.PREFIXED if name.endswith("*") else PatternType.LITERAL
        return tuple(need.of(name.removesuffix("*"), pattern) for need in self.needs)


def binding(right: Right, principal: str) -> AclBinding:
    """The ACL that gives it."""
    return AclBinding(
        right.resource_type,
        right.pattern_type,
        right.name,
        principal,
        "*",
        right.operation,
        AclPermission.ALLOW,
    )


_STATE: Final = (Need.CREATE_TOPIC, Need.READ_TOPIC, Need.WRITE_TOPIC)
_WRITTEN: Final = (Need.CREATE_TOPIC, Need.WRITE_TOPIC)
_CHECKED: Final = (*_STATE, Need.DESCRIBE_TOPIC_CONFIGS)
"""The needs for a topic whose compaction is checked."""
_REMOTE: Final = (*_STATE, Need.GROW_TOPIC, Need.ALTER_TOPIC_CONFIGS)
_BEAT: Final = (Need.CREATE_TOPIC, Need.WRITE_TOPIC)
_BEATS: Final = "with `emit.heartbeats.enabled`"
_ACLS: Final = "unless `sync.topic.acls.enabled=false`"


def grants(
    source: str = "A", target: str = "B", topic: str = "orders", group: str = "billing"
) -> list[Grant]:
    """Return the rights for a flow under DefaultReplicationPolicy, with one topic and one group."""
    return [*_of_source(source, target, topic, group), *_of_target(source, topic, group)]


def _of_source(source: str, target: str, topic: str, group: str) -> Iterator[Grant]:
    def of(who: Who, mode: Mode, resource: Resource, needs: Sequence[Need], why: str = "") -> Grant:
        return Grant(Side.SOURCE, who, mode, resource, tuple(needs), why)

    default, cluster = Mode.DEFAULT, Resource(ResourceType.CLUSTER, CLUSTER_NAME)
    syncs = Resource(ResourceType.TOPIC, f"mm2-offset-syncs.{target}.internal")
    read = (Need.READ_TOPIC, Need.DESCRIBE_TOPIC_CONFIGS)
    yield of(Who.SOURCE, default, Resource(ResourceType.TOPIC, topic), read, "each mirrored topic")
    yield of(Who.SOURCE, default, syncs, _BEAT, "on B with `offset-syncs.topic.location=target`")
    yield of(Who.SOURCE, default, cluster, [Need.DESCRIBE_ACLS], _ACLS)
    yield of(Who.CHECKPOINT, default, syncs, [Need.READ_TOPIC], "the same")
    yield of(
        Who.CHECKPOINT, default, Resource(ResourceType.GROUP, group), [Need.DESCRIBE_GROUP], "each group"
    )
    lag = Resource(ResourceType.GROUP, "mirror-lag")
    yield of(Who.SOURCE, Mode.LAG, lag, [Need.READ_GROUP], "the group that it names")
    ids = Resource(ResourceType.TOPIC, "mm2-producer-ids.internal")
    yield of(Who.SOURCE, Mode.OTHER_NAMES, ids, [Need.READ_TOPIC], "if it is there")
    yield of(Who.SOURCE, Mode.QUOTAS, cluster, [Need.DESCRIBE_QUOTAS])
    yield of(Who.SOURCE, Mode.USERS, cluster, [Need.DESCRIBE_USERS])
    back = Resource(ResourceType.TOPIC, f"mm2-migrations.{target}.internal")
    yield of(Who.COMMAND, Mode.FAILED_BACK, back, _STATE, "where the opposite flow continues")
    aside = Resource(ResourceType.TOPIC, "aside")
    yield of(Who.COMMAND, Mode.FAILED_BACK, aside, _STATE, "the topic of `--keep-aside`")


def _of_target(source: str, topic: str, group: str) -> Iterator[Grant]:
    def of(who: Who, mode: Mode, resource: Resource, needs: Sequence[Need], why: str = "") -> Grant:
        return Grant(Side.TARGET, who, mode, resource, tuple(needs), why)

    def own(name: str) -> Resource:
        return Resource(ResourceType.TOPIC, f"mm2-{name}.{source}.internal")

    default, cluster = Mode.DEFAULT, Resource(ResourceType.CLUSTER, CLUSTER_NAME)
    remote = Resource(ResourceType.TOPIC, f"{source}.{topic}")
    yield of(
        Who.SOURCE,
        default,
        remote,
        _REMOTE,
        "each mirrored topic; DESCRIBE_CONFIGS will do with `sync.topic.configs.enabled=false`",
    )
    yield of(Who.SOURCE, default, own("offsets"), _CHECKED, "positions")
    yield of(Who.SOURCE, default, own("progress"), _STATE, "what tasks report")
    yield of(Who.SOURCE, default, own("attempts"), _CHECKED, "who writes a partition")
    yield of(Who.SOURCE, default, own("events"), _BEAT, "events; optional")
    fence = Resource(ResourceType.TRANSACTIONAL_ID, "sparkmirror-*")
    yield of(Who.SOURCE, default, fence, [Need.TRANSACT], "fences earlier attempts")
    yield of(Who.SOURCE, default, cluster, [Need.ALTER_ACLS], _ACLS)
    yield of(Who.CHECKPOINT, default, Resource(ResourceType.TOPIC, f"{source}.checkpoints.internal"), _STATE)
    yield of(Who.HEARTBEAT, default, Resource(ResourceType.TOPIC, "heartbeats"), _BEAT)
    members = Resource(ResourceType.GROUP, group)
    yield of(Who.CHECKPOINT, Mode.GROUPS, members, [Need.READ_GROUP], "commits its offsets")
    transactions = Resource(ResourceType.TRANSACTIONAL_ID, f"{source}-mm2-*")
    yield of(Who.SOURCE, Mode.TRANSACTIONS, transactions, [Need.TRANSACT], "in a Connect worker `GROUP.ID-*`")
    nodes = Resource(ResourceType.GROUP, f"{source}-mm2")
    yield of(
        Who.WORKER, default, nodes, [Need.READ_GROUP], "one of several processes runs the flow; optional"
    )
    worker = Resource(ResourceType.GROUP, "connect-cluster")
    yield of(Who.WORKER, Mode.WORKER, worker, [Need.READ_GROUP], "its `group.id`")
    yield of(Who.WORKER, Mode.WORKER, Resource(ResourceType.TOPIC, "connect-*"), _CHECKED, "its three topics")
    yield of(Who.SOURCE, Mode.SYNCED_ACLS, own("acls"), _STATE, "ACLs that it made")
    yield of(Who.SOURCE, Mode.DELETES, remote, [Need.DELETE_TOPIC], "each mirrored topic")
    yield of(Who.SOURCE, Mode.PRESERVED, remote, [Need.DELETE_RECORDS], "each topic that it selects")
    yield of(Who.SOURCE, Mode.PRESERVED, own("migrations"), [Need.READ_TOPIC], "which topics are promoted")
    yield of(Who.SOURCE, Mode.PRESERVED, cluster, [Need.WRITE_MARKERS], "optional: fills long gaps faster")
    yield of(Who.SOURCE, Mode.BAD_BATCHES, own("dead-letters"), _WRITTEN, "what was skipped")
    ids = Resource(ResourceType.TOPIC, "mm2-producer-ids.internal")
    yield of(Who.SOURCE, Mode.OTHER_NAMES, ids, _STATE, "which flow wrote a batch")
    yield of(Who.SOURCE, Mode.QUOTAS, cluster, [Need.ALTER_QUOTAS])
    yield of(Who.SOURCE, Mode.USERS, cluster, [Need.ALTER_USERS])
    yield of(Who.SOURCE, Mode.OLD, cluster, [Need.NUMBER_RECORDS])
    moves, beats = own("migrations"), Resource(ResourceType.TOPIC, "heartbeats")
    yield of(Who.COMMAND, Mode.MOVED_GROUPS, moves, _STATE, "offsets before the move")
    yield of(Who.COMMAND, Mode.MOVED_GROUPS, members, [Need.READ_GROUP], "commits its offsets")
    yield of(Who.COMMAND, Mode.ROLLED_BACK, moves, _STATE[1:], "offsets before the move")
    yield of(
        Who.COMMAND,
        Mode.ROLLED_BACK,
        members,
        [Need.DELETE_GROUP],
        "removes offsets that it did not have; READ for others",
    )
    yield of(Who.COMMAND, Mode.MOVED_PRODUCERS, beats, [Need.READ_TOPIC], _BEATS)
    yield of(Who.COMMAND, Mode.PROMOTED, moves, _STATE, "which topics are promoted")
    yield of(Who.COMMAND, Mode.PROMOTED, members, [Need.READ_GROUP], "commits its offsets")
    yield of(Who.COMMAND, Mode.PROMOTED, beats, [Need.READ_TOPIC], _BEATS)
    yield of(Who.COMMAND, Mode.REMADE, moves, _STATE, "where groups were")
    yield of(Who.COMMAND, Mode.REMADE, members, [Need.READ_GROUP], "commits its offsets")


def rendered() -> str:
    """The section, between its marks."""
    every = grants()
    parts = [BEGIN, _rights_table(every), _commands(every), _policies(every), END]
    return "\n\n".join(parts)


def _rights_table(every: Iterable[Grant]) -> str:
    rows = ["| on | for | when | resource | operations | |", "|---|---|---|---|---|---|"]
    for grant in every:
        kind, name = grant.resource.type.name.lower().replace("_", " "), grant.resource.name
        cells = (
            grant.side.value,
            grant.who.value,
            grant.mode.value,
            kind if grant.resource.type is ResourceType.CLUSTER else f"{kind} `{name}`",
            ", ".join(need.operation.name for need in grant.needs),
            grant.why,
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _commands(every: Iterable[Grant]) -> str:
    lines = []
    for side, some in groupby(_default(every), lambda grant: grant.side):
        alias = side.value.lower()
        lines.append(f"# The principal as which the mirror logs in to {side.value}")
        for grant in some:
            first, *others = grant.rights
            also = tuple(right.operation for right in others)
            lines.append(grant_command(first, f"User:mirror-{alias}", f"{alias}:9092", also))
    return "With the defaults, for the topic `orders` and the group `billing`:\n\n" + _block("sh", lines)


def _policies(every: Sequence[Grant]) -> str:
    parts = [
        "The same for MSK with IAM, as policies of two roles (`REGION:ACCOUNT` and `CLUSTER/ID` are yours):"
    ]
    used = [grant for grant in every if grant.mode in (Mode.DEFAULT, Mode.OLD)]
    for side in Side:
        own = [grant for grant in used if grant.side is side]
        connect = _statement(Resource(ResourceType.CLUSTER, CLUSTER_NAME), ["Connect"])
        statements = [connect, *(_statement(grant.resource, _actions(grant)) for grant in own)]
        body = ",\n  ".join(statements)
        parts.append(_block("json", [f'{{"Version": "2012-10-17", "Statement": [\n  {body}\n]}}']))
    return "\n\n".join(parts)


def _default(every: Iterable[Grant]) -> list[Grant]:
    return [grant for grant in every if grant.mode is Mode.DEFAULT]


def _block(language: str, lines: Iterable[str]) -> str:
    return "\n".join((f"```{language}", *lines, "```"))


_ARNS: Final = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.TRANSACTIONAL_ID: "transactional-id",
    ResourceType.CLUSTER: "cluster",
}
_ACTIONS: Final = {
    (ResourceType.TOPIC, AclOperation.READ): ("DescribeTopic", "ReadData"),
    (ResourceType.TOPIC, AclOperation.WRITE): ("DescribeTopic", "WriteData"),
    (ResourceType.TOPIC, AclOperation.CREATE): ("CreateTopic",),
    (ResourceType.TOPIC, AclOperation.ALTER): ("DescribeTopic", "AlterTopic"),
    (ResourceType.TOPIC, AclOperation.DESCRIBE_CONFIGS): ("DescribeTopicDynamicConfiguration",),
    (ResourceType.TOPIC, AclOperation.ALTER_CONFIGS): (
        "DescribeTopicDynamicConfiguration",
        "AlterTopicDynamicConfiguration",
    ),
    (ResourceType.GROUP, AclOperation.DESCRIBE): ("DescribeGroup",),
    (ResourceType.TRANSACTIONAL_ID, AclOperation.WRITE): ("DescribeTransactionalId", "AlterTransactionalId"),
    (ResourceType.CLUSTER, AclOperation.DESCRIBE): ("DescribeCluster",),
    (ResourceType.CLUSTER, AclOperation.ALTER): ("DescribeCluster", "AlterCluster"),
    (ResourceType.GROUP, AclOperation.READ): ("DescribeGroup", "AlterGroup"),
    (ResourceType.CLUSTER, AclOperation.IDEMPOTENT_WRITE): ("WriteDataIdempotently",),
}
"""The pairs of AWS's "Semantics of IAM authorization policy actions and resources"."""


def _actions(grant: Grant) -> tuple[str, ...]:
    found = (_ACTIONS[grant.resource.type, need.operation] for need in grant.needs)
    return tuple(dict.fromkeys(action for actions in found for action in actions))


def _statement(resource: Resource, actions: Iterable[str]) -> str:
    path = "" if resource.type is ResourceType.CLUSTER else f"/{resource.name}"
    return json.dumps(
        {
            "Effect": "Allow",
            "Action": [f"kafka-cluster:{action}" for action in actions],
            "Resource": f"arn:aws:kafka:REGION:ACCOUNT:{_ARNS[resource.type]}/CLUSTER/ID{path}",
        }
    )


def with_section(page: str) -> str:
    """The page with the section as it must be."""
    before, _, rest = page.partition(BEGIN)
    return before + rendered() + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
