"""Several nodes of one Connect group: any of them may be lost, under load, and the others go on."""

import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from sparkmirror.clusters import LocalCluster
from tests.flowing import flowing
from tests.system.broker_data import end_offsets, keyed, topics
from tests.system.connect_node import SOURCE, ConnectNode, connector_config, group_properties, running_nodes
from tests.system.mirror import Mirror, await_value
from tests.system.mixed_data import create_topic

TOPIC = "nodes.orders"
COPIED = f"na.{TOPIC}"
NAME = "mm2-msc"
RATE = 500
WAIT_S = 90.0


@pytest.fixture(scope="module")
def nodes(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sequence[ConnectNode]]:
    """Three nodes, one of which mirrors the topic."""
    create_topic(source_cluster.bootstrap_servers, TOPIC, partitions=2)
    properties = {
        **group_properties(target_cluster, "nodes"),
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
    }
    with running_nodes(tmp_path_factory.mktemp("nodes"), properties, 3) as started:
        for node in started:
            node.await_answers()
        config = connector_config(
            SOURCE,
            ("na", source_cluster),
            ("nb", target_cluster),
            topics=TOPIC,
            heartbeats_replication_enabled="false",
        )
        started[-1].put(NAME, config)
        yield started
        for node in started:
            node.stop()


class Group:
    """The nodes, and what they copy."""

    def __init__(self, nodes: Sequence[ConnectNode], source: LocalCluster, target: LocalCluster) -> None:
        self.nodes = nodes
        self._source = source
        self._target = target

    def leader(self) -> ConnectNode:
        """The one that is said to run the connector, when it does."""

        def running() -> ConnectNode | None:
            return next((node for node in self.nodes if is_run_by(self.nodes[0], [node])), None)

        return await_value(running, WAIT_S, self._said)

    def await_flow(self) -> None:
        """Until more is copied than now."""
        await_value(lambda: COPIED in topics(self._target), WAIT_S, self._said)
        before = self._copied()
        await_value(lambda: self._copied() > before, WAIT_S, self._said)

    def await_taken_over(self, lost: ConnectNode) -> None:
        """Until another one says that it runs the connector, and records arrive."""
        others = [node for node in self.nodes if node is not lost]
        await_value(lambda: is_run_by(others[0], others), WAIT_S, self._said)
        self.await_flow()

    @contextmanager
    def exact(self) -> Iterator[None]:
        """Records flow during the block; after it each has been copied, and none twice."""
        with flowing(self._source, TOPIC, rate=RATE, partitions=2):
            self.await_flow()
            yield
        expected = Counter(keyed(self._source, TOPIC))
        await_value(lambda: self._copied() >= expected.total(), WAIT_S, self._said)
        assert Counter(keyed(self._target, COPIED)) == expected

    def _copied(self) -> int:
        return sum(end_offsets(self._target, [COPIED]).values())

    def _said(self) -> str:
        return "\n".join(f"{node.worker_id}:\n{node.log_text()}" for node in self.nodes)


@pytest.fixture
def group(nodes: Sequence[ConnectNode], source_cluster: LocalCluster, target_cluster: LocalCluster) -> Group:
    return Group(nodes, source_cluster, target_cluster)


def is_run_by(asked: ConnectNode, nodes: Sequence[ConnectNode]) -> bool:
    """Whether the connector and its task run on one of these."""
    answer = asked.ask("GET", f"/connectors/{NAME}/status")
    if answer.status != 200 or not answer.body["tasks"]:
        return False
    parts = [answer.body["connector"], *answer.body["tasks"]]
    workers = {node.worker_id for node in nodes}
    return all(part["state"] == "RUNNING" and part["worker_id"] in workers for part in parts)


def test_a_node_that_stops_in_order_hands_over(group: Group) -> None:
    with group.exact():
        leader = group.leader()
        leader.stop()
        group.await_taken_over(leader)
        leader.start()
        leader.await_answers()


def kill(node: ConnectNode) -> None:
    Mirror.close(node)


def freeze(node: ConnectNode) -> None:
    """As a machine does that hangs: nothing of it runs any more, and no connection is closed."""
    for process in node.processes():
        process.send_signal(signal.SIGSTOP)


def start_again(node: ConnectNode) -> None:
    node.start()


def thaw(node: ConnectNode) -> None:
    for process in node.processes():
        process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize(("strike", "heal"), [(kill, start_again), (freeze, thaw)])
def test_others_take_over_what_a_lost_leader_did(
    strike: Callable[[ConnectNode], None], heal: Callable[[ConnectNode], None], group: Group
) -> None:
    with group.exact():
        lost = group.leader()
        strike(lost)
        for node in group.nodes:
            if node is not lost:
                assert node.ask("GET", "/connectors").body == [NAME]
        group.await_taken_over(lost)
        heal(lost)
        lost.await_answers()
        # It knows that another one leads.
        await_value(lambda: not is_run_by(lost, [lost]), WAIT_S, lost.log_text)
