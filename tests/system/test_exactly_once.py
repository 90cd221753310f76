"""Every record is on the target once and in order when processes are killed or frozen during the copy.

One process mirrors both without and with transactions, because most of the time is spent on its starts.
With transactions, a read_committed consumer sees nothing of aborted copies. A seed chooses the faults; a
failure names it.
"""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Final, NamedTuple

import psutil
import pytest

from sparkmirror.domain.ids import Alias, ConnectorName, TopicPartition
from sparkmirror.storage.positions import read_positions
from tests.support.broker_data import Keyed, create_topic, end_offsets, records
from tests.support.connections import connection
from tests.support.isolation import committed
from tests.support.mirror import Mirror, running_mirror
from tests.support.progress import await_caught_up
from tests.support.topic_comparison import compare_topic
from tests.support.traffic import flowing
from tests.support.waiting import await_value
from tests.system.dual_run import Sides

PLAIN: Final = "drill"
TRANSACTIONAL: Final = "eos"
MODES: Final = (PLAIN, TRANSACTIONAL)
"""Aliases of the same source."""
PARTITIONS: Final = 4
RATE: Final = 1000
TASKS: Final = 2
WORKERS: Final = TASKS * len(MODES)
SEED: Final = int(os.environ.get("SPARKMIRROR_DRILL_SEED", "20"))
CONNECTOR: Final = ConnectorName("MirrorSourceConnector")


def topic(alias: str) -> str:
    return f"orders.{alias}"


def properties(sides: Sides) -> dict[str, str]:
    source, target = (cluster.bootstrap_servers for cluster in sides)
    return {
        "clusters": f"{PLAIN}, {TRANSACTIONAL}, B, E",
        **{f"{alias}.bootstrap.servers": source for alias in MODES},
        **{f"{alias}.bootstrap.servers": target for alias in ("B", "E")},
        f"{PLAIN}->B.enabled": "true",
        f"{PLAIN}->B.topics": topic(PLAIN),
        f"{TRANSACTIONAL}->E.enabled": "true",
        f"{TRANSACTIONAL}->E.topics": topic(TRANSACTIONAL),
        "E.exactly.once.source.support": "enabled",
        f"{TRANSACTIONAL}->E.exactly.once.support": "required",
        f"{TRANSACTIONAL}.consumer.isolation.level": "read_committed",
        "tasks.max": str(TASKS),
    }


def workers(mirror: Mirror) -> list[psutil.Process]:
    """Wait for all Python workers of the only driver."""

    def all_workers() -> list[psutil.Process] | None:
        jvms = mirror.jvms()
        if len(jvms) != 1:
            return None
        try:
            # Workers are forks of the JVM's child. Spark's launcher, briefly a JVM too, has none.
            found = [child for child in jvms[0].children(recursive=True) if child.ppid() != jvms[0].pid]
        except psutil.NoSuchProcess:
            return None
        return found if len(found) == WORKERS else None

    return await_value(all_workers, 60, lambda: f"{WORKERS} workers: {mirror.log_text()}")


class Drill:
    """Injects faults into a mirror; each method returns when the next fault can be injected."""

    def __init__(self, sides: Sides, mirror: Mirror, dice: random.Random) -> None:
        self.sides = sides
        self.mirror = mirror
        self._dice = dice
        self._starts = 1

    def kill_a_worker(self) -> None:
        self._dice.choice(workers(self.mirror)).kill()

    def kill_all_workers(self) -> None:
        """Kill all workers while they copy, so that there are records after the stored positions."""
        remotes = [f"{alias}.{topic(alias)}" for alias in MODES]
        found = workers(self.mirror)
        before = end_offsets(self.sides.target, remotes)
        await_value(
            lambda: all(end > before[at] for at, end in end_offsets(self.sides.target, remotes).items()),
            60,
            self.mirror.log_text,
        )
        for worker in found:
            worker.kill()

    def freeze_a_worker(self) -> None:
        frozen = self._dice.choice(workers(self.mirror))
        frozen.suspend()
        time.sleep(2)  # the duration of the fault
        frozen.resume()

    def kill_the_driver_and_leave_zombies(self) -> None:
        """Kill the driver while all workers but one are frozen; these continue beside their successors."""
        zombies = self._dice.sample(workers(self.mirror), WORKERS - 1)
        for zombie in zombies:
            zombie.suspend()
        self.mirror.send(signal.SIGKILL)
        self.mirror.wait(timeout_s=5)
        self.mirror.start()
        self._starts += 1
        self.await_start()
        workers(self.mirror)
        for zombie in zombies:
            with suppress(psutil.NoSuchProcess):  # an orphaned stopped process group may have been continued
                zombie.resume()

    def await_start(self) -> None:
        """Wait until the driver that was started last runs."""
        begun = "started in"
        await_value(lambda: self.mirror.log_text().count(begun) == self._starts, 60, self.mirror.log_text)


