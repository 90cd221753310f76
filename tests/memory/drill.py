"""Random runs of a copy task with faults, each from its seed: `python -m tests.memory.drill --runs 10000`.

A run ends well when the target has the source's records in order, none lost and none twice, soon after the
last fault, and when nothing that was stored was ever ahead of what was acknowledged.
"""

import argparse
import logging
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from sparkmirror.domain.ids import TopicPartition
from tests.memory.cluster import MemoryCluster
from tests.memory.network import Fate
from tests.memory.stage import REMOTE, TOPIC, RunningTask, Shape, Stage
from tests.memory.virtual_time import StuckError

FAULTS_LAST_S: Final = 20.0
CALM_S: Final = 20.0
"""For so long records are written after the last fault."""

RECOVERY_S: Final = 180.0
"""Longer than any sequence of time-outs and back-offs that the last fault can leave behind."""

FOLLOWERS_BEHIND_S: Final = 30.0
"""`replica.lag.time.max.ms`: brokers go on without followers that are slower."""

_STOP_S: Final = 60.0


class Result(NamedTuple):
    seed: int
    failure: str
    """Empty when the run ended well."""
    faults: list[str]


class DrawnFaults:
    """What goes wrong with single requests, and at what rate."""

    def __init__(self, rng: random.Random, rate: float) -> None:
        self._rng = rng
        self.rate = rate

    def fate(self, _api_key: int, /) -> Fate:
        if self._rng.random() >= self.rate:
            return Fate.WELL
        return self._rng.choice([Fate.REQUEST_LOST, Fate.RESPONSE_LOST, Fate.RESPONSE_LOST, Fate.SILENCE])


