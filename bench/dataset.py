"""Source data: confluent-kafka writes a seed of real batches, `bench.replay` repeats it up to the size.

Batches close at `batch_bytes` uncompressed (librdkafka's batch.size). Values repeat after some megabytes,
far beyond lz4's window of 64 KB, so repetition does not help compression.
"""

from dataclasses import dataclass
from itertools import cycle, islice

from confluent_kafka import Producer

from bench.replay import Log, read_topic, replay
from bench.topics import Topics
from bench.workloads import DATA_PREFIX, KEY_BYTES, PARTITIONS, Workload, values

_SEED_BYTES = 128 << 20
_DISTINCT_BYTES = 4 << 20
_LINGER_MS = 200


@dataclass(frozen=True, slots=True)
class Dataset:
    """What was written: `topic` for the fast sides, `mm2_topic` for MM2, and the shape of their batches."""

    workload: str
    topic: str
    records: int
    mm2_topic: str
    mm2_records: int
    records_per_batch: float
    bytes_per_batch: float

    def compression(self, record_bytes: int) -> float:
        """Record bytes per byte on the wire."""
        return self.records_per_batch * record_bytes / self.bytes_per_batch


def write(topics: Topics, workload: Workload, batch_bytes: int) -> Dataset:
    """Create and fill both topics; they hold at least the workload's records, rounded up to whole batches."""
    topic, mm2_topic = f"{DATA_PREFIX}{workload.name}", f"{DATA_PREFIX}{workload.name}-short"
    for name in (topic, mm2_topic):
        topics.create(name, PARTITIONS)
    seed = min(workload.records, _SEED_BYTES // workload.record_bytes)
    _write_seed(topics.bootstrap, topic, workload, seed, batch_bytes)
    cache = read_topic(Log(topics.bootstrap, topic), 2 * _SEED_BYTES)
    if workload.records > seed:
        replay(cache, Log(topics.bootstrap, topic), workload.records - seed, 1)
    replay(cache, Log(topics.bootstrap, mm2_topic), workload.mm2_records, 1)
    batches = [batch for partition in cache.values() for batch in partition]
    return Dataset(
        workload=workload.name,
        topic=topic,
        records=topics.end_offsets(topic, PARTITIONS),
        mm2_topic=mm2_topic,
        mm2_records=topics.end_offsets(mm2_topic, PARTITIONS),
        records_per_batch=sum(batch.records for batch in batches) / len(batches),
        bytes_per_batch=sum(len(batch.data) for batch in batches) / len(batches),
    )


def _write_seed(bootstrap: str, topic: str, workload: Workload, records: int, batch_bytes: int) -> None:
    producer = Producer(_producer_settings(bootstrap, workload, batch_bytes))
    distinct = list(values(workload.record_bytes, _DISTINCT_BYTES // workload.record_bytes))
    for number, value in enumerate(islice(cycle(distinct), records)):
        _produce(producer, topic, f"{number % 10**KEY_BYTES:0{KEY_BYTES}d}", value, number % PARTITIONS)
    producer.flush()


def _produce(producer: Producer, topic: str, key: str, value: bytes, partition: int) -> None:
    while True:
        try:
            producer.produce(topic, value, key, partition)
        except BufferError:
            producer.poll(0.1)
        else:
            return


def _producer_settings(
    bootstrap: str, workload: Workload, batch_bytes: int
) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": bootstrap,
        "compression.type": workload.codec,
        "batch.size": batch_bytes,
        "batch.num.messages": 100_000,
        "linger.ms": _LINGER_MS,
        "queue.buffering.max.messages": 500_000,
        "queue.buffering.max.kbytes": 262_144,
    }
