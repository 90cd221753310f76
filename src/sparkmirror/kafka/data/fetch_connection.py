"""Keeps the fetch session of one connection to a broker, and frames its requests: one at a time.

A broker checks every partition of a session at every Fetch, and handles no other request meanwhile: beside
many quiet partitions the busy ones are fetched alone, and while a busy one is paused no Fetch waits for data.
"""

from collections.abc import Collection
from dataclasses import replace

from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.net.broker_link import BrokerLink
from sparkmirror.kafka.wire import fetch
from sparkmirror.kafka.wire.fetch import FetchPosition, FetchResponse, FetchSession, decode_fetch_response

_MANY_QUIET = 100
_QUIET_POLL_S = 0.05
"""The longest time that the quiet partitions of a broker wait for its busy ones."""
_SHORT_PAUSE_S = 1.0
"""A busy partition that is paused for longer is not expected back any moment."""


class FetchConnection:
    """One broker: its link, its session, and the one request that may be under way."""

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

    def negotiate(self, *, by_id: bool) -> None:
        """Begin a new session on a link that is open. Raises UnsupportedVersionError."""
        high = fetch.VERSION_HIGH if by_id else fetch.VERSION_HIGH_BY_NAME
        self._version = self.link.version_of(fetch.API_KEY, "Fetch", fetch.VERSION_LOW, high)
        self._session.reset()
        self._outdated.clear()
        self._busy.clear()

    def lost(self) -> None:
        """The response to the request under way will never come."""
        self._waiting_since = None

    # partitions

    def want(self, partition: TopicPartition, position: FetchPosition) -> None:
        self._session.want(partition, position)
        if self._waiting_since is not None:
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
        return self._waiting_since is None and self.link.is_ready and bool(self._session)

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
        arguments = settings, self._version, self._correlation_id, budget_bytes
        if self._asks_all:
            self._asked_all_at = now
            self.link.send(self._session.request(*arguments))
        else:
            self.link.send(self._session.request_alone(active, *arguments))
        return None

    def received(self, frame: memoryview, now: float) -> tuple[FetchResponse, float | None]:
        """The response, without partitions that moved meanwhile, and how long it took.

        After an error of the session the next request begins another one. Raises DisconnectedError.
        """
        response = decode_fetch_response(frame, self._version, self._correlation_id, self._session.topics)
        took_s = None if self._waiting_since is None else now - self._waiting_since
        self._waiting_since = None
        if response.error:
            self._session.reset()
            return response, took_s
        if self._asks_all:
            self._session.accept(response.session_id)
        self._mark_busy([each.partition for each in response.partitions if len(each.records)], now)
        outdated, self._outdated = self._outdated, set()
        if outdated:
            current = [each for each in response.partitions if each.partition not in outdated]
            response = response._replace(partitions=current)
        return response, took_s

    def check_response(self, now: float) -> None:
        """Drop the connection to a broker that accepts a request and never responds."""
        timeout_s = self._settings.connection.request_timeout_s + self._settings.fetch_wait_max_s
        if self._waiting_since is not None and now - self._waiting_since > timeout_s:
            address = f"{self.link.broker.host}:{self.link.broker.port}"
            self.link.drop(DisconnectedError(f"{address} left a Fetch unanswered for {timeout_s:g} s"))

    def _mark_busy(self, partitions: Collection[TopicPartition], now: float) -> None:
        """Mark `partitions`, which had data, as busy; all others stop being busy, but for short pauses."""
        self._busy = {partition: self._busy[partition] for partition in self._paused(now)}
        self._busy.update(dict.fromkeys(partitions, now))

    def _paused(self, now: float) -> list[TopicPartition]:
        """Busy ones that are expected back any moment."""
        return [p for p, at in self._busy.items() if p not in self._session and now - at < _SHORT_PAUSE_S]
