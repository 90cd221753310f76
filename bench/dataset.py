"""Source data: confluent-kafka writes a seed of real batches, `bench.replay` repeats it up to the size.

Batches close at `batch_bytes` uncompressed (librdkafka's batch.size), or hold one record each. Values repeat
after some megabytes, far beyond lz4's window of 64 KB, so repetition does not help compression. A topic that
is to be compacted is written record by record: repeated keys would outlive nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice

from confluent_kafka import Producer

from bench import compaction
from bench.bed import Broker
from bench.log_content import content_of
from bench.replay import Log, read_topic, replay
from bench.workloads import DATA_PREFIX, KEY_BYTES, MARK, PARTITIONS, Batches, Workload, values

_SEED_BYTES = 128 << 20
_SINGLE_SEED_BYTES = 8 << 20
_DISTINCT_BYTES = 4 << 20
_LINGER_MS = 200
_IN_TRANSACTION = 500
"""Records, over all partitions."""
_CONNECTIONS = 2
_Headers = list[tuple[str, str | bytes | None]] | None
_MARKED: _Headers = [(MARK, b"")]
_MARKED_EVERY = 10


@dataclass(frozen=True, slots=True)
class Dataset:
    """Topics that were written: `topic` for the fast sides, `mm2_topic` for MM2; their batches' shape."""

    workload: str
    topic: str
    records: int
    mm2_topic: str
    mm2_records: int
    records_per_batch: float
    bytes_per_batch: float
    gone: float = 0.0
    """The share of its offsets that compaction has emptied."""

    def compression(self, record_bytes: int) -> float:
        """Record bytes per byte on the wire."""
        return self.records_per_batch * record_bytes / self.bytes_per_batch


def write(source: Broker, workload: Workload, batch_bytes: int) -> Dataset:
    """Create and fill what the sides copy: at least the workload's records, rounded up to whole batches."""
    topic = f"{DATA_PREFIX}{workload.name}"
    if workload.batches is Batches.COMPACTED:
        return _write_compacted(source, topic, workload, batch_bytes)
    if workload.batches is Batches.IN_TRANSACTIONS:
        return _write_in_transactions(source, topic, workload, batch_bytes)
    return _write_repeated(source, topic, workload, batch_bytes)


def _write_repeated(source: Broker, topic: str, workload: Workload, batch_bytes: int) -> Dataset:
    topics = source.topics
    mm2_topic = topic if workload.records == workload.mm2_records else f"{topic}-short"
    for name in {topic, mm2_topic}:
        topics.create(name, PARTITIONS)
    seed_bytes = _SINGLE_SEED_BYTES if workload.batches is Batches.SINGLE else _SEED_BYTES
    seed = min(workload.records, seed_bytes // workload.record_bytes)
    _produce_all(source.bootstrap, topic, workload, batch_bytes, _numbered(workload, seed))
    cache = read_topic(Log(source.bootstrap, topic), 2 * _SEED_BYTES)
    if workload.records > seed:
        replay(cache, Log(source.bootstrap, topic), workload.records - seed, _CONNECTIONS)
    if mm2_topic != topic:
        replay(cache, Log(source.bootstrap, mm2_topic), workload.mm2_records, _CONNECTIONS)
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


def _write_compacted(source: Broker, topic: str, workload: Workload, batch_bytes: int) -> Dataset:
    """One topic for all sides: of twice as many records about the wanted number is left."""
    compaction.create(source.topics, topic)
    records = compaction.keyed(_distinct(workload), 2 * workload.records)
    _produce_all(source.bootstrap, topic, workload, batch_bytes, records)
    compaction.finish(source.topics, source.data, topic)
    return _as_it_is(source, topic, workload)


def _write_in_transactions(source: Broker, topic: str, workload: Workload, batch_bytes: int) -> Dataset:
    source.topics.create(topic, PARTITIONS)
    producer = Producer(
        _producer_settings(source.bootstrap, workload, batch_bytes) | {"transactional.id": topic}
    )
    producer.init_transactions()
    for number, (key, value) in enumerate(_numbered(workload, workload.records)):
        if number % _IN_TRANSACTION == 0:
            if number:
                producer.commit_transaction()
            producer.begin_transaction()
        _produce(producer, topic, key, value, number % PARTITIONS)
    producer.commit_transaction()
    return _as_it_is(source, topic, workload)


def _as_it_is(source: Broker, topic: str, workload: Workload) -> Dataset:
    """Describe a topic that all sides copy, and whose end offsets count more than its records."""
    content = content_of(Log(source.bootstrap, topic))
    return Dataset(
        workload=workload.name,
        topic=topic,
        records=content.records,
        mm2_topic=topic,
        mm2_records=content.records,
        records_per_batch=content.records / content.batches,
        bytes_per_batch=content.size_bytes / content.batches,
        gone=1 - content.share,
    )


def _distinct(workload: Workload) -> list[bytes]:
    return list(values(workload.record_bytes, _DISTINCT_BYTES // workload.record_bytes))


def _numbered(workload: Workload, records: int) -> Iterator[tuple[str, bytes]]:
    for number, value in enumerate(islice(cycle(_distinct(workload)), records)):
        yield f"{number % 10**KEY_BYTES:0{KEY_BYTES}d}", value


def fill(source: Broker, topic: str, workload: Workload, batch_bytes: int, partitions: int) -> None:
    """The workload's records, and no copies of them, into a topic that is there."""
    records = _numbered(workload, workload.records)
    _produce_all(source.bootstrap, topic, workload, batch_bytes, records, partitions)


def _produce_all(
    bootstrap: str,
    topic: str,
    workload: Workload,
    batch_bytes: int,
    records: Iterable[tuple[str, bytes]],
    partitions: int = PARTITIONS,
) -> None:
    """Partitions take turns."""
    producer = Producer(_producer_settings(bootstrap, workload, batch_bytes))
    is_marked = workload.batches is Batches.MARKED
    for number, (key, value) in enumerate(records):
        headers = _MARKED if is_marked and number // partitions % _MARKED_EVERY == 0 else None
        _produce(producer, topic, key, value, number % partitions, headers)
    producer.flush()


def _produce(
    producer: Producer, topic: str, key: str, value: bytes, partition: int, headers: _Headers = None
) -> None:
    while True:
        try:
            producer.produce(topic, value, key, partition, headers=headers)
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
        "batch.num.messages": 1 if workload.batches is Batches.SINGLE else 100_000,
        "linger.ms": _LINGER_MS,
        "queue.buffering.max.messages": 500_000,
        "queue.buffering.max.kbytes": 262_144,
    }
