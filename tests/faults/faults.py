"""The faults, as data: what each does, where, and for how long it stays.

A fault is a generator function: it strikes, yields, and heals. What it needs to choose it takes from its
dice. It returns only when what it did has taken place, and leaves every process running. Those of the brokers
begin when every replica is in sync.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from typing import Final

import psutil

from tests.faults.side import BROKERS, Side
from tests.faults.stage import NETWORK_TIMEOUT_S, REQUEST_TIMEOUT_S, Stage
from tests.support.proxy import Deed, Proxy

Deal = Callable[[Stage, random.Random], Iterator[None]]


class Need(Enum):
    """Of the mirror, while it lasts: a disk is full only when something is written."""

    WRITES = "it has to write"
    ENDS = "it ends, and is started again"


class Area(Enum):
    """Two faults of one area are never dealt together: each relies on what the other takes away."""

    SPARK = "spark"
    BROKERS = "brokers"
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Fault:
    """`hold_s` is how long it stays, at least and at most; `cards` how often it's in a pack."""

    name: str
    area: Area
    hold_s: tuple[float, float]
    cards: int
    need: Need | None
    deal: Callable[[Stage, random.Random], AbstractContextManager[None]]

    def goes_with(self, other: "Fault") -> bool:
        """Whether both can go on side by side without one waiting for the other's end."""
        return self.area is not other.area and {self.need, other.need} != {Need.WRITES, Need.ENDS}


_LONGER_THAN_REQUESTS: Final = (1.5 * REQUEST_TIMEOUT_S, 2.5 * REQUEST_TIMEOUT_S)
_LONGER_THAN_SPARK: Final = (1.5 * NETWORK_TIMEOUT_S, 2.5 * NETWORK_TIMEOUT_S)
_SHORT: Final = (1.0, 4.0)
_AT_ONCE: Final = (0.0, 0.0)
_OFTEN: Final = 3
"""What heals within a second or two may strike at as many more moments."""
_found: dict[str, Fault] = {}


def _fault(
    area: Area, hold_s: tuple[float, float] = _AT_ONCE, *, cards: int = 1, need: Need | None = None
) -> Callable[[Deal], Deal]:
    def add(deal: Deal) -> Deal:
        name = deal.__name__.replace("_", "-")
        _found[name] = Fault(name, area, hold_s, cards, need, contextmanager(deal))
        return deal

    return add


# Spark


@_fault(Area.SPARK, cards=_OFTEN)
def kill_worker(stage: Stage, dice: random.Random) -> Iterator[None]:
    dice.choice(stage.workers().workers).kill()
    yield


@_fault(Area.SPARK, cards=_OFTEN)
def kill_workers(stage: Stage, dice: random.Random) -> Iterator[None]:
    _kill(stage.workers().workers)
    yield


@_fault(Area.SPARK, cards=_OFTEN)
def kill_daemon(stage: Stage, dice: random.Random) -> Iterator[None]:
    """Spark's Python daemon, from which workers are forked; as when memory runs out."""
    daemons = stage.workers().daemons
    _kill(dice.sample(daemons, min(1, len(daemons))))  # an executor has none until it starts a task again
    yield


@_fault(Area.SPARK, cards=_OFTEN)
def kill_executor(stage: Stage, dice: random.Random) -> Iterator[None]:
    dice.choice(stage.workers().executors).kill()
    yield


@_fault(Area.SPARK, need=Need.ENDS)
def kill_driver(stage: Stage, dice: random.Random) -> Iterator[None]:
    stage.workers()
    stage.kill_driver()
    yield
    stage.await_copying()


@_fault(Area.SPARK, need=Need.ENDS)
def kill_driver_jvm(stage: Stage, dice: random.Random) -> Iterator[None]:
    """Spark's, below the driver."""
    stage.workers()
    stage.kill_driver_jvm()
    yield
    stage.await_copying()


@_fault(Area.SPARK, need=Need.ENDS)
def kill_everything(stage: Stage, dice: random.Random) -> Iterator[None]:
    stage.workers()
    stage.kill_everything()
    yield
    stage.await_copying()


@_fault(Area.SPARK, need=Need.ENDS)
def restart(stage: Stage, dice: random.Random) -> Iterator[None]:
    """In order, as for an upgrade."""
    stage.workers()
    stage.restart_mirror()
    yield
    stage.await_copying()


