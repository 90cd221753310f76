"""The border to the network: byte streams to brokers, and the clock by which callers wait for them."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from sparkmirror.domain.known_brokers import KnownBrokers

if TYPE_CHECKING:
    from sparkmirror.domain.client_settings import ConnectionSettings


def host_port(host: str, port: int) -> str:
    """An address as Kafka's tools take it: IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Transport(Protocol):
    """A stream that never blocks once `set_timeout(0)` was called.

    Readers read until `receive_into` returns None, so that nothing stays behind in a TLS layer's buffer.
    """

    def fileno(self) -> int: ...

    def set_timeout(self, timeout_s: float) -> None: ...

    def receive_into(self, view: memoryview) -> int | None:
        """How many bytes arrived, at least one; None when there are none now. Raises DisconnectedError."""
        ...

    def send(self, buffers: Sequence[bytes | memoryview]) -> int:
        """How many bytes were taken, 0 when none fit now. Raises DisconnectedError."""
        ...

    def close(self) -> None: ...


class InterruptedWaitError(Exception):
    """Another thread called `Interruption.set`."""


class Interruption(Protocol):
    """Interrupts one thread's `wait`; `set` may be called in any thread."""

    def set(self) -> None:
        """Make the current wait, or else the next one, raise; each call interrupts one wait."""
        ...

    def wait(self, timeout_s: float, fileno: int | None = None) -> bool:
        """Whether the transport of that descriptor can be read, or has ended. Raises InterruptedWaitError."""
        ...

    def close(self) -> None: ...


class Network(Protocol):
    """Opens transports. Callers that block measure and wait by its clock, so that both may be virtual."""

    @property
    def known_brokers(self) -> KnownBrokers:
        """What all clients of this network know of brokers."""
        ...

    def connect(self, host: str, port: int, settings: "ConnectionSettings") -> Transport:
        """Connect within `connect_timeout_s`. Raises DisconnectedError naming the address, ConfigError."""
        ...

    def time(self) -> float:
        """Seconds of a clock that never goes back."""
        ...

    def sleep(self, seconds: float) -> None: ...

    def boottime(self) -> float:
        """As `time`, but it goes on while the machine is suspended."""
        ...

    def interruption(self) -> Interruption: ...

    def lock(self) -> AbstractContextManager[object]:
        """A new lock, for callers that hold it while they wait for a broker."""
        ...


def authority_of(url: str) -> str | None:
    """Host and port, None if it is no URL."""
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return None
