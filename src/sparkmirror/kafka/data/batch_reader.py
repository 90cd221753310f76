"""Fetches whole record batches of many partitions on one loop, following their leaders.

Owns connections, fetch sessions, leader changes and back-off. The listener takes the batches, and decides
from which offset each partition continues.
"""

import asyncio
import random
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Protocol

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import DisconnectedError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.admin.metadata import NO_EPOCH
from sparkmirror.kafka.data.cluster_view import ClusterView
from sparkmirror.kafka.net.broker_link import BrokerLink, Traffic, traffic
from sparkmirror.kafka.wire import error_codes, fetch
from sparkmirror.kafka.wire.fetch import FetchedPartition, FetchPosition, FetchSession, decode_fetch_response
from sparkmirror.kafka.wire.primitives import NO_TOPIC_ID

_FOLLOWER_LEASE_S = 300.0
"""How long a follower in our rack is read before the leader is asked again (KIP-392)."""

_HOUSEKEEPING_S = 1.0

_MANY_QUIET = 100
_QUIET_POLL_S = 0.05
"""How long the quiet partitions of a broker may wait for its busy ones.

A broker checks every partition of a session at every Fetch, and handles no other request meanwhile: beside
many quiet partitions the busy ones are fetched alone, and while a busy one is paused no Fetch waits for data.
"""
_SHORT_PAUSE_S = 1.0
"""A busy partition that is paused for longer is not expected back any moment."""


class ReaderListener(Protocol):
    """Receives batches and errors from the reader. All calls come on the loop's thread."""

    def fetched(self, partition: FetchedPartition) -> None:
        """Data, or an empty response with new watermarks. Call `advance`, `pause` or nothing."""

    def response_taken(self) -> None:
        """Every partition of one response has been handed over."""

    def fetch_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        """The partition is retried with back-off; `fetched` means that it works again."""

    def offset_out_of_range(self, partition: TopicPartition) -> None:
        """The partition is paused until `advance` names an offset that exists."""

    def source_diverged(self, partition: TopicPartition, at: int, epoch: int) -> None:
        """From there on the log has other records than those that were read. Paused until `begin`.

        `epoch` is the leader epoch of what is before that.
        """

    def source_recreated(self, partition: TopicPartition) -> None:
        """The topic has another id than at `begin`. Paused until the next `begin`."""

    def budget_bytes(self) -> int:
        """How many bytes may be fetched now; 0 or less for none."""
        ...


class _Source:
    """One broker: its link, its session, and the one request that may be under way."""

    def __init__(self, link: BrokerLink) -> None:
        self.link = link
        self.session = FetchSession()
        self.version = 0
        self.correlation_id = 0
        self.waiting_since: float | None = None
        self.outdated: set[TopicPartition] = set()
        """Partitions that moved while a request was under way: its response is for another offset."""
        self.busy: dict[TopicPartition, float] = {}
        """Those whose last response had data, and when. One that is not in the session is paused."""
        self.asked_all_at = 0.0
        self.asks_all = True
        """Whether the request under way is the session's."""
        self.quiet_poll: asyncio.TimerHandle | None = None

    def mark_busy(self, partitions: Collection[TopicPartition], now: float) -> None:
        """Mark `partitions`, which had data, as busy; all others stop being busy, but for short pauses."""
        self.busy = {partition: self.busy[partition] for partition in self.paused(now)}
        self.busy.update(dict.fromkeys(partitions, now))

    def paused(self, now: float) -> list[TopicPartition]:
        """Busy ones that are expected back any moment."""
        return [p for p, at in self.busy.items() if p not in self.session and now - at < _SHORT_PAUSE_S]

    def drop(self, partition: TopicPartition) -> None:
        """Stop reading the partition from this broker."""
        self.busy.pop(partition, None)
        self.session.drop(partition)


