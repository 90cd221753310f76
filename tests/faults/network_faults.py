"""Faults of the network between the mirror and the brokers."""

import random
import time
from collections.abc import Iterator, Sequence

from tests.faults.fault import LONGER_THAN_REQUESTS, OFTEN, SHORT, Area, fault
from tests.faults.side import Side
from tests.faults.testbed import DrillTestbed
from tests.support.proxy import Disruption, Proxy


def _some(testbed: DrillTestbed, rng: random.Random) -> Sequence[Proxy]:
    """Choose proxies of a side: one, or all."""
    side: Side = rng.choice(testbed.sides)
    return rng.choice([side.proxies, [rng.choice(side.proxies)]])


@fault(Area.NETWORK, weight=OFTEN)
def cut(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Connections, several times, by a reset or an end."""
    for _ in range(4):
        for proxy in _some(testbed, rng):
            proxy.cut(rng.choice([Disruption.RESET, Disruption.END]))
        time.sleep(rng.uniform(0.0, 0.5))
    yield


@fault(Area.NETWORK, weight=OFTEN)
def half_close(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    for proxy in _some(testbed, rng):
        proxy.half_close()
    yield


@fault(Area.NETWORK, LONGER_THAN_REQUESTS, delays=True)
def silence(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Everything is accepted and nothing is passed on; then all of it is."""
    for proxy in _some(testbed, rng):
        proxy.silence()
    yield
    testbed.restore()


@fault(Area.NETWORK, SHORT)
def refuse(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    for proxy in _some(testbed, rng):
        proxy.refuse()
        proxy.cut()
    yield
    testbed.restore()


@fault(Area.NETWORK, SHORT, delays=True)
def delay(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    for proxy in _some(testbed, rng):
        proxy.delay(to_broker_s=rng.uniform(0.0, 0.3), to_client_s=rng.uniform(0.0, 0.3))
    yield
    testbed.restore()


@fault(Area.NETWORK, SHORT, delays=True)
def throttle(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    for proxy in _some(testbed, rng):
        proxy.throttle(to_broker=rng.uniform(5e3, 5e4), to_client=rng.uniform(5e3, 5e4))
    yield
    testbed.restore()


@fault(Area.NETWORK, weight=OFTEN)
def move(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """A broker answers at another port; one of the mirror's bootstrap servers is gone then.

    Always the same one of a side: a new worker knows only those, and must find the two others.
    """
    rng.choice(testbed.sides).proxies[1].move()
    yield
