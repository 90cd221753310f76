"""Routes partitions: finds the connection to each partition's leader, and opens connections as needed.

A broker has one connection for most partitions, and a second one for those whose followers are slow.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from enum import Enum

from sparkmirror.domain.client_settings import ConnectionSettings, ProducerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.data.cluster_view import ClusterView
from sparkmirror.kafka.data.partition_queue import PartitionQueue, Route
from sparkmirror.kafka.data.produce_connection import ProduceConnection
from sparkmirror.kafka.net.broker_link import BrokerLink, LinkOwner, Traffic, traffic
from sparkmirror.kafka.wire import error_codes
from sparkmirror.kafka.wire.primitives import NO_TOPIC_ID


class Placement(Enum):
    """The result of routing one queue."""

    POSTPONED = "postponed"
    """Something is in flight, or the metadata that decides is still to come."""
    FOUND = "found"
    """The connection to the leader is known."""
    RECREATED = "recreated"
    """The topic has another id than the one that the batches are for."""


class LeaderConnections:
    """The connections of one writer. `links` gets what happens on them, `on_change` new leaders."""

    def __init__(
        self,
        settings: ProducerSettings,
        loop: asyncio.AbstractEventLoop,
        links: LinkOwner,
        on_change: Callable[[], None],
        on_failure: Callable[[SparkmirrorError], None],
    ) -> None:
        self._settings = settings
        self._loop = loop
        self._links = links
        self._view = ClusterView(settings.connection, loop, on_change, on_failure)
        self._connections: dict[Route, ProduceConnection] = {}
        self._connection_of: dict[BrokerLink, ProduceConnection] = {}
        self._stopped = False

    def start(self, topics: Collection[str]) -> None:
        self._view.start(topics)

    def stop(self) -> None:
        self._stopped = True
        self._view.stop()
        for connection in self._connections.values():
            connection.link.close()
        self._connections.clear()

    @property
    def traffic(self) -> Traffic:
        return traffic(connection.link for connection in self._connections.values())

    @property
    def all(self) -> Collection[ProduceConnection]:
        return self._connections.values()

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return not any(connection.requests for connection in self._connections.values())

    def of_link(self, link: BrokerLink) -> ProduceConnection:
        return self._connection_of[link]

    def of_queue(self, queue: PartitionQueue) -> ProduceConnection | None:
        return None if queue.route is None else self._connections.get(queue.route)

    def offer(self, queue: PartitionQueue) -> None:
        """Let its connection send what is ready, now or later."""
        if queue.ready and queue.route is not None:
            self._connections[queue.route].ready[queue] = None

    def negotiate(self, link: BrokerLink, *, transactional: bool) -> ProduceConnection:
        """The connection of a link that is open. Raises UnsupportedVersionError."""
        connection = self._connection_of[link]
        connection.negotiate(by_id=self._view.has_topic_ids, transactional=transactional)
        return connection

    def place(self, queue: PartitionQueue) -> Placement | SparkmirrorError:
        """Find the connection where the queue sends from now on; an error while there is no leader."""
        if self._stopped or not queue.can_move or not self._view.is_known:
            return Placement.POSTPONED
        topic, leader = queue.partition.topic, self._view.leader(queue.partition)
        if leader is None:
            self._move(queue, None)
            self._view.refresh()
            return self._no_leader(queue.partition)
        if queue.producer is not None:
            replaced = self._view.is_recreated(topic, queue.topic_id, queue.numbered_at)
            if replaced is not False:
                return Placement.RECREATED if replaced else Placement.POSTPONED
        self._move(queue, Route(leader.node_id, queue.is_slow))
        return Placement.FOUND

    def refresh(self) -> None:
        """Ask for the leaders again."""
        self._view.refresh()

    def update_brokers(self) -> None:
        """Connect to the addresses that brokers have now, from the next connection on."""
        for route, connection in self._connections.items():
            connection.link.broker = self._view.broker(route.node_id) or connection.link.broker

    def with_new_leaders(self, queues: Iterable[PartitionQueue]) -> list[TopicPartition]:
        """Partitions with another leader, or another election, than when this was asked before."""
        return [
            queue.partition for queue in queues if queue.has_new_leader(self._view.leader(queue.partition))
        ]

    def _move(self, queue: PartitionQueue, route: Route | None) -> None:
        if queue.route is not None and queue.route != route:
            self._connections[queue.route].ready.pop(queue, None)
        if route is not None and route not in self._connections:
            self._connect(route)
        queue.move(route, NO_TOPIC_ID if route is None else self._view.topic_id(queue.partition.topic))

    def _connect(self, route: Route) -> None:
        broker = self._view.broker(route.node_id)
        assert broker is not None, "a leader is always among the brokers of the same response"
        link = BrokerLink(broker, self._settings.connection, self._loop, self._links)
        connection = ProduceConnection(link, self._settings, waits_for_followers=route.is_slow)
        self._connections[route] = self._connection_of[link] = connection
        link.start()

    def _no_leader(self, partition: TopicPartition) -> SparkmirrorError:
        connection = self._settings.connection
        code = self._view.topic_error(partition.topic) or error_codes.LEADER_NOT_AVAILABLE
        needed = needed_rights(connection, Need.DESCRIBE_TOPIC, partition)
        return error_codes.error_for(code, f"{partition} on {connection.cluster}", needed=needed)


def needed_rights(
    connection: ConnectionSettings, need: Need, partition: TopicPartition
) -> error_codes.Needed:
    """The rights to name in errors. Brokers before 2.8 want the second for batches that are numbered."""
    return error_codes.Needed(connection, (need.of(partition.topic), Need.NUMBER_RECORDS.of()))
