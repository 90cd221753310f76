"""Estimates how many offsets of compacted topics have no record any more, by a part of their logs."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from itertools import pairwise
from typing import Final

from sparkmirror.batches.record_batch import CONTROL
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.admin import Admin
from sparkmirror.kafka.partition_reader import SpanReader
from sparkmirror.policies.config_filter import topics_with
from sparkmirror.setup.plan.backlog import Backlog

_POLICY: Final = "cleanup.policy"
_PLACES: Final = 4
_READ_BYTES: Final = 256 << 10
"""At each place, or one batch. A log that is shorter is read whole."""
_TOPICS_MAX: Final = 100
"""Topics that are read: 100 MB of the source in all."""


def estimated_holes(
    source: Admin, consumer: ConsumerSettings, topics: Collection[str], left: Backlog
) -> Mapping[TopicPartition, int]:
    """Of those of the topics that are compacted: the holes among what is left of each partition.

    Of a topic its longest partition is read, and the others count as alike; where nothing is read, each
    offset counts as a hole. Raises KafkaError and CorruptBatchError.
    """
    if not topics:
        return {}
    found: dict[TopicPartition, int] = {}
    spans = {at: range(begin, left.ends[at]) for at, begin in left.begins.items()}
    compacted = topics_with(source.topic_configs(topics, [_POLICY]), _POLICY, "compact")
    with closing(SpanReader(consumer)) as reader:
        for number, topic in enumerate(sorted(compacted)):
            of_topic = {at: span for at, span in spans.items() if at.topic == topic and span}
            if of_topic:
                longest = max(of_topic, key=lambda at: len(of_topic[at]))
                share = _share(reader, longest, of_topic[longest]) if number < _TOPICS_MAX else 1.0
                found |= {at: round(share * len(span)) for at, span in of_topic.items()}
    return found


def _share(reader: SpanReader, partition: TopicPartition, span: range) -> float:
    holes = 0.0
    for part in _parts(span):
        end, records = part.start, 0
        for batch in reader.read(partition, part.start, part.stop, _READ_BYTES):
            end = min(batch.header.last_offset + 1, part.stop)
            if not batch.header.attributes & CONTROL:
                records += batch.header.record_count
        # Behind the last batch that was read it goes on like this, or nothing is left there.
        seen = max(end - part.start, 1)
        holes += len(part) * max(0, seen - records) / seen
    return holes / len(span)


def _parts(span: range) -> Iterator[range]:
    edges = [span.start + len(span) * at // _PLACES for at in range(_PLACES + 1)]
    return (range(begin, end) for begin, end in pairwise(edges) if begin < end)