class Drill:
    """One run."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = rng = random.Random(seed)
        random.seed(seed)  # the product's own jitter
        shape = Shape(
            partitions=rng.randint(1, 3),
            source_brokers=rng.randint(1, 2),
            target_brokers=rng.randint(1, 3),
            is_transactional=rng.random() < 0.35,
            transaction_version=rng.choice([1, 2, 2]),
            lag_max=rng.choice([0, 10, 100]),
            in_flight_max=rng.choice([1, 5, 5]),
            buffer_bytes=rng.choice([1 << 11, 1 << 16, 32 << 20]),
            is_lossy=rng.random() < 0.25,
        )
        self.stage = Stage(rng, shape, f"-{seed}")
        self.requests = DrawnFaults(rng, rng.choice([0.0, 0.01, 0.05]))
        self.stage.network.faults = self.requests
        self.tasks: list[RunningTask] = []
        self.faults: list[str] = []
        self._ends_at = 0.0

    def run(self) -> Result:
        try:
            failure = self._run()
        except StuckError as error:
            failure = f"stuck: {error}"
        except Exception as error:
            logging.getLogger(__name__).exception("seed %d", self.seed)
            failure = f"raised {error!r}"
        for task in self.tasks:
            task.kill()
        while self.stage.time.turns and self.stage.time.step():
            pass
        return Result(self.seed, failure, self.faults)

    def _run(self) -> str:
        stage = self.stage
        self.tasks.append(stage.run_task())
        for _ in range(self.rng.randint(5, 25)):
            stage.time.call_later(self.rng.uniform(0, FAULTS_LAST_S), self._write)
        for fault in self._drawn():
            stage.time.call_later(self.rng.uniform(0, FAULTS_LAST_S), self._do, fault)
        stage.time.call_later(FAULTS_LAST_S, self._calm)
        self._ends_at = stage.time.time() + FAULTS_LAST_S + CALM_S
        self._advance(FAULTS_LAST_S)
        finished = stage.run_until(
            lambda: bool(stage.violations) or self._have_ended() or self._is_complete, RECOVERY_S
        )
        if stage.violations:
            return stage.violations[0]
        if not finished or not stage.is_complete:
            return f"not complete after {RECOVERY_S:g} s: {self._progress()}"
        return self._end()

    def _advance(self, seconds: float) -> None:
        self.stage.run_until(lambda: bool(self.stage.violations) or self._have_ended(), seconds)

    def _end(self) -> str:
        """Stop in order: everything is stored then."""
        for task in self.tasks:
            task.loop.stop()
        if not self.stage.run_until(self._have_ended, _STOP_S):
            return "the task did not stop"
        self.stage.check_committed()
        if self.stage.violations:
            return self.stage.violations[0]
        return "" if self.stage.is_complete else f"changed at its end: {self._progress()}"

    def _have_ended(self) -> bool:
        return all(task.is_over for task in self.tasks)

    @property
    def _is_complete(self) -> bool:
        """Also what is written after the faults."""
        return self.stage.time.time() > self._ends_at and self.stage.is_complete

    def _progress(self) -> str:
        stage = self.stage
        return ", ".join(f"{len(stage.copied(at))} of {count}" for at, count in stage.written.items())

    def _write(self) -> None:
        self.stage.write(self.rng.randrange(self.stage.shape.partitions), self.rng.randint(1, 6))

    # faults

    def _drawn(self) -> Iterable[Callable[[], str]]:
        kinds = [
            self._move_leader,
            self._move_leader,
            self._restart_broker,
            self._disconnect,
            self._hold_followers,
            self._crash,
            self._move_coordinator,
            self._forget_producers,
        ]
        if self.stage.shape.is_lossy:
            kinds += [self._lose_records, self._truncate, self._replace_topic]
        else:  # here, too, both tasks would take new producer ids
            kinds.append(self._start_twice)
        return [self.rng.choice(kinds) for _ in range(self.rng.randint(0, 8))]

    def _do(self, fault: Callable[[], str]) -> None:
        self.faults.append(f"{self.stage.time.time():.3f} {fault()}")

    def _calm(self) -> None:
        """No faults from now on, and some more records."""
        self.requests.rate = 0.0
        self.stage.calm()
        for partition in self.stage.written:
            self.stage.time.call_later(self.rng.uniform(0, CALM_S), self.stage.write, partition, 3)
        for cluster in (self.stage.source, self.stage.target):
            for broker in cluster.brokers:
                if not broker.is_up:
                    cluster.restart(broker)
            for _, log in cluster.logs():
                log.release()
            cluster.changed()

    def _cluster(self) -> MemoryCluster:
        return self.rng.choice([self.stage.source, self.stage.target, self.stage.target])

    def _any_partition(self, cluster: MemoryCluster) -> TopicPartition:
        return self.rng.choice([partition for partition, _ in cluster.logs()])

    def _move_leader(self) -> str:
        cluster = self._cluster()
        partition = self._any_partition(cluster)
        cluster.move_leader(partition)
        return f"{cluster.name}: {partition} moved"

    def _restart_broker(self) -> str:
        cluster = self._cluster()
        broker = self.rng.choice(cluster.brokers)
        if not broker.is_up:
            return "nothing"
        cluster.stop(broker)
        self.stage.network.disconnect(broker)
        self.stage.time.call_later(
            self.rng.uniform(0.05, 8.0), lambda: None if broker.is_up else cluster.restart(broker)
        )
        return f"{cluster.name}: broker {broker.node_id} restarts"

    def _disconnect(self) -> str:
        self.stage.network.disconnect()
        return "all connections end"

    def _hold_followers(self) -> str:
        cluster = self.stage.target
        partition = self._any_partition(cluster)
        log = cluster.log(partition)
        log.hold()

        def release() -> None:
            log.release()
            cluster.changed()

        self.stage.time.call_later(self.rng.uniform(0.05, FOLLOWERS_BEHIND_S), release)
        return f"followers of {partition} fall behind"

    def _crash(self) -> str:
        self.tasks[-1].kill()
        self.tasks.pop()
        if self.rng.random() < 0.5:
            self.stage.network.disconnect()
        self.tasks.append(self.stage.run_task())
        return "the task is killed and starts again"

    def _start_twice(self) -> str:
        """A task that was given up lives on for a while beside its successor.

        Only once positions are stored: two tasks that both see none would each take a producer id.
        """
        if not self.stage.has_positions:
            return "nothing"
        old = self.tasks[-1]
        self.tasks.append(self.stage.run_task())

        def end() -> None:
            if old in self.tasks:
                self.tasks.remove(old)
                old.kill()

        self.stage.time.call_later(self.rng.uniform(0.05, 10.0), end)
        return "the task is started again while it runs"

    def _lose_records(self) -> str:
        partition = TopicPartition(TOPIC, self.rng.randrange(self.stage.shape.partitions))
        log = self.stage.source.log(partition)
        log.delete_before(self.rng.randint(log.start, log.end))
        return f"retention removes what is before offset {log.start} of {partition}"

    def _truncate(self) -> str:
        """At the source only: what a target loses after it was acknowledged is reported, not repaired."""
        cluster = self.stage.source
        partition = TopicPartition(TOPIC, self.rng.randrange(self.stage.shape.partitions))
        log = cluster.log(partition)
        log.truncate(self.rng.randint(max(log.start, log.end - 5), log.end), cluster.now_ms())
        cluster.changed()
        return f"{cluster.name}: {partition} has a leader that has it up to offset {log.end} only"

    def _replace_topic(self) -> str:
        cluster, topic = self.rng.choice([(self.stage.source, TOPIC), (self.stage.target, REMOTE)])
        self.stage.replace_topic(cluster, topic)
        return f"{cluster.name}: {topic} is deleted and created again"

    def _move_coordinator(self) -> str:
        self.stage.target.coordinator_shift += 1
        return "coordinators move"

    def _forget_producers(self) -> str:
        partition = TopicPartition(REMOTE, self.rng.randrange(self.stage.shape.partitions))
        log = self.stage.target.log(partition)
        log.producers.reload(self.stage.target.now_ms())
        return f"{partition}: the leader remembers one batch of each producer"


def run_seed(seed: int) -> Result:
    return Drill(seed).run()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--log", action="store_true", help="show what the task logs")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets must be the same each time
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.memory.drill", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    logging.basicConfig(level=logging.INFO if arguments.log else logging.CRITICAL, format="%(message)s")
    began, failed = time.monotonic(), 0
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    with multiprocessing.Pool(min(arguments.processes, arguments.runs)) as pool:
        for result in pool.imap_unordered(run_seed, seeds, chunksize=4):
            if result.failure:
                failed += 1
                _say(f"seed {result.seed}: {result.failure}", *result.faults)
    _say(f"{arguments.runs} runs in {time.monotonic() - began:.0f} s, {failed} failed")
    return 1 if failed else 0


def _say(*lines: str) -> None:
    sys.stdout.write("\n    ".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
