"""Records decoded as columns equal records decoded one by one, also for arbitrary bytes."""

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparkmirror.batches.columns import (
    RecordIndex,
    index_records,
    pack_records,
    read_varints,
    widths,
    write_varints,
    zigzag,
)
from sparkmirror.batches.record_batch import HEADER_BYTES, LOG_APPEND_TIME, FetchedBatch, build_batch
from sparkmirror.batches.records import RawRecord, new_header, read_records, write_varint
from sparkmirror.domain.errors import CorruptBatchError
from tests.support.batches import NOW_MS, Rec, decode, encode, fetched, patch

WHOLE_RANGE = st.integers(-(2**63), 2**63 - 1)
EDGES = [0, -1, 63, 64, -64, -65, 8191, 8192, 2**31, 2**63 - 1, -(2**63)]
SIZES = st.sampled_from([0, 1, 20, 55, 58, 120, 8200])
TIMES = st.sampled_from([-1, 0, NOW_MS]) | st.integers(NOW_MS - 9000, NOW_MS + 9000)


def varint(value: int) -> bytes:
    out = bytearray()
    write_varint(value, out)
    return bytes(out)


@given(st.lists(WHOLE_RANGE | st.sampled_from(EDGES), min_size=1, max_size=30))
def test_columns_of_varints_are_varints(values: list[int]) -> None:
    wire = [varint(value) for value in values]
    column = zigzag(np.array(values, np.int64))
    assert widths(column).tolist() == [len(one) for one in wire]
    ends = np.cumsum([len(one) for one in wire])
    at = ends - [len(one) for one in wire]
    out = np.zeros(ends[-1], np.uint8)
    write_varints(out, at, column)
    assert out.tobytes() == b"".join(wire)
    read, behind = read_varints(out, at)
    assert read.tolist() == values
    assert behind.tolist() == ends.tolist()


def test_a_varint_without_end_is_corrupt() -> None:
    with pytest.raises(CorruptBatchError, match="varint"):
        read_varints(np.full(20, 0xFF, np.uint8), np.array([0]))


@st.composite
def responses(draw: Callable[[Any], Any]) -> list[FetchedBatch]:
    """Batches of every codec with gaps inside and between them, some with LogAppendTime."""
    batches, base = [], draw(st.sampled_from([0, 5, 2**40]))
    for _ in range(draw(st.integers(1, 4))):
        count = draw(st.sampled_from([1, 2, 5, 70]))
        gap = draw(st.sampled_from([1, 1, 3, 200]))
        if count < 9:
            records = [Rec(at * gap, draw(TIMES), b"k", b"v" * draw(SIZES)) for at in range(count)]
        else:
            records = [Rec(at * gap, NOW_MS + 7 * at, b"k", b"v" * 9) for at in range(count)]
        attributes = draw(st.sampled_from([0, 0, LOG_APPEND_TIME]))
        codec = draw(st.sampled_from([0, 0, 1, 2, 3, 4]))
        data = encode(records, codec=codec, base_offset=base, attributes=codec | attributes)
        batches.append(fetched(data))
        base += records[-1].offset + draw(st.sampled_from([1, 1, 9]))
    return batches


def one_by_one(batches: Sequence[FetchedBatch]) -> list[RawRecord]:
    return [record for batch in batches for record in read_records(batch)]


def as_records(index: RecordIndex) -> list[RawRecord]:
    columns = zip(index.offsets.tolist(), index.timestamps.tolist(), index.bodies(), strict=True)
    return [RawRecord(*fields) for fields in columns]


@given(responses())
def test_columns_equal_records_read_one_by_one(batches: list[FetchedBatch]) -> None:
    assert as_records(index_records(batches)) == one_by_one(batches)


@given(responses(), st.integers(0, 400), st.integers(1, 400))
def test_packed_records_are_the_selected_ones(batches: list[FetchedBatch], skipped: int, count: int) -> None:
    index = index_records(batches)
    first = min(skipped, len(index) - 1)
    rows = range(first, min(first + count, len(index)))
    timestamps = index.timestamps[first : rows.stop].tolist()
    header = new_header(0, len(rows), timestamps[0], max(timestamps))
    packed = fetched(bytes(build_batch(header, bytes(pack_records(index, rows)))))
    expected = one_by_one(batches)[first : rows.stop]
    assert read_records(packed) == [record._replace(offset=at) for at, record in enumerate(expected)]
    assert [(record.offset, record.timestamp) for record in decode(packed.data)] == list(
        enumerate(timestamps)
    )
    # The canonical form is the same byte for byte in both ways of reading.
    assert as_records(index_records([packed])) == read_records(packed)


