"""Assigns records of a state topic to its partitions, in batches that every broker accepts."""

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
    """The partition that Java's default partitioner chooses."""
    return int((murmur2(key) & 0x7FFFFFFF) % count)


def assign(topic: str, count: int, records: Iterable[LogRecord]) -> dict[TopicPartition, list[list[int]]]:
    """The records, by number, of each partition, in as few batches as that takes, in order.

    A record goes to the partition that it names, else to the one of its key among the topic's `count`.
    """
    assigned: dict[TopicPartition, list[list[int]]] = {}
    sizes: dict[TopicPartition, int] = {}
    for number, record in enumerate(records):
        chosen = partition_of(record.key or b"", count) if record.partition is None else record.partition
        partition = TopicPartition(topic, chosen)
        size = len(record.key or b"") + len(record.value or b"") + _RECORD_OVERHEAD_BYTES
        used = sizes.get(partition, _BATCH_BYTES_MAX)
        if used + size > _BATCH_BYTES_MAX:
            assigned.setdefault(partition, []).append([])
            used = 0
        assigned[partition][-1].append(number)
        sizes[partition] = used + size
    return assigned


def keyed_batches(topic: str, count: int, records: Sequence[LogRecord], now_ms: int) -> list[KeyedBatch]:
    return [
        KeyedBatch(partition, _outgoing([records[number] for number in numbers], now_ms))
        for partition, batches in assign(topic, count, records).items()
        for numbers in batches
    ]


def _outgoing(records: Sequence[LogRecord], now_ms: int) -> OutgoingBatch:
    return OutgoingBatch(encode_log_batch(records, now_ms), range(len(records)), now_ms)
