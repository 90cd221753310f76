"""Whatever dies while data flows, and wherever: every record is on the target once, in order.

The faults are dealt by a seed; a failure names it.
"""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil
import pytest

from sparkmirror.cli.demo.compare import compare_topic
from tests.flowing import flowing
from tests.system.dual_run import Sides
from tests.system.mirror import Mirror, await_value, running_mirror
from tests.system.mixed_data import create_topic
from tests.system.progress import await_caught_up

ALIAS: Final = "drill"
TOPIC: Final = "drill.orders"
REMOTE: Final = f"{ALIAS}.{TOPIC}"
PARTITIONS: Final = 4
RATE: Final = 2000
TASKS: Final = 2
SEED: Final = int(os.environ.get("SPARKMIRROR_DRILL_SEED", "20"))


def properties(sides: Sides) -> dict[str, str]:
    return {
        "clusters": f"{ALIAS}, B",
        f"{ALIAS}.bootstrap.servers": sides.source.bootstrap_servers,
        "B.bootstrap.servers": sides.target.bootstrap_servers,
        f"{ALIAS}->B.enabled": "true",
        f"{ALIAS}->B.topics": TOPIC,
        "tasks.max": str(TASKS),
    }


def workers(mirror: Mirror) -> list[psutil.Process]:
    """Those of the only driver there is."""

    def all_of_them() -> list[psutil.Process] | None:
        jvms = mirror.jvms()
        if len(jvms) != 1:
            return None
        try:
            # Workers are forks of the JVM's child. Spark's launcher is a JVM too, for a moment, and has none.
            found = [child for child in jvms[0].children(recursive=True) if child.ppid() != jvms[0].pid]
        except psutil.NoSuchProcess:
            return None
        return found if len(found) == TASKS else None

    return await_value(all_of_them, 60, lambda: f"{TASKS} workers: {mirror.log_text()}")


class Drill:
    """Faults for a mirror; each returns when its successor can be dealt."""

    def __init__(self, mirror: Mirror, dice: random.Random) -> None:
        self.mirror = mirror
        self._dice = dice
        self._starts = 1

    def kill_a_worker(self) -> None:
        self._dice.choice(workers(self.mirror)).kill()

    def kill_all_workers(self) -> None:
        for worker in workers(self.mirror):
            worker.kill()

    def freeze_a_worker(self) -> None:
        frozen = self._dice.choice(workers(self.mirror))
        frozen.suspend()
        time.sleep(2)  # what the fault is
        frozen.resume()

    def kill_the_driver(self) -> None:
        self.mirror.send(signal.SIGKILL)
        self.mirror.wait(timeout_s=5)
        self.mirror.start()
        self._starts += 1

    def await_start(self) -> None:
        """Until the last driver that was started runs."""
        begun = "started in"
        await_value(lambda: self.mirror.log_text().count(begun) == self._starts, 60, self.mirror.log_text)

    def leave_a_zombie(self) -> None:
        """A worker that sleeps through its driver's death wakes up beside its successor."""
        zombie = self._dice.choice(workers(self.mirror))
        zombie.suspend()
        self.kill_the_driver()
        self.await_start()
        workers(self.mirror)
        with suppress(psutil.NoSuchProcess):  # a stopped group that lost its parent may have been woken
            zombie.resume()


@pytest.fixture
def drill(sides: Sides, tmp_path: Path) -> Iterator[Drill]:
    create_topic(sides.source.bootstrap_servers, TOPIC, partitions=PARTITIONS)
    with running_mirror(tmp_path / "mirror", properties(sides)) as mirror:
        mirror.await_log("generation 1 copies")
        yield Drill(mirror, random.Random(SEED))


def test_nothing_is_lost_or_there_twice(drill: Drill, sides: Sides) -> None:
    dice = random.Random(SEED)
    faults: list[Callable[[], None]] = [
        drill.kill_a_worker,
        drill.kill_a_worker,
        drill.kill_all_workers,
        drill.freeze_a_worker,
        drill.kill_the_driver,
        drill.leave_a_zombie,
    ]
    dice.shuffle(faults)
    lz4 = {"compression.type": "lz4"}
    with flowing(sides.source, TOPIC, rate=RATE, partitions=PARTITIONS, settings=lz4):
        for fault in faults:
            workers(drill.mirror)
            time.sleep(dice.uniform(0.2, 1.5))  # anywhere between two positions
            fault()
    drill.await_start()
    await_caught_up(sides.source, sides.target, ALIAS, [TOPIC])
    drill.mirror.stop()
    found_there = "records behind the stored position are there already"
    assert found_there in drill.mirror.spark_log.read_text(), "no fault came between two positions"
    source, target = sides.source.bootstrap_servers, sides.target.bootstrap_servers
    compared = compare_topic(source, target, TOPIC, REMOTE)
    dealt = ", ".join(fault.__name__ for fault in faults)
    assert compared.first_difference is None, f"seed {SEED} ({dealt}): {compared.first_difference}"
