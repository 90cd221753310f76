"""Fetches whole record batches of many partitions on one loop, following their leaders.

Owns routing, leader changes and back-off; `FetchConnection` has the session and the request of one broker.
The listener takes the batches, and decides from which offset each partition continues.
"""

import asyncio
import random
from collections.abc import Collection, Mapping
from typing import Protocol

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.data.cluster_view import ClusterView
from sparkmirror.kafka.data.fetch_connection import FetchConnection
from sparkmirror.kafka.net.broker_link import BrokerLink, Traffic, traffic
from sparkmirror.kafka.retries import STARVED_AFTER_S, starved
from sparkmirror.kafka.wire import error_codes
from sparkmirror.kafka.wire.fetch import FetchedPartition, FetchPosition
from sparkmirror.kafka.wire.primitives import NO_EPOCH, NO_TOPIC_ID

_FOLLOWER_LEASE_S = 300.0
"""The time that a follower in our rack is read before the leader is asked again (KIP-392)."""

_HOUSEKEEPING_S = 1.0


class ReaderListener(Protocol):
    """Receives batches and errors from the reader. All calls come on the loop's thread."""

    def fetched(self, partition: FetchedPartition) -> None:
        """Data, or an empty response with new watermarks. Call `advance`, `pause` or nothing."""

    def response_taken(self) -> int:
        """Every partition of one response has been handed over. Return the `budget_bytes` from there on."""
        ...

    def fetch_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        """The partition is retried with back-off; `fetched` or `fetch_works` ends that."""

    def fetch_works(self, partition: TopicPartition) -> None:
        """The partition that failed is fetched again, and has nothing new."""

    def offset_out_of_range(self, partition: TopicPartition) -> None:
        """The partition is paused until `advance` names an offset that exists."""

    def source_diverged(self, partition: TopicPartition, at: int, epoch: int) -> None:
        """The log has other records from this offset on than those that were read. Paused until `begin`.

        `epoch` is the leader epoch of what is before that.
        """

    def source_recreated(self, partition: TopicPartition) -> None:
        """The topic has another id than at `begin`. Paused until the next `begin`."""

    def budget_bytes(self) -> int:
        """The bytes that may be fetched now; 0 or less for none. Asked where no response came before."""
        ...


