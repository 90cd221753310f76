"""Kafka's frames on a transport: a 4-byte size, then that many bytes. Never blocks, copies no payload."""

import struct
from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.network import Transport

_SIZE = struct.Struct(">i")
_FRAME_BYTES_MAX = 1 << 30
_FIRST_FRAME_BYTES_MAX = 1 << 20
_TLS_ALERT = b"\x15\x03"
"""The first bytes of a TLS port's answer to plaintext; read as a size, 336 MiB."""


class Channel:
    """Queues what is to be sent and assembles what arrives. `address` names the other end in errors."""

    def __init__(self, transport: Transport, address: str) -> None:
        self._transport = transport
        self._address = address
        # A buffer as large as announced is only for those who have shown that they are brokers: the first
        # bytes of a TLS alert would announce 336 MiB (KAFKA-4090).
        self._frame_bytes_max = _FIRST_FRAME_BYTES_MAX
        self._outgoing: deque[bytes | memoryview] = deque()
        self._outgoing_bytes = 0
        self._size = memoryview(bytearray(_SIZE.size))
        self._frame: memoryview | None = None
        self._filled = 0

    def fileno(self) -> int:
        return self._transport.fileno()

    def close(self) -> None:
        self._transport.close()

    @property
    def wants_write(self) -> bool:
        return bool(self._outgoing)

    def send(self, buffers: Sequence[bytes | memoryview]) -> None:
        """Queue one frame (its size prefix included) and send what fits now."""
        self._outgoing.extend(buffers)
        self._outgoing_bytes += sum(map(len, buffers))
        self.flush()

    def flush(self) -> None:
        """Send what fits now. Raises DisconnectedError."""
        outgoing = self._outgoing
        while outgoing:
            sent = self._transport.send(list(outgoing))
            if sent == 0:
                return
            self._outgoing_bytes -= sent
            if self._outgoing_bytes == 0:
                outgoing.clear()
                return
            while sent >= len(outgoing[0]):
                sent -= len(outgoing.popleft())
            if sent:
                outgoing[0] = outgoing[0][sent:]

    def receive(self) -> Iterator[memoryview]:
        """Yield the frames that are complete, each in a buffer of its own. Raises DisconnectedError."""
        while True:
            into = self._size if self._frame is None else self._frame
            if self._filled < len(into):
                received = self._transport.receive_into(into[self._filled :])
                if received is None:
                    return
                self._filled += received
                continue
            self._filled = 0
            if self._frame is None:
                # Not cleared first, as a bytearray is: that was a twentieth of a copy task's time.
                self._frame = np.empty(self._announced_size(), np.uint8).data
            else:
                frame, self._frame = self._frame, None
                self._frame_bytes_max = _FRAME_BYTES_MAX
                yield frame

    def _announced_size(self) -> int:
        size: int = _SIZE.unpack(self._size)[0]
        if bytes(self._size[:2]) == _TLS_ALERT:
            raise DisconnectedError(
                f"{self._address} speaks TLS: set security.protocol=SSL, or SASL_SSL if it wants a login"
            )
        if not 0 < size <= self._frame_bytes_max:
            raise DisconnectedError(
                f"{self._address} announced an answer of {size} bytes; is this a Kafka port?"
            )
        return size
