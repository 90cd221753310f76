"""Asks any broker of a cluster, its controller, the leaders of partitions and coordinators; blocks.

Everything but the data of the mirrored topics goes through `Cluster`: it finds the broker, connects, sends
the request, and sends it again over a new connection when the old one was lost. Errors name the cluster.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from enum import Enum, IntEnum, auto
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import (
    AuthenticationError,
    ClusterChangedError,
    DisconnectedError,
    KafkaError,
    RetriableError,
    SparkmirrorError,
)
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.known_brokers import Address
from sparkmirror.domain.rights import Need, Right
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.net.connection_pool import ConnectionPool, Open
from sparkmirror.kafka.net.metadata import Metadata, request_metadata
from sparkmirror.kafka.net.raw_requests import Api, call
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.wire.error_codes import (
    COORDINATOR_NOT_AVAILABLE,
    LEADER_NOT_AVAILABLE,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    Needed,
    error_for,
)
from sparkmirror.kafka.wire.primitives import Reader

KEYS_PER_REQUEST: Final = 500
"""Groups asked for at once: the response for thousands of them is large, and its broker busy for a while."""

_FIND_MANY_FROM: Final = 4

_Result = TypeVar("_Result")


class Role(Enum):
    """The broker that a request is for, where its address does not matter."""

    ANY = auto()
    CONTROLLER = auto()
    """The controller. With ZooKeeper only it accepts such requests; with KRaft every broker forwards them.

    So where it can't be reached another broker is asked: with KRaft the one that is named is any broker.
    """


class CoordinatorKind(IntEnum):
    """The key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


class Coordinator(NamedTuple):
    """The coordinator of a group or a transactional id, or the error code received instead."""

    code: int
    address: Address
    message: str | None = None


Exchange = Callable[[Connection], _Result]
"""Sends a request over the connection, or several, and returns what came back."""

LeaderExchange = Callable[
    [Connection, Sequence[TopicPartition]], Mapping[TopicPartition, _Result | SparkmirrorError]
]
"""The same for partitions that one broker leads, with a result for each."""


