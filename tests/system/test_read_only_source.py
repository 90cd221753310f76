"""A source that may only be read: data flows, and its owner's audit log gets few denied requests."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.periodic.denials import DENIED_AGAIN
from tests.support.broker_data import append, create_topic, keyed, numbered, topics
from tests.support.connections import connection
from tests.support.mirror import REPLICATION, running_mirror
from tests.support.secured_broker import USER, SecuredBroker, login, secured_broker
from tests.support.waiting import await_value

TOPIC: Final = "read.only"
COPY: Final = f"ro.{TOPIC}"
ARRIVES_S: Final = 90.0
WATCHED_S: Final = 45.0
ASKING: Final = 3
"""Both connectors and the task ask for a topic."""
DENIED: Final = re.compile(
    rf"Principal = User:{USER} is Denied operation = (\w+) .* resource = (\S+) for request = (\w+)"
)
OFTEN: Final = (
    "refresh.topics",
    "refresh.groups",
    "sync.topic.configs",
    "sync.topic.acls",
    "emit.checkpoints",
    "emit.heartbeats",
)


@pytest.fixture
def source(tmp_path: Path) -> Iterator[SecuredBroker]:
    """A broker whose user has READ, DESCRIBE and DESCRIBE_CONFIGS on one topic, and nothing else."""
    with secured_broker(tmp_path / "source", guarded=True) as broker:
        create_topic(broker.cluster.bootstrap_servers, TOPIC)
        append(broker.cluster, TOPIC, numbered(100))
        bindings = [
            AclBinding(
                ResourceType.TOPIC,
                PatternType.LITERAL,
                TOPIC,
                f"User:{USER}",
                "*",
                operation,
                AclPermission.ALLOW,
            )
            for operation in (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
        ]
        with closing(Admin(connection(broker.cluster))) as admin:
            assert set(admin.create_acls(bindings).values()) == {None}
        yield broker


def test_data_flows_and_each_kind_of_request_is_denied_a_few_times(
    source: SecuredBroker, target_cluster: LocalCluster, tmp_path: Path
) -> None:
    """With intervals of a second, at which nothing may be denied again."""
    properties = {
        **REPLICATION,
        "clusters": "ro, rt",
        "ro.bootstrap.servers": f"{HOST}:{source.ports['LOGIN']}",
        **{f"ro.{key}": value for key, value in login("PLAIN").items()},
        "rt.bootstrap.servers": target_cluster.bootstrap_servers,
        "ro->rt.enabled": "true",
        "ro->rt.topics": TOPIC,
        "emit.heartbeats.enabled": "true",
        "heartbeats.replication.enabled": "false",
        **{f"{job}.interval.seconds": "1" for job in OFTEN},
    }
    began = time.monotonic()
    with running_mirror(tmp_path / "mirror", properties) as mirror:
        await_value(lambda: len(copied(target_cluster)) == 100, ARRIVES_S, mirror.log_text)
        mirror.await_log(r"heartbeats.*rt->ro\.emit\.heartbeats\.enabled=false")
        time.sleep(WATCHED_S / 3)
        before, before_s = denied(source.cluster), time.monotonic() - began
        time.sleep(WATCHED_S)
        later = denied(source.cluster) - before
        append(source.cluster, TOPIC, numbered(10, 100))
        await_value(lambda: len(copied(target_cluster)) == 110, ARRIVES_S, mirror.log_text)
        mirror.stop()
    assert max(before.values()) <= times_max(before_s), before
    assert max(later.values(), default=0) <= times_max(WATCHED_S), later
    assert "Request(processor" not in mirror.log_text(), "the broker's internal text"


def times_max(elapsed_s: float) -> int:
    """Return how often a request is sent while it is denied: each pause is longer, and the first is known."""
    failures, again_s = 1, 0.0
    while (again_s := again_s + DENIED_AGAIN.delay_s(failures, 0.5)) <= max(elapsed_s, WATCHED_S):
        failures += 1
    return ASKING * failures


def copied(target: LocalCluster) -> list[tuple[bytes | None, bytes | None]]:
    return keyed(target, COPY) if COPY in topics(target) else []


def denied(cluster: LocalCluster) -> Counter[tuple[str, ...]]:
    """Count the denied requests by operation, resource and kind, from the broker's log."""
    return Counter(DENIED.findall(cluster.brokers[0].log_since_launch()))
