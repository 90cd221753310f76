"""Offsets between two syncs, resolved from both logs, compared with the known copies of every record."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.record_batch import HEADER_BYTES, FetchedBatch, iterate_batches
from sparkmirror.batches.records import read_records
from sparkmirror.domain.errors import CorruptBatchError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.offsets.offset_runs import Gap, Known, Run
from sparkmirror.offsets.resolution import resolve
from sparkmirror.offsets.translation import BEFORE_HISTORY, Place, SyncHistory
from sparkmirror.offsets.wire_records import OffsetSync
from tests.support.batches import NOW_MS, Rec, encode, joined, marker

ORDERS = TopicPartition("orders", 0)
LOG_APPEND_TIME = 0x08
ONE_BATCH = (1000,)


def log(records: Sequence[Rec], sizes: Iterable[int] = ONE_BATCH, **header: int) -> list[FetchedBatch]:
    """Encode the records in batches of these sizes; each gap begins a new batch."""
    sizes, parts = iter(sizes), list[list[Rec]]()
    size = 0
    for record in records:
        if not parts or len(parts[-1]) >= size or record.offset != parts[-1][-1].offset + 1:
            parts.append([])
            size = next(sizes, 3)
        parts[-1].append(record)
    return list(iterate_batches(joined([_batch(part, **header) for part in parts])))


def _batch(part: Sequence[Rec], **header: int) -> bytearray:
    base = part[0].offset
    return encode(
        [record._replace(offset=record.offset - base) for record in part], base_offset=base, **header
    )


def at(offset: int, content: int | None = None) -> Rec:
    content = offset if content is None else content
    return Rec(offset, NOW_MS + content, b"key", b"%d" % content)


def moved(records: Iterable[Rec], first: int) -> list[Rec]:
    return [record._replace(offset=first + number) for number, record in enumerate(records)]


def test_records_left_by_compaction_are_found_in_the_uncompacted_copy() -> None:
    source = [at(offset) for offset in (100, 103, 104, 109)]
    target = moved([at(offset) for offset in range(100, 110)], 500)
    gap = Gap(Known(100, 500), Known(109, 509))
    before = Run(100, 500, 1)
    assert resolve(gap, 103, log(source), log(target)) == [before, Run(103, 503, 1)]
    assert resolve(gap, 106, log(source), log(target)) == [before, Run(103, 503, 2)]


def test_equal_batches_are_compared_without_opening_them() -> None:
    records = [at(offset) for offset in range(100, 120)]
    source, target = log(records, (1, 9, 10)), log(moved(records, 500), (1, 9, 10))
    for batch in (*source, *target):
        batch.data[HEADER_BYTES:] = bytes(len(batch.data) - HEADER_BYTES)
    with pytest.raises(CorruptBatchError):
        read_records(source[1])
    gap = Gap(Known(100, 500), Known(119, 519))
    assert resolve(gap, 105, source, target)[-1].last_upstream == 109


def test_no_batch_behind_the_one_with_the_offset_is_read() -> None:
    """A fetch of it would take the place of records that the next look-up needs."""
    records = [at(offset) for offset in range(6)]
    source, target = iter(log(records, (2, 2))), iter(log(moved(records, 100), (2, 2)))
    resolve(Gap(Known(0, 100), Known(5, 105)), 3, source, target)
    assert [batch.header.base_offset for batch in source] == [4]
    assert [batch.header.base_offset for batch in target] == [104]


def test_resolution_ends_at_a_gap_in_the_target() -> None:
    records = [at(offset) for offset in range(100, 110)]
    target = [record for record in moved(records, 500) if record.offset != 505]
    gap = Gap(Known(100, 500), Known(109, 509))
    assert resolve(gap, 108, log(records), log(target)) == [Run(100, 500, 5)]


def test_resolution_ends_at_a_record_missing_at_the_target() -> None:
    source = [at(100), at(101), at(102, content=77), at(103), at(104)]
    target = moved([at(100), at(101), at(103), at(104)], 500)
    gap = Gap(Known(100, 500), Known(104, 503))
    assert resolve(gap, 103, log(source), log(target)) == [Run(100, 500, 2)]


def test_sync_of_another_log_resolves_nothing() -> None:
    records = [at(offset) for offset in range(100, 110)]
    gap = Gap(Known(100, 501), Known(109, 510))
    assert resolve(gap, 105, log(records), log(moved(records, 500))) == []


def test_markers_on_both_sides_are_skipped() -> None:
    source = log([at(100), at(101)]) + log([at(103), at(104)])
    copies = moved([at(100), at(101), at(103), at(104)], 500)
    closed = list(iterate_batches(joined([marker(503, 7, commit=True)])))
    target = log(copies[:3]) + closed + log([copies[3]._replace(offset=504)])
    assert resolve(Gap(Known(100, 500), Known(105, 505)), 104, source, target)[-1] == Run(104, 504, 1)


def test_timestamps_are_ignored_with_log_append_time_at_the_target() -> None:
    records = [at(offset) for offset in range(100, 110)]
    target = log(moved(records, 500), attributes=LOG_APPEND_TIME, max_timestamp=NOW_MS * 2)
    gap = Gap(Known(100, 500), Known(109, 509))
    assert resolve(gap, 105, log(records), target) == [Run(100, 500, 6)]


@pytest.mark.parametrize("first", [1, 4])
@pytest.mark.parametrize("stamps_first", [True, False])
def test_timestamp_type_that_changes_within_the_gap_delays_the_resolution(
    stamps_first: bool, first: int
) -> None:
    """With `message.timestamp.type` as it was for the first records."""
    source = [at(offset) for offset in range(100, 110)]
    copies = moved(source, 500)
    stamped = {"attributes": LOG_APPEND_TIME, "max_timestamp": NOW_MS * 2}
    types: list[dict[str, int]] = [stamped, {}] if stamps_first else [{}, stamped]
    target = log(copies[:first], ONE_BATCH, **types[0]) + log(copies[first:], (2,), **types[1])
    history = SyncHistory(OffsetSync(ORDERS, 100, 500))
    history.add(OffsetSync(ORDERS, 109, 509))
    for _ in range(2):
        gap = history.gap_at(107)
        if gap is not None:
            read = [batch for batch in log(source) if batch.header.last_offset >= gap.after.upstream]
            behind = [batch for batch in target if batch.header.last_offset >= gap.after.downstream]
            history.learn(resolve(gap, 107, read, behind))
    assert history.place(107) == Place(507, 0)


def test_next_resolution_starts_at_the_offsets_already_resolved() -> None:
    source, target = (
        [at(offset) for offset in (100, 103, 104, 105, 109)],
        [at(offset) for offset in range(100, 110)],
    )
    history = SyncHistory(OffsetSync(ORDERS, 100, 500))
    history.add(OffsetSync(ORDERS, 109, 509))
    for upstream, begin in ((104, Known(100, 500)), (107, Known(104, 504))):
        gap = history.gap_at(upstream)
        assert gap is not None
        assert gap.after == begin
        history.learn(resolve(gap, upstream, log(source[1:]), log(moved(target, 500))))
    assert [history.place(upstream) for upstream in (104, 105, 107, 109)] == [
        Place(504, 0),
        Place(505, 0),
        Place(506, 3),
        Place(509, 0),
    ]


class Step(NamedTuple):
    """The next records of a mirrored partition, with events during their copy."""

    gap: int
    """Missing offsets at the source."""
    contents: list[int]
    """Contents of the following records; equal numbers make equal records."""
    repeated: int
    """The number of last records that are copied again, as by a mirror that was killed."""
    foreign: list[int]
    """Contents of records that another producer writes to the target."""


STEPS = st.lists(
    st.builds(
        Step,
        st.integers(0, 3),
        st.lists(st.integers(0, 4), min_size=1, max_size=6),
        st.sampled_from([0, 0, 0, 1, 3]),
        st.lists(st.integers(0, 4), max_size=2),
    ),
    min_size=1,
    max_size=6,
)
SIZES = st.lists(st.integers(1, 5), max_size=8)


class Copied(NamedTuple):
    source: list[Rec]
    target: list[Rec]
    where: dict[int, list[int]]
    """The target offsets of each record's copies."""


