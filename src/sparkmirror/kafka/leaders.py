"""Connections to the leaders of some topics' partitions, for a caller that may block.

For state topics: the copy loop has `ClusterView` and `BrokerLink`, which never block.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.connection import Connection
from sparkmirror.kafka.error_codes import LEADER_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION, Needed, error_for
from sparkmirror.kafka.metadata import Metadata, read_metadata


class Leaders:
    """Not thread-safe: one owner. After an error, `forget` what is known, then ask again."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._metadata = Metadata()
        self._topics: set[str] = set()
        self._stale = True
        self._connections: dict[int, Connection] = {}

    def learn(self, topics: Collection[str], timeout_s: float) -> None:
        """Know the topics' leaders, as far as there are any. Raises RetriableError when nobody can tell."""
        if not self._topics.issuperset(topics):
            self._topics.update(topics)
            self._stale = True
        if self._stale:
            self._metadata = read_metadata(self._within(timeout_s), self._topics)
            self._stale = False

    def partitions(self, topic: str, timeout_s: float) -> Sequence[TopicPartition]:
        """A topic's partitions, with or without a leader; none for a topic that doesn't exist.

        Raises RetriableError when nobody can tell, KafkaError when the topic can't be told of.
        """
        self.learn([topic], timeout_s)
        code = self._metadata.errors.get(topic, 0)
        if code not in (0, UNKNOWN_TOPIC_OR_PARTITION):
            self._stale = True
            raise error_for(code, topic, needed=self._needed(topic))
        return [TopicPartition(topic, number) for number in range(self._metadata.partitions.get(topic, 0))]

    def connections(
        self, partitions: Collection[TopicPartition], timeout_s: float
    ) -> Mapping[Connection, Sequence[TopicPartition]]:
        """Which of the partitions each connection's broker leads. `timeout_s` bounds each step on the way.

        Raises DisconnectedError when a leader can't be reached, RetriableError when there is none.
        """
        self.learn({partition.topic for partition in partitions}, timeout_s)
        led: dict[Connection, list[TopicPartition]] = {}
        for partition in partitions:
            led.setdefault(self._connection(partition, timeout_s), []).append(partition)
        return led

    def _connection(self, partition: TopicPartition, timeout_s: float) -> Connection:
        leader = self._metadata.leaders.get(partition)
        if leader is None:
            self._stale = True
            code = self._metadata.errors.get(partition.topic, LEADER_NOT_AVAILABLE)
            raise error_for(code, str(partition), needed=self._needed(partition.topic))
        connection = self._connections.get(leader.node_id)
        if connection is None:
            broker = self._metadata.brokers[leader.node_id]
            try:
                connection = Connection.open(broker.host, broker.port, self._within(timeout_s))
            except SparkmirrorError:
                self._stale = True
                raise
            self._connections[leader.node_id] = connection
        return connection

    def forget(self) -> None:
        """Drop the connections, and ask for the leaders again before the next is used."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._stale = True

    def close(self) -> None:
        self.forget()

    def _needed(self, topic: str) -> Needed:
        return Needed(self._settings, (Need.DESCRIBE_TOPIC.of(topic),))

    def _within(self, timeout_s: float) -> ConnectionSettings:
        """Who accepts a connection and says nothing is given up as soon as who doesn't accept it."""
        patience_s = min(timeout_s, self._settings.connect_timeout_s, self._settings.request_timeout_s)
        return replace(self._settings, connect_timeout_s=patience_s, request_timeout_s=patience_s)
