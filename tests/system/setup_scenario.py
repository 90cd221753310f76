"""A source with every kind of topic, config and ACL, and a reader of what a mirror creates on a target.

`python -m tests.system.setup_scenario` records the source and what Java's MirrorMaker 2 creates (see
`tests.support.recorded_setup`).
"""

import re
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
)
from kafka.protocol.admin import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

from sparkmirror.clusters import ClusterSpec, LocalCluster, start_clusters
from tests.support.acls import acls, create_acls
from tests.support.broker_data import admin
from tests.support.broker_requests import asking
from tests.support.recorded_setup import FLOWS, GOLDEN, TARGET, Acl, Config, Setup, Topic, record
from tests.support.topic_reader import await_leaders
from tests.support.waiting import await_value
from tests.system.java_mm2 import dedicated

_BROKER: Final = 4
"""Kafka's resource type of a broker, for which librdkafka has another number."""
_TIMEOUT_S: Final = 30.0
_SETTLED_S: Final = 15.0
_RECORD_TIMEOUT_S: Final = 200.0
_WORKERS_OWN: Final = re.compile(r"mm2-(?!offset-syncs).*|__.*")
"""Internal topics of workers, in which Java and sparkmirror differ."""

TOPICS: Final[Mapping[str, tuple[int, Mapping[str, str]]]] = {
    "orders": (3, {}),
    "orders.v1": (1, {"retention.ms": "86400001"}),
    "orders_with_under_scores": (2, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.25"}),
    "orders.like.the.default": (1, {"retention.ms": "604800000", "segment.ms": "604800000"}),
    "audit": (1, {"cleanup.policy": "compact,delete", "retention.ms": "-1", "delete.retention.ms": "1000"}),
    "sizes": (
        2,
        {
            "max.message.bytes": "2000000",
            "segment.bytes": "16777216",
            "compression.type": "zstd",
            "retention.bytes": "1000000",
            # Kafka excludes the following configs except the last two, for which its list has other names.
            "min.insync.replicas": "2",
            "message.timestamp.type": "LogAppendTime",
            "unclean.leader.election.enable": "true",
            "leader.replication.throttled.replicas": "*",
            "follower.replication.throttled.replicas": "0:0",
            "message.timestamp.before.max.ms": "999999999999",
            "message.timestamp.after.max.ms": "888888888888",
        },
    ),
    "heartbeats": (1, {"cleanup.policy": "compact"}),
    "plain.heartbeats": (1, {}),
    "my-heartbeats": (1, {}),
    "T.orders": (1, {}),
    "north.T.orders": (1, {}),
    "T_orders": (1, {}),
    "north.orders": (1, {}),
    "orders.replica": (1, {}),
    "users.internal": (1, {}),
    "users-internal": (1, {}),
    "mm2-offset-syncs.north.internal": (1, {}),
    "north.checkpoints.internal": (1, {}),
    "__under": (1, {}),
    ".dot": (1, {}),
}
"""Partitions and explicit configs of the source's topics."""

_STATIC: Final = {"log.index.interval.bytes": "8192", "log.cleaner.delete.retention.ms": "86400007"}
_DYNAMIC: Final = {
    "": {"log.retention.ms": "345600000", "log.segment.delete.delay.ms": "60001"},
    "0": {
        "log.message.timestamp.before.max.ms": "777777777777",
        "log.cleaner.max.compaction.lag.ms": "5555555",
    },
}
"""Dynamic configs by broker; those of no broker are the cluster's defaults."""


def _acl(
    name: str,
    operation: str,
    permission: str = "ALLOW",
    *,
    principal: str = "User:alice",
    host: str = "*",
    pattern: str = "LITERAL",
    resource: str = "TOPIC",
) -> Acl:
    return (resource, pattern, name, principal, host, operation, permission)


ACLS: Final = (
    *(
        _acl("orders", operation)
        for operation in ("READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS")
    ),
    _acl("orders", "ALTER_CONFIGS", host="10.0.0.1"),
    _acl("orders", "ALL", principal="User:CN=client,OU=trade", host="10.0.0.2"),
    _acl("orders", "ALL", "DENY", principal="User:mallory"),
    _acl("orders", "WRITE", "DENY", principal="User:mallory"),
    _acl("orders", "WRITE", principal="User:writer"),
    _acl("orders", "READ", principal="User:ännie"),
    _acl("orders", "ALL", principal="User:both"),
    _acl("orders", "READ", principal="User:both"),
    _acl("ord", "READ", pattern="PREFIXED"),
    _acl("orders.v1", "READ"),
    _acl("orders.that.are.not.there", "READ"),
    _acl("*", "READ", principal="User:reader-of-all"),
    _acl("*", "WRITE", principal="User:writer-of-all"),
    _acl("*", "DESCRIBE", "DENY", principal="User:*", host="10.0.0.3"),
    _acl("heartbeats", "READ"),
    _acl("orders.replica", "READ"),
    _acl("T.orders", "READ"),
    _acl("north.checkpoints.internal", "READ"),
    _acl("orders", "READ", resource="GROUP"),
    _acl("orders", "WRITE", resource="TRANSACTIONAL_ID"),
    _acl("kafka-cluster", "DESCRIBE", resource="BROKER"),
)
"""ACLs of the source; librdkafka calls the resource type of the cluster BROKER."""


def setup_of(cluster: LocalCluster) -> Setup:
    """Describe the cluster without internal topics of workers."""
    client = admin(cluster)
    listed = client.list_topics(timeout=_TIMEOUT_S).topics
    names = [name for name in listed if not _WORKERS_OWN.fullmatch(name)]
    configs = describe(cluster, names)
    topics = {
        name: Topic(
            len(listed[name].partitions),
            max((len(each.replicas) for each in listed[name].partitions.values()), default=0),
            configs[name],
        )
        for name in names
    }
    return Setup(topics, acls(cluster))


# clusters


def start(folder: Path, *targets: str) -> list[LocalCluster]:
    """Start the source described here and the targets, each with an authorizer."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "auto.create.topics.enable": "false",
    }
    specs = [
        ClusterSpec("source", settings={**settings, **_STATIC}, heap_mb=256),
        *(ClusterSpec(name, settings=settings, heap_mb=256) for name in targets),
    ]
    clusters = start_clusters([(spec, folder / spec.name) for spec in specs])
    try:
        set_up(clusters[0])
    except BaseException:
        for cluster in clusters:
            cluster.stop(timeout_s=0)
        raise
    return clusters


def set_up(source: LocalCluster) -> None:
    _set_broker_configs(source)
    client = admin(source)
    created = client.create_topics(
        [
            NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(configs))
            for name, (partitions, configs) in TOPICS.items()
        ]
    )
    for future in created.values():
        future.result(_TIMEOUT_S)
    create_acls(source, ACLS)
    await_leaders(source.bootstrap_servers, {name: partitions for name, (partitions, _) in TOPICS.items()})
    await_value(lambda: acls(source) == frozenset(ACLS), _TIMEOUT_S, lambda: str(acls(source)))


def _set_broker_configs(cluster: LocalCluster) -> None:
    """Set broker configs by a bare request, as Python clients refuse cluster-wide defaults."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    wanted = [
        resource(
            resource_type=_BROKER,
            resource_name=broker,
            configs=[
                resource.AlterableConfig(name=name, config_operation=AlterConfigOpType.SET.value, value=value)
                for name, value in configs.items()
            ],
        )
        for broker, configs in _DYNAMIC.items()
    ]
    with asking(cluster) as asker:
        request = IncrementalAlterConfigsRequest(resources=wanted, validate_only=False)
        answer = asker.ask(request, IncrementalAlterConfigsResponse)
    assert not [each.error_message for each in answer.responses if each.error_code]


