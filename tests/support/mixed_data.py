"""Writes every kind of data that a mirror must copy, each kind into a topic of its own.

Keys, values, headers, offsets and batches follow from the seed; only timestamps follow the clock. Every
function creates its topic and returns when the broker holds the data in the state that it describes.
"""

import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

import confluent_kafka as confluent
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.support.broker_data import create_topic
from tests.support.topic_reader import TopicReader

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
BIG_BATCH_RECORDS: Final = 600
_TIMEOUT_S: Final = 60.0
_MINUTE_MS: Final = 60_000

Headers = list[tuple[str, str | bytes | None]]


@dataclass(frozen=True, slots=True)
class Record:
    """A record to produce; a timestamp of 0 means now."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers = field(default_factory=list)
    timestamp_ms: int = 0


class Writer(Protocol):
    def __call__(self, bootstrap_servers: str, topic: str, *, seed: int = 1) -> None: ...


def write_codecs(bootstrap_servers: str, topic: str, *, seed: int = 1) -> None:
    """Batches of every codec in turn on three partitions; text that compresses and bytes that don't."""
    create_topic(bootstrap_servers, topic, partitions=3)
    rng = random.Random(seed)
    for _ in range(3):
        for codec in CODECS:
            records = [record for partition in range(3) for record in _ordinary(rng, partition, 40)]
            _send(bootstrap_servers, topic, records, {"compression.type": codec})


def write_headers_and_nulls(bootstrap_servers: str, topic: str, *, seed: int = 1) -> None:
    """Repeated, empty and non-ASCII header names, null and empty header values, keys and values."""
    create_topic(bootstrap_servers, topic, partitions=2)
    rng = random.Random(seed)
    for codec in ("none", "zstd"):
        records = [_odd(rng, partition=number % 2, number=number) for number in range(400)]
        _send(bootstrap_servers, topic, records, {"compression.type": codec})


def write_empty_partitions(bootstrap_servers: str, topic: str, *, seed: int = 1) -> None:
    """Six partitions, of which only 1 and 4 hold records."""
    create_topic(bootstrap_servers, topic, partitions=6)
    rng = random.Random(seed)
    _send(bootstrap_servers, topic, [*_ordinary(rng, 1, 50), *_ordinary(rng, 4, 1)])


def write_compacted(bootstrap_servers: str, topic: str, *, seed: int = 1) -> None:
    """A cleaned log: gaps inside batches and between them, an empty batch, tombstones with a delete horizon.

    Some keys of each batch are superseded later, all keys of the second batch are; the cleaner keeps that
    one, empty, because it is the last of its producer. Cleaning ends before this function does and does not
    begin again. With a broker's `log.cleaner.backoff.ms` at Kafka's 15 s it takes that long.
    """
    create_topic(bootstrap_servers, topic, config=_FAST_COMPACTION)
    rng = random.Random(seed)
    batches = _compactable(rng)
    for batch, codec in zip(batches, CODECS, strict=True):
        _send(bootstrap_servers, topic, batch, {"compression.type": codec, **_ONE_BATCH})
        # A segment rolls when a batch arrives that is older than segment.ms.
        time.sleep(2 * _SEGMENT_MS / 1000)
    _await_cleaned(bootstrap_servers, topic, batches)
    _configure(bootstrap_servers, topic, _NO_MORE_COMPACTION)


def write_transactions(bootstrap_servers: str, topic: str, *, seed: int = 1) -> None:
    """Three transactional producers and a plain one interleave; half of the transactions abort."""
    create_topic(bootstrap_servers, topic, partitions=2)
    rng = random.Random(seed)
    producers = [_transactional(bootstrap_servers, topic, f"{topic}-{seed}-{number}") for number in range(3)]
    plain = _producer(bootstrap_servers, topic, {})
    for turn in range(8):
        for producer in producers:
            producer.begin_transaction()
        for _ in range(3):
            for producer in rng.sample([*producers, plain], 4):
                _produce(producer, topic, _ordinary(rng, rng.randrange(2), rng.randint(1, 12)))
        for number, producer in enumerate(rng.sample(producers, 3)):
            finish = producer.abort_transaction if (turn + number) % 2 else producer.commit_transaction
            finish(_TIMEOUT_S)


