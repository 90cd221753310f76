"""What sparkmirror costs when nothing happens: many idle partitions, one task.

Every partition gets one record first, so that it is known when all of them are being followed.
"""

import time
from itertools import product

from confluent_kafka import Producer

from bench.bed import Bed
from bench.errors import BenchError
from bench.results import IdleRun
from bench.side_process import SideProcess
from bench.sides import Mirroring, Side
from bench.throughput import Job, command
from bench.workloads import IDLE

_TOPICS = tuple(f"bench-idle-{number}" for number in range(10))
_START_TIMEOUT_S = 180.0
_SETTLE_S = 15.0


def measure(bed: Bed, partitions: int, seconds: float) -> IdleRun:
    """CPU over `seconds`, after everything has been copied and the mirror has settled."""
    each = partitions // len(_TOPICS)
    mirroring = bed.mirroring(IDLE, ",".join(_TOPICS), tasks_max=1)
    job = Job(IDLE, 1, IDLE, mirroring.topics, partitions)
    try:
        _fill(bed, mirroring, each)
        with SideProcess.start(
            command(bed, Side.OURS, mirroring, job), bed.folder / f"{IDLE}.log"
        ) as process:
            _await_copies(bed, mirroring, process, each)
            time.sleep(_SETTLE_S)
            result = _observe(process, partitions, seconds)
            process.stop()
    finally:
        bed.clean()
    return result


def _fill(bed: Bed, mirroring: Mirroring, each: int) -> None:
    for topic in _TOPICS:
        bed.source.topics.create(topic, each)
        bed.target.topics.create(mirroring.target_topic(topic), each)
    producer = Producer({"bootstrap.servers": bed.source.bootstrap})
    for topic, partition in product(_TOPICS, range(each)):
        producer.produce(topic, b"one", partition=partition)
    producer.flush()


def _await_copies(bed: Bed, mirroring: Mirroring, process: SideProcess, each: int) -> None:
    for topic in map(mirroring.target_topic, _TOPICS):
        while bed.target.topics.end_offsets(topic, each) < each:
            if process.has_ended() or process.age_s > _START_TIMEOUT_S:
                raise BenchError(f"{topic} was not copied: {process.log_tail()}")
            time.sleep(0.5)


def _observe(process: SideProcess, partitions: int, seconds: float) -> IdleRun:
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
    )
