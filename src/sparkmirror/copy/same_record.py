"""Compares the records that both sides have at one offset."""

from contextlib import closing
from typing import Final

from sparkmirror.batches.record_batch import CONTROL, FetchedBatch
from sparkmirror.batches.records import RawRecord, read_records
from sparkmirror.copy.copy_plan import CopyPartition, TaskPlan
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.partition_reader import SpanReader

_ONE_BATCH: Final = 1


def has_same_record(plan: TaskPlan, partition: CopyPartition, offset: int) -> bool:
    """False if they differ, or the source has a marker there; True also where a record is gone.

    Raises KafkaError.
    """
    batch = _batch_at(ConsumerSettings(plan.consumer.connection), partition.source, offset)
    copied = _batch_at(ConsumerSettings(plan.producer.connection), partition.target, offset)
    if batch is None or copied is None:
        return True
    if batch.header.attributes & CONTROL:
        return False
    source, target = _record_in(batch, offset), _record_in(copied, offset)
    if source is None or target is None:
        return True
    stamps = partition.target_stamps_append_time
    return source.body == target.body and (stamps or source.timestamp == target.timestamp)


def _batch_at(settings: ConsumerSettings, partition: TopicPartition, offset: int) -> FetchedBatch | None:
    with closing(SpanReader(settings)) as reader:
        return next(reader.read(partition, offset, offset + 1, _ONE_BATCH), None)


def _record_in(batch: FetchedBatch, offset: int) -> RawRecord | None:
    return next((record for record in read_records(batch) if record.offset == offset), None)
