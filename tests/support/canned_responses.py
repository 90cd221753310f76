"""A cluster of one broker that sends prepared responses, without a network."""

from collections.abc import Iterable, Sequence

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.wire.primitives import INT32

NAME = "there"


class CannedConnection(Connection):
    """Sends one response after the other, in the chosen version."""

    def __init__(self, responses: Iterable[bytes], version: int, *, flexible: bool) -> None:
        self.address = NAME
        self.client_id = "me"
        self.requests: list[bytes] = []
        self._responses = iter(responses)
        self._version = version
        self._header_end = b"\0" if flexible else b""
        self._asked = 0

    def version_of(self, *_: object) -> int:
        return self._version

    def next_correlation_id(self) -> int:
        self._asked += 1
        return self._asked

    def ask(self, frame: Sequence[bytes | memoryview], *_: object) -> memoryview:
        self.requests.append(b"".join(map(bytes, frame)))
        return memoryview(INT32.pack(self._asked) + self._header_end + next(self._responses))

    def throttle(self, throttle_s: float) -> None: ...

    def close(self) -> None: ...


def cluster_of(connection: Connection) -> Cluster:
    settings = ConnectionSettings(((NAME, 9092),), alias=NAME)
    return Cluster(settings, open_connection=lambda *_: connection)