class Cluster:
    """Sends requests over one connection per broker, opened on demand.

    Every wait is bounded. Not thread-safe.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        metadata: Metadata | None = None,
        *,
        open_connection: Open | None = None,
    ) -> None:
        """`metadata` spares a request where it has just been read; `open_connection` is the pool's."""
        self.settings = settings
        self.name = settings.cluster
        self._pool = ConnectionPool(settings, open_connection)
        self._metadata = metadata or Metadata()
        self._topics = {*self._metadata.partitions, *self._metadata.errors}
        self._is_stale = metadata is None
        self._network = network_of(settings)

    def ask(self, action: str, exchange: Exchange[_Result], to: Address | Role = Role.ANY) -> _Result:
        """Send a request like `exchange`; a KafkaError names the action and the cluster."""
        try:
            return self.exchange(exchange, to)
        except KafkaError as error:
            raise self._named(error, action) from error

    def request(
        self, action: str, request: Any, response_class: Any, to: Address | Role = Role.ANY, **options: Any
    ) -> Any:
        """The response to one of kafka-python's requests; `options` are those of `Connection.request`."""
        timeout_s = self.settings.request_timeout_s
        return self.ask(
            action,
            lambda connection: connection.request(request, response_class, timeout_s=timeout_s, **options),
            to,
        )

    def error(self, code: int, action: str, *rights: Right, message: str | None = None) -> KafkaError:
        """The error for a broker's code; an AuthorizationError explains how to grant one of the rights."""
        return error_for(code, f"{action} on {self.name}", message, Needed(self.settings, rights))

    def call(
        self,
        action: str,
        api: Api,
        encode_body: Callable[[int], bytes],
        decode: Callable[[Reader, int], _Result],
    ) -> _Result:
        """The decoded response of any broker to a request that is encoded by hand, as `raw_requests.call`."""
        timeout_s = self.settings.request_timeout_s
        return self.ask(action, lambda connection: call(connection, api, encode_body, decode, timeout_s))

    def exchange(
        self,
        exchange: Exchange[_Result],
        to: Address | Role = Role.ANY,
        *,
        timeout_s: float | None = None,
        repeats: bool = True,
    ) -> _Result:
        """The result of an exchange with a broker.

        A connection that was open before and breaks is replaced, and the exchange repeated: the broker may
        get a request twice. Not so without `repeats`, nor when one broker was asked for and has not responded
        for half of the time.
        Raises KafkaError; DisconnectedError when no broker can be reached, naming every address tried.
        """
        address = self._controller() if to is Role.CONTROLLER else None if to is Role.ANY else to
        kept, started = self._pool.kept(address), self._network.time()
        if kept is not None:
            try:
                return exchange(kept)
            except DisconnectedError:
                self._pool.drop(kept)
                half_s = (timeout_s or self.settings.request_timeout_s) / 2
                if not repeats or (address is not None and self._network.time() - started > half_s):
                    raise
            except AuthenticationError:
                self._pool.drop(kept)  # its session could not be renewed: it is closed
                raise
        try:
            connection = self.connection(address, timeout_s)
        except DisconnectedError:
            if to is not Role.CONTROLLER:
                raise
            connection = self.connection(None, timeout_s)
        try:
            return exchange(connection)
        except (DisconnectedError, AuthenticationError):
            self._pool.drop(connection)
            raise

    def connection(self, address: Address | None = None, timeout_s: float | None = None) -> Connection:
        """The connection to a broker, or to any. Raises DisconnectedError."""
        return self._pool.any(timeout_s) if address is None else self._pool.to(address, timeout_s)

    def brokers(self, action: str) -> Sequence[Address]:
        """The addresses of all brokers. Raises RetriableError when none responds, which names the action."""
        try:
            return [broker.address for broker in self._read_metadata(()).brokers.values()]
        except KafkaError as error:
            raise self._named(error, action) from error

    # leaders of partitions

    def learn(self, topics: Collection[str], timeout_s: float | None = None) -> Metadata:
        """The topics' metadata, read again after `forget`. Raises RetriableError when no broker responds."""
        if not self._topics.issuperset(topics):
            self._topics.update(topics)
            self._is_stale = True
        if self._is_stale:
            self._metadata = self._read_metadata(self._topics, timeout_s)
            self._is_stale = False
        return self._metadata

    def partitions(self, topic: str, timeout_s: float | None = None) -> Sequence[TopicPartition]:
        """A topic's partitions, with or without a leader; none for a topic that doesn't exist.

        Raises RetriableError when no broker responds, KafkaError when the topic can't be described.
        """
        metadata = self.learn([topic], timeout_s)
        code = metadata.errors.get(topic, NONE)
        if code not in (NONE, UNKNOWN_TOPIC_OR_PARTITION):
            self._is_stale = True
            raise self.error(code, topic, Need.DESCRIBE_TOPIC.of(topic))
        return [TopicPartition(topic, number) for number in range(metadata.partitions.get(topic, 0))]

    def ask_leaders(
        self,
        partitions: Collection[TopicPartition],
        exchange: LeaderExchange[_Result],
        timeout_s: float | None = None,
        *,
        repeats: bool = True,
    ) -> Mapping[TopicPartition, _Result | SparkmirrorError]:
        """The results of one exchange with each leader; an error for partitions that could not be asked for.

        `timeout_s` bounds each step on the way; `repeats` is that of `exchange`. After an error the next call
        looks the leaders up again.
        Raises RetriableError when no broker responds.
        """
        metadata = self.learn({partition.topic for partition in partitions}, timeout_s)
        results: dict[TopicPartition, _Result | SparkmirrorError] = {}
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            leader = metadata.leaders.get(partition)
            if leader is None:
                code = metadata.errors.get(partition.topic, LEADER_NOT_AVAILABLE)
                right = Need.DESCRIBE_TOPIC.of(partition.topic)
                results[partition] = self.error(code, str(partition), right)
            else:
                by_leader.setdefault(leader.node_id, []).append(partition)
        for node_id, led in by_leader.items():
            results.update(
                self._ask_leader(metadata.brokers[node_id].address, led, exchange, timeout_s, repeats=repeats)
            )
        if any(isinstance(result, SparkmirrorError) for result in results.values()):
            self.forget()
        return results

    def forget(self) -> None:
        """Close the connections, and read metadata again before the next use.

        Another broker is asked then: one that is cut off from its controller knows only former leaders.
        """
        self._pool.close()
        self._is_stale = True

    # coordinators

    def coordinators(
        self, kind: CoordinatorKind, keys: Collection[str], timeout_s: float | None = None
    ) -> Iterator[tuple[str, Coordinator]]:
        """Find each key's coordinator, in as few requests as any broker allows (KIP-699).

        Raises KafkaError.
        """
        limit_s, left = timeout_s or self.settings.request_timeout_s, list(keys)
        while left:
            find = partial(_find, kind=kind, keys=left, timeout_s=limit_s)
            asked, found = self.exchange(find, timeout_s=limit_s)
            left = left[asked:]
            yield from found

    def coordinator(self, kind: CoordinatorKind, key: str, timeout_s: float | None = None) -> Coordinator:
        """Find the coordinator of one key; see `coordinators`."""
        ((_, found),) = self.coordinators(kind, [key], timeout_s)
        return found

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self._pool.close()

    def _named(self, error: KafkaError, action: str) -> KafkaError:
        if isinstance(error, ClusterChangedError):  # which says everything
            return error
        return type(error)(f"{action} on {self.name}: {error}", error.code)

    def _ask_leader(
        self,
        address: Address,
        partitions: Sequence[TopicPartition],
        exchange: LeaderExchange[_Result],
        timeout_s: float | None,
        *,
        repeats: bool,
    ) -> Mapping[TopicPartition, _Result | SparkmirrorError]:
        try:
            return self.exchange(
                lambda connection: exchange(connection, partitions),
                address,
                timeout_s=timeout_s,
                repeats=repeats,
            )
        except SparkmirrorError as error:
            return dict.fromkeys(partitions, error)

    def _controller(self) -> Address:
        metadata = self._read_metadata(())
        if metadata.controller_id not in metadata.brokers:
            raise RetriableError("the cluster has no controller for the moment")
        return metadata.brokers[metadata.controller_id].address

    def _read_metadata(self, topics: Collection[str], timeout_s: float | None = None) -> Metadata:
        limit_s = min(timeout_s or self.settings.request_timeout_s, self.settings.request_timeout_s)
        metadata = self.exchange(
            lambda connection: request_metadata(connection, topics, limit_s), timeout_s=limit_s
        )
        if not metadata.brokers:
            # A broker that its controller has missed for a while responds so. The next one may know more.
            address = self.connection().address
            self.forget()
            raise RetriableError(f"{address} knows of no broker that is alive, itself included")
        self._pool.note_brokers([broker.address for broker in metadata.brokers.values()])
        return metadata


