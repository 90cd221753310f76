"""Several nodes of one Connect group: any of them may die, under load, and the rest goes on."""

import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from sparkmirror.clusters import LocalCluster
from tests.flowing import flowing
from tests.system.broker_data import end_offsets, keyed, topics
from tests.system.connect_node import SOURCE, ConnectNode, connector_config, group_properties, running_nodes
from tests.system.mirror import await_value
from tests.system.mixed_data import create_topic

RATE = 500
WAIT_S = 60.0


@pytest.fixture
def topic(source_cluster: LocalCluster, request: pytest.FixtureRequest) -> str:
    name = f"nodes.{request.node.name.partition('[')[0]}"
    create_topic(source_cluster.bootstrap_servers, name, partitions=2)
    return name


@pytest.fixture
def nodes(
    source_cluster: LocalCluster, target_cluster: LocalCluster, topic: str, tmp_path: Path
) -> Iterator[Sequence[ConnectNode]]:
    """Three nodes, of which the first leads and mirrors the topic; all know it."""
    group = topic.replace(".", "-")
    properties = {
        **group_properties(target_cluster, group),
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
    }
    with running_nodes(tmp_path, properties, 3) as started:
        for node in started:
            node.await_answers()
        config = connector_config(SOURCE, ("na", source_cluster), ("nb", target_cluster), topics=topic)
        started[-1].put("mm2-msc", config)
        for node in started:
            node.await_states("mm2-msc", "RUNNING", "RUNNING")
        yield started


def leader_of(nodes: Sequence[ConnectNode]) -> ConnectNode:
    worker_id = nodes[0].ask("GET", "/connectors/mm2-msc/status").body["connector"]["worker_id"]
    (leader,) = [node for node in nodes if node.worker_id == worker_id]
    return leader


def kill(node: ConnectNode) -> None:
    for process in node.processes():
        process.kill()


def freeze(node: ConnectNode) -> None:
    """As a machine does that hangs: nothing of it runs any more, and no connection is closed."""
    for process in node.processes():
        process.send_signal(signal.SIGSTOP)


def thaw(node: ConnectNode) -> None:
    for process in node.processes():
        process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("strike", [kill, freeze])
def test_others_take_over_what_a_lost_leader_did(
    strike: Callable[[ConnectNode], None],
    nodes: Sequence[ConnectNode],
    topic: str,
    source_cluster: LocalCluster,
    target_cluster: LocalCluster,
) -> None:
    copied = f"na.{topic}"
    with flowing(source_cluster, topic, rate=RATE, partitions=2):
        await_value(
            lambda: copied in topics(target_cluster) and keyed(target_cluster, copied),
            WAIT_S,
            nodes[0].log_text,
        )
        lost = leader_of(nodes)
        others = [node for node in nodes if node is not lost]
        strike(lost)
        for node in others:
            assert node.ask("GET", "/connectors").body == ["mm2-msc"]
        await_taken_over(others, lost, target_cluster, copied)
        if strike is freeze:
            thaw(lost)
            await_value(lambda: follows(lost), WAIT_S, lost.log_text)
    expected = Counter(keyed(source_cluster, topic))
    await_value(
        lambda: Counter(keyed(target_cluster, copied)).total() >= expected.total(), WAIT_S, others[0].log_text
    )
    assert Counter(keyed(target_cluster, copied)) == expected


def await_taken_over(
    others: Sequence[ConnectNode], lost: ConnectNode, target_cluster: LocalCluster, copied: str
) -> None:
    """Until somebody else says that it runs the connector, and records arrive."""
    await_value(lambda: is_run_by(others[0], others), WAIT_S, others[0].log_text)
    before = sum(end_offsets(target_cluster, [copied]).values())
    await_value(
        lambda: sum(end_offsets(target_cluster, [copied]).values()) > before, WAIT_S, others[0].log_text
    )


def is_run_by(asked: ConnectNode, nodes: Sequence[ConnectNode]) -> bool:
    """Whether the connector and its task run on one of these."""
    status = asked.ask("GET", "/connectors/mm2-msc/status").body
    parts = [status["connector"], *status["tasks"]]
    return {part["state"] for part in parts} == {"RUNNING"} and {part["worker_id"] for part in parts} <= {
        node.worker_id for node in nodes
    }


def follows(node: ConnectNode) -> bool:
    """Whether it is a member again and knows that another one leads."""
    return node.ask("GET", "/health").status == 200 and not is_run_by(node, [node])


def test_a_node_that_stops_in_order_hands_over_at_once(
    nodes: Sequence[ConnectNode], topic: str, source_cluster: LocalCluster, target_cluster: LocalCluster
) -> None:
    copied = f"na.{topic}"
    with flowing(source_cluster, topic, rate=RATE, partitions=2):
        await_value(lambda: copied in topics(target_cluster), WAIT_S, nodes[0].log_text)
        for _ in range(2):
            leader = leader_of(nodes)
            leader.stop()
            others = [node for node in nodes if node is not leader]
            await_taken_over(others, leader, target_cluster, copied)
            leader.start()
            leader.await_answers()
    expected = Counter(keyed(source_cluster, topic))
    await_value(
        lambda: Counter(keyed(target_cluster, copied)).total() >= expected.total(), WAIT_S, nodes[0].log_text
    )
    assert Counter(keyed(target_cluster, copied)) == expected
