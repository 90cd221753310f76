"""What many partitions cost sparkmirror: thousands of them nearly quiet, and one hot one beside thousands.

The hot partition is filled while the mirror is halted, so that nobody writes to the source while its
throughput is measured.
"""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer

from bench.bed import Bed
from bench.dataset import fill
from bench.errors import BenchError
from bench.idle import Followed, Quiet, followed, observe
from bench.plan import Grown
from bench.replay import Log, read_partition, replay
from bench.results import HotRun, IdleRun
from bench.topics import Topics
from bench.wire import Batch
from bench.workloads import BY_NAME, GROWTH

TRICKLE_RECORDS_PER_S = 10
HOT_WORKLOAD = BY_NAME["1kb-lz4"]
_HOT = "bench-hot"
_SEED_RECORDS = 50_000
_SEED_BYTES_MAX = 256 << 20
_SETTLE_S = 10.0
_PATIENCE_S = 180.0
_POLL_S = 0.02


def quiet(bed: Bed, grown: Grown) -> IdleRun:
    """TRICKLE_RECORDS_PER_S records arrive in partitions taken at random."""
    partitions = Quiet(GROWTH, grown.partitions)
    with followed(bed, partitions) as mirror, _trickle(bed, partitions):
        time.sleep(_SETTLE_S)
        return observe(mirror, grown.partitions, grown.seconds)


@contextmanager
def _trickle(bed: Bed, partitions: Quiet) -> Iterator[None]:
    enough, dice = threading.Event(), random.Random(1)
    producer = Producer({"bootstrap.servers": bed.source.bootstrap, "linger.ms": 0, "log_level": 2})

    def send() -> None:
        while not enough.wait(1 / TRICKLE_RECORDS_PER_S):
            producer.produce(
                dice.choice(partitions.topics), b"more", partition=dice.randrange(partitions.in_each)
            )
            producer.poll(0)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()
        producer.flush(10)


def hot(bed: Bed, grown: Grown, neighbours: int, repetitions: int, batch_bytes: int) -> HotRun:
    """One partition of HOT_WORKLOAD's batches beside so many quiet ones."""
    partitions = Quiet(f"hot{neighbours}", neighbours, also=(_HOT,))
    seed = HOT_WORKLOAD.with_records(_SEED_RECORDS)
    bed.source.topics.create(_HOT, 1)
    bed.target.topics.create(bed.mirroring(partitions.name, _HOT).target_topic(_HOT), 1)
    fill(bed.source, _HOT, seed, batch_bytes, partitions=1)
    cache = {0: read_partition(Log(bed.source.bootstrap, _HOT), 0, _SEED_BYTES_MAX)}
    with followed(bed, partitions) as mirror:
        _await(bed.target.topics, mirror, _SEED_RECORDS)
        time.sleep(_SETTLE_S)
        rates = [_burst(bed, mirror, cache, grown.hot_records) for _ in range(repetitions)]
    return HotRun(neighbours, tuple(rates))


def _burst(bed: Bed, mirror: Followed, cache: dict[int, list[Batch]], records: int) -> float:
    """Records per second from the first sight of a new record to that of the last."""
    before = bed.source.topics.end_offsets(_HOT, 1)
    with mirror.process.halted():
        written = replay(cache, Log(bed.source.bootstrap, _HOT), records, 1)
    first_s, first = _await(bed.target.topics, mirror, before + 1)
    last_s, last = _await(bed.target.topics, mirror, before + written)
    return (last - first) / (last_s - first_s)


def _await(target: Topics, mirror: Followed, records: int) -> tuple[float, int]:
    """When so many were first seen on the target, and how many there were."""
    topic, deadline = mirror.mirroring.target_topic(_HOT), time.monotonic() + _PATIENCE_S
    while (there := target.end_offsets(topic, 1)) < records:
        if mirror.process.has_ended() or time.monotonic() > deadline:
            raise BenchError(f"{topic} stopped at {there} of {records} records: {mirror.process.log_tail()}")
        time.sleep(_POLL_S)
    return time.monotonic(), there
