"""Measures a Connect worker's REST API: polls while connectors change, and what many connectors leave.

First all connectors are created, and polled by clients in a process of their own while some of them are
paused, resumed, reconfigured, deleted and created again. Then rounds: all are created, reconfigured and
deleted, under new names each time.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import NamedTuple

from bench.background import in_background
from bench.bed import Bed
from bench.connect_worker import Worker, running_worker
from bench.errors import BenchError
from bench.measures import Percentiles
from bench.plan import Rest
from bench.results import RestLoadRun, RestRoundsRun
from bench.side_process import probe
from bench.sides import TARGET_ALIAS, Side

PER_CLIENT_PER_S = 5
CHANGES_PER_S = 5
CHANGING = 20
"""The number of polled connectors that change."""
SOURCE_EVERY = 20
"""Every so manyth connector is a MirrorSourceConnector that has no topics, the others emit heartbeats."""
HEARTBEAT_S = 10
SETTLED_S = 2.0
_FLOOR_S = 5.0
_POLLED = "polled"


def floor(planned: Rest) -> RestLoadRun:
    """Measure the clients' requests to a server that does nothing."""
    planned = replace(planned, seconds=min(_FLOOR_S, planned.seconds))
    with probe("bench.rest_clients", "--floor") as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        seen = _Polling(url, planned).all(_paths(planned))
    return _load_run(None, planned, seen, Counter(), 0.0)


def measure(bed: Bed, side: Side, planned: Rest) -> tuple[RestLoadRun, RestRoundsRun]:
    with running_worker(bed, side, {}) as worker:
        connectors = _Connectors(bed, worker, planned.connectors)
        load = _under_load(side, worker, connectors, planned)
        connectors.delete(_POLLED)
        return load, _rounds(side, worker, connectors, planned)


def _under_load(side: Side, worker: Worker, connectors: "_Connectors", planned: Rest) -> RestLoadRun:
    connectors.put(_POLLED, HEARTBEAT_S)
    worker.codes.clear()
    polling = _Polling(worker.url, planned)
    with polling.ready(_paths(planned)), in_background(partial(_changing, worker, connectors)):
        before_s = worker.cpu_s()
        seen = polling.seen()
        cpu_s = worker.cpu_s() - before_s
    return _load_run(side, planned, seen, worker.codes, cpu_s)


def _rounds(side: Side, worker: Worker, connectors: "_Connectors", planned: Rest) -> RestRoundsRun:
    seconds, cpu_s, held, with_all = [], [], [], None
    worker.codes.clear()
    for number in range(planned.rounds):
        began, before_s = time.monotonic(), worker.cpu_s()
        connectors.put(f"round{number}", HEARTBEAT_S)
        with_all = worker.holdings()
        connectors.put(f"round{number}", HEARTBEAT_S + 1)
        connectors.delete(f"round{number}")
        seconds.append(time.monotonic() - began)
        cpu_s.append(worker.cpu_s() - before_s)
        time.sleep(SETTLED_S)
        held.append(worker.holdings())
    assert with_all is not None
    return RestRoundsRun(
        side=side,
        connectors=planned.connectors,
        seconds=tuple(seconds),
        cpu_s=tuple(cpu_s),
        held=tuple(held),
        held_with_all=with_all,
        codes=_texts(worker.codes),
    )