def copied(steps: Sequence[Step], first: int) -> Copied:
    source: list[Rec] = []
    target: list[Rec] = []
    where: dict[int, list[int]] = {}

    def copy(record: Rec) -> None:
        where.setdefault(record.offset, []).append(first + len(target))
        target.append(record._replace(offset=first + len(target)))

    offset = 0
    for step in steps:
        offset += step.gap
        for content in step.contents:
            source.append(at(offset, content))
            copy(source[-1])
            offset += 1
        for record in source[-step.repeated :] if step.repeated else []:
            copy(record)
        for content in step.foreign:
            target.append(at(first + len(target), content))
    return Copied(source, target, where)


@given(STEPS, STEPS, SIZES, SIZES, st.data())
def test_translation_skips_no_record_is_monotonic_and_not_behind_the_syncs(
    before: list[Step],
    after: list[Step],
    source_sizes: list[int],
    target_sizes: list[int],
    data: st.DataObject,
) -> None:
    whole = copied([*before, *after], first=data.draw(st.integers(0, 30)))
    begin, end = whole.source[0].offset, whole.source[-1].offset
    kept = [
        record
        for record in whole.source
        if record.offset in (begin, end) or data.draw(st.booleans(), "is left by compaction")
    ]
    holes = data.draw(st.sets(st.integers(0, 60), max_size=1), "holes in the target")
    there = [record for record in whole.target if record.offset not in holes]
    history = SyncHistory(OffsetSync(ORDERS, begin, whole.where[begin][-1]))
    if whole.where[begin][-1] > whole.where[end][-1]:
        return
    plain = SyncHistory(OffsetSync(ORDERS, begin, whole.where[begin][-1]))
    for each in (history, plain):
        each.add(OffsetSync(ORDERS, end, whole.where[end][-1]))
    for upstream in data.draw(st.lists(st.integers(begin, end), max_size=4), "asked for"):
        gap = history.gap_at(upstream)
        if gap is not None:
            read = [record for record in kept if record.offset >= gap.after.upstream]
            copies = [record for record in there if record.offset >= gap.after.downstream]
            history.learn(resolve(gap, upstream, log(read, source_sizes), log(copies, target_sizes)))
    last = BEFORE_HISTORY
    for upstream in range(begin, end + 3):
        translated = history.translate(upstream)
        unread = [places for offset, places in whole.where.items() if offset >= upstream]
        assert all(max(places) >= translated for places in unread), "a record would be skipped"
        assert translated >= max(last, plain.translate(upstream))
        place = history.place(upstream)
        assert place is not None
        assert place.offset == translated
        last = translated


@given(st.lists(st.integers(0, 3), min_size=2, max_size=12), SIZES, SIZES, st.data())
def test_every_offset_of_complete_logs_is_exact(
    gaps: list[int], source_sizes: list[int], target_sizes: list[int], data: st.DataObject
) -> None:
    offsets = [number + sum(gaps[: number + 1]) for number in range(len(gaps))]
    source = [at(offset) for offset in offsets]
    target = moved(source, 500)
    where = {record.offset: copy.offset for record, copy in zip(source, target, strict=True)}
    history = SyncHistory(OffsetSync(ORDERS, offsets[0], 500))
    history.add(OffsetSync(ORDERS, offsets[-1], target[-1].offset))
    upstream = data.draw(st.integers(offsets[0], offsets[-1]))
    if gap := history.gap_at(upstream):
        read = [record for record in source if record.offset >= gap.after.upstream]
        history.learn(resolve(gap, upstream, log(read, source_sizes), log(target, target_sizes)))
    expected = min(place for offset, place in where.items() if offset >= upstream)
    assert history.place(upstream) == Place(expected, 0)
