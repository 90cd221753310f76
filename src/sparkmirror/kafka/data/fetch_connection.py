"""Keeps the fetch session of one connection to a broker, and frames its requests: one at a time.

A broker checks every partition of a session at every Fetch, and handles no other request meanwhile: beside
many quiet partitions the busy ones are fetched alone, and while a busy one is paused no Fetch waits for data.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from sparkmirror.batches.record_batch import first_batch_bytes
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.net.broker_link import BrokerLink
from sparkmirror.kafka.wire import fetch
from sparkmirror.kafka.wire.fetch import (
    FetchedPartition,
    FetchPosition,
    FetchResponse,
    FetchSession,
    decode_fetch_response,
)

_MANY_QUIET = 100
_QUIET_POLL_S = 0.05
"""The longest time that the quiet partitions of a broker wait for its busy ones."""
_THROTTLED_BYTES_MIN = 16 << 10
_WHOLE_FROM = 8
"""A broker cuts the last batch of a response, and counts what it sends of it: with fewer batches than these,
under a quota, that would be a considerable part of what is let through.
"""
_ONE_BATCH = 1
"""The size of a response that has one batch, and that whole."""
_SHORT_PAUSE_S = 1.0
"""A busy partition that is paused for longer is not expected back any moment."""


class FetchConnection:
    """A broker: its link, its session, and the one request that may be under way."""

    def __init__(self, link: BrokerLink, settings: ConsumerSettings) -> None:
        self.link = link
        self._settings = settings
        self._at_once = replace(settings, fetch_wait_max_s=0.0)
        self._session = FetchSession()
        self._version = 0
        self._correlation_id = 0
        self._waiting_since: float | None = None
        self._outdated: set[TopicPartition] = set()
        """Partitions that moved while a request was under way: its response is for another offset."""
        self._busy: dict[TopicPartition, float] = {}
        """Partitions whose last response had data, and its time. One that is not in the session is paused."""
        self._asked_all_at = 0.0
        self._asks_all = True
        """Whether the request under way is the session's."""
        self._moved: set[TopicPartition] | None = None
        """Partitions that the last response does not speak of; None for all that it lacks."""
        self._starving_since: float | None = None
        self._bytes_max = self._last_bytes = settings.fetch_bytes_max
        """The largest response to ask for, and the last with records. Quotas keep large ones back longer."""
        self._batch_bytes = 0
        """The size of the largest batches in the last responses with records."""

    def negotiate(self, *, by_id: bool) -> None:
        """Begin a new session on a link that is open. Raises UnsupportedVersionError."""
        high = fetch.VERSION_HIGH if by_id else fetch.VERSION_HIGH_BY_NAME
        self._version = self.link.version_of(fetch.API_KEY, "Fetch", fetch.VERSION_LOW, high)
        self._session.reset()
        self._outdated.clear()
        self._busy.clear()
        self._starving_since = None

    def lost(self) -> None:
        """The response to the request under way will never come."""
        self._waiting_since = None

    # partitions

    def want(self, partition: TopicPartition, position: FetchPosition) -> None:
        if self._session.want(partition, position) and self._waiting_since is not None:
            self._outdated.add(partition)

    def pause(self, partition: TopicPartition) -> None:
        """Fetch nothing more of the partition until it is wanted again, perhaps soon."""
        self._session.drop(partition)

    def drop(self, partition: TopicPartition) -> None:
        """Stop reading the partition from this broker."""
        self._busy.pop(partition, None)
        self._session.drop(partition)

    # requests

    @property
    def can_send(self) -> bool:
        return self._waiting_since is None and self.link.can_send and bool(self._session)

    def send(self, budget_bytes: int, now: float) -> float | None:
        """Ask for all partitions, or for the busy ones alone.

        Where only quiet ones are left and it is too early for them, nothing is sent: returns in how many
        seconds they are due.
        """
        active = [partition for partition in self._busy if partition in self._session]
        many_quiet = bool(active) and len(self._session) - len(active) >= _MANY_QUIET
        settings = self._settings
        self._asks_all = True
        if (many_quiet or self._paused(now)) and settings.fetch_bytes_min <= 1:
            quiet_poll_in_s = self._asked_all_at + _QUIET_POLL_S - now
            self._asks_all = quiet_poll_in_s <= 0
            if not self._asks_all and not active:
                return quiet_poll_in_s
            settings = self._at_once
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        self._waiting_since = now
        arguments = settings, self._version, self._correlation_id, min(budget_bytes, self._asked_bytes)
        if self._asks_all:
            self._asked_all_at = now
            self.link.send(self._session.request(*arguments))
        else:
            self.link.send(self._session.request_alone(active, *arguments))
        return None

    def received(self, frame: memoryview, now: float) -> tuple[FetchResponse, float | None]:
        """The response, without records of partitions that moved meanwhile, and how long it took.

        After an error of the session the next request begins another one. Raises DisconnectedError.
        """
        response = decode_fetch_response(frame, self._version, self._correlation_id, self._session.topics)
        took_s = None if self._waiting_since is None else now - self._waiting_since
        self._waiting_since, self._moved = None, None
        self.link.throttle(response.throttle_s)
        if response.error:
            self._session.reset()
            return response, took_s
        if self._asks_all:
            self._session.accept(response.session_id)
        outdated, self._outdated = self._outdated, set()
        if response.throttle_s > 0 and not response.partitions:
            self._starving_since = self._starving_since or now
            self._bytes_max = max(_THROTTLED_BYTES_MIN, min(self._bytes_max, self._last_bytes) // 2)
            return response, took_s
        self._starving_since = None
        self._bytes_max = min(self._bytes_max * 9 // 8, self._settings.fetch_bytes_max)
        with_records = [each for each in response.partitions if len(each.records)]
        if with_records:
            self._last_bytes = len(frame)
            largest = max(first_batch_bytes(each.records) for each in with_records)
            self._batch_bytes = max(largest, self._batch_bytes * 15 // 16)
        self._mark_busy([each.partition for each in with_records], now)
        if self._asks_all:
            self._moved = outdated
        if outdated:
            response = response._replace(partitions=list(_current(response.partitions, outdated)))
        return response, took_s

    def answers(self, partition: TopicPartition) -> bool:
        """Tell whether a partition that the last response lacks has no error and no news (KIP-227)."""
        return self._moved is not None and partition in self._session and partition not in self._moved

    def starving_s(self, now: float) -> float:
        """Tell for how long every response has been empty, and had a throttle time (KIP-219)."""
        return 0.0 if self._starving_since is None else now - self._starving_since

    def check_response(self, now: float) -> None:
        """Drop the connection to a broker that accepts a request and never responds."""
        timeout_s = self._settings.connection.request_timeout_s + self._settings.fetch_wait_max_s
        if self._waiting_since is None:
            return
        if now - self.link.waiting_since(self._waiting_since) > timeout_s:
            address = f"{self.link.broker.host}:{self.link.broker.port}"
            self.link.drop(DisconnectedError(f"{address} left a Fetch unanswered for {timeout_s:g} s"))

    @property
    def _asked_bytes(self) -> int:
        if self._bytes_max >= self._settings.fetch_bytes_max or not self._batch_bytes:
            return self._bytes_max
        batches = self._bytes_max // self._batch_bytes
        return batches * self._batch_bytes if batches >= _WHOLE_FROM else _ONE_BATCH

    def _mark_busy(self, partitions: Collection[TopicPartition], now: float) -> None:
        """Mark `partitions`, which had data, as busy; all others stop being busy, but for short pauses."""
        self._busy = {partition: self._busy[partition] for partition in self._paused(now)}
        self._busy.update(dict.fromkeys(partitions, now))

    def _paused(self, now: float) -> list[TopicPartition]:
        """Busy ones that are expected back any moment."""
        return [p for p, at in self._busy.items() if p not in self._session and now - at < _SHORT_PAUSE_S]


def _current(
    fetched: Iterable[FetchedPartition], outdated: Collection[TopicPartition]
) -> Iterator[FetchedPartition]:
    """Leave out errors and records of what moved; the ends of logs hold, and a session names them once."""
    for each in fetched:
        if each.partition not in outdated:
            yield each
        elif not each.error and each.diverged_at is None and each.preferred_read_replica < 0:
            yield each._replace(records=memoryview(b""))
