"""Whether a stretch of a partition holds records that a mirror would copy, or only what it passes over."""

from collections.abc import Collection, Mapping
from contextlib import closing

from sparkmirror.batches.aborted_transactions import AbortedTransactions
from sparkmirror.batches.record_batch import CONTROL, iterate_batches
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.fetch import FetchedPartition
from sparkmirror.kafka.partition_reader import PartitionReader


def with_records(
    settings: ConsumerSettings, stretches: Mapping[TopicPartition, tuple[int, int]]
) -> Collection[TopicPartition]:
    """Those with a record between the two offsets, the second one not included. Raises KafkaError.

    Markers of transactions, what compaction has emptied and, for `read_committed`, aborted records are none.
    What can't be read any more counts as a record, and so does what does not fit into one answer.
    """
    if not stretches:
        return ()
    offsets = {partition: begin for partition, (begin, _) in stretches.items()}
    with closing(PartitionReader(settings)) as reader:
        answers = {answer.partition: answer for answer in reader.fetch(offsets, 0.0)}
    return {
        partition
        for partition, (begin, end) in stretches.items()
        if partition not in answers or _holds_records(answers[partition], begin, end, settings)
    }


def _holds_records(answer: FetchedPartition, begin: int, end: int, settings: ConsumerSettings) -> bool:
    if answer.error:
        return True
    aborted = AbortedTransactions(answer.aborted)
    seen_to = begin
    for batch in iterate_batches(answer.records):
        header = batch.header
        if header.base_offset >= end:
            return False
        is_dropped = aborted.drops(batch) and settings.read_committed
        is_nothing = header.attributes & CONTROL or header.record_count == 0 or is_dropped
        if header.last_offset >= begin and not is_nothing:
            return True
        seen_to = max(seen_to, header.last_offset + 1)
    return seen_to < end
