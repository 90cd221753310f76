"""Copied records are found on the target by content, independent of batch boundaries."""

from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.batch_copying import CopyRules, Step, copy_batches
from sparkmirror.batches.matching import Match, match
from sparkmirror.batches.record_batch import LOG_APPEND_TIME, FetchedBatch, iterate_batches
from tests.support.batches import NOW_MS, Rec, encode, joined, marker

POSITION = 100


def source(records: Sequence[Rec], sizes: Iterable[int]) -> Iterable[Step]:
    """Return the steps that copy these records, in batches of these sizes."""
    data = joined([_batch(part) for part in _parts(records, sizes)])
    return copy_batches(data, POSITION, CopyRules(), None)


def target(records: Sequence[Rec], sizes: Iterable[int], codec: int = 0) -> list[FetchedBatch]:
    return list(iterate_batches(joined([_batch(part, codec) for part in _parts(records, sizes)])))


def _batch(part: Sequence[Rec], codec: int = 0) -> bytearray:
    base = part[0].offset
    relative = [record._replace(offset=record.offset - base) for record in part]
    return encode(relative, codec=codec, base_offset=base)


def _parts(records: Sequence[Rec], sizes: Iterable[int]) -> Iterable[Sequence[Rec]]:
    sizes, at = iter(sizes), 0
    while at < len(records):
        size = next(sizes, 1)
        yield records[at : at + size]
        at += size


def numbered(count: int) -> list[Rec]:
    return [Rec(POSITION + at, NOW_MS + at, b"k%d" % (at % 3), b"v%d" % at) for at in range(count)]


sizes = st.lists(st.integers(1, 4), max_size=12)


@given(st.integers(0, 12), st.integers(0, 12), sizes, sizes, st.sampled_from([0, 3]))
def test_copied_records_are_found(
    copied: int, more: int, source_sizes: list[int], target_sizes: list[int], codec: int
) -> None:
    records = numbered(copied + more)
    found = match(target(records[:copied], target_sizes, codec), source(records, source_sizes), POSITION)
    assert found == Match(POSITION + copied, is_whole=True)


@given(st.sets(st.integers(0, 9)), sizes, sizes)
def test_records_lost_at_the_source_are_skipped_and_reported(
    lost: set[int], source_sizes: list[int], target_sizes: list[int]
) -> None:
    records = numbered(14)
    left = [record for at, record in enumerate(records) if at not in lost]
    found = match(target(records[:10], target_sizes), source(left, [1] * 14), POSITION)
    kept = [at for at in range(10) if at not in lost]
    assert found.position == POSITION + (kept[-1] + 1 if kept else 0)
    assert found.is_whole == (not lost)


def test_a_record_that_was_never_copied_is_not_skipped() -> None:
    """As many other records are there as are missing: counting records would lose two."""
    records = numbered(6)
    strangers = [record._replace(value=b"another") for record in records[2:4]]
    found = match(target([*records[:2], *strangers], [4]), source(records, [2, 2, 2]), POSITION)
    assert found == Match(POSITION + 2, is_whole=False)


def test_equal_records_are_matched_one_by_one() -> None:
    records = [Rec(POSITION + at, NOW_MS, b"k", b"v") for at in range(4)]
    found = match(target(records[:3], [3]), source(records, [2, 2]), POSITION)
    assert found == Match(POSITION + 3, is_whole=True)


def test_timestamps_are_ignored_where_the_target_gave_its_own() -> None:
    """Also if only the later batches have them, because the topic's configuration has changed."""
    records = numbered(6)
    late = [record._replace(timestamp=NOW_MS + 999) for record in records]
    stamped = target(late[2:5], [3])
    stamped = [batch._replace(header=batch.header._replace(attributes=LOG_APPEND_TIME)) for batch in stamped]
    tail = [*target(records[:2], [2]), *stamped]
    assert match(tail, source(records, [6]), POSITION) == Match(POSITION + 5, is_whole=True)
    late_tail = target(late[:2], [2])
    assert match(late_tail, source(records, [6]), POSITION) == Match(POSITION, is_whole=False)


def test_position_is_after_markers_that_follow_the_last_match() -> None:
    records = numbered(2)
    data = joined([_batch(records), marker(POSITION + 2, 5, commit=True)])
    steps = copy_batches(data, POSITION, CopyRules(), None)
    assert match(target(records, [2]), steps, POSITION).position >= POSITION + 2


def test_source_is_read_only_up_to_the_last_match() -> None:
    records = numbered(8)
    steps = iter(source(records, [2, 2, 2, 2]))
    match(target(records[:2], [2]), steps, POSITION)
    assert len(list(steps)) == 3
