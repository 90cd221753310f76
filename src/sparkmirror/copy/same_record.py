"""Compares the records that both sides have at one offset."""

from contextlib import closing
from typing import Final

from sparkmirror.batches.records import RawRecord, read_records
from sparkmirror.copy.copy_plan import CopyPartition, TaskPlan
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.partition_reader import SpanReader

_ONE_BATCH: Final = 1


def has_same_record(plan: TaskPlan, partition: CopyPartition, offset: int) -> bool:
    """False if they differ; True also where one side has none there any more. Raises KafkaError."""
    source = _record_at(ConsumerSettings(plan.consumer.connection), partition.source, offset)
    target = _record_at(ConsumerSettings(plan.producer.connection), partition.target, offset)
    if source is None or target is None:
        return True
    stamps = partition.target_stamps_append_time
    return source.body == target.body and (stamps or source.timestamp == target.timestamp)


def _record_at(settings: ConsumerSettings, partition: TopicPartition, offset: int) -> RawRecord | None:
    with closing(SpanReader(settings)) as reader:
        for batch in reader.read(partition, offset, offset + 1, _ONE_BATCH):
            for record in read_records(batch):
                if record.offset == offset:
                    return record
    return None