class _Connectors:
    """Connectors that the worker is asked to run."""

    def __init__(self, bed: Bed, worker: Worker, count: int) -> None:
        self._bed = bed
        self._worker = worker
        self.count = count

    def put(self, prefix: str, interval_s: int) -> None:
        """Create or reconfigure, one after the other; return when all run."""
        names = _names(prefix, self.count)
        for number in range(self.count):
            self.put_one(prefix, number, interval_s)
        tasks = sum(not _is_source(number) for number in range(self.count))
        self._worker.await_true(
            lambda: self._worker.running(names) == tasks, f"{self.count} connectors do not run"
        )

    def put_one(self, prefix: str, number: int, interval_s: int) -> None:
        config = self._config(number, interval_s)
        self._worker.change("PUT", f"/connectors/{_name(prefix, number)}/config", config)

    def delete(self, prefix: str) -> None:
        """One after the other; return when nothing is said of them any more."""
        names = _names(prefix, self.count)
        for name in names:
            self._worker.change("DELETE", f"/connectors/{name}")
        left = list(names)

        def are_gone() -> bool:
            while left and self._worker.ask("GET", f"/connectors/{left[-1]}/status")[0] == 404:
                left.pop()
            return not left

        self._worker.await_true(are_gone, "deleted connectors still have a status")

    def _config(self, number: int, interval_s: int) -> dict[str, str]:
        kind = "MirrorSource" if _is_source(number) else "MirrorHeartbeat"
        return {
            "connector.class": f"org.apache.kafka.connect.mirror.{kind}Connector",
            "source.cluster.alias": "source",
            "source.cluster.bootstrap.servers": self._bed.source.bootstrap,
            "target.cluster.alias": TARGET_ALIAS,
            "target.cluster.bootstrap.servers": self._bed.target.bootstrap,
            "topics": "bench-rest-none",
            "replication.factor": "1",
            "heartbeats.topic.replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "emit.heartbeats.interval.seconds": str(interval_s),
            "sync.topic.acls.enabled": "false",
        }


def _changing(worker: Worker, connectors: _Connectors, enough: threading.Event) -> None:
    """Change some of the connectors in turn, at a steady rate."""
    due = time.monotonic()
    for action in _changes(worker, connectors):
        due += 1 / CHANGES_PER_S
        if enough.wait(max(0.0, due - time.monotonic())):
            return
        action()


def _changes(worker: Worker, connectors: _Connectors) -> Iterator[Callable[[], None]]:
    for number in cycle(range(min(CHANGING, connectors.count))):
        path = f"/connectors/{_name(_POLLED, number)}"
        yield partial(worker.change, "PUT", f"{path}/pause")
        yield partial(worker.change, "PUT", f"{path}/resume")
        yield partial(connectors.put_one, _POLLED, number, HEARTBEAT_S + 1)
        yield partial(worker.change, "DELETE", path)
        yield partial(connectors.put_one, _POLLED, number, HEARTBEAT_S)


class _Seen(NamedTuple):
    """Reports of the clients."""

    took_ms: list[float]
    codes: Mapping[str, int]
    lost: int
    cpu_s: float


class _Polling:
    """The process of the clients."""

    def __init__(self, url: str, planned: Rest) -> None:
        self._url = url
        self._planned = planned

    @contextmanager
    def ready(self, paths: Sequence[str]) -> Iterator[None]:
        """Run the clients for the block; they begin at once when they are connected."""
        options = {
            "--url": self._url,
            "--paths": ",".join(paths),
            "--clients": str(self._planned.clients),
            "--per-second": str(PER_CLIENT_PER_S),
            "--seconds": str(self._planned.seconds),
        }
        with probe("bench.rest_clients", *(word for pair in options.items() for word in pair)) as process:
            self._process = process
            if self._line() != "ready":
                raise BenchError("the clients could not connect")
            yield

    def seen(self) -> _Seen:
        """When they have ended."""
        return _Seen(**json.loads(self._line()))

    def all(self, paths: Sequence[str]) -> _Seen:
        with self.ready(paths):
            return self.seen()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def _load_run(
    side: Side | None, planned: Rest, seen: _Seen, changes: Counter[int], cpu_s: float
) -> RestLoadRun:
    return RestLoadRun(
        side=side,
        clients=planned.clients,
        connectors=planned.connectors,
        seconds=planned.seconds,
        latency=Percentiles.of(seen.took_ms),
        codes=seen.codes,
        changes=_texts(changes),
        lost=seen.lost,
        cpu_s=cpu_s,
        client_cpu_s=seen.cpu_s,
    )


def _texts(codes: Counter[int]) -> Mapping[str, int]:
    return {str(code): count for code, count in codes.items()}


def _paths(planned: Rest) -> list[str]:
    return [f"/connectors/{name}/status" for name in sorted(_names(_POLLED, planned.connectors))]


def _names(prefix: str, count: int) -> frozenset[str]:
    return frozenset(_name(prefix, number) for number in range(count))


def _name(prefix: str, number: int) -> str:
    return f"{prefix}-{number}"


def _is_source(number: int) -> bool:
    return number % SOURCE_EVERY == SOURCE_EVERY - 1
