"""Topics and offsets that a data frame's options name, in the JSON of Spark's Kafka source. Pure."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from sparkmirror.domain.ids import TopicPartition


class Bound(IntEnum):
    """An end of the log; numbers as in the JSON and in ListOffsets."""

    LATEST = -1
    EARLIEST = -2


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """An offset for each partition, or the number of a `Bound`."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTimes:
    """A time in ms for each partition."""

    timestamps: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTime:
    """A time in ms for all partitions."""

    timestamp: int


OffsetLimit = Bound | AtOffsets | AtTimes | AtTime

_OFFSETS: Final = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
_TIMES: Final = '{"topicA":{"0":1700000000000},"topicB":{"0":1700000000000}}'
_PARTITIONS: Final = '{"topicA":[0,1],"topicB":[2]}'


def parse_offsets(text: str) -> Mapping[TopicPartition, int]:
    """Raises ValueError."""
    return _parse(text, _OFFSETS, _numbers)


def parse_times(text: str) -> Mapping[TopicPartition, int]:
    """Raises ValueError."""
    return _parse(text, _TIMES, _numbers)


def parse_partitions(text: str) -> tuple[TopicPartition, ...]:
    """Raises ValueError."""
    return tuple(_parse(text, _PARTITIONS, _listed))


def to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Write offsets by topic and partition, sorted: Spark compares the texts."""
    found: dict[str, dict[str, int]] = {}
    for partition, offset in sorted(offsets.items()):
        found.setdefault(partition.topic, {})[str(partition.partition)] = offset
    return found


def from_json(topics: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(number)): offset
        for topic, offsets in topics.items()
        for number, offset in offsets.items()
    }


def _parse(
    text: str, example: str, entries: Callable[[str, Any], Iterable[tuple[TopicPartition, int]]]
) -> dict[TopicPartition, int]:
    try:
        topics = json.loads(text)
        return dict(pair for topic, content in topics.items() for pair in entries(topic, content))
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"expected JSON such as {example}") from None


def _numbers(topic: str, content: Any) -> Iterable[tuple[TopicPartition, int]]:
    for number, value in content.items():
        yield TopicPartition(topic, _whole(int(number))), _whole(value)


def _listed(topic: str, content: Any) -> Iterable[tuple[TopicPartition, int]]:
    for number in content:
        yield TopicPartition(topic, _whole(number)), 0


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(value)
    return value
