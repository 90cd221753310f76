"""Holds the settings of a connection, a consumer and a producer, as values, and the network that opens it.

`config.clients` makes them from Kafka's dotted properties; `kafka` builds clients from them. Times are
seconds, sizes bytes. No repr shows a secret.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal, NamedTuple, Protocol

from sparkmirror.domain.known_brokers import KnownBrokers
from sparkmirror.domain.network import Interruption, Transport, host_port
from sparkmirror.domain.sasl import SaslSettings
from sparkmirror.domain.tls import TlsSettings

DECOMPRESSED_BYTES_MAX: Final = 64 << 20
"""`batch.decompressed.bytes.max`: 64 times what a broker accepts as a batch by default. To re-encode a batch
that reaches it takes three to four times as much, which fits beside a task's buffer into the memory overhead
that Spark gives an executor by default (384 MiB)."""


class SecurityProtocol(Enum):
    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def is_encrypted(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_login(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class OffsetReset(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"
    TIME = "time"
    """Begin at the first record since a time; set only by `start.at`."""


class StartTime(NamedTuple):
    """A time in epoch ms, or so many ms before now."""

    at_ms: int | None = None
    before_ms: int = 0

    def ms(self, now_ms: int) -> int:
        return max(0, now_ms - self.before_ms) if self.at_ms is None else max(0, self.at_ms)


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Tells how to reach one cluster. Defaults are those of Kafka's Java clients."""

    bootstrap_servers: tuple[tuple[str, int], ...]
    client_id: str = "sparkmirror"
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: TlsSettings | None = None
    """Set where the protocol is encrypted."""
    sasl: SaslSettings | None = None
    """Set where the protocol has a login."""
    request_timeout_s: float = 30.0
    connect_timeout_s: float = 10.0
    reconnect_backoff_s: float = 0.05
    reconnect_backoff_max_s: float = 1.0
    retry_backoff_s: float = 0.1
    retry_backoff_max_s: float = 1.0
    metadata_max_age_s: float = 300.0
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    """-1 leaves the size to the operating system, which tunes it to the link; Java's clients fix 64 KiB."""
    network: "Network | None" = field(default=None, compare=False, repr=False)
    """Sockets and clock; None for those of the operating system."""
    alias: str = field(default="", compare=False)
    """The cluster's alias, for errors; empty where the configuration has none."""

    @property
    def holds_secrets(self) -> bool:
        return (self.tls is not None and self.tls.holds_secrets) or (
            self.sasl is not None and self.sasl.holds_secrets
        )

    @property
    def cluster(self) -> str:
        """The cluster in errors: its alias, else its bootstrap servers."""
        return self.alias or self.servers

    @property
    def servers(self) -> str:
        """The bootstrap servers as an option of Kafka's tools takes them."""
        return ",".join(host_port(host, port) for host, port in self.bootstrap_servers)


class Network(Protocol):
    """Opens transports. Callers that block measure and wait by its clock, so that both may be virtual."""

    @property
    def known_brokers(self) -> KnownBrokers:
        """Return what all clients of this network know of brokers."""
        ...

    def connect(self, host: str, port: int, settings: ConnectionSettings) -> Transport:
        """Connect within `connect_timeout_s`. Raises DisconnectedError naming the address, ConfigError."""
        ...

    def time(self) -> float:
        """Seconds of a clock that never goes back."""
        ...

    def sleep(self, seconds: float) -> None: ...

    def boottime(self) -> float:
        """Return seconds like `time`, which continue while the machine is suspended."""
        ...

    def interruption(self) -> Interruption: ...

    def lock(self) -> AbstractContextManager[object]:
        """A new lock, for callers that hold it while they wait for a broker."""
        ...


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """Tells how to fetch; defaults are those of Kafka 4.3's consumer as MM2 uses it."""

    connection: ConnectionSettings
    fetch_bytes_max: int = 52428800
    partition_fetch_bytes_max: int = 1048576
    fetch_bytes_min: int = 1
    fetch_wait_max_s: float = 0.5
    offset_reset: OffsetReset = OffsetReset.EARLIEST
    start_time: StartTime | None = None
    """Set where `offset_reset` is TIME."""
    read_committed: bool = False
    check_crcs: bool = True
    client_rack: str = ""


Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """Tells how to produce; `acks` is Connect's default, not the plain producer's.

    `compression` is None unless the user asked for a codec: batches then keep the source's. `idempotent` is
    False only where the user turned it off: records may then come twice after a crash.
    """

    connection: ConnectionSettings
    acks: Literal[-1, 1] = -1
    request_bytes_max: int = 1048576
    in_flight_max: int = 5
    compression: Codec | None = None
    idempotent: bool = True
    followers_wait_max_s: float | None = None
    """The longest time that a broker waits for followers; None for as long as a request may take."""
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
    """The largest decompressed size of a batch that is split because it is too large for the target."""

    @property
    def followers_timeout_s(self) -> float:
        timeout_s = self.connection.request_timeout_s
        return timeout_s if self.followers_wait_max_s is None else min(timeout_s, self.followers_wait_max_s)
