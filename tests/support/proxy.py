"""Puts TCP proxies before brokers, which inject network faults: delays, throttling, cuts, silence.

Clients that connect to a proxy stay with the proxies: brokers' own addresses are replaced in Metadata and
FindCoordinator responses, so brokers need no settings for this, and clients that connect to them directly see
no fault. The proxies run in a process of their own (`proxy_process`), which ends with ours: they take no time
of our interpreter, and ours can't disturb their clocks.

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
    """The kinds of request that traps wait for, by Kafka's keys."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    FIND_COORDINATOR = 10
    API_VERSIONS = 18
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    END_TXN = 26


class Deed(Enum):
    """How a connection is disturbed."""

    RESET = "reset"
    """Both ends get a RST; what is on its way is lost."""

    END = "end"
    """Both ends get a FIN; what is on its way is lost."""

    SILENCE = "silence"
    """It stays open, and nothing comes through any more."""

    HOLD = "hold"
    """It stays open, and what comes waits for `restore`: it arrives late, and whole."""

    SWALLOW = "swallow"
    """The rest of this one frame is lost, and everything else comes through."""


class Moment(Enum):
    """When a trap springs: at which frame, and how much of it is passed on before."""

    REQUEST_HALF_SENT = ("request", 0.5)
    REQUEST_SENT = ("request", 1.0)
    """The broker's kernel has all of it; whether the broker reads it is open."""

    ANSWER_DUE = ("answer", 0.0)
    """The broker has carried out the request, and the client gets no response."""

    ANSWER_HALF_SENT = ("answer", 0.5)


@dataclass(frozen=True, slots=True)
class Figures:
    """What went through a proxy; `requests` and `answers` count frames by API key."""

    connections: int
    """Open now."""
    opened: int
    requests: Counter[int]
    answers: Counter[int]
    sprung: int
    """Traps that have sprung."""
    produce_requests_peak: int
    """The most Produce requests that one connection had under way, seen from the client."""
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
        """Pass on everything again, accept all clients. What was held back arrives late; no trap is left."""
        self._do("restore")

    def delay(self, *, to_broker_s: float = 0.0, to_client_s: float = 0.0) -> None:
        """Each byte travels so long. The bandwidth stays: many megabytes may be on their way."""
        self._do("delay", to_broker_s=to_broker_s, to_client_s=to_client_s)

    def throttle(self, *, to_broker: float | None = None, to_client: float | None = None) -> None:
        """Bytes per second of each connection; None for as fast as it goes."""
        self._do("throttle", to_broker=to_broker, to_client=to_client)

    def silence(self) -> None:
        """Accept connections and bytes, pass nothing on."""
        self._do("silence")

    def refuse(self) -> None:
        """Refuse new connections; those that are open stay."""
        self._do("refuse")

    def cut(self, deed: Deed = Deed.RESET) -> None:
        """End every connection now."""
        self._do("cut", deed=deed.value)

    def half_close(self) -> None:
        """On every connection the client reads an end; what it sends is passed on all the same."""
        self._do("half_close")

    def move(self) -> None:
        """To another port, which Metadata answers name from now on; open connections are reset."""
        self.port = self._do("move")

    def on_next(self, api: Api, moment: Moment, deed: Deed, *, after: int = 0) -> None:
        """Let `after` frames of this kind pass and spring on the next one, once, on any connection."""
        kind, part = moment.value
        self._do("on_next", api=int(api), kind=kind, part=part, deed=deed.value, after=after)

    @property
    def figures(self) -> Figures:
        answer = self._do("figures")
        for name in ("requests", "answers"):
            answer[name] = Counter({int(api): count for api, count in answer[name].items()})
        return Figures(**answer)

    def await_figures(self, holds: Callable[[Figures], bool], timeout_s: float = 10.0) -> Figures:
        """The first ones for which that holds."""
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
        """The end of its input ends it."""
        for pipe in (self._child.stdin, self._child.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()
        self._child.wait()


@contextmanager
def proxied(*brokers: Address) -> Iterator[list[Proxy]]:
    """A proxy before each of these brokers of one cluster, in their order."""
    process = _ProxyProcess(brokers)
    try:
        yield [Proxy(process, number, port) for number, port in enumerate(process.ports)]
    finally:
        process.close()
