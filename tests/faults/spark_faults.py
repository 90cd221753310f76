"""Faults of the mirror's processes and clocks."""

import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

import psutil

from tests.faults.expiry import expire_unstored
from tests.faults.fault import LONGER_THAN_REQUESTS, LONGER_THAN_SPARK, OFTEN, SHORT, Area, Need, fault
from tests.faults.side import WAIT_S
from tests.faults.spark_processes import kill_all
from tests.faults.testbed import DrillTestbed


@fault(Area.SPARK, weight=OFTEN)
def kill_worker(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    rng.choice(testbed.workers().workers).kill()
    yield


@fault(Area.SPARK, weight=OFTEN)
def kill_workers(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    kill_all(testbed.workers().workers)
    yield


@fault(Area.SPARK, weight=OFTEN)
def kill_daemon(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Spark's Python daemon, from which workers are forked; as when memory runs out."""
    daemons = testbed.workers().daemons
    kill_all(rng.sample(daemons, min(1, len(daemons))))  # an executor has none until it starts a task again
    yield


@fault(Area.SPARK, weight=OFTEN)
def kill_executor(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    rng.choice(testbed.workers().executors).kill()
    yield


@fault(Area.SPARK, need=Need.ENDS)
def kill_driver(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    testbed.workers()
    testbed.kill_driver()
    yield
    testbed.await_copying()


@fault(Area.SPARK, need=Need.ENDS)
def kill_driver_jvm(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Spark's, below the driver."""
    testbed.workers()
    testbed.kill_driver_jvm()
    yield
    testbed.await_copying()


@fault(Area.SPARK, need=Need.ENDS)
def kill_everything(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    testbed.workers()
    testbed.kill_everything()
    testbed.start_mirror()
    yield
    testbed.await_copying()


@fault(Area.SPARK, need=Need.ALONE)
def expire_while_dead(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Retention passes the stored positions, on either side or both, between a crash and the restart."""
    testbed.workers()
    testbed.kill_everything()
    expire_unstored(testbed, rng)
    testbed.start_mirror()
    yield
    testbed.await_copying()


@fault(Area.SPARK, need=Need.ENDS)
def start_twice(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """A second driver with the same file stands by, and takes over when the first one has ended."""
    testbed.workers()
    first = testbed.start_beside()
    try:
        testbed.await_standby()
        first.send(rng.choice([signal.SIGTERM, signal.SIGKILL]))
        first.wait(WAIT_S)
        testbed.await_copying()
    finally:
        first.close()
    yield


@fault(Area.SPARK, need=Need.ENDS)
def restart(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Restart the mirror in order, as for an upgrade."""
    testbed.workers()
    testbed.restart_mirror()
    yield
    testbed.await_copying()


@fault(Area.SPARK)
def resubmit(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Stops the copy job and submits a new one, ten times, a moment apart."""
    for _ in range(10):
        testbed.workers()
        time.sleep(rng.uniform(0.0, 1.0))
        testbed.change_mirrored_topics()
    yield


@fault(Area.SPARK, LONGER_THAN_REQUESTS, delays=True)
def freeze_worker(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """When it continues, brokers and the worker itself have given up its requests."""
    frozen = rng.choice(testbed.workers().workers)
    frozen.suspend()
    yield
    _wake(frozen)


@fault(Area.SPARK, LONGER_THAN_REQUESTS, delays=True)
def freeze_starting_worker(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Freeze a worker as it starts: while it claims, fences, looks up, or sends its first batches."""
    kill_all(testbed.workers().workers)
    workers = testbed.workers().workers
    time.sleep(rng.uniform(0.0, 1.5))
    frozen = rng.choice(workers)
    with suppress(psutil.NoSuchProcess):
        frozen.suspend()
    yield
    _wake(frozen)


@fault(Area.SPARK, LONGER_THAN_SPARK, delays=True)
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


@fault(Area.SPARK, delays=True)
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


@fault(Area.SPARK, need=Need.ENDS, delays=True)
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


def _wake(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):  # the system or Spark may have ended it
        process.resume()


@fault(Area.CLOCK, SHORT)
def move_wall_clock(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Move the wall clock of the mirror's machines by up to a day, forward or back."""
    testbed.move_wall_clock(rng.choice([-1, 1]) * rng.choice([2.0, 60.0, 3_600.0, 86_400.0]))
    yield
    testbed.move_wall_clock(0.0)
