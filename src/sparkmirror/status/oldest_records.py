"""Finds when the oldest records were written that a mirror has still to copy."""

from collections.abc import Mapping
from contextlib import closing
from typing import Final

from sparkmirror.batches.record_batch import CONTROL, iterate_batches
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_reader import PartitionReader
from sparkmirror.kafka.wire.fetch import FetchedPartition

_FETCH_BYTES: Final = 1 << 20


def oldest_records_ms(
    settings: ConsumerSettings, begins: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, int]:
    """The timestamp of the first batch with records from each offset on; none where there is none.

    In epoch ms, by the first record of the batch, which may be a little older than that offset's. A few
    requests, since a response holds at most 1 MB. Raises KafkaError.
    """
    found: dict[TopicPartition, int] = {}
    left = dict(begins)
    with closing(PartitionReader(settings, _FETCH_BYTES)) as reader:
        while left:
            responses = [each for each in reader.fetch(left, 0.0) if each.records or each.error]
            for response in responses:
                begin = left.pop(response.partition)
                timestamp_ms = _first_timestamp_ms(response, begin)
                if timestamp_ms is not None:
                    found[response.partition] = timestamp_ms
            if not responses:
                break
    return found


def _first_timestamp_ms(response: FetchedPartition, begin: int) -> int | None:
    for batch in iterate_batches(response.records):
        header = batch.header
        if header.last_offset >= begin and header.record_count and not header.attributes & CONTROL:
            return header.base_timestamp
    return None