@_fault(Area.SPARK)
def resubmit(stage: Stage, dice: random.Random) -> Iterator[None]:
    """Stopped and submitted anew ten times, a moment apart."""
    for _ in range(10):
        stage.workers()
        time.sleep(dice.uniform(0.0, 1.0))
        stage.change_what_is_mirrored()
    yield


@_fault(Area.SPARK, _LONGER_THAN_REQUESTS)
def freeze_worker(stage: Stage, dice: random.Random) -> Iterator[None]:
    """Its requests have been given up, by brokers and by itself, when it goes on."""
    frozen = dice.choice(stage.workers().workers)
    frozen.suspend()
    yield
    _wake(frozen)


@_fault(Area.SPARK, _LONGER_THAN_SPARK)
def freeze_executor(stage: Stage, dice: random.Random) -> Iterator[None]:
    """With its workers. Spark gives it up and starts its tasks elsewhere, and then it goes on."""
    executor = dice.choice(stage.workers().executors)
    frozen = [executor, *executor.children(recursive=True)]
    for process in frozen:
        with suppress(psutil.NoSuchProcess):
            process.suspend()
    yield
    for process in frozen:
        _wake(process)


@_fault(Area.SPARK)
def wake_beside_next_generation(stage: Stage, dice: random.Random) -> Iterator[None]:
    """A worker sleeps while its generation is cancelled, and goes on beside the next one."""
    frozen = dice.choice(stage.workers().workers)
    frozen.suspend()
    try:
        stage.change_what_is_mirrored()
        stage.workers()
        yield
    finally:
        _wake(frozen)


@_fault(Area.SPARK, need=Need.ENDS)
def wake_beside_next_driver(stage: Stage, dice: random.Random) -> Iterator[None]:
    """A worker sleeps through its driver's death, and goes on beside its successor."""
    frozen = dice.choice(stage.workers().workers)
    frozen.suspend()
    try:
        stage.kill_driver()
        stage.await_copying()
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


# brokers


@_fault(Area.BROKERS, _SHORT)
def kill_broker(stage: Stage, dice: random.Random) -> Iterator[None]:
    side, broker = dice.choice(stage.sides), dice.randrange(BROKERS)
    side.cluster.kill_broker(broker)
    side.await_led_without(broker)
    yield
    side.start(broker)


@_fault(Area.BROKERS, _SHORT)
def kill_controller(stage: Stage, dice: random.Random) -> Iterator[None]:
    side = dice.choice(stage.sides)
    controller = side.controller()
    side.cluster.kill_broker(controller)
    side.await_led_without(controller)
    yield
    side.start(controller)


@_fault(Area.BROKERS)
def roll(stage: Stage, dice: random.Random) -> Iterator[None]:
    """Every broker of a cluster in turn, in order."""
    side = dice.choice(stage.sides)
    for broker in dice.sample(range(BROKERS), BROKERS):
        side.await_in_sync()
        side.cluster.stop_broker(broker, timeout_s=30)
        side.start(broker)
    yield


@_fault(Area.BROKERS, _LONGER_THAN_REQUESTS)
def freeze_broker(stage: Stage, dice: random.Random) -> Iterator[None]:
    """It accepts and never answers; others take over, and then it goes on."""
    side, broker = dice.choice(stage.sides), dice.randrange(BROKERS)
    with side.frozen(broker):
        yield


@_fault(Area.BROKERS)
def shuffle_leaders(stage: Stage, dice: random.Random) -> Iterator[None]:
    for side in dice.sample(stage.sides, 2):
        side.shuffle_leaders(dice)
    yield


@_fault(Area.BROKERS, _SHORT, need=Need.WRITES)
def lack_replicas(stage: Stage, dice: random.Random) -> Iterator[None]:
    """NOT_ENOUGH_REPLICAS: a record of the topic needs three, and the disk of one is full."""
    side, broker = stage.target, dice.randrange(BROKERS)
    side.require_in_sync(BROKERS)
    _lose_by_full_disk(side, broker)
    yield
    side.start(broker)
    side.require_in_sync(2)


