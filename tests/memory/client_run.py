"""Runs one client of clusters in memory on an event loop in virtual time."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from sparkmirror.domain.client_settings import ConnectionSettings
from tests.memory.cluster import MemoryCluster
from tests.memory.network import Fate, MemoryNetwork
from tests.memory.virtual_time import VirtualTime

T = TypeVar("T")

_POLL_S = 0.005


class OneFault:
    """Counts requests by API key; the next request of one kind has the fate that `inject` names."""

    def __init__(self) -> None:
        self.requests: Counter[int] = Counter()
        self._pending: dict[int, Fate] = {}

    def inject(self, api_key: int, fate: Fate) -> None:
        self._pending[api_key] = fate

    @property
    def is_used(self) -> bool:
        return not self._pending

    def fate(self, api_key: int, /) -> Fate:
        self.requests[api_key] += 1
        return self._pending.pop(api_key, Fate.WELL)


class ClientRun:
    """Clusters, a network whose faults are `faults`, and a loop; an error on the loop fails the test."""

    def __init__(self, network: MemoryNetwork | None = None) -> None:
        random.seed(1)  # the product's own jitter
        self.faults = OneFault()
        self.network = network or MemoryNetwork(VirtualTime(), random.Random(1))
        self.network.faults = self.faults
        self.time = self.network.virtual_time
        self.loop = self.network.loop()
        self.errors: list[Mapping[str, object]] = []
        self._executor = self.network.executor()
        self.loop.set_default_executor(self._executor)
        self.loop.set_exception_handler(lambda _, context: self.errors.append(context))

    def cluster(self, name: str, brokers: int = 1) -> MemoryCluster:
        cluster = MemoryCluster(self.time, name, brokers=brokers, rng=random.Random(1))
        for broker in cluster.brokers:
            self.network.add(broker.host, broker.port, broker)
        return cluster

    def connection(self, cluster: MemoryCluster) -> ConnectionSettings:
        addresses = tuple((broker.host, broker.port) for broker in cluster.brokers)
        return ConnectionSettings(addresses, network=self.network)

    def run_until(self, holds: Callable[[], bool], within_s: float = 5.0) -> bool:
        """Whether it holds in time."""
        deadline = self.time.time() + within_s
        while not holds() and self.time.time() < deadline:
            self.run_for(_POLL_S)
        return holds()

    def run_for(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def call(self, call: Callable[[], T]) -> T:
        """The result of a call on the loop."""

        async def called() -> T:
            return call()

        return self.loop.run_until_complete(called())

    def wait_for(self, work: Coroutine[None, None, T]) -> T:
        return self.loop.run_until_complete(work)

    def close(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.run_for(0.0)
        self._executor.abandon()
        while self.time.turns and self.time.step():
            pass
        self.loop.close()


@contextmanager
def client_run(network: MemoryNetwork | None = None) -> Iterator[ClientRun]:
    run = ClientRun(network)
    try:
        yield run
    finally:
        run.close()
    assert not run.errors, run.errors
