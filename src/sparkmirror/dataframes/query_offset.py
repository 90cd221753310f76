"""The offset of a streaming query as its checkpoint has it, and how far one micro-batch advances it. Pure."""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from sparkmirror.dataframes.offset_limits import from_json, to_json
from sparkmirror.domain.ids import TopicPartition, decode_topic_id, encode_topic_id, is_another

_TOPIC_IDS: Final = "topic ids"
_EPOCHS: Final = "leader epochs"
"""Keys beside those of topics, whose names hold no space."""


class StreamingProgress(Protocol):
    """PySpark's StreamingQueryProgress."""

    @property
    def json(self) -> str: ...


@dataclass(frozen=True, slots=True)
class QueryOffset:
    """The next offset of each partition; its JSON is that of Spark's Kafka source, with ids and epochs.

    Recreated topics are found by `topic_ids`, truncated logs by `epochs`: those that leaders had when they
    told where their logs end.
    """

    offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    epochs: Mapping[TopicPartition, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, content: Mapping[str, Any]) -> "QueryOffset":
        topics = dict(content)
        ids, epochs = topics.pop(_TOPIC_IDS, {}), topics.pop(_EPOCHS, {})
        known = {topic: decode_topic_id(text) for topic, text in ids.items()}
        return cls(from_json(topics), known, from_json(epochs))

    def json(self) -> dict[str, Any]:
        ids = {topic: encode_topic_id(found) for topic, found in sorted(self.topic_ids.items()) if found}
        epochs = to_json({partition: epoch for partition, epoch in self.epochs.items() if epoch >= 0})
        beside = {_TOPIC_IDS: ids, _EPOCHS: epochs}
        return {**to_json(self.offsets), **{name: content for name, content in beside.items() if content}}

    def after(self, start: "QueryOffset") -> "QueryOffset":
        """The same, with the epochs of before where nothing was added: Spark compares the texts."""
        same = {each for each, offset in self.offsets.items() if offset == start.offsets.get(each)}
        epochs = {each: epoch for each, epoch in self.epochs.items() if each not in same}
        before = {each: epoch for each, epoch in start.epochs.items() if each in same}
        return replace(self, epochs={**epochs, **before})

    def has_other(self, topic: str, ids: Mapping[str, bytes]) -> bool:
        """Whether the topic was recreated, as far as ids tell."""
        return is_another(self.topic_ids.get(topic, b""), ids.get(topic, b""))

    def begins(
        self, ends: "QueryOffset", log_starts: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Return where each partition of `ends` continues: where it was, or its log's start if it is new."""
        return {
            partition: log_starts.get(partition, 0)
            if self.is_new(partition, ends)
            else self.offsets[partition]
            for partition in ends.offsets
        }

    def is_new(self, partition: TopicPartition, ends: "QueryOffset") -> bool:
        return partition not in self.offsets or self.has_other(partition.topic, ends.topic_ids)

    def new_partitions(self, ends: "QueryOffset") -> Collection[TopicPartition]:
        return [partition for partition in ends.offsets if self.is_new(partition, ends)]


def limited(begins: Mapping[TopicPartition, int], ends: QueryOffset, records_max: int) -> QueryOffset:
    """Take at most so many records, from each partition in proportion to its own, and at least one."""
    sizes = {partition: end - begins[partition] for partition, end in ends.offsets.items()}
    total = sum(size for size in sizes.values() if size > 0)
    if total < 1:
        return ends

    def end_of(partition: TopicPartition, end: int) -> int:
        share = records_max * (sizes[partition] / total)
        advance = math.ceil(share) if share < 1 else math.floor(share)
        return min(end, begins[partition] + advance) if sizes[partition] > 0 else end

    return replace(ends, offsets={each: end_of(each, end) for each, end in ends.offsets.items()})


def records_between(begins: Mapping[TopicPartition, int], ends: QueryOffset) -> int:
    return sum(end - begins[partition] for partition, end in ends.offsets.items())


def lost_between(
    start: QueryOffset, ends: QueryOffset, log_starts: Mapping[TopicPartition, int]
) -> list[str]:
    """Describe the records of these partitions that can't be read any more."""
    topics = sorted({each.topic for each in start.offsets})
    lost = [
        f"topic {topic} was deleted and created again"
        for topic in topics
        if start.has_other(topic, ends.topic_ids)
    ]
    for partition, offset in sorted(start.offsets.items()):
        end = ends.offsets.get(partition)
        if end is None:
            lost.append(f"{partition} is gone, and the query had read it up to offset {offset}")
        elif end < offset and not start.has_other(partition.topic, ends.topic_ids):
            lost.append(f"{partition} ends at offset {end} now, and the query had read it up to {offset}")
    for partition in sorted(start.new_partitions(ends)):
        first = log_starts.get(partition, 0)
        if first and not start.has_other(partition.topic, ends.topic_ids):
            lost.append(f"{partition} is new and begins at offset {first} instead of 0")
    return lost


def offsets_behind_latest(progress: StreamingProgress) -> dict[str, float]:
    """Return the lag of the query's sources, in records, after its last micro-batch.

    Spark's own Kafka source has these values among its metrics, which a source in Python can't report. Empty
    before the first micro-batch.
    """
    behind = [
        latest - read.get(partition, 0)
        for source in json.loads(progress.json)["sources"]
        if source.get("latestOffset") and source.get("endOffset")
        for read in [_reported(source["endOffset"]).offsets]
        for partition, latest in _reported(source["latestOffset"]).offsets.items()
    ]
    if not behind:
        return {}
    return {
        "minOffsetsBehindLatest": min(behind),
        "maxOffsetsBehindLatest": max(behind),
        "avgOffsetsBehindLatest": sum(behind) / len(behind),
    }


def _reported(offset: "str | Mapping[str, Any]") -> QueryOffset:
    """An offset of a progress, in which Spark Connect has it as a text."""
    return QueryOffset.parse(json.loads(offset) if isinstance(offset, str) else offset)
