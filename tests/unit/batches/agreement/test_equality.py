"""Records and batches are the same by content and time, whatever their offsets, codecs and producers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.agreement.equality import by_offset, same_batch, same_record, same_record_at
from sparkmirror.batches.record_batch import LOG_APPEND_TIME
from sparkmirror.batches.records import RawRecord, read_records
from tests.support.batches import NOW_MS, Rec, encode, fetched

RECORD = Rec(0, NOW_MS, b"key", b"value", (("name", b"content"),))
CHANGES = {
    "key": {"key": b"other"},
    "no key": {"key": None},
    "value": {"value": b"other"},
    "tombstone": {"value": None},
    "header": {"headers": (("name", b"other"),)},
    "no header": {"headers": ()},
}


def raw(record: Rec) -> RawRecord:
    return read_records(fetched(encode([record])))[0]


@pytest.mark.parametrize("timestamps", [True, False])
@pytest.mark.parametrize("what", CHANGES)
def test_records_of_other_contents_are_not_the_same(what: str, timestamps: bool) -> None:
    changed = RECORD._replace(**CHANGES[what])  # type: ignore[arg-type]
    assert not same_record(raw(RECORD), raw(changed), timestamps=timestamps)
    assert not same_batch(fetched(encode([RECORD])), fetched(encode([changed])), timestamps=timestamps)


def test_timestamps_count_unless_a_broker_makes_them() -> None:
    late = RECORD._replace(timestamp=NOW_MS + 1)
    for same in (True, False):
        other = RECORD if same else late
        assert same_record(raw(RECORD), raw(other), timestamps=True) == same
        assert same_record(raw(RECORD), raw(other), timestamps=False)
        batches = [fetched(encode([each])) for each in (RECORD, other)]
        assert same_batch(*batches, timestamps=True) == same
        assert same_batch(*batches, timestamps=False)
        assert same_record_at(0, *batches, timestamps=True) == same
        assert same_record_at(0, *batches, timestamps=False)


def test_offsets_do_not_count() -> None:
    first, later = RECORD, RECORD._replace(offset=3)
    assert same_record(raw(first), raw(later), timestamps=True)
    batches = [fetched(encode([RECORD], base_offset=base, producer_id=base)) for base in (0, 70)]
    assert same_batch(*batches, timestamps=True)


def test_where_a_batch_has_no_record_nothing_contradicts() -> None:
    dense = fetched(encode([RECORD._replace(offset=at, value=b"%d" % at) for at in range(3)]))
    sparse = fetched(encode([RECORD._replace(offset=at, value=b"%d" % at) for at in (0, 2)]))
    other = fetched(encode([RECORD._replace(offset=at, value=b"other") for at in range(3)]))
    assert same_record_at(1, sparse, other, timestamps=True)
    assert same_record_at(1, other, sparse, timestamps=True)
    assert same_record_at(2, sparse, dense, timestamps=True)
    assert not same_record_at(2, sparse, other, timestamps=True)


def test_times_that_a_broker_stamped_are_no_records_timestamps() -> None:
    batch = fetched(encode([RECORD], attributes=LOG_APPEND_TIME, max_timestamp=NOW_MS))
    assert not same_batch(batch, batch, timestamps=True)
    assert same_batch(batch, batch, timestamps=False)


contents = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=3)
codecs = st.sampled_from([0, 1, 3, 4])


@given(contents, contents, codecs, codecs, st.booleans())
def test_batches_are_the_same_exactly_if_all_their_records_are(
    one: list[tuple[int, int]], other: list[tuple[int, int]], codec: int, other_codec: int, timestamps: bool
) -> None:
    """The times of records that differ only by the batch's base time differ as well."""
    batches = [
        fetched(
            encode(
                [Rec(at, NOW_MS + late, b"k", b"%d" % value) for at, (late, value) in enumerate(each)],
                codec=used,
            )
        )
        for each, used in ((one, codec), (other, other_codec))
    ]
    found = same_batch(*batches, timestamps=timestamps)
    records = [read_records(batch) for batch in batches]
    are_same = len(one) == len(other) and all(
        same_record(*pair, timestamps=timestamps) for pair in zip(*records, strict=True)
    )
    assert found == are_same if timestamps else found <= are_same


numbers = st.sets(st.integers(0, 9))


@given(numbers, numbers)
def test_each_offset_comes_once_with_the_records_that_are_there(one: set[int], other: set[int]) -> None:
    def log(offsets: set[int], body: bytes) -> dict[int, RawRecord]:
        return {offset: RawRecord(offset, NOW_MS, body) for offset in sorted(offsets)}

    here, there = log(one, b"one"), log(other, b"other")
    found = list(by_offset(here.values(), there.values()))
    assert found == [(here.get(offset), there.get(offset)) for offset in sorted(one | other)]
