"""Nodes of sparkmirror and Java Connect workers with the same group.id: the later ones are refused."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.groups.membership_requests import members_of
from sparkmirror.kafka.groups.worker_group import GroupOptions, Membership, WorkerGroup
from sparkmirror.kafka.net.connection import Connection
from tests.support.mirror import START_TIMEOUT_S
from tests.support.waiting import await_value
from tests.system.java_mm2 import ConnectWorker, connect_worker

THEIRS: Final = "groups-theirs"
OURS: Final = "groups-ours"
KILLED: Final = "groups-killed"
_BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"


def properties(cluster: LocalCluster, group_id: str) -> dict[str, str]:
    stores = ("config", "offset", "status")
    return {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": group_id,
        "key.converter": _BYTES,
        "value.converter": _BYTES,
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
        **{f"{store}.storage.topic": f"{group_id}-{store}" for store in stores},
        **{f"{store}.storage.replication.factor": "1" for store in stores},
    }


def settings_of(cluster: LocalCluster) -> ConnectionSettings:
    return ConnectionSettings(tuple((HOST, broker.port) for broker in cluster.brokers))


@contextmanager
def joining(cluster: LocalCluster, group_id: str) -> Iterator[tuple[WorkerGroup, list[Membership]]]:
    """A node of sparkmirror, with the changes of membership that it was notified of."""
    changes: list[Membership] = []
    node = WorkerGroup(settings_of(cluster), GroupOptions(group_id), "http://ours:8083/", changes.append)
    node.start()
    try:
        yield node, changes
    finally:
        node.leave()


@contextmanager
def java(cluster: LocalCluster, group_id: str, folder: Path) -> Iterator[ConnectWorker]:
    folder.mkdir()
    with connect_worker(folder, properties(cluster, group_id)) as worker:
        yield worker


def members(cluster: LocalCluster, group_id: str) -> str:
    """List the members of a group that the only broker coordinates."""
    settings = settings_of(cluster)
    with closing(Connection.open(*settings.bootstrap_servers[0], settings)) as connection:
        return members_of(connection, group_id, START_TIMEOUT_S, Cluster(settings))


def test_nodes_and_java_workers_refuse_each_others_groups(
    target_cluster: LocalCluster, tmp_path: Path
) -> None:
    with joining(target_cluster, OURS) as (ours, changes):
        await_value(lambda: ours.membership.is_leader, START_TIMEOUT_S, lambda: f"{ours.failure}")
        with (
            java(target_cluster, THEIRS, tmp_path / "theirs") as theirs,
            java(target_cluster, OURS, tmp_path / "late") as late,
        ):
            # The REST API responds before the worker is a member.
            member = await_value(
                lambda: members(target_cluster, THEIRS) or None, START_TIMEOUT_S, theirs.log_text
            )
            with joining(target_cluster, THEIRS) as (refused, _):
                failure = await_value(lambda: refused.failure, START_TIMEOUT_S, lambda: "it's not refused")
            assert str(failure).startswith(f"group {THEIRS}: JoinGroup: INCONSISTENT_GROUP_PROTOCOL: ")
            assert f"({member}): workers of Java's Kafka Connect" in str(failure)
            await_value(lambda: theirs.ask("GET", "/connectors") == [], START_TIMEOUT_S, theirs.log_text)

            # The herder stops; the process ends most of a minute later.
            await_value(
                lambda: (
                    "exiting" in late.log_text() and "InconsistentGroupProtocolException" in late.log_text()
                ),
                START_TIMEOUT_S,
                late.log_text,
            )
            assert ours.membership.is_leader
            assert len(changes) == 1, "the group was disturbed"

            assert members(target_cluster, THEIRS) == member
            theirs.stop()
        with joining(target_cluster, THEIRS) as (heir, _):
            await_value(lambda: heir.membership.is_leader, START_TIMEOUT_S, lambda: f"{heir.failure}")


def test_a_node_waits_for_the_session_of_a_killed_java_worker(
    target_cluster: LocalCluster, tmp_path: Path
) -> None:
    with java(target_cluster, KILLED, tmp_path / "killed") as worker:
        member = await_value(
            lambda: members(target_cluster, KILLED) or None, START_TIMEOUT_S, worker.log_text
        )
    with joining(target_cluster, KILLED) as (heir, _):
        trouble = str(await_value(lambda: heir.trouble, START_TIMEOUT_S, lambda: f"{heir.failure}"))
        assert f"for members of another kind ({member}): a process that was killed is one until" in trouble
        await_value(lambda: heir.membership.is_leader, START_TIMEOUT_S, lambda: f"{heir.failure}")
