"""Records of a state topic as batches for a `BatchWriter`, for those that belong into a transaction."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafka.partitioner.default import murmur2

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.log_records import LogRecord, encode_log_batch
from sparkmirror.domain.record_batch import OutgoingBatch

BATCH_BYTES_MAX = 512 * 1024
"""Well below every default limit of a batch's size."""

RECORD_OVERHEAD_BYTES = 200
"""Headers, lengths and deltas, generously."""


class KeyedBatch(NamedTuple):
    partition: TopicPartition
    batch: OutgoingBatch


def partition_of(key: bytes, count: int) -> int:
    """As Java's default partitioner chooses."""
    return int((murmur2(key) & 0x7FFFFFFF) % count)


def keyed_batches(topic: str, count: int, records: Iterable[LogRecord], now_ms: int) -> list[KeyedBatch]:
    """The records in as few batches as that takes, dealt to the topic's `count` partitions by their keys."""
    dealt: dict[TopicPartition, list[list[LogRecord]]] = {}
    sizes: dict[TopicPartition, int] = {}
    for record in records:
        partition = TopicPartition(topic, partition_of(record.key or b"", count))
        size = len(record.key or b"") + len(record.value or b"") + RECORD_OVERHEAD_BYTES
        batches = dealt.setdefault(partition, [[]])
        if sizes.get(partition, 0) + size > BATCH_BYTES_MAX:
            batches.append([])
            sizes[partition] = 0
        batches[-1].append(record)
        sizes[partition] = sizes.get(partition, 0) + size
    return [
        KeyedBatch(partition, _outgoing(together, now_ms))
        for partition, batches in dealt.items()
        for together in batches
    ]


def _outgoing(records: Sequence[LogRecord], now_ms: int) -> OutgoingBatch:
    return OutgoingBatch(encode_log_batch(records, now_ms), range(len(records)), now_ms)