class BatchReader:
    """`start` fetches partitions from their offsets on; see `ReaderListener` for what comes back."""

    def __init__(
        self, settings: ConsumerSettings, loop: asyncio.AbstractEventLoop, listener: ReaderListener
    ) -> None:
        self._settings = settings
        self._at_once = replace(settings, fetch_wait_max_s=0.0)
        self._loop = loop
        self._listener = listener
        connection = settings.connection
        self._backoff = Backoff(connection.retry_backoff_s, connection.retry_backoff_max_s)
        self._view = ClusterView(connection, loop, self._leaders_changed, self._cluster_failed)
        self._sources: dict[int, _Source] = {}
        self._source_of: dict[BrokerLink, _Source] = {}
        self._offsets: dict[TopicPartition, int] = {}
        self._topic_ids: dict[TopicPartition, bytes] = {}
        self._id_known_at: dict[TopicPartition, float] = {}
        self._read_epochs: dict[TopicPartition, int] = {}
        self._home: dict[TopicPartition, _Source] = {}
        self._followers: dict[TopicPartition, tuple[int, float]] = {}
        self._paused: set[TopicPartition] = set()
        self._failures: dict[TopicPartition, int] = {}
        self._housekeeping: asyncio.TimerHandle | None = None
        self._stopped = False
        self.fetches = 0
        self.fetch_s = 0.0
        """How many Fetch requests had a response, and how long these took, waits for data included."""

    @property
    def traffic(self) -> Traffic:
        return traffic(source.link for source in self._sources.values())

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
        for source in self._sources.values():
            source.link.close()
        self._sources.clear()

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
        source = self._home.get(partition)
        if source is not None:
            source.session.drop(partition)

    def fetch_more(self) -> None:
        """The budget grew: ask every broker that has nothing to do."""
        for source in self._sources.values():
            self._fetch(source)

    # routing: which broker serves which partition

    def _route(self, partition: TopicPartition) -> None:
        if self._stopped or partition in self._paused or not self._view.is_known:
            return
        leader = self._view.leader(partition)
        if leader is None:
            self._no_leader(partition)
            return
        known = self._topic_ids.get(partition, NO_TOPIC_ID)
        replaced = self._view.has_replaced(partition.topic, known, self._id_known_at.get(partition, 0.0))
        if replaced:
            self._pause_unrouted(partition)
            self._listener.source_recreated(partition)
        if replaced is not False:
            return
        follower = self._read_replica(partition)
        source = self._source(leader.node_id if follower is None else follower)
        previous = self._home.get(partition)
        if previous is not None and previous is not source:
            previous.drop(partition)
        self._home[partition] = source
        position = FetchPosition(
            self._offsets[partition],
            leader.epoch,
            self._settings.partition_fetch_bytes_max,
            self.read_epoch(partition),
            self._view.topic_id(partition.topic) or known,
        )
        source.session.want(partition, position)
        if source.waiting_since is not None:
            source.outdated.add(partition)

    def _no_leader(self, partition: TopicPartition) -> None:
        self._leave(partition)
        code = self._view.topic_error(partition.topic) or error_codes.LEADER_NOT_AVAILABLE
        needed = self._needed(Need.DESCRIBE_TOPIC, partition)
        error = error_codes.error_for(
            code, f"{partition} on {self._settings.connection.cluster}", needed=needed
        )
        self._listener.fetch_failed(partition, error)
        self._view.refresh()

    def _pause_unrouted(self, partition: TopicPartition) -> None:
        self._leave(partition)
        self._paused.add(partition)

    def _leave(self, partition: TopicPartition) -> None:
        source = self._home.pop(partition, None)
        if source is not None:
            source.drop(partition)

    def _read_replica(self, partition: TopicPartition) -> int | None:
        node_id, until = self._followers.get(partition, (None, 0.0))
        if node_id is None or until < self._loop.time() or self._view.broker(node_id) is None:
            self._followers.pop(partition, None)
            return None
        return node_id

    def _source(self, node_id: int) -> _Source:
        source = self._sources.get(node_id)
        if source is None:
            broker = self._view.broker(node_id)
            assert broker is not None, "a leader is always among the brokers of the same response"
            link = BrokerLink(broker, self._settings.connection, self._loop, self)
            source = self._sources[node_id] = self._source_of[link] = _Source(link)
            link.start()
        return source

    def _leaders_changed(self) -> None:
        for node_id, source in self._sources.items():
            source.link.broker = self._view.broker(node_id) or source.link.broker
        for partition in self._offsets:
            self._route(partition)
        self.fetch_more()

    def _cluster_failed(self, error: SparkmirrorError) -> None:
        for partition in self._offsets:
            if partition not in self._home:
                self._listener.fetch_failed(partition, error)

    # requests and responses

    def link_ready(self, link: BrokerLink) -> None:
        source = self._source_of[link]
        high = fetch.VERSION_HIGH if self._view.has_topic_ids else fetch.VERSION_HIGH_BY_NAME
        source.version = link.version_of(fetch.API_KEY, "Fetch", fetch.VERSION_LOW, high)
        source.session.reset()
        source.outdated.clear()
        source.busy.clear()
        self._fetch(source)

    def link_lost(self, link: BrokerLink, error: SparkmirrorError) -> None:
        source = self._source_of[link]
        source.waiting_since = None
        for partition, home in self._home.items():
            if home is source:
                self._listener.fetch_failed(partition, error)
        self._view.refresh()

    def link_received(self, link: BrokerLink, frame: memoryview) -> None:
        source = self._source_of[link]
        topics = source.session.topics
        response = decode_fetch_response(frame, source.version, source.correlation_id, topics)
        if source.waiting_since is not None:
            self.fetches += 1
            self.fetch_s += self._loop.time() - source.waiting_since
        source.waiting_since = None
        if response.error:
            self._session_failed(source, response.error)
            return
        if source.asks_all:
            source.session.accept(response.session_id)
        with_data = [fetched.partition for fetched in response.partitions if len(fetched.records)]
        source.mark_busy(with_data, self._loop.time())
        outdated, source.outdated = source.outdated, set()
        for fetched in response.partitions:
            if fetched.partition not in outdated and self._home.get(fetched.partition) is source:
                self._take(fetched)
        self._listener.response_taken()
        if response.throttle_s > 0:
            self._loop.call_later(response.throttle_s, self._fetch, source)
        else:
            self._fetch(source)

    def _fetch(self, source: _Source) -> None:
        if (
            self._stopped
            or source.waiting_since is not None
            or not source.link.is_ready
            or not source.session
        ):
            return
        budget = self._listener.budget_bytes()
        if budget <= 0:
            return
        now = self._loop.time()
        active = [partition for partition in source.busy if partition in source.session]
        many_quiet = bool(active) and len(source.session) - len(active) >= _MANY_QUIET
        settings = self._settings
        source.asks_all = True
        if (many_quiet or source.paused(now)) and settings.fetch_bytes_min <= 1:
            quiet_poll_in_s = source.asked_all_at + _QUIET_POLL_S - now
            source.asks_all = quiet_poll_in_s <= 0
            if not source.asks_all and not active:
                self._poll_quiet_later(source, quiet_poll_in_s)
                return
            settings = self._at_once
        source.correlation_id = (source.correlation_id + 1) & 0x7FFFFFFF
        source.waiting_since = now
        arguments = settings, source.version, source.correlation_id, budget
        if source.asks_all:
            source.asked_all_at = now
            source.link.send(source.session.request(*arguments))
        else:
            source.link.send(source.session.request_alone(active, *arguments))

    def _poll_quiet_later(self, source: _Source, delay_s: float) -> None:
        def poll_quiet() -> None:
            source.quiet_poll = None
            self._fetch(source)

        if source.quiet_poll is None:
            source.quiet_poll = self._loop.call_later(delay_s, poll_quiet)

    def _session_failed(self, source: _Source, code: int) -> None:
        source.session.reset()
        if code in error_codes.FETCH_SESSION_LOST:
            self._fetch(source)
        else:
            source.link.drop(error_codes.error_for(code, f"Fetch from {source.link.broker.host}"))

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
        self._listener.fetch_failed(partition, error)
        failures = self._failures[partition] = self._failures.get(partition, 0) + 1
        if code in error_codes.LEADER_CHANGED:
            self._view.refresh()
        self._loop.call_later(self._backoff.delay_s(failures, random.random()), self._retry, partition)

    def _needed(self, need: Need, partition: TopicPartition) -> error_codes.Needed:
        return error_codes.Needed(self._settings.connection, (need.of(partition.topic),))

    def _retry(self, partition: TopicPartition) -> None:
        self._route(partition)
        source = self._home.get(partition)
        if source is not None:
            self._fetch(source)

    def _housekeep(self) -> None:
        """Drop the connection to a broker that accepts a request and never responds."""
        self._housekeeping = self._loop.call_later(_HOUSEKEEPING_S, self._housekeep)
        timeout_s = self._settings.connection.request_timeout_s + self._settings.fetch_wait_max_s
        for source in self._sources.values():
            if source.waiting_since is not None and self._loop.time() - source.waiting_since > timeout_s:
                address = f"{source.link.broker.host}:{source.link.broker.port}"
                source.link.drop(DisconnectedError(f"{address} left a Fetch unanswered for {timeout_s:g} s"))
