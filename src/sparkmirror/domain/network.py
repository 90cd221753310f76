"""Defines byte streams to brokers, interruptible waits, and how addresses are written."""

from collections.abc import Sequence
from typing import Protocol
from urllib.parse import urlsplit


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
        """Return how many bytes arrived, at least one; None when there are none now.

        Raises DisconnectedError.
        """
        ...

    def send(self, buffers: Sequence[bytes | memoryview]) -> int:
        """Return how many bytes were taken, 0 when none fit now. Raises DisconnectedError."""
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


def authority_of(url: str) -> str | None:
    """Host and port, None if it is no URL."""
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return None
