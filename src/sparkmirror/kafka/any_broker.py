"""Questions that any broker of a cluster can answer, in requests made by hand.

For answers about thousands of topics, which kafka-python's protocol classes take seconds to decode.
"""

import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError, KafkaError
from sparkmirror.kafka.connection import Connection
from sparkmirror.kafka.metadata import connect_to_any
from sparkmirror.kafka.wire import INT32, Reader, request_header

UNREADABLE: Final = (IndexError, struct.error, UnicodeDecodeError, ValueError)
"""What decoding raises where an answer ends too early or holds something else."""


class Api(NamedTuple):
    """A kind of request, and the versions of it that are spoken here."""

    key: int
    name: str
    low: int
    high: int
    flexible_from: int


class Answer(NamedTuple):
    """Everything behind the header."""

    version: int
    reader: Reader


class AnyBroker:
    """Keeps a connection; one that was lost is made anew. Every method blocks. One owner."""

    def __init__(self, settings: ConnectionSettings, cluster: str) -> None:
        """`cluster` names it in errors: an alias."""
        self.cluster = cluster
        self._settings = settings
        self._connection: Connection | None = None

    def ask(self, action: str, api: Api, body: Callable[[int], bytes]) -> Answer:
        """`body` makes a request of a version. Raises KafkaError, which says the action."""
        try:
            if self._connection is not None:
                try:
                    return self._exchange(self._connection, api, body)
                except DisconnectedError:
                    self.close()
            self._connection = connect_to_any(self._settings)
            return self._exchange(self._connection, api, body)
        except KafkaError as error:
            self.close()
            raise type(error)(f"{action} on {self.cluster}: {error}", error.code) from error

    def unreadable(self, api: Api) -> DisconnectedError:
        """What to raise when an answer can't be decoded."""
        self.close()
        return DisconnectedError(f"{self.cluster} sent what is no answer to {api.name}")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, connection: Connection, api: Api, body: Callable[[int], bytes]) -> Answer:
        version = connection.version_of(api.key, api.name, api.low, api.high)
        flexible = version >= api.flexible_from
        correlation_id = connection.next_correlation_id()
        head = request_header(api.key, version, correlation_id, connection.client_id, flexible=flexible)
        request = head + body(version)
        frame = connection.ask(
            [INT32.pack(len(request)), request], api.name, self._settings.request_timeout_s
        )
        reader = Reader(frame, flexible=flexible)
        if reader.int32() != correlation_id:
            raise DisconnectedError(f"{connection.address} answered {api.name} out of order")
        reader.skip_tags()
        return Answer(version, reader)
