"""Two logs are matched in order, whatever their batches: as far as one lacks records, or only the source."""

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.agreement.alignment import Alignment, EqualBatches, EqualRecords, Gap
from sparkmirror.batches.agreement.compared_log import ComparedLog, GaveUpError, Record, Span
from sparkmirror.batches.record_batch import HEADER_BYTES, FetchedBatch
from sparkmirror.batches.records import read_records
from sparkmirror.domain.errors import CorruptBatchError
from tests.support.batches import NOW_MS, Rec, in_batches

WHOLE = Span(0, 1 << 40)
SHIFT = 1000

letters = st.lists(st.sampled_from("abc"), max_size=14)
"""Few, so that records repeat and logs can be matched in many ways."""
sizes = st.lists(st.integers(1, 5), max_size=8)
codecs = st.sampled_from([0, 3, 4])


def log(
    values: Sequence[str], batch_sizes: Iterable[int], *, first: int = 0, codec: int = 0
) -> list[FetchedBatch]:
    records = [Rec(first + at, NOW_MS, b"k", value.encode()) for at, value in enumerate(values)]
    return in_batches(records, batch_sizes, codec=codec)


def aligned(source: Iterable[FetchedBatch], target: Iterable[FetchedBatch]) -> Alignment:
    return Alignment(*(ComparedLog(each, WHOLE, timestamps=True) for each in (source, target)))


def pairs(found: EqualBatches | EqualRecords) -> list[tuple[int, int]]:
    """The offsets of equal records."""
    if isinstance(found, EqualRecords):
        return list(zip(found.source_offsets, found.target_offsets, strict=True))
    records = [read_records(batch) for batch in found]
    return [(here.offset, there.offset) for here, there in zip(*records, strict=True)]


def first_copies(source: Sequence[str], target: Sequence[str]) -> list[tuple[int, int]]:
    """The simplest search for each record behind the match before."""
    found: list[tuple[int, int]] = []
    begin = 0
    for at, value in enumerate(source):
        if value not in target[begin:]:
            break
        begin = target.index(value, begin) + 1
        found.append((at, SHIFT + begin - 1))
    return found


@given(letters, letters, sizes, sizes, codecs)
def test_each_record_is_matched_with_its_first_copy_in_order(
    source: list[str], target: list[str], source_sizes: list[int], target_sizes: list[int], codec: int
) -> None:
    alignment = aligned(log(source, source_sizes), log(target, target_sizes, first=SHIFT, codec=codec))
    found = [pair for equal in alignment.copies() for pair in pairs(equal)]
    assert found == first_copies(source, target)


@given(letters, letters, sizes, sizes, codecs, st.booleans())
def test_differences_leave_out_no_record_and_equal_ones_are_equal(
    source: list[str],
    target: list[str],
    source_sizes: list[int],
    target_sizes: list[int],
    codec: int,
    to_target_end: bool,
) -> None:
    alignment = aligned(log(source, source_sizes), log(target, target_sizes, first=SHIFT, codec=codec))
    here: list[int] = []
    there: list[int] = []
    was_equal = False
    for found in alignment.differences(to_target_end=to_target_end):
        if isinstance(found, Gap):
            assert found.missing or found.extra
            assert not _common(found), "the gap could have been divided"
            here += [record.offset for record in found.missing]
            there += [record.offset for record in found.extra]
        else:
            equal = pairs(found)
            assert all(source[one] == target[other - SHIFT] for one, other in equal)
            here += [one for one, _ in equal]
            there += [other for _, other in equal]
            was_equal = True
    assert here == list(range(len(source)))
    expected = list(range(SHIFT, SHIFT + len(target)))
    assert there == expected if to_target_end else there == expected[: len(there)]
    assert was_equal == bool(set(source) & set(target))


def _common(gap: Gap) -> set[bytes]:
    """Bodies on both sides of a gap between equal records, apart from what crosses."""
    sides: list[list[Record]] = [gap.missing, gap.extra]
    one, other = ({record.body for record in side} for side in sides)
    return one & other


@pytest.mark.parametrize("method", ["copies", "differences"])
def test_equal_batches_are_not_opened(method: str) -> None:
    source, target = log("abcdef", (2, 2, 2)), log("abcdef", (2, 2, 2), first=SHIFT)
    for batch in (*source, *target):
        batch.data[HEADER_BYTES:] = bytes(len(batch.data) - HEADER_BYTES)
    alignment = aligned(source, target)
    found = list(alignment.copies() if method == "copies" else alignment.differences(to_target_end=True))
    assert found == [EqualBatches(*each) for each in zip(source, target, strict=True)]
    with pytest.raises(CorruptBatchError):
        read_records(source[0])


def test_copies_are_read_only_as_far_as_asked() -> None:
    source, target = iter(log("abcdef", ())), iter(log("abcdef", (), first=SHIFT))
    matches = aligned(source, target).copies()
    next(matches)
    assert (len(list(source)), len(list(target))) == (5, 5)


def test_records_outside_the_spans_are_not_matched() -> None:
    alignment = Alignment(
        ComparedLog(log("abcdef", (4, 2)), Span(1, 5), timestamps=True),
        ComparedLog(log("abcdef", (3, 3), first=SHIFT), Span(SHIFT + 2, SHIFT + 4), timestamps=True),
    )
    found = list(alignment.differences(to_target_end=True))
    assert [record.offset for each in found if isinstance(each, Gap) for record in each.missing] == [1, 4]


def test_timestamps_count_unless_the_target_makes_them() -> None:
    records = [Rec(at, NOW_MS + at, b"k", b"%d" % at) for at in range(4)]
    late = [record._replace(timestamp=NOW_MS + 9) for record in records]
    for timestamps, count in ((True, 0), (False, 4)):
        logs = (ComparedLog(in_batches(each, [3]), WHOLE, timestamps=timestamps) for each in (records, late))
        assert len([pair for equal in Alignment(*logs).copies() for pair in pairs(equal)]) == count


def test_logs_that_have_nothing_in_common_are_given_up() -> None:
    source, target = (
        in_batches([Rec(at, NOW_MS, b"%d" % at, value * 10_000) for at in range(2000)])
        for value in (b"a", b"b")
    )
    with pytest.raises(GaveUpError, match="the next 1,024 records have nothing in common"):
        list(aligned(source, target).differences(to_target_end=True))
    assert not list(aligned(source, target).copies())
