"""A broker in memory whose requests a test sees before they are carried out, and may hold back."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.memory.cluster import MemoryBroker
from tests.memory.network import MemoryNetwork, Respond
from tests.memory.requests import HANDLED


class Request(NamedTuple):
    frame: bytes

    @property
    def api_key(self) -> int:
        return int.from_bytes(self.frame[:2], "big")

    def decoded(self) -> Any:
        """Decode a request as one of kafka-python's."""
        version = int.from_bytes(self.frame[2:4], "big")
        request_class = HANDLED[self.api_key].request_class
        return request_class.decode(memoryview(self.frame), version=version, header=True)


Act = Callable[[Request, Callable[[], None]], None]
"""Gets a request, and the call that carries it out: at once, or later by a timer of the cluster's clock."""


class InterceptedBroker:
    """An `Endpoint` in front of a broker."""

    def __init__(self, broker: MemoryBroker, act: Act) -> None:
        self._broker = broker
        self._act = act

    @property
    def is_up(self) -> bool:
        return self._broker.is_up

    def receive(self, request: bytes, respond: Respond) -> None:
        self._act(Request(request), lambda: self._broker.receive(request, respond))


def intercept(network: MemoryNetwork, broker: MemoryBroker, act: Act) -> None:
    """Let `act` see every request to this broker on connections that are opened from now on."""
    network.add(broker.host, broker.port, InterceptedBroker(broker, act))


def note_requests(network: MemoryNetwork, broker: MemoryBroker, api_key: int) -> list[Any]:
    """The decoded requests of a kind to this broker, filled as they come."""
    noted: list[Any] = []

    def note(request: Request, carry_out: Callable[[], None]) -> None:
        if request.api_key == api_key:
            noted.append(request.decoded())
        carry_out()

    intercept(network, broker, note)
    return noted