class BatchReader:
    """`start` fetches partitions from their offsets on; see `ReaderListener` for what comes back."""

    def __init__(
        self, settings: ConsumerSettings, loop: asyncio.AbstractEventLoop, listener: ReaderListener
    ) -> None:
        self._settings = settings
        self._loop = loop
        self._listener = listener
        connection = settings.connection
        self._backoff = Backoff(connection.retry_backoff_s, connection.retry_backoff_max_s)
        self._view = ClusterView(connection, loop, self._leaders_changed, self._cluster_failed)
        self._connections: dict[int, FetchConnection] = {}
        self._connection_of: dict[BrokerLink, FetchConnection] = {}
        self._polled_later: set[FetchConnection] = set()
        """Connections that ask for their quiet partitions when a timer expires."""
        self._offsets: dict[TopicPartition, int] = {}
        self._topic_ids: dict[TopicPartition, bytes] = {}
        self._id_known_at: dict[TopicPartition, float] = {}
        self._read_epochs: dict[TopicPartition, int] = {}
        self._home: dict[TopicPartition, FetchConnection] = {}
        self._followers: dict[TopicPartition, tuple[int, float]] = {}
        self._paused: set[TopicPartition] = set()
        self._failures: dict[TopicPartition, int] = {}
        """Partitions that failed and do not work yet, with how often a broker refused them."""
        self._housekeeping: asyncio.TimerHandle | None = None
        self._stopped = False
        self.fetches = 0
        self.fetch_s = 0.0
        """The count of Fetch requests with a response, and the time they took, waits for data included."""

    @property
    def traffic(self) -> Traffic:
        return traffic(connection.link for connection in self._connections.values())

    def start(self, partitions: Collection[TopicPartition], offsets: Mapping[TopicPartition, int]) -> None:
        """Partitions without an offset are not fetched until `advance` names one."""
        self._offsets.update(offsets)
        self._view.start(sorted({partition.topic for partition in partitions}))
        self._housekeep()

    def stop(self) -> None:
        self._stopped = True
        self._view.stop()
        if self._housekeeping is not None:
            self._housekeeping.cancel()
        for connection in self._connections.values():
            connection.link.close()
        self._connections.clear()

    def begin(self, partition: TopicPartition, offset: int, topic_id: bytes, read_epoch: int) -> None:
        """Fetch from here, as long as the topic keeps the id and has what was read before in that epoch."""
        self._topic_ids[partition] = topic_id
        self._id_known_at[partition] = self._loop.time()
        self._read_epochs[partition] = read_epoch
        self.advance(partition, offset)

    def read_epoch(self, partition: TopicPartition) -> int:
        """The leader epoch under which the partition was read last."""
        return self._read_epochs.get(partition, NO_EPOCH)

    def advance(self, partition: TopicPartition, offset: int) -> None:
        """Fetch from here next, also if the partition was paused or out of range."""
        self._offsets[partition] = offset
        self._paused.discard(partition)
        self._route(partition)

    def pause(self, partition: TopicPartition) -> None:
        """Fetch nothing more until `advance`."""
        self._paused.add(partition)
        connection = self._home.get(partition)
        if connection is not None:
            connection.pause(partition)

    def fetch_more(self) -> None:
        """The budget grew: ask every broker that has nothing to do."""
        for connection in self._connections.values():
            self._fetch(connection)

    # routing: which broker serves which partition

    def _route(self, partition: TopicPartition) -> None:
        if self._stopped or partition in self._paused or not self._view.is_known:
            return
        leader = self._view.leader(partition)
        if leader is None:
            self._no_leader(partition)
            return
        known = self._topic_ids.get(partition, NO_TOPIC_ID)
        replaced = self._view.is_recreated(partition.topic, known, self._id_known_at.get(partition, 0.0))
        if replaced:
            self._pause_unrouted(partition)
            self._listener.source_recreated(partition)
        if replaced is not False:
            return
        follower = self._read_replica(partition)
        connection = self._connection(leader.node_id if follower is None else follower)
        previous = self._home.get(partition)
        if previous is not None and previous is not connection:
            previous.drop(partition)
        self._home[partition] = connection
        position = FetchPosition(
            self._offsets[partition],
            leader.epoch,
            self._settings.partition_fetch_bytes_max,
            self.read_epoch(partition),
            self._view.topic_id(partition.topic) or known,
        )
        connection.want(partition, position)

    def _no_leader(self, partition: TopicPartition) -> None:
        self._leave(partition)
        code = self._view.topic_error(partition.topic) or error_codes.LEADER_NOT_AVAILABLE
        needed = self._needed(Need.DESCRIBE_TOPIC, partition)
        error = error_codes.error_for(
            code, f"{partition} on {self._settings.connection.cluster}", needed=needed
        )
        self._fail(partition, error)
        self._view.refresh()

    def _pause_unrouted(self, partition: TopicPartition) -> None:
        self._leave(partition)
        self._paused.add(partition)

    def _leave(self, partition: TopicPartition) -> None:
        connection = self._home.pop(partition, None)
        if connection is not None:
            connection.drop(partition)

    def _read_replica(self, partition: TopicPartition) -> int | None:
        node_id, until = self._followers.get(partition, (None, 0.0))
        if node_id is None or until < self._loop.time() or self._view.broker(node_id) is None:
            self._followers.pop(partition, None)
            return None
        return node_id

    def _connection(self, node_id: int) -> FetchConnection:
        connection = self._connections.get(node_id)
        if connection is None:
            broker = self._view.broker(node_id)
            assert broker is not None, "a leader is always among the brokers of the same response"
            link = BrokerLink(broker, self._settings.connection, self._loop, self)
            connection = self._connections[node_id] = FetchConnection(link, self._settings)
            self._connection_of[link] = connection
            link.start()
        return connection

    def _leaders_changed(self) -> None:
        for node_id, connection in self._connections.items():
            connection.link.broker = self._view.broker(node_id) or connection.link.broker
        for partition in self._offsets:
            self._route(partition)
        self.fetch_more()

    def _cluster_failed(self, error: SparkmirrorError) -> None:
        for partition in self._offsets:
            if partition not in self._home:
                self._fail(partition, error)

    # requests and responses

    def link_ready(self, link: BrokerLink) -> None:
        connection = self._connection_of[link]
        connection.negotiate(by_id=self._view.has_topic_ids)
        self._fetch(connection)

    def link_lost(self, link: BrokerLink, error: SparkmirrorError) -> None:
        connection = self._connection_of[link]
        connection.lost()
        self._fail_all(connection, error)
        self._view.refresh()

    def link_received(self, link: BrokerLink, frame: memoryview) -> None:
        connection = self._connection_of[link]
        response, took_s = connection.received(frame, self._loop.time())
        if took_s is not None:
            self.fetches += 1
            self.fetch_s += took_s
        if response.error:
            self._session_failed(connection, response.error)
            return
        for fetched in response.partitions:
            if self._home.get(fetched.partition) is connection:
                self._take(fetched)
        if self._failures:
            self._end_failures(connection, {fetched.partition for fetched in response.partitions})
        self._fetch(connection, self._listener.response_taken())

    def throttle_ended(self, link: BrokerLink) -> None:
        self._fetch(self._connection_of[link])

    def _end_failures(self, connection: FetchConnection, named: Collection[TopicPartition]) -> None:
        """A broker reports an error once. The partition works again when a response leaves it out."""
        for partition in [at for at in self._failures if at not in named and connection.answers(at)]:
            if self._home.get(partition) is connection and partition not in self._paused:
                del self._failures[partition]
                self._listener.fetch_works(partition)

    def _fetch(self, connection: FetchConnection, budget: int | None = None) -> None:
        """Ask for up to `budget` bytes; None asks the listener for it."""
        if self._stopped or not connection.can_send:
            return
        if budget is None:
            budget = self._listener.budget_bytes()
        if budget <= 0:
            return
        quiet_poll_in_s = connection.send(budget, self._loop.time())
        if quiet_poll_in_s is not None and connection not in self._polled_later:
            self._polled_later.add(connection)
            self._loop.call_later(quiet_poll_in_s, self._poll_quiet, connection)

    def _poll_quiet(self, connection: FetchConnection) -> None:
        self._polled_later.discard(connection)
        self._fetch(connection)

    def _session_failed(self, connection: FetchConnection, code: int) -> None:
        if code in error_codes.FETCH_SESSION_LOST:
            self._fetch(connection)
        else:
            connection.link.drop(error_codes.error_for(code, f"Fetch from {connection.link.broker.host}"))

    def _take(self, fetched: FetchedPartition) -> None:
        partition = fetched.partition
        if partition in self._paused:
            return
        if fetched.error:
            self._partition_failed(partition, fetched.error)
        elif fetched.preferred_read_replica >= 0:
            lease = self._loop.time() + _FOLLOWER_LEASE_S
            self._followers[partition] = (fetched.preferred_read_replica, lease)
            self._route(partition)
        elif fetched.diverged_at is not None:
            self._pause_unrouted(partition)
            self._listener.source_diverged(partition, fetched.diverged_at, fetched.diverging_epoch)
        else:
            self._failures.pop(partition, None)
            leader = self._view.leader(partition)
            if leader is not None and len(fetched.records):
                self._read_epochs[partition] = leader.epoch
            self._listener.fetched(fetched)

    def _partition_failed(self, partition: TopicPartition, code: int) -> None:
        from_follower = self._followers.pop(partition, None)
        self._leave(partition)
        if code == error_codes.OFFSET_OUT_OF_RANGE and from_follower is None:
            self._pause_unrouted(partition)
            self._listener.offset_out_of_range(partition)
            return
        needed = self._needed(Need.READ_TOPIC, partition)
        error = error_codes.error_for(
            code, f"Fetch of {partition} from {self._settings.connection.cluster}", needed=needed
        )
        self._fail(partition, error)
        failures = self._failures[partition] = self._failures[partition] + 1
        if code in error_codes.LEADER_CHANGED:
            self._view.refresh()
        self._loop.call_later(self._backoff.delay_s(failures, random.random()), self._retry, partition)

    def _needed(self, need: Need, partition: TopicPartition) -> error_codes.Needed:
        return error_codes.Needed(self._settings.connection, (need.of(partition.topic),))

    def _retry(self, partition: TopicPartition) -> None:
        self._route(partition)
        connection = self._home.get(partition)
        if connection is not None:
            self._fetch(connection)

    def _housekeep(self) -> None:
        """Drop the connection to a broker that accepts a request and never responds."""
        self._housekeeping = self._loop.call_later(_HOUSEKEEPING_S, self._housekeep)
        for connection in self._connections.values():
            connection.check_response(self._loop.time())
            if connection.starving_s(self._loop.time()) > STARVED_AFTER_S:
                self._fail_all(connection, starved(self._settings.connection.cluster))

    def _fail_all(self, connection: FetchConnection, error: SparkmirrorError) -> None:
        for partition, home in self._home.items():
            if home is connection:
                self._fail(partition, error)

    def _fail(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        self._failures.setdefault(partition, 0)
        self._listener.fetch_failed(partition, error)
