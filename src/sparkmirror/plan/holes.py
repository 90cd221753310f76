"""Estimates how many offsets have no record: by compaction, or since a transaction ended there.

A part of each log is read for it.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from itertools import pairwise
from typing import Final

from sparkmirror.batches.record_batch import CONTROL
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.topics import topics_with
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.data.partition_reader import SpanReader
from sparkmirror.plan.backlog import Backlog

_POLICY: Final = "cleanup.policy"
_PLACES: Final = 4
_READ_BYTES: Final = 256 << 10
"""The bytes read at each place, or one batch. A shorter log is read whole."""
_TOPICS_MAX: Final = 100
"""Topics that are read: 100 MB of the source in all."""


def estimated_holes(
    source: Admin, consumer: ConsumerSettings, topics: Collection[str], left: Backlog
) -> Mapping[TopicPartition, int]:
    """The holes among what is left of each partition, where any were found.

    The longest partition of a topic is read, and the others count as alike. Beyond so many topics those that
    are compacted count each offset as a hole, others none. Raises KafkaError and CorruptBatchError.
    """
    of_topics: dict[str, dict[TopicPartition, range]] = {}
    for at, begin in left.begins.items():
        if at.topic in topics and begin < left.ends[at]:
            of_topics.setdefault(at.topic, {})[at] = range(begin, left.ends[at])
    if not of_topics:
        return {}
    compacted = topics_with(source.known_topic_configs(of_topics, [_POLICY]).configs, _POLICY, "compact")
    found: dict[TopicPartition, int] = {}
    with closing(SpanReader(consumer)) as reader:
        for number, topic in enumerate(sorted(of_topics, key=lambda it: (it not in compacted, it))):
            spans = of_topics[topic]
            longest = max(spans, key=lambda at: len(spans[at]))
            share = float(topic in compacted)
            if number < _TOPICS_MAX:
                share = _share(reader, longest, spans[longest])
            found |= {at: count for at, span in spans.items() if (count := round(share * len(span)))}
    return found


def _share(reader: SpanReader, partition: TopicPartition, span: range) -> float:
    holes = 0.0
    for part in _parts(span):
        end, records = part.start, 0
        for batch in reader.read(partition, part.start, part.stop, _READ_BYTES):
            end = min(batch.header.last_offset + 1, part.stop)
            if not batch.header.attributes & CONTROL:
                records += batch.header.record_count
        # Behind the last batch that was read it continues like this, or nothing is left there.
        seen = max(end - part.start, 1)
        holes += len(part) * max(0, seen - records) / seen
    return holes / len(span)


def _parts(span: range) -> Iterator[range]:
    edges = [span.start + len(span) * at // _PLACES for at in range(_PLACES + 1)]
    return (range(begin, end) for begin, end in pairwise(edges) if begin < end)
