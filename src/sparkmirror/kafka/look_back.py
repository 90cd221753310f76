"""What of a producer's batches stands at the end of partitions: the log knows when an answer did not come.

A resend is not always recognized: a restarted broker remembers one batch of a producer instead of five, and
none whose records are older than `producer.id.expiration.ms`.
"""

from collections.abc import Mapping
from contextlib import closing
from typing import NamedTuple

from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.producer_state import ProducerId
from sparkmirror.domain.record_batch import iterate_batches
from sparkmirror.kafka.fetch import FetchedPartition
from sparkmirror.kafka.offsets import LATEST, list_offsets
from sparkmirror.kafka.partition_reader import PartitionReader


class LookBack(NamedTuple):
    """Whose batches to look for, and from which offset on."""

    producer: ProducerId
    from_offset: int


class Written(NamedTuple):
    """A batch that is in the log below its high watermark."""

    sequence: int
    record_count: int
    base_offset: int


def written_batches(
    settings: ConnectionSettings, wanted: Mapping[TopicPartition, LookBack]
) -> Mapping[TopicPartition, list[Written] | SparkmirrorError]:
    """The batches found in each partition, in order, or why it can't be told. Blocks. Raises KafkaError."""
    consumer = ConsumerSettings(settings)
    found: dict[TopicPartition, list[Written] | SparkmirrorError] = {}
    offsets: dict[TopicPartition, int] = {}
    ends: dict[TopicPartition, int] = {}
    for partition, end in list_offsets(consumer, list(wanted), LATEST).items():
        if isinstance(end, SparkmirrorError):
            found[partition] = end
        else:
            found[partition] = []
            offsets[partition], ends[partition] = wanted[partition].from_offset, end
    with closing(PartitionReader(consumer)) as reader:
        while left := {
            partition: offset for partition, offset in offsets.items() if offset < ends[partition]
        }:
            for fetched in reader.fetch(left, 0.0):
                partition = fetched.partition
                before = offsets[partition]
                written = _batches_of(fetched, wanted[partition].producer, before)
                for batch, next_offset in written:
                    offsets[partition] = next_offset
                    batches = found[partition]
                    if batch is not None and isinstance(batches, list):
                        batches.append(batch)
                if offsets[partition] == before:  # out of range: retention has been here
                    ends[partition] = before
    return found


def _batches_of(
    fetched: FetchedPartition, producer: ProducerId, from_offset: int
) -> list[tuple[Written | None, int]]:
    """Every batch from the offset on, None for another producer's, and where the next one begins."""
    batches: list[tuple[Written | None, int]] = []
    for batch in iterate_batches(fetched.records):
        header = batch.header
        if header.last_offset >= from_offset:
            is_ours = (header.producer_id, header.producer_epoch) == producer
            written = Written(header.base_sequence, header.record_count, header.base_offset)
            batches.append((written if is_ours else None, header.last_offset + 1))
    return batches
