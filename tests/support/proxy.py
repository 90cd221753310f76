"""Puts TCP proxies before brokers, which inject network faults: delays, throttling, cuts, silence.

Clients that connect to a proxy stay with the proxies: brokers' own addresses are replaced in Metadata and
FindCoordinator responses, so brokers need no settings for this, and clients that connect to them directly see
no fault. The proxies run in a process of their own (`proxy_process`), which ends with this one, so that the
two interpreters do not delay each other.

Sizes are bytes, times seconds, rates bytes per second.
"""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any, Final

HOST: Final = "127.0.0.1"
_ROOT: Final = Path(__file__).parents[2]
_POLL_S: Final = 0.005

Address = tuple[str, int]


class Api(IntEnum):
    """The kinds of request that can be disrupted, by Kafka's API keys."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    FIND_COORDINATOR = 10
    API_VERSIONS = 18
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    END_TXN = 26
    WRITE_TXN_MARKERS = 27


class Disruption(Enum):
    """A fault of a single connection."""

    RESET = "reset"
    """Both ends get a RST; bytes in flight are lost."""

    END = "end"
    """Both ends get a FIN; bytes in flight are lost."""

    SILENCE = "silence"
    """The connection stays open, and no more bytes are forwarded."""

    HOLD = "hold"
    """The connection stays open, and bytes are held until `restore` and then forwarded."""

    SWALLOW = "swallow"
    """The rest of this frame is lost; everything else is forwarded."""


class Moment(Enum):
    """The frame at which a disruption happens, and the part of it that is forwarded before."""

    REQUEST_HALF_SENT = ("request", 0.5)
    REQUEST_SENT = ("request", 1.0)
    """The broker's kernel has all of it; the broker may or may not read it."""

    ANSWER_DUE = ("answer", 0.0)
    """The broker has processed the request, and the client gets no response."""

    ANSWER_HALF_SENT = ("answer", 0.5)


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of a proxy; `requests` and `answers` are numbers of frames by API key."""

    connections: int
    """Connections that are open now."""
    opened: int
    requests: Counter[int]
    answers: Counter[int]
    disruptions: int
    """Planned disruptions that have happened."""
    produce_requests_peak: int
    """The most Produce requests that one connection had in flight, seen from the client."""
    produce_bytes_peak: int


class Proxy:
    """One broker's proxy, in another process. Every method takes effect before it returns."""

    def __init__(self, process: "_ProxyProcess", number: int, port: int) -> None:
        self._process = process
        self._number = number
        self.port = port

    @property
    def address(self) -> Address:
        return HOST, self.port

    def restore(self) -> None:
        """Forward everything again, held bytes first, accept all clients, and drop planned disruptions."""
        self._do("restore")

    def delay(self, *, to_broker_s: float = 0.0, to_client_s: float = 0.0) -> None:
        """Delay every byte without a limit of the bandwidth: megabytes may be in flight."""
        self._do("delay", to_broker_s=to_broker_s, to_client_s=to_client_s)

    def throttle(self, *, to_broker: float | None = None, to_client: float | None = None) -> None:
        """Limit bytes per second of each connection; None for no limit."""
        self._do("throttle", to_broker=to_broker, to_client=to_client)

    def silence(self) -> None:
        """Accept connections and bytes and forward nothing."""
        self._do("silence")

    def refuse(self) -> None:
        """Refuse new connections and keep open ones."""
        self._do("refuse")

    def cut(self, disruption: Disruption = Disruption.RESET) -> None:
        """End every connection now."""
        self._do("cut", disruption=disruption.value)

    def half_close(self) -> None:
        """End every connection towards the client; what the client sends is still forwarded."""
        self._do("half_close")

    def move(self) -> None:
        """Listen on another port, which Metadata responses have from now on; open connections are reset."""
        self.port = self._do("move")

    def disrupt_next(self, api: Api, moment: Moment, disruption: Disruption, *, after: int = 0) -> None:
        """Plan a disruption at the next frame of this kind on any connection, after `after` other ones."""
        kind, part = moment.value
        self._do("disrupt_next", api=int(api), kind=kind, part=part, disruption=disruption.value, after=after)

    @property
    def figures(self) -> Figures:
        answer = self._do("figures")
        for name in ("requests", "answers"):
            answer[name] = Counter({int(api): count for api, count in answer[name].items()})
        return Figures(**answer)

    def await_figures(self, holds: Callable[[Figures], bool], timeout_s: float = 10.0) -> Figures:
        """Wait for figures for which `holds` is true."""
        deadline = time.monotonic() + timeout_s
        while not holds(figures := self.figures):
            assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {figures}"
            time.sleep(_POLL_S)
        return figures

    def _do(self, method: str, **arguments: object) -> Any:
        return self._process.ask({"proxy": self._number, "do": method, "with": arguments})


class _ProxyProcess:
    def __init__(self, brokers: Sequence[Address]) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.support.proxy_process", json.dumps(list(brokers))],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.ports: list[int] = self._answer()

    def ask(self, command: dict[str, object]) -> Any:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(command) + "\n")
        self._child.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        assert line, f"the proxies ended with {self._child.wait()}"
        return json.loads(line)

    def close(self) -> None:
        """Close the child's stdin, which ends it."""
        for pipe in (self._child.stdin, self._child.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()
        self._child.wait()


@contextmanager
def proxied(*brokers: Address) -> Iterator[list[Proxy]]:
    """Start a proxy for each of these brokers of one cluster, in their order."""
    process = _ProxyProcess(brokers)
    try:
        yield [Proxy(process, number, port) for number, port in enumerate(process.ports)]
    finally:
        process.close()
