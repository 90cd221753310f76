"""Records of a state topic, dealt to its partitions in batches that every broker takes."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafka.partitioner.default import murmur2

from sparkmirror.batches.log_records import LogRecord, encode_log_batch
from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.domain.ids import TopicPartition

_BATCH_BYTES_MAX = 512 * 1024
"""Well below every default limit of a batch's size."""

_RECORD_OVERHEAD_BYTES = 200
"""Headers, lengths and deltas, generously."""


class KeyedBatch(NamedTuple):
    partition: TopicPartition
    batch: OutgoingBatch


def partition_of(key: bytes, count: int) -> int:
    """As Java's default partitioner chooses."""
    return int((murmur2(key) & 0x7FFFFFFF) % count)


def deal(topic: str, count: int, records: Iterable[LogRecord]) -> dict[TopicPartition, list[list[int]]]:
    """Which records, by number, go to each partition, in as few batches as that takes, in order.

    A record goes where it says, else where its key does among the topic's `count` partitions.
    """
    dealt: dict[TopicPartition, list[list[int]]] = {}
    sizes: dict[TopicPartition, int] = {}
    for number, record in enumerate(records):
        chosen = partition_of(record.key or b"", count) if record.partition is None else record.partition
        partition = TopicPartition(topic, chosen)
        size = len(record.key or b"") + len(record.value or b"") + _RECORD_OVERHEAD_BYTES
        used = sizes.get(partition, _BATCH_BYTES_MAX)
        if used + size > _BATCH_BYTES_MAX:
            dealt.setdefault(partition, []).append([])
            used = 0
        dealt[partition][-1].append(number)
        sizes[partition] = used + size
    return dealt


def keyed_batches(topic: str, count: int, records: Sequence[LogRecord], now_ms: int) -> list[KeyedBatch]:
    return [
        KeyedBatch(partition, _outgoing([records[number] for number in numbers], now_ms))
        for partition, batches in deal(topic, count, records).items()
        for numbers in batches
    ]


def _outgoing(records: Sequence[LogRecord], now_ms: int) -> OutgoingBatch:
    return OutgoingBatch(encode_log_batch(records, now_ms), range(len(records)), now_ms)
