"""What of a producer's batches stands at the end of partitions: the log knows when an answer did not come.

A resend is not always recognized: a restarted broker remembers one batch of a producer instead of five, and
none whose records are older than `producer.id.expiration.ms`.
"""

from collections.abc import Mapping
from contextlib import closing
from typing import NamedTuple

from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import iterate_batches
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
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
    ends: dict[TopicPartition, int] = {}
    errors: dict[TopicPartition, SparkmirrorError] = {}
    for partition, end in list_offsets(consumer, list(wanted), LATEST).items():
        if isinstance(end, SparkmirrorError):
            errors[partition] = end
        else:
            ends[partition] = end
    written: dict[TopicPartition, list[Written]] = {partition: [] for partition in ends}
    offsets = {partition: wanted[partition].from_offset for partition in ends}
    with closing(PartitionReader(consumer)) as reader:
        while left := {
            partition: offset for partition, offset in offsets.items() if offset < ends[partition]
        }:
            for fetched in reader.fetch(left, 0.0):
                partition, before = fetched.partition, left[fetched.partition]
                for header in (batch.header for batch in iterate_batches(fetched.records)):
                    if header.last_offset < before:
                        continue
                    offsets[partition] = header.last_offset + 1
                    if wanted[partition].producer.wrote(header):
                        found = Written(header.base_sequence, header.record_count, header.base_offset)
                        written[partition].append(found)
                if fetched.error:  # out of range: retention has been here
                    offsets[partition] = ends[partition]
            if all(offsets[partition] == offset for partition, offset in left.items()):
                break  # a new leader has less: the ends are not what they were
    return {**written, **errors}
