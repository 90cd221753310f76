"""The herder: requests that every node serves, and changes that only the leader makes."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

import pytest

from sparkmirror.config.properties import Properties
from sparkmirror.connect.connector_factory import ConnectorFactory, Prepared
from sparkmirror.connect.herder import Herder, NodeTopics
from sparkmirror.connect.leader import Leader
from sparkmirror.connect.validation.values import Given
from sparkmirror.connect.worker_file import worker_file
from sparkmirror.domain.connect import (
    ConnectError,
    ConnectorConfig,
    ConnectorInfo,
    NotLeaderError,
    State,
    Status,
    TargetState,
)
from sparkmirror.domain.errors import ConfigError, DisconnectedError
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.domain.leader_election import NOT_A_MEMBER, Membership
from sparkmirror.plan.flow_plan import FlowPlan
from tests.unit.connect.connect_memory import NOWHERE, Run, config_topic, status_topic

NAME = "beats"
WAIT_S = 30.0
CONFIG = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
}
WORKER = {
    "bootstrap.servers": "b:9092",
    "group.id": "g",
    "config.storage.topic": "configs",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "statuses",
    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
}
LEADER = Membership(1, "me", is_leader=True, leader_url="http://me:8083/", members=("http://me:8083/",))
FOLLOWER = Membership(1, "me", is_leader=False, leader_url="http://you:8083/", members=())


class Factory(ConnectorFactory):
    """Makes runs in memory; refuses the alias `nobody`, and does not reach `away`."""

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def given(self, config: Mapping[str, str | None]) -> Given:
        return Given(config, {})

    def prepared(self, connector: Mapping[str, str]) -> Prepared:
        if connector["source.cluster.alias"] == "nobody":
            raise ConfigError("source.cluster.alias", "nobody", "is not there")
        self.runs.append(Run(dict(connector)))
        return lambda: self.runs[-1]

    def plan(self, config: ConnectorConfig) -> FlowPlan:
        if config["source.cluster.alias"] == "away":
            raise DisconnectedError("away:9092 does not answer")
        self.prepared(config)
        return FlowPlan(Flow(Alias(config["source.cluster.alias"]), Alias("B")), None)


class Node:
    """A herder over topics in memory."""

    def __init__(self) -> None:
        self.membership = LEADER
        self.configs = config_topic()
        self.statuses, _ = status_topic()
        factory = Factory()
        self.runs = factory.runs
        self.leader = Leader(
            factory.prepared, self.configs, self.statuses, "me:8083", lambda: True, tracks_topics=True
        )
        self.herder = Herder(
            worker_file(Properties(WORKER), {}),
            NOWHERE,
            NodeTopics(self.configs, self.statuses, "offsets"),
            self.leader,
            lambda: self.membership,
            factory,
        )
        self.herder.cluster_id = "cluster"


@pytest.fixture
def node() -> Node:
    return Node()


def refused(action: Callable[[], object]) -> tuple[HTTPStatus, str]:
    with pytest.raises(ConnectError) as caught:
        action()
    return caught.value.status, str(caught.value)


def test_requests_fail_before_the_topics_are_read(node: Node) -> None:
    node.herder.cluster_id = None
    assert not node.herder.health().started
    assert refused(node.herder.connectors)[0] == HTTPStatus.SERVICE_UNAVAILABLE


@pytest.mark.parametrize(("membership", "healthy"), [(LEADER, True), (FOLLOWER, True), (NOT_A_MEMBER, False)])
def test_a_node_is_healthy_while_there_is_a_leader(node: Node, membership: Membership, healthy: bool) -> None:
    node.membership = membership
    assert node.herder.health().healthy is healthy


def test_a_created_connector_is_visible_at_once(node: Node) -> None:
    info = node.herder.create(NAME, CONFIG, TargetState.PAUSED)
    assert info == ConnectorInfo(NAME, {**CONFIG, "name": NAME}, 0)
    assert node.herder.connectors() == [NAME]
    assert node.configs.configs.target_states[NAME] is TargetState.PAUSED
    assert refused(lambda: node.herder.create(NAME, CONFIG, None)) == (
        HTTPStatus.CONFLICT,
        f"Connector {NAME} already exists",
    )


def test_two_policies_of_one_flow_are_named_in_log_and_plan(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    package = "org.apache.kafka.connect.mirror."
    source = {**CONFIG, "connector.class": f"{package}MirrorSourceConnector"}
    source["replication.policy.class"] = f"{package}IdentityReplicationPolicy"
    checkpoint = {**CONFIG, "connector.class": f"{package}MirrorCheckpointConnector"}
    said = (
        f"A->B: replication.policy.class is {package}IdentityReplicationPolicy for its "
        f"MirrorSourceConnector and "
        f"{package}DefaultReplicationPolicy for its MirrorCheckpointConnector: where each has its "
        f"own, groups get "
        "no offsets: the copy of orders is orders, and they are translated to A.orders"
    )
    node.herder.put("msc", source)
    node.herder.put("another", {**checkpoint, "source.cluster.alias": "C"})
    assert said not in caplog.text
    node.herder.put("cpc", checkpoint)
    assert f"cpc: {said}" in caplog.text
    assert [each["text"] for each in node.herder.plan("msc")["findings"]] == [said]
    node.herder.put("cpc", {**checkpoint, "replication.policy.class": source["replication.policy.class"]})
    assert node.herder.plan("msc")["findings"] == []


def test_put_returns_whether_it_created(node: Node) -> None:
    assert node.herder.put(NAME, CONFIG)[0]
    created, info = node.herder.put(NAME, {**CONFIG, "emit.heartbeats.interval.seconds": "5"})
    assert not created
    assert info.config["emit.heartbeats.interval.seconds"] == "5"


def test_patch_changes_and_removes(node: Node) -> None:
    node.herder.put(NAME, {**CONFIG, "tasks.max": "2"})
    info = node.herder.patch(NAME, {"tasks.max": None, "emit.heartbeats.interval.seconds": "7"})
    assert info.config == {**CONFIG, "name": NAME, "emit.heartbeats.interval.seconds": "7"}


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"emit.heartbeats.interval.seconds": "often"}, "emit.heartbeats.interval.seconds"),
        ({"source.cluster.alias": "nobody"}, "source.cluster.alias"),
    ],
    ids=["by its definition", "when it would be made"],
)
def test_an_unusable_config_changes_nothing(node: Node, changes: dict[str, str], key: str) -> None:
    status, message = refused(lambda: node.herder.put(NAME, {**CONFIG, **changes}))
    assert status == HTTPStatus.BAD_REQUEST
    assert "contains the following 1 error(s)" in message
    assert key in message
    assert node.herder.connectors() == []


@pytest.mark.parametrize(
    "action",
    [
        lambda herder: herder.create(NAME, CONFIG, None),
        lambda herder: herder.put(NAME, CONFIG),
        lambda herder: herder.patch(NAME, {}),
        lambda herder: herder.delete(NAME),
        lambda herder: herder.change_state(NAME, TargetState.PAUSED),
        lambda herder: herder.restart(NAME, include_tasks=False, only_failed=False),
        lambda herder: herder.restart_task(NAME, 0),
        lambda herder: herder.reset_active_topics(NAME),
        lambda herder: herder.alter_offsets(NAME, []),
        lambda herder: herder.reset_offsets(NAME),
    ],
)
def test_changes_on_a_follower_raise_not_leader(node: Node, action: Callable[[Herder], object]) -> None:
    node.herder.put(NAME, CONFIG)
    node.membership = FOLLOWER
    with pytest.raises(NotLeaderError) as caught:
        action(node.herder)
    assert caught.value.leader_url == "http://you:8083/"
    assert node.herder.connectors() == [NAME]


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda herder: herder.info("x"), "Connector x not found"),
        (lambda herder: herder.task_configs("x"), "Connector x not found"),
        (lambda herder: herder.offsets("x"), "Connector x not found"),
        (lambda herder: herder.patch("x", {}), "Connector x not found"),
        (lambda herder: herder.delete("x"), "Connector x not found"),
        (lambda herder: herder.status("x"), "No status found for connector x"),
        (lambda herder: herder.task_status("x", 3), "No status found for task x-3"),
        (lambda herder: herder.change_state("x", TargetState.PAUSED), "Unknown connector x"),
        (lambda herder: herder.restart_task("x", 0), "Unknown connector: x"),
        (lambda herder: herder.restart_task(NAME, 9), f"Unknown task: {NAME}-9"),
    ],
)
def test_unknown_names_are_errors_with_connects_message(
    node: Node, action: Callable[[Herder], object], message: str
) -> None:
    node.herder.put(NAME, CONFIG)
    assert refused(lambda: action(node.herder)) == (HTTPStatus.NOT_FOUND, message)


@pytest.mark.parametrize("state", [TargetState.RUNNING, TargetState.PAUSED])
def test_offsets_change_only_when_the_connector_is_stopped(node: Node, state: TargetState) -> None:
    node.herder.create(NAME, CONFIG, state)
    status, message = refused(lambda: node.herder.alter_offsets(NAME, []))
    assert status == HTTPStatus.BAD_REQUEST
    assert message.startswith("Connectors must be in the STOPPED state")


def stop_and_alter(node: Node) -> None:
    node.herder.change_state(NAME, TargetState.STOPPED)
    node.herder.alter_offsets(NAME, [])


def test_offsets_wait_until_a_requested_stop_has_ended(node: Node) -> None:
    node.herder.put(NAME, CONFIG)
    node.leader.reconcile(1)
    with ThreadPoolExecutor(1) as pool:
        altered = pool.submit(stop_and_alter, node)
        with pytest.raises(TimeoutError):
            altered.result(0.1)
        node.leader.reconcile(1)
        altered.result(WAIT_S)


def running_with_tasks(node: Node) -> None:
    node.leader.reconcile(1)


def running_before_its_tasks_are_known(node: Node) -> None:
    node.leader.reconcile(1)
    node.configs.put_task_configs(NAME, [])


def tasks_of_a_leader_that_is_gone(node: Node) -> None:
    node.configs.put_task_configs(NAME, [{}])


@pytest.mark.parametrize(
    "before", [running_with_tasks, running_before_its_tasks_are_known, tasks_of_a_leader_that_is_gone]
)
def test_a_stop_that_takes_too_long_is_a_conflict(node: Node, before: Callable[[Node], None]) -> None:
    node.herder.stopped_within_s = 0.05
    node.herder.put(NAME, CONFIG)
    before(node)
    assert refused(lambda: stop_and_alter(node)) == (
        HTTPStatus.CONFLICT,
        f"Connector {NAME} is still being stopped; try again later",
    )


def test_other_changes_do_not_wait_for_a_stop(node: Node) -> None:
    node.herder.put(NAME, CONFIG)
    node.leader.reconcile(1)
    with ThreadPoolExecutor(1) as pool:
        altered = pool.submit(stop_and_alter, node)
        with pytest.raises(TimeoutError):
            altered.result(0.1)
        node.herder.change_state(NAME, TargetState.RUNNING)
        assert refused(lambda: altered.result(WAIT_S))[0] == HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize(
    ("include_tasks", "only_failed", "connector", "task", "starts_over"),
    [
        (False, False, State.RESTARTING, State.FAILED, True),
        (True, True, State.RUNNING, State.RESTARTING, True),
        (True, False, State.RESTARTING, State.RESTARTING, True),
        (False, True, State.RUNNING, State.FAILED, False),
    ],
)
def test_a_restart_follows_its_flags(
    node: Node, include_tasks: bool, only_failed: bool, connector: State, task: State, starts_over: bool
) -> None:
    node.herder.put(NAME, CONFIG)
    node.leader.reconcile(1)
    node.statuses.put_task(NAME, 0, Status(State.FAILED, "me:8083", 1, "why"))
    meant = node.herder.restart(NAME, include_tasks=include_tasks, only_failed=only_failed)
    assert (meant.connector.state, meant.tasks[0].state) == (connector, task)
    node.leader.reconcile(1)
    assert len(node.runs) == (2 if starts_over else 1)


@pytest.mark.parametrize(
    ("source", "status", "words"),
    [
        ("nobody", HTTPStatus.BAD_REQUEST, "Connector beats has no plan: Invalid value nobody for"),
        ("away", HTTPStatus.INTERNAL_SERVER_ERROR, "away:9092 does not answer"),
    ],
)
def test_a_connector_without_a_plan_is_an_error_with_the_reason(
    node: Node, source: str, status: HTTPStatus, words: str
) -> None:
    node.configs.put_connector(NAME, {**CONFIG, "source.cluster.alias": source})
    with pytest.raises(ConnectError, match=words) as refused:
        node.herder.plan(NAME)
    assert refused.value.status is status


def test_the_leader_plans(node: Node) -> None:
    with pytest.raises(ConnectError, match="Connector beats not found"):
        node.herder.plan(NAME)
    node.herder.create(NAME, CONFIG, None)
    assert node.herder.plan(NAME)["source"] == "A"
    node.membership = FOLLOWER
    with pytest.raises(NotLeaderError):
        node.herder.plan(NAME)