@given(responses(), st.integers(1, 5), st.integers(0, 7))
def test_chosen_records_are_packed_without_those_between(
    batches: list[FetchedBatch], step: int, first: int
) -> None:
    index = index_records(batches)
    rows = np.unique(np.append(np.arange(min(first, len(index) - 1), len(index), step), len(index) - 1))
    chosen = index.chosen(rows)
    timestamps = chosen.timestamps.tolist()
    header = new_header(0, len(rows), timestamps[0], max(timestamps))
    packed = fetched(bytes(build_batch(header, bytes(pack_records(chosen, range(len(rows)))))))
    records = one_by_one(batches)
    assert read_records(packed) == [records[row]._replace(offset=at) for at, row in enumerate(rows)]


def test_packed_records_are_in_canonical_form() -> None:
    """Also if the source has overlong varints and non-zero attributes."""
    body = b"\x01\x02k" + varint(100) + b"v" * 100 + b"\x00"
    clumsy = b"\x07" + b"\x80\x00" + b"\x82\x80\x00" + body
    plain = varint(len(clumsy)) + clumsy + varint(len(clumsy)) + clumsy.replace(b"\x82\x80", b"\x84\x80")
    batch = fetched(bytes(build_batch(new_header(0, 2, NOW_MS, NOW_MS), plain)))
    packed = pack_records(index_records([batch]), range(2))
    neat = [b"\x00\x00" + varint(delta) + body for delta in range(2)]
    assert packed == b"".join(varint(len(record)) + record for record in neat)


def outcome(read: Callable[[], list[RawRecord]]) -> list[RawRecord] | None:
    """Return None for CorruptBatchError; any other exception fails the test."""
    try:
        return read()
    except CorruptBatchError:
        return None


def assert_equal_results(batch: FetchedBatch) -> None:
    slow = outcome(lambda: read_records(batch))
    fast = outcome(lambda: as_records(index_records([batch])))
    if slow is None or fast is None:
        assert slow == fast
    else:  # sums of arbitrary values may exceed the 64 bits of a column
        assert [record.body for record in fast] == [record.body for record in slow]
        assert all((a.timestamp - b.timestamp) % 2**64 == 0 for a, b in zip(fast, slow, strict=True))


@given(payload=st.binary(max_size=60), count=st.integers(1, 12), codec=st.integers(0, 7))
@example(payload=b"\x01\x00\x00\x00", count=1, codec=0)
@example(payload=b"\x04\x00\x80\x80\x80\x00\x00", count=1, codec=0)
@example(payload=b"\xff" * 30, count=1, codec=0)
@example(payload=b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", count=1, codec=0)
@example(payload=b"", count=2**31 - 1, codec=0)
@example(payload=b"\x00" * 8, count=8, codec=0)
def test_arbitrary_bytes_are_corrupt_or_records(payload: bytes, count: int, codec: int) -> None:
    header = encode([Rec(0)])[:HEADER_BYTES]
    length = HEADER_BYTES - 12 + len(payload)
    assert_equal_results(
        fetched(patch(header + payload, length=length, record_count=count, attributes=codec))
    )


@pytest.mark.parametrize("seed", range(20))
def test_flipped_bytes_are_corrupt_or_records(seed: int) -> None:
    chance = random.Random(seed)
    whole = encode([Rec(at, NOW_MS + at, b"key", chance.randbytes(chance.randrange(90))) for at in range(40)])
    for _ in range(100):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(HEADER_BYTES, len(data))] = chance.randrange(256)
        assert_equal_results(fetched(data))


def test_negative_record_count_is_corrupt() -> None:
    data = bytearray(encode([Rec(0)])[:HEADER_BYTES])
    struct.pack_into(">i", data, HEADER_BYTES - 4, -3)
    with pytest.raises(CorruptBatchError, match="-3 records"):
        index_records([fetched(patch(data, length=HEADER_BYTES - 12))])


def test_batch_does_not_read_records_of_the_next_one() -> None:
    """Records of both are adjacent in memory, but each batch must end with its own records."""
    short, longer = encode([Rec(0), Rec(1)], record_count=3), encode([Rec(0), Rec(1)], record_count=1)
    with pytest.raises(CorruptBatchError, match="3 records"):
        index_records([fetched(short), fetched(longer)])
