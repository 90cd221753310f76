"""Which ranges of which partitions to compare, for the positions that a flow has stored.

A big partition is split where the same record is found on both sides. A wrong guess can't make unequal logs
equal: it can only show differences at the split, and then `merged` ranges are compared again.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from sparkmirror.copy.copy_plan import CopyPartition
from sparkmirror.domain.client_settings import OffsetReset
from sparkmirror.kafka.offsets import EARLIEST, LATEST, require_offsets
from sparkmirror.storage.positions import Position
from sparkmirror.verify.comparison import Rules
from sparkmirror.verify.ranges import RangePlan, Sides
from sparkmirror.verify.records import Span

RANGE_OFFSETS = 1_000_000


class Offsets(NamedTuple):
    """A place that is the same on both sides."""

    source: int
    target: int


class MirroredPartition(NamedTuple):
    """A partition with a stored position. What lies before `done` has been compared already."""

    plan: CopyPartition
    position: Position
    source_is_compacted: bool = False
    target_is_compacted: bool = False
    done: Offsets | None = None


def plan_ranges(
    sides: Sides, partitions: Sequence[MirroredPartition], range_offsets: int = RANGE_OFFSETS
) -> list[RangePlan]:
    """In order for each partition; none where nothing is new. Raises KafkaError."""
    sources = [partition.plan.source for partition in partitions]
    targets = [partition.plan.target for partition in partitions]
    source_begins = require_offsets(sides.source, sources, EARLIEST)
    target_begins = require_offsets(sides.target, targets, EARLIEST)
    open_ended = [partition.plan.target for partition in partitions if partition.position.producer is None]
    target_ends = require_offsets(sides.target, open_ended, LATEST)
    ranges: list[RangePlan] = []
    for partition in partitions:
        plan = partition.plan
        begins = Offsets(source_begins[plan.source], target_begins[plan.target])
        whole = _whole(sides, partition, begins, target_ends.get(plan.target))
        if whole.size or whole.lost:
            ranges += _split(whole, range_offsets)
    return ranges


def merged(ranges: Sequence[RangePlan]) -> RangePlan:
    """Neighbours as one range."""
    first, last = ranges[0], ranges[-1]
    return replace(
        first,
        source_span=Span(first.source_span.first, last.source_span.end),
        target_span=Span(first.target_span.first, last.target_span.end),
        rules=replace(first.rules, target_end_is_known=last.rules.target_end_is_known),
    )


def _whole(sides: Sides, partition: MirroredPartition, begins: Offsets, target_end: int | None) -> RangePlan:
    position, done = partition.position, partition.done or Offsets(0, 0)
    producer = position.producer
    end = producer.next_offset if producer is not None else target_end or 0
    begins_late = partition.done is None and sides.source.offset_reset is OffsetReset.LATEST
    return RangePlan(
        sides=sides,
        source=partition.plan.source,
        target=partition.plan.target,
        source_span=_span(max(begins.source, done.source), position.offset + 1),
        target_span=_span(max(begins.target, done.target), end),
        rules=Rules(
            timestamps=not partition.plan.target_stamps_append_time,
            producer_id=None if producer is None else producer.producer.id,
            source_lost_beginning=begins.source > done.source,
            target_lost_beginning=begins.target > done.target or begins_late,
            source_is_compacted=partition.source_is_compacted,
            target_is_compacted=partition.target_is_compacted,
            target_end_is_known=producer is not None,
        ),
        # Of a first comparison nobody knows what was there before.
        lost=max(0, min(begins.source, position.offset + 1) - done.source) if partition.done else 0,
    )


def _span(first: int, end: int) -> Span:
    return Span(first, max(first, end))


def _split(whole: RangePlan, range_offsets: int) -> list[RangePlan]:
    first, end = whole.source_span
    # What explains compaction may be anywhere behind.
    if whole.rules.is_compacted or end - first < 2 * range_offsets:
        return [whole]
    places = [
        Offsets(first, whole.target_span.first),
        *_common_places(whole, range(first + range_offsets, end - range_offsets + 1, range_offsets)),
        Offsets(end, whole.target_span.end),
    ]
    inner = replace(whole.rules, source_lost_beginning=False, target_lost_beginning=False)
    ranges = [
        replace(
            whole,
            source_span=Span(begin.source, end.source),
            target_span=Span(begin.target, end.target),
            rules=replace(inner, target_end_is_known=True),
            lost=0,
        )
        for begin, end in pairwise(places)
    ]
    ranges[0] = replace(ranges[0], rules=replace(whole.rules, target_end_is_known=True), lost=whole.lost)
    known = whole.rules.target_end_is_known
    ranges[-1] = replace(ranges[-1], rules=replace(ranges[-1].rules, target_end_is_known=known))
    return ranges


def _common_places(whole: RangePlan, wanted: Collection[int]) -> Iterator[Offsets]:
    """Where a record is found on both sides, as far as possible near the wanted source offsets."""
    sides, timestamps = whole.sides, whole.rules.timestamps
    shift = whole.target_span.end - whole.source_span.end
    last = Offsets(whole.source_span.first, whole.target_span.first)
    with ExitStack() as opened:
        source = opened.enter_context(sides.source_log(whole.source))
        target = opened.enter_context(sides.target_log(whole.target))
        for offset in wanted:
            record = source.first_record(Span(offset, whole.source_span.end), timestamps=timestamps)
            if record is None or record.offset <= last.source:
                continue
            searched = Span(last.target + 1, whole.target_span.end)
            found = target.find(record, record.offset + shift, searched, timestamps=timestamps)
            if found is not None:
                last = Offsets(record.offset, found)
                yield last
