"""The blocking client of a cluster, with connections of the tests."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from kafka.protocol.metadata import FindCoordinatorResponse, MetadataResponse

from sparkmirror.domain.client_settings import ConnectionSettings, Network
from sparkmirror.domain.errors import DisconnectedError, KafkaError, RetriableError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.known_brokers import Address
from sparkmirror.kafka.cluster import Cluster, CoordinatorKind, Role
from sparkmirror.kafka.net.connection import Connection, VersionRange
from sparkmirror.kafka.net.transport import SocketNetwork
from sparkmirror.kafka.wire.error_codes import LEADER_NOT_AVAILABLE, NOT_COORDINATOR

Broker = MetadataResponse.MetadataResponseBroker
Topic = MetadataResponse.MetadataResponseTopic
Partition = Topic.MetadataResponsePartition
ORDERS = [TopicPartition("orders", number) for number in range(3)]


class FakeConnection(Connection):
    def __init__(self, brokers: "FakeBrokers", address: Address) -> None:
        self.address = f"{address[0]}:{address[1]}"
        self.host = address[0]
        self.is_broken = False
        self.versions = {10: VersionRange(0, brokers.find_coordinator_max)}
        self._brokers = brokers

    def request(self, request: Any, *_: object, **__: object) -> Any:
        if self.is_broken:
            raise DisconnectedError(f"{self.address} closed the connection")
        self._brokers.requests.append((self.host, request.name))
        return self._brokers.responses[request.name](request)

    def close(self) -> None: ...


@dataclass
class FakeBrokers:
    """Brokers b0, b1 …; `hanging` ones accept no connection. Partition N of orders is led by broker N."""

    count: int = 3
    controller: int = 1
    hanging: set[str] = field(default_factory=set)
    find_coordinator_max: int = 6
    opened: list[FakeConnection] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)

    def open(self, address: Address, settings: ConnectionSettings) -> FakeConnection:
        self.limits.append(min(settings.connect_timeout_s, settings.request_timeout_s))
        if address[0] in self.hanging:
            raise DisconnectedError(f"{address[0]}:{address[1]} did not answer in time")
        connection = FakeConnection(self, address)
        self.opened.append(connection)
        return connection

    @property
    def responses(self) -> dict[str, Callable[[Any], Any]]:
        return {"MetadataRequest": self._metadata, "FindCoordinatorRequest": self._coordinators}

    def _metadata(self, request: Any) -> Any:
        partitions = [
            Partition(error_code=0, partition_index=number, leader_id=number, leader_epoch=1)
            for number in range(self.count)
        ]
        return MetadataResponse(
            version=12,
            brokers=[Broker(node_id=n, host=f"b{n}", port=9092, rack=None) for n in range(self.count)],
            cluster_id="id",
            controller_id=self.controller,
            topics=[Topic(error_code=0, name=topic.name, partitions=partitions) for topic in request.topics],
        )

    def _coordinators(self, request: Any) -> Any:
        keys = request.coordinator_keys or [request.key]
        found = [
            FindCoordinatorResponse.Coordinator(
                key=key, node_id=1, host="b1", port=9092, error_code=0, error_message=None
            )
            for key in keys
        ]
        return FindCoordinatorResponse(
            version=6 if request.coordinator_keys else 2,
            coordinators=found,
            error_code=0,
            error_message=None,
            host="b1",
            port=9092,
        )


@pytest.fixture
def brokers() -> FakeBrokers:
    return FakeBrokers()


def client(brokers: FakeBrokers, count: int = 3, network: Network | None = None) -> Cluster:
    """A client with so many bootstrap servers; it shares what it knows with those of the same network."""
    servers = tuple((f"b{number}", 9092) for number in range(count))
    settings = ConnectionSettings(servers, alias="B", network=network or SocketNetwork())
    return Cluster(settings, open_connection=brokers.open)


def host_of(connection: Connection) -> str:
    return connection.address.partition(":")[0]


def test_hung_broker_is_given_up_after_the_connect_timeout_and_tried_last_then(brokers: FakeBrokers) -> None:
    brokers.hanging = {"b0"}
    cluster = client(brokers)
    assert cluster.ask("greet", host_of) == "b1"
    assert set(brokers.limits) == {10.0}, "the bound of any other connection"
    cluster.close()
    del brokers.limits[:]
    assert cluster.ask("greet", host_of) == "b1"
    assert len(brokers.limits) == 1, "the hung broker was tried first again"


def test_cluster_whose_bootstrap_servers_are_gone_is_found_by_its_other_brokers(brokers: FakeBrokers) -> None:
    """KIP-899: by any client in the process that has the same bootstrap servers."""
    network = SocketNetwork()
    client(brokers, 1, network).brokers("describe")
    brokers.hanging = {"b0"}
    assert client(brokers, 1, network).ask("greet", host_of) in {"b1", "b2"}
    with pytest.raises(DisconnectedError, match="greet on B: b0:9092 did not answer"):
        client(brokers, 1, SocketNetwork()).ask("greet", host_of)


def test_each_unreachable_address_is_named(brokers: FakeBrokers) -> None:
    brokers.hanging = {"b0", "b1"}
    with pytest.raises(DisconnectedError) as error:
        client(brokers, 2).ask("list topics", host_of)
    assert str(error.value).startswith("list topics on B: b0:")
    assert "; b1:" in str(error.value)


def test_broken_connection_is_replaced_once(brokers: FakeBrokers) -> None:
    cluster = client(brokers)
    cluster.brokers("describe")
    brokers.opened[0].is_broken = True
    assert len(cluster.brokers("describe")) == 3
    assert len(brokers.opened) == 2
    brokers.opened[1].is_broken = True
    brokers.hanging = {"b0", "b1", "b2"}
    with pytest.raises(DisconnectedError, match="describe on B: "):
        cluster.brokers("describe")


def test_controller_that_left_is_not_asked_again(brokers: FakeBrokers) -> None:
    cluster = client(brokers)
    assert cluster.ask("create topics", host_of, Role.CONTROLLER) == "b1"
    brokers.controller = 2
    assert cluster.ask("create topics", host_of, Role.CONTROLLER) == "b2"
    brokers.controller = -1
    with pytest.raises(RetriableError, match="create topics on B: the cluster has no controller"):
        cluster.ask("create topics", host_of, Role.CONTROLLER)


def test_another_broker_is_asked_where_the_controller_can_t_be_reached(brokers: FakeBrokers) -> None:
    """Under KRaft the one that is named as controller is any broker, and each forwards to the controller."""
    brokers.hanging = {"b1"}
    cluster = client(brokers)
    assert cluster.ask("create topics", host_of, Role.CONTROLLER) == "b0"
    brokers.hanging = {"b0", "b1", "b2"}
    cluster.forget()
    with pytest.raises(DisconnectedError):
        cluster.ask("create topics", host_of, Role.CONTROLLER)


def test_each_leader_is_asked_once_for_its_partitions(brokers: FakeBrokers) -> None:
    brokers.count = 2

    def ask(connection: Connection, led: Any) -> dict[TopicPartition, str]:
        return dict.fromkeys(led, host_of(connection))

    cluster = client(brokers)
    results = cluster.ask_leaders(ORDERS, ask)
    assert [results[partition] for partition in ORDERS[:2]] == ["b0", "b1"]
    missing = results[ORDERS[2]]
    assert isinstance(missing, KafkaError)
    assert (missing.code, str(missing)) == (LEADER_NOT_AVAILABLE, "orders-2 on B: LEADER_NOT_AVAILABLE")


def test_leader_that_fails_keeps_no_other_back_and_is_looked_up_again(brokers: FakeBrokers) -> None:
    def ask(connection: Connection, led: Any) -> dict[TopicPartition, str]:
        if host_of(connection) == "b1":
            raise DisconnectedError("b1 closed the connection")
        return dict.fromkeys(led, host_of(connection))

    cluster = client(brokers)
    results = cluster.ask_leaders(ORDERS, ask)
    assert [isinstance(results[partition], KafkaError) for partition in ORDERS] == [False, True, False]
    cluster.ask_leaders(ORDERS[:1], ask)
    assert [name for _, name in brokers.requests] == ["MetadataRequest"] * 2


@pytest.mark.parametrize(("version", "requests"), [(6, 2), (3, 600)])
def test_coordinators_are_found_in_few_requests(brokers: FakeBrokers, version: int, requests: int) -> None:
    brokers.find_coordinator_max = version
    keys = [f"group-{number}" for number in range(600)]
    found = dict(client(brokers).coordinators(CoordinatorKind.GROUP, keys))
    assert list(found) == keys
    assert {coordinator.address for coordinator in found.values()} == {("b1", 9092)}
    assert len(brokers.requests) == requests


def test_error_names_action_cluster_and_reason() -> None:
    error = Cluster(ConnectionSettings((("b", 1),), alias="B")).error(NOT_COORDINATOR, "read g", message="m")
    assert str(error) == "read g on B: NOT_COORDINATOR (m)"
    assert error.retriable