def describe(cluster: LocalCluster, topics: Iterable[str]) -> Mapping[str, Mapping[str, Config]]:
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    if not resources:
        return {}
    client = admin(cluster)
    return {
        resource.name: {
            name: (entry.value, ConfigSource(entry.source).name)
            for name, entry in future.result(_TIMEOUT_S).items()
        }
        for resource, future in client.describe_configs(resources).items()
    }


# recording


def properties(source: LocalCluster, target_bootstrap_servers: str) -> str:
    """Return the configuration of the flows with addresses."""
    text = (GOLDEN / "flows.properties").read_text(encoding="ascii")
    addresses = dict.fromkeys(FLOWS, source.bootstrap_servers) | {TARGET: target_bootstrap_servers}
    return text + "".join(f"{alias}.bootstrap.servers = {address}\n" for alias, address in addresses.items())


def main() -> int:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source, target = (stack.enter_context(cluster) for cluster in start(folder, "java"))
        file = folder / "mm2.properties"
        file.write_text(properties(source, target.bootstrap_servers), encoding="ascii")
        java = stack.enter_context(dedicated(file, folder / "java.log", "--clusters", TARGET))
        record("source", setup_of(source))
        record("java", _settled(target).as_set())
        java.stop()
    return 0


def _settled(cluster: LocalCluster) -> Setup:
    """Describe the cluster once it is unchanged over many syncs of topics, configs and ACLs."""
    seen, since = setup_of(cluster), time.monotonic()
    deadline = since + _RECORD_TIMEOUT_S
    while time.monotonic() < since + _SETTLED_S or not seen.topics:
        assert time.monotonic() < deadline, "the target does not come to rest"
        time.sleep(1)
        now = setup_of(cluster)
        if now != seen:
            seen, since = now, time.monotonic()
    return seen


if __name__ == "__main__":
    sys.exit(main())
