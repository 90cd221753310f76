"""The operating system's network for one reader: a test sees its Fetch requests and disturbs them."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from kafka.protocol.consumer import FetchRequest

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.network import Transport
from sparkmirror.kafka.net.transport import SocketNetwork

_WRONG_EPOCH: Final = 4711


class FetchTap(SocketNetwork):
    """A value for `ConnectionSettings.network`. `requests` counts the requests by API key."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: Counter[int] = Counter()
        self.sessions: list[int] = []
        """The session of each Fetch request, 0 for a new one."""
        self._loses_session = False
        self._fetching: list[_Tapped] = []

    def connect(self, host: str, port: int, settings: ConnectionSettings) -> Transport:
        return _Tapped(self, super().connect(host, port, settings))

    def lose_session(self) -> None:
        """Let the broker find that it does not have the session of the next Fetch."""
        self._loses_session = True

    def drop(self, error: DisconnectedError) -> None:
        """End the connections over which was fetched, at their next use."""
        for connection in self._fetching:
            connection.error = error
        self._fetching = []

    def sent(self, frame: bytes, connection: "_Tapped") -> bytes:
        """The frame to send instead."""
        api_key, version = (int.from_bytes(frame[at : at + 2], "big") for at in (4, 6))
        self.requests[api_key] += 1
        if api_key != FetchRequest.API_KEY:
            return frame
        request = FetchRequest.decode(memoryview(frame)[4:], version=version, header=True)
        self.sessions.append(request.session_id)
        if connection not in self._fetching:
            self._fetching.append(connection)
        if not self._loses_session:
            return frame
        self._loses_session = False
        request.session_epoch = _WRONG_EPOCH
        return bytes(request.encode(version=version, header=True, framed=True))


class _Tapped:
    def __init__(self, tap: FetchTap, inner: Transport) -> None:
        self.error: DisconnectedError | None = None
        self._tap = tap
        self._inner = inner

    def fileno(self) -> int:
        return self._inner.fileno()

    def set_timeout(self, timeout_s: float) -> None:
        self._inner.set_timeout(timeout_s)

    def receive_into(self, view: memoryview) -> int | None:
        self._check()
        return self._inner.receive_into(view)

    def send(self, buffers: Sequence[bytes | memoryview]) -> int:
        """A request of a reader is one frame, and small enough to be sent at once."""
        self._check()
        frame = b"".join(buffers)
        sent = self._inner.send([self._tap.sent(frame, self)])
        assert sent == len(frame)
        return sent

    def close(self) -> None:
        self._inner.close()

    def _check(self) -> None:
        if self.error is not None:
            raise self.error
