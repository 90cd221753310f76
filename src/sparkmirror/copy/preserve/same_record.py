"""Compares the records that both sides have at one offset."""

from typing import Final

from sparkmirror.batches.record_batch import CONTROL, FetchedBatch
from sparkmirror.batches.records import RawRecord, read_records
from sparkmirror.copy.copy_plan import CopyPartition
from sparkmirror.kafka.data.partition_reader import SpanReader

_ONE_BATCH: Final = 1


def has_same_record(source: SpanReader, partition: CopyPartition, copied: FetchedBatch) -> bool:
    """Whether the last record of this batch of the target is at its offset at the source.

    False if they differ, or the source has a marker there; True also where a record is gone. Raises
    KafkaError.
    """
    offset = copied.header.last_offset
    batch = next(source.read(partition.source, offset, offset + 1, _ONE_BATCH), None)
    if batch is None:
        return True
    if batch.header.attributes & CONTROL:
        return False
    original, copy = _record_in(batch, offset), _record_in(copied, offset)
    if original is None or copy is None:
        return True
    stamps = partition.target_stamps_append_time
    return original.body == copy.body and (stamps or original.timestamp == copy.timestamp)


def _record_in(batch: FetchedBatch, offset: int) -> RawRecord | None:
    return next((record for record in read_records(batch) if record.offset == offset), None)
