"""Measures the CPU that many quiet partitions of one task take.

Every partition gets one record first, so that it is known when all of them are being followed.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

from confluent_kafka import Producer

from bench.bed import Bed
from bench.errors import BenchError
from bench.results import IdleRun
from bench.side_process import SideProcess
from bench.sides import Mirroring, Side
from bench.throughput import Job, command
from bench.workloads import IDLE

_TOPICS = 10
_START_TIMEOUT_S = 180.0
_SETTLE_S = 15.0


@dataclass(frozen=True, slots=True)
class Quiet:
    """So many partitions, spread over a few topics. `also` is mirrored too, and left to the caller."""

    name: str
    partitions: int
    also: tuple[str, ...] = ()

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(f"bench-{self.name}-{number}" for number in range(_TOPICS)) if self.partitions else ()

    @property
    def in_each(self) -> int:
        return self.partitions // _TOPICS


@dataclass(frozen=True, slots=True)
class Followed:
    """A mirror that follows all partitions; `start_s` after its start each had its first record."""

    process: SideProcess
    mirroring: Mirroring
    start_s: float


@contextmanager
def followed(bed: Bed, quiet: Quiet, side: Side = Side.OURS) -> Iterator[Followed]:
    """Start a mirror with one task; after the block all topics are deleted, but not a workload's data."""
    mirroring = bed.mirroring(quiet.name, ",".join((*quiet.topics, *quiet.also)), tasks_max=1)
    job = Job(quiet.name, 1, quiet.name, mirroring.topics, quiet.partitions)
    try:
        _fill(bed, mirroring, quiet)
        with SideProcess.start(
            command(bed, side, mirroring, job), bed.folder / f"{quiet.name}.log"
        ) as process:
            _await_copies(bed, mirroring, process, quiet)
            yield Followed(process, mirroring, process.age_s)
            process.stop()
    finally:
        bed.clean()


def measure(bed: Bed, partitions: int, seconds: float) -> IdleRun:
    """CPU over `seconds`, after everything has been copied and the mirror has settled."""
    with followed(bed, Quiet(IDLE, partitions)) as mirror:
        time.sleep(_SETTLE_S)
        return observe(mirror, partitions, seconds)


def _fill(bed: Bed, mirroring: Mirroring, quiet: Quiet) -> None:
    for topic in quiet.topics:
        bed.source.topics.create(topic, quiet.in_each)
        bed.target.topics.create(mirroring.target_topic(topic), quiet.in_each)
    producer = Producer({"bootstrap.servers": bed.source.bootstrap})
    for topic, partition in product(quiet.topics, range(quiet.in_each)):
        producer.produce(topic, b"one", partition=partition)
    producer.flush()


def _await_copies(bed: Bed, mirroring: Mirroring, process: SideProcess, quiet: Quiet) -> None:
    for topic in map(mirroring.target_topic, quiet.topics):
        while bed.target.topics.end_offsets(topic, quiet.in_each) < quiet.in_each:
            if process.has_ended() or process.age_s > _START_TIMEOUT_S:
                raise BenchError(f"{topic} was not copied: {process.log_tail()}")
            time.sleep(0.1)


def observe(mirror: Followed, partitions: int, seconds: float) -> IdleRun:
    process = mirror.process
    process.observe()
    began, all_before, worker_before = process.age_s, process.tree.cpu_s(), process.tree.spark_worker_cpu_s()
    time.sleep(seconds)
    process.observe()
    all_after, worker_after, elapsed = (
        process.tree.cpu_s(),
        process.tree.spark_worker_cpu_s(),
        process.age_s - began,
    )
    return IdleRun(
        partitions=partitions,
        seconds=elapsed,
        all_processes_percent=100 * (all_after - all_before) / elapsed,
        worker_percent=100 * (worker_after - worker_before) / elapsed,
        peak_pss_mb=process.peak_pss_mb,
        start_s=mirror.start_s,
    )
