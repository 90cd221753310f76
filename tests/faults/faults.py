"""Defines the faults of the drills: each has an area, a duration, a weight and a function that injects it.

The function is a generator: it injects the fault, yields, and heals it. Random choices come from its `rng`.
It returns only when the effect has taken place, and leaves every process running. Faults of brokers are
injected when every replica is in sync.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from typing import Final

import psutil

from tests.faults.expiry import expire_unstored
from tests.faults.side import BROKERS, WAIT_S, Side
from tests.faults.testbed import NETWORK_TIMEOUT_S, REQUEST_TIMEOUT_S, DrillTestbed
from tests.support.proxy import Disruption, Proxy

Inject = Callable[[DrillTestbed, random.Random], Iterator[None]]


class Need(Enum):
    """What a fault needs of the mirror while it lasts: a full disk is noticed only by a write."""

    WRITES = "it has to write"
    ENDS = "it ends, and is started again"
    ALONE = "it ends, and its clusters are compared meanwhile"


class Area(Enum):
    """Two faults of one area are never combined: each relies on what the other takes away."""

    SPARK = "spark"
    BROKERS = "brokers"
    NETWORK = "network"
    CLOCK = "clock"


@dataclass(frozen=True, slots=True)
class Fault:
    """`hold_s` are the shortest and the longest time it lasts; `weight` is its share of the schedule."""

    name: str
    area: Area
    hold_s: tuple[float, float]
    weight: int
    need: Need | None
    inject: Callable[[DrillTestbed, random.Random], AbstractContextManager[None]]

    def goes_with(self, other: "Fault") -> bool:
        """Whether both can go on side by side without one waiting for the other's end."""
        needs = {self.need, other.need}
        return self.area is not other.area and needs != {Need.WRITES, Need.ENDS} and Need.ALONE not in needs


_LONGER_THAN_REQUESTS: Final = (1.5 * REQUEST_TIMEOUT_S, 2.5 * REQUEST_TIMEOUT_S)
_LONGER_THAN_SPARK: Final = (1.5 * NETWORK_TIMEOUT_S, 2.5 * NETWORK_TIMEOUT_S)
_SHORT: Final = (1.0, 4.0)
_AT_ONCE: Final = (0.0, 0.0)
_OFTEN: Final = 3
"""The weight of faults that heal within a second or two: more moments fit into the same time."""
_found: dict[str, Fault] = {}


def _fault(
    area: Area, hold_s: tuple[float, float] = _AT_ONCE, *, weight: int = 1, need: Need | None = None
) -> Callable[[Inject], Inject]:
    def add(inject: Inject) -> Inject:
        name = inject.__name__.replace("_", "-")
        _found[name] = Fault(name, area, hold_s, weight, need, contextmanager(inject))
        return inject

    return add


# Spark


