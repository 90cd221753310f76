"""Measures how soon records of thousands of topics reach the target, and the cost of refreshing topics.

Between the mirror and each cluster lies a proxy that counts requests and delays nothing.
"""

import math
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Final, NamedTuple

from bench.bed import Bed, Broker
from bench.errors import BenchError
from bench.plan import ManyTopics
from bench.results import TopicsRun
from bench.side_process import SideProcess
from bench.sides import Mirroring, Side
from bench.throughput import Job, command
from bench.workloads import DATA_PREFIX, TOPICS
from tests.support.proxy import Proxy, proxied

REFRESH_S: Final = 10
CONFIG_SYNC_S: Final = 60
CONFIGURED_EVERY: Final = 3
"""Every so manyth topic has a config of its own."""
TIMEOUT_S: Final = 150.0
SETTLE_S: Final = 20.0
_PREFIX: Final = f"{DATA_PREFIX}tp-"
_CONFIG: Final = ("retention.ms", "86400001")
_IN_A_GROUP: Final = 500
_WARM_UP_PART: Final = 5
_POLL_S: Final = 1.0
_ABOUT_TOPICS: Final = {
    3: "Metadata",
    19: "CreateTopics",
    32: "DescribeConfigs",
    33: "AlterConfigs",
    37: "CreatePartitions",
    44: "IncrementalAlterConfigs",
    75: "DescribeTopicPartitions",
}
"""API names by Kafka's keys. Both mirrors ask for Metadata too."""


def write(bed: Bed, planned: ManyTopics) -> None:
    """The source's topics, of one partition each. The target's broker makes some and deletes them again.

    A broker that has just started takes several times as long for the first thousands: no side meets that.
    """
    names = _names(planned.topics)
    bed.source.topics.create_many(_configs(names))
    bed.target.topics.create_many(_configs(names[: planned.topics // _WARM_UP_PART]))
    bed.clean()


def measure(bed: Bed, side: Side, planned: ManyTopics) -> TopicsRun:
    names = _names(planned.topics)
    alias = f"{TOPICS}{side.value}"
    with ExitStack() as stack:
        stack.callback(bed.clean)  # not of the source's topics, which are for the next side too
        proxies = [stack.enter_context(proxied(_address(each)))[0] for each in (bed.source, bed.target)]
        source, target = (f"{proxy.address[0]}:{proxy.address[1]}" for proxy in proxies)
        mirroring = replace(
            bed.mirroring(alias, _pattern(planned.topics)), source_bootstrap=source, target_bootstrap=target
        )
        settings = {
            "refresh.topics.interval.seconds": str(REFRESH_S),
            "sync.topic.configs.interval.seconds": str(CONFIG_SYNC_S),
            "emit.checkpoints.enabled": "false",
        }
        started = command(bed, side, mirroring, Job(TOPICS, 1, alias, "", 0, settings))
        mirror = stack.enter_context(SideProcess.start(started, bed.folder / f"{alias}.log"))
        run = _observe(_Watch(bed, mirror, proxies), side, mirroring, names, planned)
        mirror.stop()
    return run


class _Spent(NamedTuple):
    """Since the mirror's start."""

    cpu_s: float
    brokers_cpu_s: float
    requests: Counter[str]

    def since(self, before: "_Spent") -> "_Spent":
        return _Spent(
            self.cpu_s - before.cpu_s,
            self.brokers_cpu_s - before.brokers_cpu_s,
            self.requests - before.requests,
        )


class _Watch:
    def __init__(self, bed: Bed, mirror: SideProcess, proxies: Sequence[Proxy]) -> None:
        self.bed = bed
        self.mirror = mirror
        self._proxies = proxies
        self._brokers_before_s = self._brokers_cpu_s()

    def spent(self) -> _Spent:
        self.mirror.observe()
        requests = sum((proxy.figures.requests for proxy in self._proxies), Counter[int]())
        named = Counter({_ABOUT_TOPICS[api]: n for api, n in requests.items() if api in _ABOUT_TOPICS})
        return _Spent(self.mirror.tree.cpu_s(), self._brokers_cpu_s() - self._brokers_before_s, named)

    def _brokers_cpu_s(self) -> float:
        return self.bed.source.cpu_s() + self.bed.target.cpu_s()


def _observe(
    watch: _Watch, side: Side, mirroring: Mirroring, names: Sequence[str], planned: ManyTopics
) -> TopicsRun:
    made = _await_copies(watch, mirroring, names)
    first_sync_s, first = watch.mirror.age_s, watch.spent()
    run = TopicsRun(
        side=side,
        topics=len(names),
        made=made,
        first_cpu_s=first.cpu_s,
        first_brokers_cpu_s=first.brokers_cpu_s,
        first_requests=dict(first.requests),
        peak_pss_mb=watch.mirror.peak_pss_mb,
    )
    if made < len(names):
        return run
    time.sleep(SETTLE_S)
    before = watch.spent()
    time.sleep(planned.seconds)
    steady = watch.spent().since(before)
    minute = 60 / planned.seconds
    return replace(
        run,
        first_sync_s=first_sync_s,
        steady_cpu_s=minute * steady.cpu_s,
        steady_brokers_cpu_s=minute * steady.brokers_cpu_s,
        steady_requests={name: minute * count for name, count in steady.requests.items()},
        peak_pss_mb=watch.mirror.peak_pss_mb,
    )


def _await_copies(watch: _Watch, mirroring: Mirroring, names: Sequence[str]) -> int:
    """Count those that the target has with their configs, at the end or after the timeout."""
    wanted = {mirroring.target_topic(name): config for name, config in _configs(names).items()}
    missing = deque(wanted)
    while not watch.bed.target.topics.all_take_records(missing) and watch.mirror.age_s < TIMEOUT_S:
        if watch.mirror.has_ended():
            raise BenchError(f"it ended: {watch.mirror.log_tail()}")
        time.sleep(_POLL_S)
    key, value = _CONFIG
    there = wanted.keys() - missing
    configured = [name for name in sorted(there) if wanted[name]]
    found = watch.bed.target.topics.configs(configured, key)
    return len(there) - sum(found[name] != value for name in configured)


def _names(count: int) -> list[str]:
    return [f"{_PREFIX}{number // _IN_A_GROUP}-{number % _IN_A_GROUP:03}" for number in range(count)]


def _pattern(count: int) -> str:
    """The first so many topics, in whole groups."""
    return ",".join(f"{_PREFIX}{group}-.*" for group in range(math.ceil(count / _IN_A_GROUP)))


def _configs(names: Sequence[str]) -> dict[str, Mapping[str, str]]:
    return {name: {} if number % CONFIGURED_EVERY else dict([_CONFIG]) for number, name in enumerate(names)}


def _address(broker: Broker) -> tuple[str, int]:
    host, port = broker.bootstrap.split(":")
    return host, int(port)
