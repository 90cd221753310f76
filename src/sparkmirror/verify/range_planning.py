"""Plans the ranges of partitions to compare, up to the positions that a flow has stored.

A big partition is split where the same record is found on both sides. A wrong split can't hide differences:
it can only add some at the split, and then `merged` ranges are compared again.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from sparkmirror.batches.agreement.compared_log import Span
from sparkmirror.domain.client_settings import OffsetReset
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST, require_offsets
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.storage.positions import Position
from sparkmirror.verify.range_comparison import RangePlan, Sides
from sparkmirror.verify.rules_and_result import Rules

RANGE_OFFSETS = 1_000_000


class Offsets(NamedTuple):
    """A place that is the same on both sides."""

    source: int
    target: int


class MirroredPartition(NamedTuple):
    """A partition with a stored position. Records before `done` have been compared already.

    `keeps_all` says that the flow follows what was promoted before (`sparkmirror failback`): it copies also
    what had come from its target.
    """

    plan: CopyPartition
    position: Position
    source_is_compacted: bool = False
    target_is_compacted: bool = False
    done: Offsets | None = None
    keeps_all: bool = False


_LATE: Final = OffsetReset.LATEST, OffsetReset.TIME


def plan_ranges(
    sides: Sides, partitions: Sequence[MirroredPartition], range_offsets: int = RANGE_OFFSETS
) -> list[RangePlan]:
    """The ranges of each partition in order; none where nothing is new. Raises KafkaError."""
    sources = [partition.plan.source for partition in partitions]
    targets = [partition.plan.target for partition in partitions]
    source_starts = require_offsets(sides.source, sources, EARLIEST)
    target_starts = require_offsets(sides.target, targets, EARLIEST)
    open_ended = [partition.plan.target for partition in partitions if partition.position.producer is None]
    target_ends = require_offsets(sides.target, open_ended, LATEST)
    ranges: list[RangePlan] = []
    for partition in partitions:
        plan = partition.plan
        starts = Offsets(source_starts[plan.source], target_starts[plan.target])
        whole = _whole(sides, partition, starts, target_ends.get(plan.target))
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


def _whole(sides: Sides, partition: MirroredPartition, starts: Offsets, target_end: int | None) -> RangePlan:
    position, done = partition.position, partition.done or Offsets(0, 0)
    producer = position.producer
    end = producer.next_offset if producer is not None else target_end or 0
    starts_late = partition.done is None and sides.source.offset_reset in _LATE
    return RangePlan(
        sides=replace(sides, left_out=frozenset()) if partition.keeps_all else sides,
        source=partition.plan.source,
        target=partition.plan.target,
        source_span=_span(max(starts.source, done.source), position.offset + 1),
        target_span=_span(max(starts.target, done.target), end),
        rules=Rules(
            timestamps=not partition.plan.target_stamps_append_time,
            producer_id=None if producer is None else producer.producer.id,
            source_lost_beginning=starts.source > done.source,
            target_lost_beginning=starts.target > done.target or starts_late,
            begins_late=starts_late and starts.target == 0,
            source_is_compacted=partition.source_is_compacted,
            target_is_compacted=partition.target_is_compacted,
            target_end_is_known=producer is not None,
            decompressed_bytes_max=sides.decompressed_bytes_max,
            same_offsets=partition.plan.preserves_offsets,
        ),
        # Unknown at the first comparison.
        lost=max(0, min(starts.source, position.offset + 1) - done.source) if partition.done else 0,
    )


def _span(first: int, end: int) -> Span:
    return Span(first, max(first, end))


def _split(whole: RangePlan, range_offsets: int) -> list[RangePlan]:
    first, end = whole.source_span
    # Records that explain compaction may be anywhere behind.
    if whole.rules.is_compacted or end - first < 2 * range_offsets:
        return [whole]
    places = [
        Offsets(first, whole.target_span.first),
        *_common_places(whole, range(first + range_offsets, end - range_offsets + 1, range_offsets)),
        Offsets(end, whole.target_span.end),
    ]
    inner = replace(whole.rules, source_lost_beginning=False, target_lost_beginning=False, begins_late=False)
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
    """Places of records found on both sides, as near as possible to the wanted source offsets."""
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