def write_log_append_time(bootstrap_servers: str, topic: str, *, seed: int = 1) -> None:
    """Records whose timestamps the broker sets, one for a whole batch, whatever the producer said."""
    create_topic(bootstrap_servers, topic, partitions=2, config={"message.timestamp.type": "LogAppendTime"})
    rng = random.Random(seed)
    for codec in CODECS:
        records = [*_timed(rng, 0, 30), *_timed(rng, 1, 30)]
        _send(bootstrap_servers, topic, records, {"compression.type": codec, **_ONE_BATCH})


def write_large_records(bootstrap_servers: str, topic: str, *, seed: int = 1) -> None:
    """Records of 900 KB that no codec makes smaller, between small ones."""
    create_topic(bootstrap_servers, topic, partitions=2)
    rng = random.Random(seed)
    for number in range(8):
        large = Record(number % 2, b"large-%d" % number, rng.randbytes(900_000))
        records = [*_ordinary(rng, 0, 3), large, *_ordinary(rng, 1, 3)]
        _send(bootstrap_servers, topic, records, {"compression.type": CODECS[number % len(CODECS)]})


def write_single_record_batches(bootstrap_servers: str, topic: str, *, seed: int = 1) -> None:
    """A thousand batches of one record each on two partitions."""
    create_topic(bootstrap_servers, topic, partitions=2)
    rng = random.Random(seed)
    records = [record for number in range(1000) for record in _ordinary(rng, number % 2, 1)]
    _send(bootstrap_servers, topic, records, {"batch.num.messages": 1, "linger.ms": 0})


def write_timestamps(bootstrap_servers: str, topic: str, *, seed: int = 1) -> None:
    """Timestamps up to 55 minutes before and after now, out of order inside every batch."""
    create_topic(bootstrap_servers, topic, partitions=2)
    rng = random.Random(seed)
    for codec in ("none", "lz4"):
        records = [*_timed(rng, 0, 60), *_timed(rng, 1, 60)]
        _send(bootstrap_servers, topic, records, {"compression.type": codec, **_ONE_BATCH})


def write_big_batch(bootstrap_servers: str, topic: str, *, seed: int = 1) -> None:
    """One batch of `BIG_BATCH_RECORDS` records on each of two partitions, to begin in its middle."""
    create_topic(bootstrap_servers, topic, partitions=2)
    rng = random.Random(seed)
    for partition, codec in enumerate(("none", "lz4")):
        records = _ordinary(rng, partition, BIG_BATCH_RECORDS)
        _send(bootstrap_servers, topic, records, {"compression.type": codec, **_ONE_BATCH})


WRITERS: Final[Mapping[str, Writer]] = {
    "codecs": write_codecs,
    "headers-and-nulls": write_headers_and_nulls,
    "empty-partitions": write_empty_partitions,
    "compacted": write_compacted,
    "transactions": write_transactions,
    "log-append-time": write_log_append_time,
    "large-records": write_large_records,
    "single-record-batches": write_single_record_batches,
    "timestamps": write_timestamps,
    "big-batch": write_big_batch,
}
"""Every kind of data, under a name that serves as the topic's."""

_SEGMENT_MS: Final = 100
_FAST_COMPACTION: Final = {
    "cleanup.policy": "compact",
    "segment.ms": str(_SEGMENT_MS),
    "min.cleanable.dirty.ratio": "0.001",
    "max.compaction.lag.ms": str(_SEGMENT_MS),
}
# A mirror copies topic configs, and a target that cleans by itself would no longer equal its source.
_NO_MORE_COMPACTION: Final = {
    "segment.ms": str(24 * 60 * _MINUTE_MS),
    "min.cleanable.dirty.ratio": "1.0",
    "max.compaction.lag.ms": str(24 * 60 * _MINUTE_MS),
}
_ONE_BATCH: Final[Mapping[str, object]] = {"linger.ms": 5000, "batch.num.messages": 100_000}


def _ordinary(rng: random.Random, partition: int, count: int) -> list[Record]:
    return [
        Record(
            partition,
            b"key-%d" % rng.randrange(1000),
            rng.choice((b"the same words again and again ", b"")) * rng.randint(0, 9) + rng.randbytes(20),
            [("trace", rng.randbytes(8))] if rng.random() < 0.5 else [],
        )
        for _ in range(count)
    ]


