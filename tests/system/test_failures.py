"""Topics and records that the target refuses: error reports, other partitions, and the fix."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pytest

from sparkmirror.clusters import ClusterSpec, LocalCluster
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.storage.progress import PartitionProgress, PartitionState
from tests.support.acls import create_acls
from tests.support.broker_data import Keyed, admin, append, configure, create_topic, keyed, numbered, topics
from tests.support.mirror import Mirror, running_mirror
from tests.support.progress import Progress, await_caught_up
from tests.support.waiting import await_value
from tests.system.dual_run import Sides

GOOD: Final = "fail.good"
COLLIDING: Final = "fail.colliding"
COLLIDES_WITH: Final = "refused.fail_colliding"
"""Kafka refuses topics that differ only in dots and underscores, because their metrics would collide."""
TOO_LONG: Final = f"fail.{'long' * 60}"
LARGE: Final = "fail.large"
DENIED: Final = "fail.denied"
OLD: Final = "fail.old"
REFUSED: Final = {
    LARGE: "MESSAGE_TOO_LARGE",
    DENIED: "TOPIC_AUTHORIZATION_FAILED",
    OLD: "INVALID_TIMESTAMP",
}
LARGE_RECORDS: Final[list[Keyed]] = [*numbered(3), (b"large", bytes(5000)), *numbered(2, first=3)]
WAIT_S: Final = 45.0
TIMEOUT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class RefusedFlow:
    source: LocalCluster
    target: LocalCluster
    mirror: Mirror

    def await_progress(self, partition: TopicPartition, state: PartitionState) -> PartitionProgress:
        with closing(Progress(self.target, "refused")) as progress:

            def found() -> PartitionProgress | None:
                report = progress.now().get(partition)
                return report if report is not None and report.state is state else None

            return await_value(found, WAIT_S, lambda: f"{partition} is not {state}: {progress.now()}")


@pytest.fixture(scope="module")
def refused_flow(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RefusedFlow]:
    folder = tmp_path_factory.mktemp("failures")
    authorizer = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    spec = ClusterSpec("strict", settings=authorizer, heap_mb=256)
    with LocalCluster.start(spec, folder / "strict") as strict:
        prepare(sides.source, strict)
        with running_mirror(folder / "mirror", properties(sides.source, strict)) as mirror:
            yield RefusedFlow(sides.source, strict, mirror)
            mirror.stop()


def properties(source: LocalCluster, target: LocalCluster) -> dict[str, str]:
    return {
        "clusters": "refused, strict",
        "refused.bootstrap.servers": source.bootstrap_servers,
        "strict.bootstrap.servers": target.bootstrap_servers,
        "refused->strict.enabled": "true",
        "refused->strict.topics": r"fail\..*",
        "refresh.topics.interval.seconds": "1",
        "sync.topic.configs.enabled": "false",
        "heartbeats.replication.enabled": "false",
    }


def prepare(source: LocalCluster, target: LocalCluster) -> None:
    configs: Mapping[str, dict[str, str]] = {
        LARGE: {"max.message.bytes": "1000"},
        OLD: {"message.timestamp.before.max.ms": "3600000"},
        DENIED: {},
    }
    for topic, config in configs.items():
        create_topic(target.bootstrap_servers, f"refused.{topic}", partitions=2, config=config)
    create_topic(target.bootstrap_servers, COLLIDES_WITH)
    for topic in (GOOD, COLLIDING, TOO_LONG, *REFUSED):
        create_topic(source.bootstrap_servers, topic, partitions=2)
    for topic in (GOOD, COLLIDING, DENIED):
        append(source, topic, numbered(10))
    days_ago_ms = int((time.time() - 2 * 86400) * 1000)
    append(source, OLD, numbered(10), timestamp_ms=days_ago_ms)
    append(source, OLD, numbered(10), partition=1)
    for record in LARGE_RECORDS:  # one batch each
        append(source, LARGE, [record])
    append(source, LARGE, numbered(10), partition=1)
    deny_writes(target, f"refused.{DENIED}")


def deny_writes(cluster: LocalCluster, topic: str) -> None:
    """Deny writes to the topic and allow everything else."""
    mine = "TOPIC", "LITERAL", topic, "User:ANONYMOUS", "*"
    create_acls(cluster, [(*mine, "ALL", "ALLOW"), (*mine, "WRITE", "DENY")])


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        (
            COLLIDING,
            rf"create topic refused.{COLLIDING} on strict: INVALID_TOPIC_EXCEPTION .*{COLLIDES_WITH}",
        ),
        (TOO_LONG, rf"{TOO_LONG} blocked: .* Kafka allows 249"),
    ],
)
def test_topic_that_cannot_be_created_is_reported_once(
    refused_flow: RefusedFlow, topic: str, reason: str
) -> None:
    line = refused_flow.mirror.await_log(reason)
    assert "WARNING [refused->strict MirrorSourceConnector]" in line
    await_caught_up(refused_flow.source, refused_flow.target, "refused", [GOOD])
    assert len(re.findall(reason, refused_flow.mirror.log_text())) == 1, "and every second again"


@pytest.mark.parametrize("topic", REFUSED)
def test_failed_partition_reports_topic_and_error(refused_flow: RefusedFlow, topic: str) -> None:
    report = refused_flow.await_progress(TopicPartition(topic, 0), PartitionState.FAILED)
    assert report.error is not None
    assert report.error.startswith(f"produce to refused.{topic}-0: {REFUSED[topic]}")
    line = refused_flow.mirror.await_log(rf"{topic}-0 FAILED: ")
    assert line.endswith(f"ERROR   [refused->strict] {topic}-0 FAILED: {report.error}")


def test_other_partitions_continue_beside_a_failed_one(refused_flow: RefusedFlow) -> None:
    append(refused_flow.source, GOOD, numbered(10, first=10))
    await_caught_up(refused_flow.source, refused_flow.target, "refused", [GOOD])
    assert keyed(refused_flow.target, f"refused.{GOOD}") == numbered(20)
    for topic in (LARGE, OLD):
        report = refused_flow.await_progress(TopicPartition(topic, 1), PartitionState.RUNNING)
        assert (report.position, report.lag, report.error) == (9, 0, None)


def test_records_before_the_refused_batch_are_copied(refused_flow: RefusedFlow) -> None:
    report = refused_flow.await_progress(TopicPartition(LARGE, 0), PartitionState.FAILED)
    assert (report.position, report.lag) == (2, 3)
    copied = keyed(refused_flow.target, f"refused.{LARGE}")
    assert copied[:3] == LARGE_RECORDS[:3]
    assert len(copied) == 3 + 10


def test_failed_partition_continues_after_the_fix(refused_flow: RefusedFlow) -> None:
    configure(refused_flow.target, f"refused.{LARGE}", {"max.message.bytes": "1000000"})
    client = admin(refused_flow.target)  # a closed client would cancel the request
    (deleted,) = client.delete_topics([COLLIDES_WITH]).values()
    deleted.result(TIMEOUT_S)
    await_caught_up(refused_flow.source, refused_flow.target, "refused", [LARGE, COLLIDING])
    assert keyed(refused_flow.target, f"refused.{LARGE}")[:6] == LARGE_RECORDS
    assert topics(refused_flow.target)[f"refused.{COLLIDING}"] == 2
    refused_flow.mirror.await_log(f"{LARGE}-0 is copied again")
