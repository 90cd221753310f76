"""Nodes of a Connect group take over from a lost one, under load."""

import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from urllib.request import urlopen

import pytest

from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import create_topic, end_offsets, keyed, topics
from tests.support.mirror import Mirror
from tests.support.traffic import flowing
from tests.support.waiting import await_value
from tests.system.connect_node import SOURCE, NetworkedNode, connector_config, group_properties, started

TOPIC = "nodes.orders"
COPIED = f"na.{TOPIC}"
NAME = "mm2-msc"
RATE = 500
WAIT_S = 90.0


@pytest.fixture(scope="module")
def nodes(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sequence[NetworkedNode]]:
    """Three nodes, one of which runs the connector."""
    create_topic(source_cluster.bootstrap_servers, TOPIC, partitions=2)
    properties = {
        **group_properties(target_cluster, "nodes"),
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
    }
    folder = tmp_path_factory.mktemp("nodes")
    made = (
        NetworkedNode(folder / f"node-{number}", properties, source_cluster, target_cluster)
        for number in range(3)
    )
    with started(made) as running:
        for node in running:
            node.await_answers()
        config = connector_config(
            SOURCE,
            ("na", source_cluster),
            ("nb", target_cluster),
            topics=TOPIC,
            heartbeats_replication_enabled="false",
        )
        here = {f"{end.lower()}.cluster.bootstrap.servers": f"${{env:{end}}}" for end in ("SOURCE", "TARGET")}
        running[-1].put(NAME, {**config, **here})
        yield running
        for node in running:
            node.stop()


class Group:
    """The nodes and the topic that they copy."""

    def __init__(self, nodes: Sequence[NetworkedNode], source: LocalCluster, target: LocalCluster) -> None:
        self.nodes = nodes
        self.source = source
        self._target = target

    def leader(self) -> NetworkedNode:
        """Wait for a node whose status says that it runs the connector."""

        def running() -> NetworkedNode | None:
            return next((node for node in self.nodes if is_run_by(self.nodes[0], [node])), None)

        return await_value(running, WAIT_S, self._said)

    def await_flow(self) -> None:
        """Wait for further copied records."""
        await_value(lambda: COPIED in topics(self._target), WAIT_S, self._said)
        before = self._copied()
        await_value(lambda: self._copied() > before, WAIT_S, self._said)

    def await_taken_over(self, lost: NetworkedNode) -> None:
        """Wait until another node runs the connector and records arrive."""
        others = [node for node in self.nodes if node is not lost]
        await_value(lambda: is_run_by(others[0], others), WAIT_S, self._said)
        self.await_flow()

    @contextmanager
    def copying_exactly_once(self) -> Iterator[None]:
        """Write records during the block; after it each must have been copied once."""
        with flowing(self.source, TOPIC, rate=RATE, partitions=2):
            self.await_flow()
            yield
        expected = Counter(keyed(self.source, TOPIC))
        await_value(lambda: self._copied() >= expected.total(), WAIT_S, self._said)
        assert Counter(keyed(self._target, COPIED)) == expected

    def _copied(self) -> int:
        return sum(end_offsets(self._target, [COPIED]).values())

    def _said(self) -> str:
        return "\n".join(f"{node.worker_id}:\n{node.log_text()}" for node in self.nodes)


@pytest.fixture
def group(
    nodes: Sequence[NetworkedNode], source_cluster: LocalCluster, target_cluster: LocalCluster
) -> Group:
    return Group(nodes, source_cluster, target_cluster)


def is_run_by(asked: NetworkedNode, nodes: Sequence[NetworkedNode]) -> bool:
    """Whether the connector and its tasks run on one of these nodes."""
    answer = asked.ask("GET", f"/connectors/{NAME}/status")
    if answer.status != 200 or not answer.body["tasks"]:
        return False
    parts = [answer.body["connector"], *answer.body["tasks"]]
    workers = {node.worker_id for node in nodes}
    return all(part["state"] == "RUNNING" and part["worker_id"] in workers for part in parts)


def test_every_node_shows_what_the_leader_knows(group: Group) -> None:
    group.leader()
    with flowing(group.source, TOPIC, rate=RATE, partitions=2):
        group.await_flow()

    def words(node: NetworkedNode) -> list[str]:
        answer = node.ask("GET", "/mirror?flow=na-%3Enb")
        return [flow["state"]["word"] for flow in answer.body.get("flows", [])]

    for node in group.nodes:
        await_value(lambda node=node: words(node) == ["caught up"], WAIT_S, node.log_text)  # type: ignore[misc]
        assert len(node.ask("GET", "/mirror").body["nodes"]) == len(group.nodes)
        with urlopen(f"{node.url}/ui/flow?flow=na-%3Enb", timeout=30) as response:
            assert f">{TOPIC}<" in response.read().decode()


def test_connectors_move_to_another_node_on_an_orderly_stop(group: Group) -> None:
    with group.copying_exactly_once():
        leader = group.leader()
        leader.stop()
        group.await_taken_over(leader)
        leader.start()
        leader.await_answers()


def kill(node: NetworkedNode) -> None:
    Mirror.close(node)


def freeze(node: NetworkedNode) -> None:
    """Freeze all processes of the node, which leaves its connections open."""
    for process in node.processes():
        process.send_signal(signal.SIGSTOP)


def unfreeze(node: NetworkedNode) -> None:
    for process in node.processes():
        process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize(
    ("break_node", "restore_node"),
    [
        (kill, NetworkedNode.start),
        (freeze, unfreeze),
        (NetworkedNode.cut_off, NetworkedNode.connect_again),
    ],
)
def test_lost_leader_is_replaced(
    break_node: Callable[[NetworkedNode], None], restore_node: Callable[[NetworkedNode], None], group: Group
) -> None:
    with group.copying_exactly_once():
        lost = group.leader()
        break_node(lost)
        others = [node for node in group.nodes if node is not lost]
        for node in others:
            assert node.ask("GET", "/connectors").body == [NAME]
        # A change gets a response too before the lost node is back, whichever node leads.
        assert others[0].ask("PUT", f"/connectors/{NAME}/resume").status in {202, 409, 500}
        group.await_taken_over(lost)
        restore_node(lost)
        lost.await_answers()
        # The former leader has stopped the connector.
        await_value(lambda: not is_run_by(lost, [lost]), WAIT_S, lost.log_text)