@_fault(Area.BROKERS, _LONGER_THAN_REQUESTS)
def lose_majority(stage: Stage, dice: random.Random) -> Iterator[None]:
    """Two of three brokers of the target at once: the last one appends what it can't have acknowledged."""
    side = stage.target
    lost = dice.sample(range(BROKERS), 2)
    for broker in lost:
        side.cluster.kill_broker(broker)
    yield
    side.start(*lost)


@_fault(Area.BROKERS, _SHORT, need=Need.WRITES)
def fill_disk(stage: Stage, dice: random.Random) -> Iterator[None]:
    """Of one broker of the target; two are enough."""
    side, broker = stage.target, dice.randrange(BROKERS)
    _lose_by_full_disk(side, broker)
    yield
    side.start(broker)


def _lose_by_full_disk(side: Side, broker: int) -> None:
    side.fill_disk(broker)
    side.await_running(BROKERS - 1)
    side.cluster.kill_broker(broker)  # what guarded it
    side.await_led_without(broker)


@_fault(Area.BROKERS, _SHORT, need=Need.WRITES)
def fill_all_disks(stage: Stage, dice: random.Random) -> Iterator[None]:
    """Nothing is taken any more; somebody makes room and starts all brokers again."""
    side = stage.target
    for broker in dice.sample(range(BROKERS), BROKERS):
        side.fill_disk(broker)
    # The last one may never write again: without the others it appends nothing.
    side.await_running(1)
    yield
    side.start_all_again()


@_fault(Area.BROKERS, _LONGER_THAN_REQUESTS)
def throttle_by_quota(stage: Stage, dice: random.Random) -> Iterator[None]:
    side = dice.choice(stage.sides)
    side.limit(dice.choice([5_000.0, 20_000.0]))
    yield
    side.limit(None)


# network


def _some(stage: Stage, dice: random.Random) -> Sequence[Proxy]:
    """Those of a side: one, or all."""
    side: Side = dice.choice(stage.sides)
    return dice.choice([side.proxies, [dice.choice(side.proxies)]])


@_fault(Area.NETWORK, cards=_OFTEN)
def cut(stage: Stage, dice: random.Random) -> Iterator[None]:
    """Connections, several times, by a reset or an end."""
    for _ in range(4):
        for proxy in _some(stage, dice):
            proxy.cut(dice.choice([Deed.RESET, Deed.END]))
        time.sleep(dice.uniform(0.0, 0.5))
    yield


@_fault(Area.NETWORK, cards=_OFTEN)
def half_close(stage: Stage, dice: random.Random) -> Iterator[None]:
    for proxy in _some(stage, dice):
        proxy.half_close()
    yield


@_fault(Area.NETWORK, _LONGER_THAN_REQUESTS)
def silence(stage: Stage, dice: random.Random) -> Iterator[None]:
    """Everything is accepted and nothing is passed on; then all of it is."""
    for proxy in _some(stage, dice):
        proxy.silence()
    yield
    stage.restore()


@_fault(Area.NETWORK, _SHORT)
def refuse(stage: Stage, dice: random.Random) -> Iterator[None]:
    for proxy in _some(stage, dice):
        proxy.refuse()
        proxy.cut()
    yield
    stage.restore()


@_fault(Area.NETWORK, _SHORT)
def delay(stage: Stage, dice: random.Random) -> Iterator[None]:
    for proxy in _some(stage, dice):
        proxy.delay(to_broker_s=dice.uniform(0.0, 0.3), to_client_s=dice.uniform(0.0, 0.3))
    yield
    stage.restore()


@_fault(Area.NETWORK, _SHORT)
def throttle(stage: Stage, dice: random.Random) -> Iterator[None]:
    for proxy in _some(stage, dice):
        proxy.throttle(to_broker=dice.uniform(5e3, 5e4), to_client=dice.uniform(5e3, 5e4))
    yield
    stage.restore()


@_fault(Area.NETWORK, cards=_OFTEN)
def move(stage: Stage, dice: random.Random) -> Iterator[None]:
    """A broker answers at another port; one of the mirror's bootstrap servers is gone then.

    Always the same one of a side: a new worker knows only those, and must find the two others.
    """
    dice.choice(stage.sides).proxies[1].move()
    yield


FAULTS: Final[Mapping[str, Fault]] = dict(_found)