class DrillResult(NamedTuple):
    """A mirror that has stopped after all faults."""

    sides: Sides
    mirror: Mirror
    faults: str


@pytest.fixture(scope="module")
def drill_result(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DrillResult]:
    source, target = sides
    for alias in MODES:
        create_topic(source.bootstrap_servers, topic(alias), partitions=PARTITIONS)
    with running_mirror(tmp_path_factory.mktemp("drill") / "mirror", properties(sides)) as mirror:
        for alias in MODES:
            mirror.await_log(rf"\[{alias}->\w .*copy job 1 copies")
        drill = Drill(sides, mirror, random.Random(SEED))
        dice = random.Random(SEED)
        faults: list[Callable[[], None]] = [
            drill.kill_a_worker,
            drill.kill_a_worker,
            drill.kill_all_workers,
            drill.freeze_a_worker,
            drill.kill_the_driver_and_leave_zombies,
        ]
        dice.shuffle(faults)
        with ExitStack() as flows:
            lz4 = {"compression.type": "lz4"}
            for alias, settings in zip(MODES, (lz4, {}), strict=True):
                flows.enter_context(
                    flowing(source, topic(alias), rate=RATE, partitions=PARTITIONS, settings=settings)
                )
            await_value(
                lambda: len(committed_positions(sides)) == PARTITIONS, 60, lambda: "nothing is committed"
            )
            for fault in faults:
                workers(mirror)
                time.sleep(dice.uniform(0.2, 1.5))  # between two positions
                fault()
        for alias in MODES:
            await_caught_up(source, target, alias, [topic(alias)])
        mirror.stop()
        yield DrillResult(sides, mirror, f"seed {SEED} ({', '.join(fault.__name__ for fault in faults)})")


def test_no_record_is_lost_or_duplicated(drill_result: DrillResult) -> None:
    found_there = "records behind the stored position are there already"
    assert found_there in drill_result.mirror.spark_log.read_text(), "no fault came between two positions"
    source, target = (cluster.bootstrap_servers for cluster in drill_result.sides)
    compared = compare_topic(source, target, topic(PLAIN), f"{PLAIN}.{topic(PLAIN)}")
    assert compared.first_difference is None, f"{drill_result.faults}: {compared.first_difference}"


def test_read_committed_consumer_sees_each_record_once(drill_result: DrillResult) -> None:
    positions = committed_positions(drill_result.sides)
    for partition in range(PARTITIONS):
        written = source_records(drill_result.sides, partition)
        copied = committed(drill_result.sides.target, f"{TRANSACTIONAL}.{topic(TRANSACTIONAL)}", partition)
        assert copied == written, drill_result.faults
        assert positions[partition] == len(written) - 1, drill_result.faults


def source_records(sides: Sides, partition: int) -> list[Keyed]:
    return [
        (record.key(), record.value())
        for record in records(sides.source, topic(TRANSACTIONAL))
        if record.partition() == partition
    ]


def committed_positions(sides: Sides) -> dict[int, int]:
    """Read the last replicated offset of each partition."""
    partitions = [TopicPartition(topic(TRANSACTIONAL), number) for number in range(PARTITIONS)]
    stored = f"mm2-offsets.{TRANSACTIONAL}.internal"
    found = read_positions(connection(sides.target), stored, CONNECTOR, Alias(TRANSACTIONAL), partitions)
    assert all(position.producer is None for position in found.values()), "not written in transactions"
    return {partition.partition: position.offset for partition, position in found.items()}
