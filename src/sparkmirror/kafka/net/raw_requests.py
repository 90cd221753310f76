"""Sends requests that are encoded and decoded by hand, over a connection that blocks.

For responses about thousands of topics, which kafka-python's protocol classes take seconds to decode, and for
requests that it lacks.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.wire.primitives import INT32, UNREADABLE, Reader, request_header

_Decoded = TypeVar("_Decoded")


class Api(NamedTuple):
    """A kind of request, and the versions of it that this client encodes."""

    key: int
    name: str
    low: int
    high: int
    flexible_from: int


def call(
    connection: Connection,
    api: Api,
    encode_body: Callable[[int], bytes],
    decode: Callable[[Reader, int], _Decoded],
    timeout_s: float,
) -> _Decoded:
    """The decoded response; both functions get the version.

    `decode` reads from behind the response's header and throttle time. Raises UnsupportedVersionError, and
    DisconnectedError also for a response that can't be decoded.
    """
    version = connection.version_of(api.key, api.name, api.low, api.high)
    flexible = version >= api.flexible_from
    correlation_id = connection.next_correlation_id()
    head = request_header(api.key, version, correlation_id, connection.client_id, flexible=flexible)
    request = head + encode_body(version)
    frame = connection.ask([INT32.pack(len(request)), request], api.name, timeout_s)
    reader = Reader(frame, flexible=flexible)
    try:
        if reader.int32() != correlation_id:
            raise DisconnectedError(f"{connection.address} responded to {api.name} out of order")
        reader.skip_tags()
        connection.throttle(reader.int32() / 1000)
        return decode(reader, version)
    except UNREADABLE as error:
        raise DisconnectedError(f"{connection.address} sent what is no response to {api.name}") from error
