"""Questions that any broker of a cluster can answer.

In kafka-python's protocol classes, or by hand: for answers about thousands of topics, which those classes
take seconds to decode.
"""

import struct
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final, NamedTuple, TypeVar

from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError, KafkaError, RetriableError
from sparkmirror.kafka.connection import Connection
from sparkmirror.kafka.metadata import connect_to_any
from sparkmirror.kafka.wire import INT32, Reader, request_header

UNREADABLE: Final = (IndexError, struct.error, UnicodeDecodeError, ValueError)
"""What decoding raises where an answer ends too early or holds something else."""

_METADATA_VERSION_MAX: Final = 12

_Answer = TypeVar("_Answer")


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
        return self._asked(action, lambda connection: self._exchange(connection, api, body))

    def request(self, action: str, request: Any, response_class: Any) -> Any:
        """The response to one of kafka-python's requests. Raises KafkaError, which says the action.

        A request may be sent twice, when the connection breaks before its answer.
        """
        timeout_s = self._settings.request_timeout_s
        return self._asked(
            action, lambda connection: connection.request(request, response_class, timeout_s=timeout_s)
        )

    def request_of_controller(self, action: str, request: Any, response_class: Any) -> Any:
        """As `request`, of the broker that is named as the controller.

        With ZooKeeper no other does what is asked of it; with KRaft any broker is named, and sends it on.
        """
        return self._asked(
            action, lambda connection: self._from_controller(connection, request, response_class)
        )

    def unreadable(self, api: Api) -> DisconnectedError:
        """What to raise when an answer can't be decoded."""
        self.close()
        return DisconnectedError(f"{self.cluster} sent what is no answer to {api.name}")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _asked(self, action: str, exchange: Callable[[Connection], _Answer]) -> _Answer:
        try:
            if self._connection is not None:
                try:
                    return exchange(self._connection)
                except DisconnectedError:
                    self.close()
            self._connection = connect_to_any(self._settings)
            return exchange(self._connection)
        except KafkaError as error:
            self.close()
            raise type(error)(f"{action} on {self.cluster}: {error}", error.code) from error

    def _from_controller(self, connection: Connection, request: Any, response_class: Any) -> Any:
        timeout_s = self._settings.request_timeout_s
        asked = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        told = connection.request(
            asked, MetadataResponse, timeout_s=timeout_s, version_max=_METADATA_VERSION_MAX
        )
        for broker in told.brokers:
            if broker.node_id == told.controller_id:
                with closing(Connection.open(broker.host, broker.port, self._settings)) as controller:
                    return controller.request(request, response_class, timeout_s=timeout_s)
        raise RetriableError("the cluster has no controller for the moment")

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