@_fault(Area.SPARK, weight=_OFTEN)
def kill_worker(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    rng.choice(testbed.workers().workers).kill()
    yield


@_fault(Area.SPARK, weight=_OFTEN)
def kill_workers(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    _kill(testbed.workers().workers)
    yield


@_fault(Area.SPARK, weight=_OFTEN)
def kill_daemon(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Spark's Python daemon, from which workers are forked; as when memory runs out."""
    daemons = testbed.workers().daemons
    _kill(rng.sample(daemons, min(1, len(daemons))))  # an executor has none until it starts a task again
    yield


@_fault(Area.SPARK, weight=_OFTEN)
def kill_executor(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    rng.choice(testbed.workers().executors).kill()
    yield


@_fault(Area.SPARK, need=Need.ENDS)
def kill_driver(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    testbed.workers()
    testbed.kill_driver()
    yield
    testbed.await_copying()


@_fault(Area.SPARK, need=Need.ENDS)
def kill_driver_jvm(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Spark's, below the driver."""
    testbed.workers()
    testbed.kill_driver_jvm()
    yield
    testbed.await_copying()


@_fault(Area.SPARK, need=Need.ENDS)
def kill_everything(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    testbed.workers()
    testbed.kill_everything()
    testbed.start_mirror()
    yield
    testbed.await_copying()


@_fault(Area.SPARK, need=Need.ALONE)
def expire_while_dead(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Retention passes the stored positions, on either side or both, between a crash and the restart."""
    testbed.workers()
    testbed.kill_everything()
    expire_unstored(testbed, rng)
    testbed.start_mirror()
    yield
    testbed.await_copying()


@_fault(Area.SPARK, need=Need.ENDS)
def start_twice(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """A second driver with the same file: the first one ends by itself."""
    testbed.workers()
    first = testbed.start_beside()
    try:
        testbed.await_copying()
        assert first.wait(WAIT_S) == 2, first.log_text()[-4000:]
    finally:
        first.close()
    yield


@_fault(Area.SPARK, need=Need.ENDS)
def restart(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """In order, as for an upgrade."""
    testbed.workers()
    testbed.restart_mirror()
    yield
    testbed.await_copying()


@_fault(Area.SPARK)
def resubmit(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Stops the copy job and submits a new one, ten times, a moment apart."""
    for _ in range(10):
        testbed.workers()
        time.sleep(rng.uniform(0.0, 1.0))
        testbed.change_mirrored_topics()
    yield


@_fault(Area.SPARK, _LONGER_THAN_REQUESTS)
def freeze_worker(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """When it continues, brokers and the worker itself have given up its requests."""
    frozen = rng.choice(testbed.workers().workers)
    frozen.suspend()
    yield
    _wake(frozen)


@_fault(Area.SPARK, _LONGER_THAN_SPARK)
def freeze_executor(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Freezes its workers too. Spark declares it lost and starts its tasks elsewhere; then it continues."""
    executor = rng.choice(testbed.workers().executors)
    frozen = [executor, *executor.children(recursive=True)]
    for process in frozen:
        with suppress(psutil.NoSuchProcess):
            process.suspend()
    yield
    for process in frozen:
        _wake(process)


@_fault(Area.SPARK)
def wake_beside_next_copy_job(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """A worker is frozen while its copy job is cancelled, and continues beside the next job."""
    frozen = rng.choice(testbed.workers().workers)
    frozen.suspend()
    try:
        testbed.change_mirrored_topics()
        testbed.workers()
        yield
    finally:
        _wake(frozen)


@_fault(Area.SPARK, need=Need.ENDS)
def wake_beside_next_driver(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """A worker is frozen while its driver is killed, and continues beside the next driver's workers."""
    frozen = rng.choice(testbed.workers().workers)
    frozen.suspend()
    try:
        testbed.kill_driver()
        testbed.await_copying()
        yield
    finally:
        _wake(frozen)


def _kill(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _wake(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):  # the system or Spark may have ended it
        process.resume()


@_fault(Area.CLOCK, _SHORT)
def move_wall_clock(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Of the mirror's machines, by up to a day, forward or back."""
    testbed.move_wall_clock(rng.choice([-1, 1]) * rng.choice([2.0, 60.0, 3_600.0, 86_400.0]))
    yield
    testbed.move_wall_clock(0.0)


# brokers


@_fault(Area.BROKERS, _SHORT)
def kill_broker(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    side, broker = rng.choice(testbed.sides), rng.randrange(BROKERS)
    side.cluster.kill_broker(broker)
    side.await_led_without(broker)
    yield
    side.start(broker)


@_fault(Area.BROKERS, _SHORT)
def kill_controller(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    side = rng.choice(testbed.sides)
    controller = side.controller()
    side.cluster.kill_broker(controller)
    side.await_led_without(controller)
    yield
    side.start(controller)


@_fault(Area.BROKERS)
def roll(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Every broker of a cluster in turn, in order."""
    side = rng.choice(testbed.sides)
    for broker in rng.sample(range(BROKERS), BROKERS):
        side.await_in_sync()
        side.cluster.stop_broker(broker, timeout_s=30)
        side.start(broker)
    yield


@_fault(Area.BROKERS, _LONGER_THAN_REQUESTS)
def freeze_broker(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """It accepts connections and never responds; others take over, and then it continues."""
    side, broker = rng.choice(testbed.sides), rng.randrange(BROKERS)
    with side.frozen(broker):
        yield


@_fault(Area.BROKERS)
def shuffle_leaders(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    for side in rng.sample(testbed.sides, 2):
        side.shuffle_leaders(rng)
    yield


@_fault(Area.BROKERS, _SHORT, need=Need.WRITES)
def lack_replicas(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """NOT_ENOUGH_REPLICAS: a record of the topic needs three, and the disk of one is full."""
    side, broker = testbed.target, rng.randrange(BROKERS)
    side.require_in_sync(BROKERS)
    _lose_by_full_disk(side, broker)
    yield
    side.start(broker)
    side.require_in_sync(2)


@_fault(Area.BROKERS, _LONGER_THAN_REQUESTS)
def lose_majority(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Two of three brokers of the target at once: the last one appends what it can't have acknowledged."""
    side = testbed.target
    lost = rng.sample(range(BROKERS), 2)
    for broker in lost:
        side.cluster.kill_broker(broker)
    yield
    side.start(*lost)


@_fault(Area.BROKERS, _SHORT, need=Need.WRITES)
def fill_disk(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Of one broker of the target; two are enough."""
    side, broker = testbed.target, rng.randrange(BROKERS)
    _lose_by_full_disk(side, broker)
    yield
    side.start(broker)


def _lose_by_full_disk(side: Side, broker: int) -> None:
    side.fill_disk(broker)
    side.await_running(BROKERS - 1)
    side.cluster.kill_broker(broker)  # what guarded it
    side.await_led_without(broker)


@_fault(Area.BROKERS, _SHORT, need=Need.WRITES)
def fill_all_disks(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """No broker can write any more; an operator frees space and restarts all of them."""
    side = testbed.target
    for broker in rng.sample(range(BROKERS), BROKERS):
        side.fill_disk(broker)
    # The last one may never write again: without the others it appends nothing.
    side.await_running(1)
    yield
    side.start_all_again()


@_fault(Area.BROKERS, _LONGER_THAN_REQUESTS)
def throttle_by_quota(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    side = rng.choice(testbed.sides)
    side.limit(rng.choice([5_000.0, 20_000.0]))
    yield
    side.limit(None)


# network


def _some(testbed: DrillTestbed, rng: random.Random) -> Sequence[Proxy]:
    """Those of a side: one, or all."""
    side: Side = rng.choice(testbed.sides)
    return rng.choice([side.proxies, [rng.choice(side.proxies)]])


@_fault(Area.NETWORK, weight=_OFTEN)
def cut(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Connections, several times, by a reset or an end."""
    for _ in range(4):
        for proxy in _some(testbed, rng):
            proxy.cut(rng.choice([Disruption.RESET, Disruption.END]))
        time.sleep(rng.uniform(0.0, 0.5))
    yield


@_fault(Area.NETWORK, weight=_OFTEN)
def half_close(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    for proxy in _some(testbed, rng):
        proxy.half_close()
    yield


@_fault(Area.NETWORK, _LONGER_THAN_REQUESTS)
def silence(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Everything is accepted and nothing is passed on; then all of it is."""
    for proxy in _some(testbed, rng):
        proxy.silence()
    yield
    testbed.restore()


@_fault(Area.NETWORK, _SHORT)
def refuse(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    for proxy in _some(testbed, rng):
        proxy.refuse()
        proxy.cut()
    yield
    testbed.restore()


@_fault(Area.NETWORK, _SHORT)
def delay(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    for proxy in _some(testbed, rng):
        proxy.delay(to_broker_s=rng.uniform(0.0, 0.3), to_client_s=rng.uniform(0.0, 0.3))
    yield
    testbed.restore()


@_fault(Area.NETWORK, _SHORT)
def throttle(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    for proxy in _some(testbed, rng):
        proxy.throttle(to_broker=rng.uniform(5e3, 5e4), to_client=rng.uniform(5e3, 5e4))
    yield
    testbed.restore()


@_fault(Area.NETWORK, weight=_OFTEN)
def move(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """A broker answers at another port; one of the mirror's bootstrap servers is gone then.

    Always the same one of a side: a new worker knows only those, and must find the two others.
    """
    rng.choice(testbed.sides).proxies[1].move()
    yield


FAULTS: Final[Mapping[str, Fault]] = dict(_found)
