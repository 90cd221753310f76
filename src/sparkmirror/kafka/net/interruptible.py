"""Waits for responses of brokers in a way that the connection's owner decides, and may end at any time."""

from collections.abc import Callable, Sequence

from sparkmirror.domain.client_settings import ConnectionSettings, Network
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.known_brokers import Address
from sparkmirror.domain.network import Transport, host_port
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.net.transport import network_of

Pause = Callable[[int, float], object]
"""Returns when this descriptor can be read, after so many seconds, or sooner. May raise to end the wait."""


class InterruptibleConnection(Connection):
    """Waits for responses by its owner's `pause`. Only connecting blocks, for `connect_timeout_s` at most."""

    def __init__(
        self, transport: Transport, address: str, client_id: str, pause: Pause, network: Network
    ) -> None:
        super().__init__(transport, address, client_id)
        self._pause = pause
        self._network = network
        self.is_busy = False
        """A response is due: a broker reads nothing else on a connection before it has sent that."""

    @classmethod
    def connect(
        cls, address: Address, settings: ConnectionSettings, pause: Pause
    ) -> "InterruptibleConnection":
        """Open a connection. Raises what `open` and `pause` raise."""
        host, port = address
        network = network_of(settings)
        transport = network.connect(host, port, settings)
        connection = cls(transport, host_port(host, port), settings.client_id, pause, network)
        connection.negotiate(host, settings, settings.request_timeout_s)
        return connection

    def fileno(self) -> int:
        return self.into_channel().fileno()

    def _ask(self, frame: Sequence[bytes | memoryview], name: str, timeout_s: float) -> memoryview:
        deadline = self._network.time() + timeout_s
        channel = self.into_channel()
        self.is_busy = True
        channel.send(frame)
        while True:
            for response in channel.receive():
                self.is_busy = False
                return response
            left_s = deadline - self._network.time()
            if left_s <= 0:
                raise DisconnectedError(f"{self.address} did not answer {name} within {timeout_s:.1f} s")
            self._pause(channel.fileno(), left_s)
            channel.flush()

    def _await_throttle_end(self) -> None:
        while (throttled_s := self.throttled_s) > 0:
            self._pause(self.fileno(), throttled_s)
            self.check_idle()

    def check_idle(self) -> None:
        """Raise DisconnectedError if anything can be read without a request, usually the stream's end."""
        for _ in self.into_channel().receive():
            raise DisconnectedError(f"{self.address} sent a response to no request")