def _find(
    connection: Connection, kind: CoordinatorKind, keys: Sequence[str], timeout_s: float
) -> tuple[int, list[tuple[str, Coordinator]]]:
    """Coordinators of the first keys, as many as one request may name; also how many those are."""
    offered = connection.versions.get(FindCoordinatorRequest.API_KEY)
    if offered is None or offered.high < _FIND_MANY_FROM:
        request = FindCoordinatorRequest(key=keys[0], key_type=kind)
        found = connection.request(request, FindCoordinatorResponse, timeout_s=timeout_s)
        return 1, [(keys[0], _coordinator(found))]
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys[:KEYS_PER_REQUEST]))
    response = connection.request(request, FindCoordinatorResponse, timeout_s=timeout_s)
    return KEYS_PER_REQUEST, [(found.key, _coordinator(found)) for found in response.coordinators]


def _coordinator(found: Any) -> Coordinator:
    code = found.error_code or (NONE if found.host else COORDINATOR_NOT_AVAILABLE)
    return Coordinator(code, (found.host, found.port), found.error_message)


def read_metadata(settings: ConnectionSettings, topics: Collection[str]) -> Metadata:
    """The metadata of these topics, over a connection of its own.

    Raises DisconnectedError naming every address tried, RetriableError when the broker that responds takes no
    broker for alive.
    """
    with closing(Cluster(settings)) as cluster:
        return cluster.learn(topics)
