"""One hot partition alone, and beside thousands of quiet ones of the same task.

It is filled while the mirror is halted, so that nothing is written to the source while it is measured.
"""

import time
from dataclasses import dataclass

from bench.bed import Bed
from bench.dataset import fill
from bench.errors import BenchError
from bench.idle import Followed, Quiet, followed
from bench.measures import MILLION
from bench.plan import Hot
from bench.replay import Log, read_partition, replay
from bench.results import Burst, HotRun
from bench.sides import Side
from bench.topics import Topics
from bench.wire import Batch
from bench.workloads import BY_NAME

HOT_WORKLOAD = BY_NAME["1kb-lz4"]
_HOT = "bench-hot"
_SEED_RECORDS = 50_000
_SEED_BYTES_MAX = 256 << 20
_SETTLE_S = 10.0
_TIMEOUT_S = 180.0
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class _Sight:
    """The records on the target at one moment, and the side's CPU seconds until then."""

    at_s: float
    records: int
    cpu_s: float


def measure(bed: Bed, side: Side, hot: Hot, neighbours: int, *, repetitions: int, batch_bytes: int) -> HotRun:
    """Bursts of HOT_WORKLOAD's batches in one partition beside so many quiet ones."""
    partitions = Quiet(f"hot{neighbours}{side.value}", neighbours, also=(_HOT,))
    seed = HOT_WORKLOAD.with_records(_SEED_RECORDS)
    bed.source.topics.create(_HOT, 1)
    bed.target.topics.create(bed.mirroring(partitions.name, _HOT).target_topic(_HOT), 1)
    fill(bed.source, _HOT, seed, batch_bytes, partitions=1)
    cache = {0: read_partition(Log(bed.source.bootstrap, _HOT), 0, _SEED_BYTES_MAX)}
    records = hot.mm2_records if side.is_java else hot.records
    with followed(bed, partitions, side) as mirror:
        _await(bed.target.topics, mirror, _SEED_RECORDS)
        time.sleep(_SETTLE_S)
        bursts = tuple(_burst(bed, mirror, cache, records) for _ in range(repetitions))
        mirror.process.observe()
    return HotRun(side, neighbours, bursts, mirror.process.peak_pss_mb)


def _burst(bed: Bed, mirror: Followed, cache: dict[int, list[Batch]], records: int) -> Burst:
    """From the first sight of a new record to that of the last."""
    before = bed.source.topics.end_offsets(_HOT, 1)
    with mirror.process.halted():
        written = replay(cache, Log(bed.source.bootstrap, _HOT), records, 1)
    first = _await(bed.target.topics, mirror, before + 1)
    last = _await(bed.target.topics, mirror, before + written)
    copied = last.records - first.records
    return Burst(copied / (last.at_s - first.at_s), (last.cpu_s - first.cpu_s) * MILLION / copied)


def _await(target: Topics, mirror: Followed, records: int) -> _Sight:
    """When so many were first seen on the target."""
    process, topic = mirror.process, mirror.mirroring.target_topic(_HOT)
    deadline = time.monotonic() + _TIMEOUT_S
    while (there := target.end_offsets(topic, 1)) < records:
        if process.has_ended() or time.monotonic() > deadline:
            raise BenchError(f"{topic} stopped at {there} of {records} records: {process.log_tail()}")
        time.sleep(_POLL_S)
    at_s = time.monotonic()
    process.tree.refresh()
    return _Sight(at_s, there, process.tree.cpu_s())
