"""One latency run: 1,000 records a second over 8 partitions, through a mirror, seen by a waiting consumer.

Producer and consumer are processes of their own (`bench.latency_probe`), the same for every side. The floor
is the same consumer on the source itself, with no mirror between.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from subprocess import Popen, TimeoutExpired

from bench.bed import Bed
from bench.errors import BenchError
from bench.measures import Percentiles
from bench.results import LatencyRun
from bench.side_process import SideProcess, probe
from bench.sides import Side
from bench.throughput import Job, command
from bench.workloads import LATENCY, PARTITIONS

RECORDS_PER_S = 1000
RECORD_BYTES = 100
TOPIC = "bench-latency"
_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Timing:
    """Records sent up to `warm_up_s` after the first arrival are left out; then `seconds` are counted."""

    warm_up_s: float
    seconds: float

    @property
    def patience_s(self) -> float:
        return _TIMEOUT_S + self.warm_up_s + self.seconds


def measure(bed: Bed, side: Side, run: int, timing: Timing) -> LatencyRun:
    """Through a mirror."""
    alias = f"{LATENCY}{run}{side.name.lower().replace('_', '')}"
    return LatencyRun(side, run, through(bed, side, Job(LATENCY, run, alias, TOPIC, 0), timing))


def through(bed: Bed, side: Side, job: Job, timing: Timing) -> Percentiles:
    """Measure latencies of `TOPIC`, through the mirror that the job starts."""
    mirroring = bed.mirroring(job.alias, TOPIC)
    with source_topic(bed):
        bed.target.topics.create(mirroring.target_topic(TOPIC), PARTITIONS)
        with SideProcess.start(
            command(bed, side, mirroring, job), bed.folder / f"{job.alias}.log"
        ) as process:
            read = (bed.target.bootstrap, mirroring.target_topic(TOPIC))
            percentiles = observe(bed, read, timing, process)
            process.stop()
    return percentiles


def floor(bed: Bed, run: int, timing: Timing) -> LatencyRun:
    """Consumer and producer on the same topic."""
    with source_topic(bed):
        return LatencyRun(None, run, observe(bed, (bed.source.bootstrap, TOPIC), timing, None))


@contextmanager
def source_topic(bed: Bed) -> Iterator[str]:
    """Create a topic, and yield its name; after the block everything is deleted."""
    bed.source.topics.create(TOPIC, PARTITIONS)
    try:
        yield TOPIC
    finally:
        bed.clean()


def observe(bed: Bed, read: tuple[str, str], timing: Timing, side: SideProcess | None) -> Percentiles:
    """Run producer and consumer; what the consumer prints."""
    sender = ("send", *_log_options(bed.source.bootstrap, TOPIC))
    receiver = ("receive", *_log_options(*read))
    receiver += ("--warm-up", str(timing.warm_up_s), "--seconds", str(timing.seconds))
    rate = ("--rate", str(RECORDS_PER_S), "--record-bytes", str(RECORD_BYTES))
    with probe("bench.latency_probe", *receiver) as consumer, probe("bench.latency_probe", *sender, *rate):
        return Percentiles(**json.loads(_output(consumer, timing.patience_s, side)))


def _log_options(bootstrap: str, topic: str) -> tuple[str, ...]:
    return ("--bootstrap", bootstrap, "--topic", topic, "--partitions", str(PARTITIONS))


def _output(consumer: Popen[str], timeout_s: float, side: SideProcess | None) -> str:
    """The consumer's output; an error as soon as the side has ended, or after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            return consumer.communicate(timeout=1.0)[0]
        except TimeoutExpired:
            if side and side.has_ended():
                break
    raise BenchError(f"no latency measured: {side.log_tail() if side else 'the consumer saw nothing'}")