def _odd(rng: random.Random, partition: int, number: int) -> Record:
    names = ("a", "b", "größe", "")
    values = (None, b"", b"1", rng.randbytes(3))
    headers: Headers = [(rng.choice(names), rng.choice(values)) for _ in range(number % 6)]
    key = rng.choice((None, b"", b"key-%d" % number))
    value = rng.choice((None, b"", b"value-%d" % number))
    return Record(partition, key, value, headers)


def _timed(rng: random.Random, partition: int, count: int) -> list[Record]:
    now_ms = int(time.time() * 1000)
    return [
        Record(partition, b"key-%d" % number, b"timed", [], now_ms + rng.randint(-55, 55) * _MINUTE_MS)
        for number in range(count)
    ]


def _compactable(rng: random.Random) -> list[list[Record]]:
    """One list per batch and segment; the last one stays in the active segment, where nothing is cleaned."""
    hot = [b"hot-%d" % number for number in range(10)]
    mixed = [b"keep-%d" % number if number % 2 else hot[number // 2 % 10] for number in range(200)]
    return [
        [Record(0, key, rng.randbytes(20)) for key in mixed],
        [Record(0, rng.choice(hot), rng.randbytes(20)) for _ in range(50)],
        [Record(0, key, rng.randbytes(20), [("n", None)]) for key in [*hot, *mixed[:20], *hot]],
        [Record(0, key, None) for key in [*mixed[31:40:2], b"never-seen"]],
        [Record(0, key, rng.randbytes(20)) for key in [*hot, b"last"]],
    ]


def _await_cleaned(bootstrap_servers: str, topic: str, batches: list[list[Record]]) -> None:
    expected = _survivors(batches)
    deadline = time.monotonic() + _TIMEOUT_S
    while (offsets := _offsets(bootstrap_servers, topic)) != expected:
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"{topic} was not cleaned within {_TIMEOUT_S:.0f} s: {len(offsets)} records left"
            )
        time.sleep(0.2)


def _survivors(batches: list[list[Record]]) -> list[int]:
    closed = [record.key for batch in batches[:-1] for record in batch]
    newest = {key: offset for offset, key in enumerate(closed)}
    return [*sorted(newest.values()), *range(len(closed), len(closed) + len(batches[-1]))]


def _offsets(bootstrap_servers: str, topic: str) -> list[int]:
    with TopicReader(bootstrap_servers, topic) as reader:
        return [offset for record in reader.read(0) if (offset := record.offset()) is not None]


def _configure(bootstrap_servers: str, topic: str, config: Mapping[str, str]) -> None:
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    admin.incremental_alter_configs([resource])[resource].result(_TIMEOUT_S)


def _send(
    bootstrap_servers: str,
    topic: str,
    records: Iterable[Record],
    settings: Mapping[str, object] | None = None,
) -> None:
    _produce(_producer(bootstrap_servers, topic, settings or {}), topic, records)


def _producer(bootstrap_servers: str, topic: str, settings: Mapping[str, object]) -> confluent.Producer:
    producer = confluent.Producer(
        {"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "log_level": 0, **settings}
    )
    # Records produced before the partitions are known may overtake each other.
    producer.list_topics(topic, timeout=_TIMEOUT_S)
    return producer


def _transactional(bootstrap_servers: str, topic: str, transactional_id: str) -> confluent.Producer:
    producer = _producer(bootstrap_servers, topic, {"transactional.id": transactional_id})
    producer.init_transactions(_TIMEOUT_S)
    return producer


def _produce(producer: confluent.Producer, topic: str, records: Iterable[Record]) -> None:
    for record in records:
        producer.produce(
            topic,
            partition=record.partition,
            key=record.key,
            value=record.value,
            headers=record.headers,
            timestamp=record.timestamp_ms,
            on_delivery=_raise_undelivered,
        )
    if left := producer.flush(_TIMEOUT_S):
        raise TimeoutError(f"{topic}: {left} records were not acknowledged within {_TIMEOUT_S:.0f} s")


def _raise_undelivered(error: confluent.KafkaError | None, _: confluent.Message) -> None:
    if error is not None:
        raise confluent.KafkaException(error)
