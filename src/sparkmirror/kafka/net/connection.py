"""A connection to one broker, ready to use: opened, versions negotiated, logged in.

Requests that are not on the hot path block on it (`request`), with kafka-python's protocol classes. The copy
loop takes it over with `into_channel` and speaks raw Fetch and Produce.
"""

import itertools
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError, UnsupportedVersionError
from sparkmirror.domain.incidents import ChangedCluster
from sparkmirror.domain.network import Transport, host_port
from sparkmirror.kafka.net.channel import Channel
from sparkmirror.kafka.net.login import LOGIN_ID, Ask, Login, renewal_s
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.wire.error_codes import check
from sparkmirror.kafka.wire.null_fields import without_nulls
from sparkmirror.kafka.wire.primitives import UNREADABLE

_log = logging.getLogger(__name__)

_METADATA_MAX = 12
_API_VERSIONS_OF_EVERY_BROKER = 2
"""ApiVersions v3 is refused by brokers before 2.4, in a way that costs a second round trip."""


class VersionRange(NamedTuple):
    low: int
    high: int


class Connection:
    """Sends one request at a time to a broker. Not thread-safe."""

    def __init__(self, transport: Transport, address: str, client_id: str) -> None:
        self.address = address
        self.client_id = client_id
        self.versions: Mapping[int, VersionRange] = {}
        self._transport = transport
        self._channel = Channel(transport, address)
        self._correlation_ids = itertools.count()
        self._settings: ConnectionSettings | None = None
        self._login: Login | None = None
        self._login_at = math.inf
        """When a session ends soon, by the network's clock; a link's owner logs in by itself instead."""
        self.session_s: float | None = None
        """The lifetime of the last login's session; None without an end."""
        self._is_proven = False
        """Whether the broker has responded to anything but ApiVersions and logins."""
        self._throttled_until = -math.inf
        """Until then the broker has muted the connection, by the network's clock."""

    @classmethod
    def open(cls, host: str, port: int, settings: ConnectionSettings) -> "Connection":
        """Connect, learn what the broker speaks, and log in.

        Raises DisconnectedError, ConfigError, AuthenticationError, ClusterChangedError.

        A broker that accepts a connection and does not respond is given up as soon as one that does not
        accept it, so that a hung broker delays its clients no longer than one that is gone.
        """
        transport = network_of(settings).connect(host, port, settings)
        connection = cls(transport, host_port(host, port), settings.client_id)
        connection.negotiate(host, settings, min(settings.connect_timeout_s, settings.request_timeout_s))
        _log.debug("connected to %s of %s", connection.address, settings.cluster)
        return connection

    def negotiate(self, host: str, settings: ConnectionSettings, timeout_s: float) -> None:
        """First of all, by who made it: learn versions, log in, and see whether the cluster is the one meant.

        Closes it where that fails, and raises DisconnectedError, AuthenticationError, ClusterChangedError.
        """
        self._settings = settings
        try:
            self._learn_versions(timeout_s)
            if settings.sasl is not None:
                self._login = Login(settings, host, self.address)
                self._log_in(timeout_s)
            self._require_cluster(settings, timeout_s)
        except BaseException:
            self.close()
            raise

    def _require_cluster(self, settings: ConnectionSettings, timeout_s: float) -> None:
        """Refuse another cluster before anything is written: an address may lead elsewhere than before."""
        meant = network_of(settings).known_brokers.meant(settings.bootstrap_servers)
        if not meant.cluster_id:
            return
        request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        found = self.request(request, MetadataResponse, timeout_s=timeout_s, version_max=_METADATA_MAX)
        if found.cluster_id and found.cluster_id != meant.cluster_id:
            alias = meant.alias or settings.cluster
            raise ChangedCluster(alias, meant.cluster_id, found.cluster_id, self.address).error

    def _learn_versions(self, timeout_s: float) -> None:
        request = ApiVersionsRequest(version=_API_VERSIONS_OF_EVERY_BROKER)
        response = self._exchange(request, ApiVersionsResponse, _API_VERSIONS_OF_EVERY_BROKER, timeout_s)
        self._is_proven = False
        check(response.error_code, f"{self.address}: ApiVersions")
        self.versions = {
            key.api_key: VersionRange(key.min_version, key.max_version) for key in response.api_keys
        }

    def version_of(self, api_key: int, name: str, low: int, high: int) -> int:
        """The highest version within [low, high] that the broker speaks, or UnsupportedVersionError."""
        offered = self.versions.get(api_key)
        if offered is None or offered.high < low or offered.low > high:
            spoken = "does not know" if offered is None else f"speaks v{offered.low} to v{offered.high} of"
            raise UnsupportedVersionError(f"{self.address} {spoken} {name}, needed is v{low} to v{high}")
        return min(offered.high, high)

    def request(self, request: Any, response_class: Any, *, timeout_s: float, version_max: int = 99) -> Any:
        """Send one of kafka-python's requests and wait for its response. Raises DisconnectedError."""
        high = min(request.max_version, version_max)
        version = self.version_of(request.API_KEY, request.name, request.min_version, high)
        return self._exchange(request, response_class, version, timeout_s)

    def throttle(self, throttle_s: float) -> None:
        """Note the throttle time of a response: the broker reads nothing until it is over (KIP-219).

        The next request waits for that, and its time-out begins then.
        """
        if throttle_s > 0:
            self._throttled_until = max(self._throttled_until, self._now() + throttle_s)

    @property
    def throttled_s(self) -> float:
        """Return for how long the broker still reads nothing."""
        return max(0.0, self._throttled_until - self._now())

    def _now(self) -> float:
        return 0.0 if self._settings is None else network_of(self._settings).time()

    def _await_throttle_end(self) -> None:
        while self._settings is not None and (throttled_s := self.throttled_s) > 0:
            network_of(self._settings).sleep(throttled_s)

    def send_all(
        self, requests: Sequence[Any], response_class: Any, *, timeout_s: float, version_max: int = 99
    ) -> Callable[[], list[Any]]:
        """Send requests of one kind at once; a call that waits for their responses, the next use of this.

        For small requests, so many that they fit the buffers of the stream. Raises DisconnectedError, as the
        call does: then it is unknown which of them arrived.
        """
        self._renew_session(timeout_s)
        frames, expected = [], []
        for request in requests:
            version = self.version_of(
                request.API_KEY, request.name, request.min_version, min(request.max_version, version_max)
            )
            expected.append((self.next_correlation_id(), version))
            frames.append(self._encode(request, version, expected[-1][0]))
        self._await_throttle_end()
        self._transport.set_timeout(timeout_s)
        self._channel.send(frames)

        def receive() -> list[Any]:
            """Brokers answer in the order of requests."""
            responses: list[Any] = []
            while len(responses) < len(requests):
                for frame in islice(self._channel.receive(), len(requests) - len(responses)):
                    correlation_id, version = expected[len(responses)]
                    responses.append(self._decode(frame, response_class, version))
                    self._transport.set_timeout(timeout_s + self.throttled_s)
                    if responses[-1].header.correlation_id != correlation_id:
                        raise DisconnectedError(f"{self.address} answered {requests[0].name} out of order")
            self._is_proven = True
            return responses

        return receive

    def next_correlation_id(self) -> int:
        return next(self._correlation_ids)

    def ask(self, frame: Sequence[bytes | memoryview], name: str, timeout_s: float) -> memoryview:
        """Send a whole frame made by hand and wait for the next one that comes. Raises DisconnectedError."""
        self._await_throttle_end()  # logins don't wait: what responds to them need not be a broker yet
        self._renew_session(timeout_s)
        try:
            response = self._ask(frame, name, timeout_s)
        except DisconnectedError as error:
            raise self._explained(error) from error
        self._is_proven = True
        return response

    def _ask(self, frame: Sequence[bytes | memoryview], name: str, timeout_s: float) -> memoryview:
        self._transport.set_timeout(timeout_s)
        self._channel.send(frame)
        for received in self._channel.receive():
            return received
        # A blocking transport ends a wait that is too long with a DisconnectedError of its own.
        raise DisconnectedError(f"{self.address} did not answer {name}")

    def _explained(self, error: DisconnectedError) -> DisconnectedError:
        """A broker that wants a login closes the connection at the first request that is none."""
        settings = self._settings
        if self._is_proven or not self.versions or settings is None or settings.sasl is not None:
            return error
        if not str(error).endswith("closed the connection"):
            return error
        protocol = f"SASL_{settings.security_protocol.value}"
        return DisconnectedError(f"{error}. If it wants a login, set security.protocol={protocol}")

    # logins

    def _log_in(self, timeout_s: float) -> None:
        assert self._login is not None
        self._login_at = math.inf
        steps = self._login.steps(self.versions)
        answer: Any = None
        while True:
            try:
                ask = steps.send(answer)
            except StopIteration as end:
                self._note_session(end.value)
                return
            frame = self._ask([self.encode_login(ask)], ask.request.name, timeout_s)
            answer = self.decode_login(ask, frame)

    def _note_session(self, session_s: float | None) -> None:
        self.session_s = session_s
        if session_s is not None and self._settings is not None:
            self._login_at = network_of(self._settings).time() + renewal_s(session_s)

    def _renew_session(self, timeout_s: float) -> None:
        if self._login_at == math.inf or self._settings is None:
            return
        if network_of(self._settings).time() < self._login_at:
            return
        try:
            self._log_in(timeout_s)
        except BaseException:
            self.close()  # the broker awaits a login, and nothing else
            raise

    @property
    def login(self) -> Login | None:
        return self._login

    def encode_login(self, ask: Ask) -> bytes:
        return self._encode(ask.request, ask.version, LOGIN_ID)

    def decode_login(self, ask: Ask, frame: memoryview) -> Any:
        return self._decode(frame, ask.response_class, ask.version)

    def into_channel(self) -> Channel:
        """Hand the stream over to a loop that never blocks; `request` must not be called any more."""
        self._transport.set_timeout(0)
        return self._channel

    def close(self) -> None:
        self._transport.close()

    def _exchange(self, request: Any, response_class: Any, version: int, timeout_s: float) -> Any:
        correlation_id = self.next_correlation_id()
        frame = self.ask([self._encode(request, version, correlation_id)], request.name, timeout_s)
        response = self._decode(frame, response_class, version)
        if response.header.correlation_id != correlation_id:
            raise DisconnectedError(f"{self.address} answered {request.name} out of order")
        return response

    def _encode(self, request: Any, version: int, correlation_id: int) -> bytes:
        request.API_VERSION = version
        request.with_header(correlation_id=correlation_id, client_id=self.client_id)
        return bytes(request.encode(version=version, header=True, framed=True))

    def _decode(self, frame: memoryview, response_class: Any, version: int) -> Any:
        try:
            response = without_nulls(response_class.decode(frame, version=version, header=True), version)
        except (*UNREADABLE, TypeError) as error:
            raise DisconnectedError(
                f"{self.address} sent what is no {response_class.__name__}; is this a Kafka port?"
            ) from error
        self.throttle((getattr(response, "throttle_time_ms", 0) or 0) / 1000)
        return response
