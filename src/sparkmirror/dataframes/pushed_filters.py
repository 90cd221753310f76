"""Bounds of a batch query by the filters that Spark pushes down; Spark applies all of them again."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from sparkmirror.dataframes.planning import OffsetRange
from sparkmirror.dataframes.range_reader import EVERY_TIME, TimeRange

_US_PER_MS: Final = 1000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Records outside of these are not needed."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    offset_first: int = 0
    offset_last: int = (1 << 63) - 2
    times: TimeRange = field(default=EVERY_TIME)

    def cut(self, wanted: OffsetRange) -> OffsetRange | None:
        """Return the part of a range that is needed."""
        topic, number = wanted.partition
        if self.topics is not None and topic not in self.topics:
            return None
        if self.partitions is not None and number not in self.partitions:
            return None
        first, end = max(wanted.first, self.offset_first), min(wanted.end, self.offset_last + 1)
        return wanted._replace(first=first, end=end) if first < end else None


def bounds_of(filters: Iterable[Filter]) -> Bounds:
    """Combine all filters; those that don't concern topic, partition, offset and time are ignored."""
    bounds = Bounds()
    for each in filters:
        column = ".".join(each.attribute) if hasattr(each, "attribute") else ""
        narrow = _NARROW.get(column)
        if narrow is not None:
            bounds = narrow(bounds, each)
    return bounds


def _topics(bounds: Bounds, given: Filter) -> Bounds:
    values = _values(given)
    if values is None:
        return bounds
    return replace(bounds, topics=values if bounds.topics is None else bounds.topics & values)


def _partitions(bounds: Bounds, given: Filter) -> Bounds:
    values = _values(given)
    if values is None:
        return bounds
    return replace(bounds, partitions=values if bounds.partitions is None else bounds.partitions & values)


def _values(given: Filter) -> frozenset[Any] | None:
    match given:
        case EqualTo(value=value):
            return frozenset([value])
        case In(value=values):
            return frozenset(values)
        case _:
            return None


def _offsets(bounds: Bounds, given: Filter) -> Bounds:
    first, last = _range(given, int)
    if first is not None:
        bounds = replace(bounds, offset_first=max(bounds.offset_first, first))
    if last is not None:
        bounds = replace(bounds, offset_last=min(bounds.offset_last, last))
    return bounds


def _times(bounds: Bounds, given: Filter) -> Bounds:
    first, last = _range(given, _us)
    times = bounds.times
    if first is not None:
        times = times._replace(first=max(times.first, -(-first // _US_PER_MS)))
    if last is not None:
        times = times._replace(last=min(times.last, last // _US_PER_MS))
    return replace(bounds, times=times)


def _us(value: Any) -> int:
    """Microseconds since 1970; a time without zone is in UTC."""
    at = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return int((at - _EPOCH) // _MICROSECOND)


def _range(given: Filter, number: Callable[[Any], int]) -> tuple[int | None, int | None]:
    """The first and the last number that the filter lets pass."""
    match given:
        case EqualTo(value=value):
            return number(value), number(value)
        case GreaterThan(value=value):
            return number(value) + 1, None
        case GreaterThanOrEqual(value=value):
            return number(value), None
        case LessThan(value=value):
            return None, number(value) - 1
        case LessThanOrEqual(value=value):
            return None, number(value)
        case _:
            return None, None


_NARROW: Final[Mapping[str, Callable[[Bounds, Filter], Bounds]]] = {
    "topic": _topics,
    "partition": _partitions,
    "offset": _offsets,
    "timestamp": _times,
}
