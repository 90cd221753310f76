"""Comparing a mirrored partition with its source by content, not by batches, codecs and offsets."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.agreement.compared_log import Span
from sparkmirror.batches.record_batch import HEADER_BYTES, build_batch
from sparkmirror.domain.errors import CorruptBatchError
from sparkmirror.verify.record_comparison import Log, compare
from sparkmirror.verify.rules_and_result import Comparison, Rules
from tests.support.batches import NOW_MS, Rec, fetched, in_batches

OURS, THEIRS = 7, 9
WHOLE = Span(0, 1 << 40)
OURS_IS_KNOWN = Rules(producer_id=OURS)


def numbered(count: int) -> list[Rec]:
    return [Rec(at, NOW_MS + at, b"k%d" % (at % 3), b"v%d" % at) for at in range(count)]


def on_target(records: Sequence[Rec]) -> list[Rec]:
    """Give the records other, consecutive offsets."""
    return [record._replace(offset=1000 + at) for at, record in enumerate(records)]


def compared(source: Sequence[Rec], target: Sequence[Rec], rules: Rules = OURS_IS_KNOWN) -> Comparison:
    return compare(
        Log(in_batches(source, [3, 2, 4]), WHOLE),
        Log(in_batches(on_target(target), [2, 5], producer_id=OURS), WHOLE),
        rules,
    )


def places(comparison: Comparison) -> list[tuple[str, int | None, int | None]]:
    return [found[:3] for found in comparison.differences]


sizes = st.lists(st.integers(1, 4), max_size=12)
codecs = st.sampled_from([0, 1, 3, 4])


@given(st.integers(0, 20), sizes, sizes, codecs, codecs)
def test_equal_records_in_different_batches_and_codecs_are_equal(
    count: int, source_sizes: list[int], target_sizes: list[int], source_codec: int, target_codec: int
) -> None:
    records = numbered(count)
    source = in_batches(records, source_sizes, codec=source_codec)
    target = in_batches(on_target(records), target_sizes, codec=target_codec)
    assert compare(Log(source, WHOLE), Log(target, WHOLE), Rules()) == Comparison(equal=count)


@pytest.mark.parametrize("sizes", [(700, 450), (1, 300), (13, 11), (2000, 2000)])
@pytest.mark.parametrize("codec", [0, 3])
def test_difference_among_thousands_of_records_is_reported(sizes: tuple[int, int], codec: int) -> None:
    records = numbered(2000)
    copies = [*records[:1200], records[1200]._replace(value=b"other"), *records[1201:1600], *records[1601:]]
    source, target = (
        in_batches(side, [size] * 2000, codec=codec, producer_id=OURS)
        for side, size in zip((records, on_target(copies)), sizes, strict=True)
    )
    found = compare(Log(source, Span(10, 1990)), Log(target, Span(1010, 2989)), OURS_IS_KNOWN)
    assert places(found) == [("value", 1200, 2200), ("missing", 1600, None)]
    assert found.equal == 1978


@pytest.mark.parametrize("count", [3, 300])
def test_corrupt_batch_is_reported_with_its_offset(count: int) -> None:
    """Both alone and together with other batches."""
    records = numbered(3 * count)
    source, target = (
        in_batches(side, [size] * 900) for side, size in ((records, count), (on_target(records), 2))
    )
    header = source[1].header._replace(record_count=count + 1)
    source[1] = fetched(bytes(build_batch(header, bytes(source[1].data[HEADER_BYTES:]))))
    with pytest.raises(CorruptBatchError, match=f"offset {count}: batch ends before its {count + 1} records"):
        compare(Log(source, WHOLE), Log(target, WHOLE), Rules())


@given(st.lists(st.sampled_from("abcd"), max_size=14), st.lists(st.sampled_from("abcd"), max_size=14))
def test_only_equal_records_are_equal_and_every_record_is_counted(
    before: list[str], after: list[str]
) -> None:
    """Records repeat often, so that the sides can be matched in many ways."""
    source = [Rec(at, NOW_MS, b"k", value.encode()) for at, value in enumerate(before)]
    target = [Rec(at, NOW_MS, b"k", value.encode()) for at, value in enumerate(after)]
    found = compared(source, target)
    assert found.is_equal == (before == after)
    unequal = {"missing": (1, 0), "extra": (0, 1)}
    lost, gained = (
        sum(unequal.get(what, (1, 1))[side] * count for what, count in found.counts.items())
        for side in (0, 1)
    )
    assert found.equal + lost == len(before)
    assert found.equal + gained == len(after)


@given(st.integers(1, 20), st.data())
def test_missing_record_is_reported(count: int, data: st.DataObject) -> None:
    records, lost = numbered(count), data.draw(st.integers(0, count - 1))
    found = compared(records, records[:lost] + records[lost + 1 :])
    assert places(found) == [("missing", lost, None)]
    assert found.equal == count - 1


@given(st.integers(1, 20), st.data())
def test_duplicate_is_reported_as_extra(count: int, data: st.DataObject) -> None:
    records, at = numbered(count), data.draw(st.integers(0, count - 1))
    found = compared(records, records[: at + 1] + records[at:])
    assert places(found) == [("extra", None, 1000 + at + 1)]
    assert found.differences[0].detail.startswith(f"a second copy of source offset {at}: ")


@given(st.integers(2, 20), st.data())
def test_two_records_that_changed_places_are_out_of_order(count: int, data: st.DataObject) -> None:
    records = numbered(count)
    at = data.draw(st.integers(0, count - 2))
    swapped = [*records]
    swapped[at], swapped[at + 1] = swapped[at + 1], swapped[at]
    found = compared(records, swapped)
    assert found.counts == {"order": 1}
    assert found.differences[0].source_offset in (at, at + 1)
    assert found.foreign == 0


@pytest.mark.parametrize(
    ("what", "detail", "change"),
    [
        ("key", "key 'k2' became 'other'", {"key": b"other"}),
        ("value", "value 'v5' became null", {"value": None}),
        ("headers", "headers [] became ['h'=b'\\xff', 'n'=null]", {"headers": (("h", b"\xff"), ("n", None))}),
        ("timestamp", f"timestamp {NOW_MS + 5} became {NOW_MS}", {"timestamp": NOW_MS}),
        ("key, value", "key 'k2' became 'K'; value 'v5' became 'V'", {"key": b"K", "value": b"V"}),
    ],
)
def test_altered_record_is_reported_with_the_changed_field(
    what: str, detail: str, change: dict[str, object]
) -> None:
    records = numbered(9)
    altered = [*records]
    altered[5] = altered[5]._replace(**change)  # type: ignore[arg-type]
    found = compared(records, altered)
    assert places(found) == [(what, 5, 1005)]
    assert found.differences[0].detail == detail
    assert found.equal == 8


def test_long_values_are_shortened_in_the_report() -> None:
    before, after = (Rec(0, NOW_MS, b"k", letter * 100) for letter in (b"a", b"b"))
    (difference,) = compared([before], [after]).differences
    assert difference.detail == f"value '{'a' * 40}'… (100 bytes) became '{'b' * 40}'… (100 bytes)"


def test_records_of_other_producers_are_counted_as_foreign() -> None:
    records = numbered(6)
    stranger = Rec(0, NOW_MS + 999, b"x", b"y")
    target = on_target([*records[:2], stranger, *records[2:], stranger])
    mixed = [
        *in_batches(target[:2], [2], producer_id=OURS),
        *in_batches(target[2:3], producer_id=THEIRS),
        *in_batches(target[3:7], [4], producer_id=OURS),
        *in_batches(target[7:], producer_id=THEIRS),
    ]
    found = compare(Log(in_batches(records, [6]), WHOLE), Log(mixed, WHOLE), Rules(producer_id=OURS))
    assert found == Comparison(equal=6, foreign=2)


def test_mirrored_record_that_the_source_lacks_is_extra() -> None:
    records = numbered(3)
    found = compared(records, [*records, Rec(0, NOW_MS + 999, b"x", b"y")])
    assert places(found) == [("extra", None, 1003)]


def test_timestamps_are_compared_only_where_the_target_keeps_them() -> None:
    records = numbered(4)
    late = [record._replace(timestamp=NOW_MS + 500) for record in records]
    assert compared(records, late, Rules(timestamps=False)) == Comparison(equal=4)
    assert compared(records, late).counts == {"timestamp": 4}


@given(st.integers(1, 10), st.integers(1, 10))
def test_records_deleted_at_the_beginning_of_one_side_are_not_comparable(lost: int, kept: int) -> None:
    records = numbered(lost + kept)
    at_source = Rules(source_lost_beginning=True, producer_id=OURS)
    at_target = Rules(target_lost_beginning=True, producer_id=OURS)
    expected = Comparison(equal=kept, not_comparable=lost)
    assert compared(records[lost:], records, at_source) == expected
    assert compared(records, records[lost:], at_target) == expected
    assert compared(records, records[lost:]).counts == {"missing": lost}
    assert compared(records[lost:], records).counts == {"extra": lost}


@given(st.integers(1, 10), st.integers(1, 10))
def test_records_before_a_late_beginning_are_a_number_of_their_own(before: int, kept: int) -> None:
    records = numbered(before + kept)
    late = Rules(target_lost_beginning=True, begins_late=True, producer_id=OURS)
    assert compared(records, records[before:], late) == Comparison(equal=kept, left_out=before)


def test_record_lost_in_the_middle_is_missing_even_if_the_beginning_is_deleted() -> None:
    records = numbered(8)
    found = compared(records[3:], [*records[:5], *records[6:]], Rules(source_lost_beginning=True))
    assert places(found) == [("missing", 5, None)]
    assert found.not_comparable == 3


def test_records_after_an_unknown_target_end_are_not_compared() -> None:
    records = numbered(8)
    assert compared(records[:5], records, Rules(target_end_is_known=False)) == Comparison(equal=5)
    assert compared(records[:5], records[:4], Rules(target_end_is_known=False)).counts == {"missing": 1}


@given(st.integers(0, 12), st.integers(0, 12), sizes)
def test_records_outside_the_spans_are_not_compared(first: int, end: int, source_sizes: list[int]) -> None:
    records = numbered(12)
    source = Log(in_batches(records, source_sizes), Span(first, end))
    target = Log(in_batches(on_target(records), [12]), Span(1000 + first, 1000 + end))
    assert compare(source, target, Rules()) == Comparison(equal=max(0, end - first))


def compact(records: Sequence[Rec], upto: int) -> list[Rec]:
    """Remove the records that the cleaner removes from the first `upto` records."""
    last = {record.key: at for at, record in enumerate(records[:upto])}
    return [record for at, record in enumerate(records) if at >= upto or last[record.key] == at]


@given(st.integers(0, 20), st.integers(0, 20), sizes)
def test_compacted_records_of_either_side_are_not_comparable(
    at_source: int, at_target: int, keys: list[int]
) -> None:
    records = [
        Rec(at, NOW_MS + at, b"k%d" % (keys[at % len(keys)] if keys else at % 5), b"v%d" % at)
        for at in range(20)
    ]
    rules = Rules(source_is_compacted=True, target_is_compacted=True, producer_id=OURS)
    source = compact(records, at_source)
    target = compact(on_target(records), at_target)
    found = compare(
        Log(in_batches(source, [4, 4]), WHOLE), Log(in_batches(target, [3], producer_id=OURS), WHOLE), rules
    )
    assert found.is_equal, found.differences
    assert found.equal + found.not_comparable == len({r.timestamp for r in [*source, *target]})


def test_last_record_of_a_key_is_missing_in_a_compacted_topic_too() -> None:
    records = [Rec(at, NOW_MS + at, b"k%d" % at, b"v") for at in range(6)]
    found = compared(records, records[:2] + records[3:], Rules(target_is_compacted=True))
    assert places(found) == [("missing", 2, None)]
    assert found.not_comparable == 0


def test_compacted_record_may_be_superseded_after_the_span() -> None:
    records = numbered(3)
    target = in_batches(on_target(records)[1:])
    later = in_batches([Rec(2000, NOW_MS, b"k0", b"new")])
    span, rules = Span(1000, 1003), Rules(target_is_compacted=True)
    found = compare(Log(in_batches(records), WHOLE), Log(target, span, later), rules)
    assert found == Comparison(equal=2, not_comparable=1)
    found = compare(Log(in_batches(records), WHOLE), Log(target, span), rules)
    assert places(found) == [("missing", 0, None)]


def test_removed_tombstones_with_their_records_are_not_comparable() -> None:
    records = [Rec(0, NOW_MS, b"a", b"1"), Rec(1, NOW_MS, b"b", b"1"), Rec(2, NOW_MS, b"a", None)]
    found = compared(records, records[1:2], Rules(target_is_compacted=True))
    assert found == Comparison(equal=1, not_comparable=2)


def test_comparison_of_unrelated_logs_is_given_up() -> None:
    source, target = (
        [Rec(at, NOW_MS, b"%d" % at, value * 10_000) for at in range(4097)] for value in (b"a", b"b")
    )
    found = compare(Log(in_batches(source), WHOLE), Log(in_batches(target), WHOLE), Rules())
    assert not found.is_equal
    assert found.gave_up == (
        "from source offset 0 and target offset 0 on, the next 1,024 records have nothing in common"
    )


def test_sum_of_ranges_equals_the_whole_comparison() -> None:
    records = numbered(9)
    whole = compared(records, records[:4] + records[5:])
    halves = compared(records[:3], records[:3]) + compared(records[3:], records[3:4] + records[5:])
    assert (halves.equal, halves.counts) == (whole.equal, whole.counts)
    assert halves.differences[0].source_offset == whole.differences[0].source_offset


LIMITED = Rules(producer_id=OURS, decompressed_bytes_max=1 << 20)


def zeros(size: int, count: int) -> list[Rec]:
    return [Rec(at, NOW_MS + at, b"k%d" % at, bytes(size)) for at in range(count)]


def test_batch_that_is_too_large_to_be_opened_is_reported_with_its_offset_and_the_option() -> None:
    source = in_batches(zeros(2 << 20, 1), codec=4)
    target = in_batches(on_target(zeros(2 << 20, 1)), codec=1, producer_id=OURS)
    with pytest.raises(CorruptBatchError, match=r"offset 0: .* batch\.decompressed\.bytes\.max"):
        compare(Log(source, WHOLE), Log(target, WHOLE), LIMITED)


def test_equal_batches_are_not_opened_whatever_they_hold() -> None:
    source = in_batches(zeros(2 << 20, 3), codec=4)
    target = in_batches(on_target(zeros(2 << 20, 3)), codec=4, producer_id=OURS)
    assert compare(Log(source, WHOLE), Log(target, WHOLE), LIMITED) == Comparison(equal=3)


def test_batches_that_are_too_large_together_are_opened_in_turns() -> None:
    records = zeros(300_000, 40)
    source = in_batches(records, codec=4)
    target = in_batches(on_target(records), [3] * 13, codec=1, producer_id=OURS)
    assert compare(Log(source, WHOLE), Log(target, WHOLE), LIMITED) == Comparison(equal=40)


def test_large_records_without_end_that_differ_are_given_up() -> None:
    source = in_batches(zeros(1_000_000, 16), codec=4)
    others = [record._replace(key=b"other") for record in zeros(1_000_000, 16)]
    target = in_batches(on_target(others), codec=4, producer_id=OURS)
    found = compare(Log(source, WHOLE), Log(target, WHOLE), LIMITED)
    assert "records that differ have more than 4 times batch.decompressed.bytes.max" in str(found.gave_up)


def test_offsets_are_compared_where_they_are_preserved() -> None:
    source = numbered(9)
    moved = [*source[:4], *(record._replace(offset=record.offset + 1) for record in source[4:])]

    def found(target: Sequence[Rec], rules: Rules) -> list[tuple[str, int | None, int | None]]:
        here, there = Log(in_batches(source, [3, 2, 4]), WHOLE), Log(in_batches(target, [2, 2, 5]), WHOLE)
        return places(compare(here, there, rules))

    preserved = Rules(producer_id=OURS, same_offsets=True)
    assert found(source, preserved) == []
    assert found(moved, OURS_IS_KNOWN) == []
    assert found(moved, preserved) == [("offset", 4, 5)]
    assert found(on_target(source), preserved) == [("offset", 0, 1000)]
