"""Decoded and re-encoded batches are read by kafka-python with the same records."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import decode_varint, encode_varint

from sparkmirror.batches.compression import CODECS
from sparkmirror.batches.record_batch import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    OutgoingBatch,
    has_valid_crc,
    iterate_batches,
    rewrite_header,
)
from sparkmirror.batches.records import (
    VARLONG_BYTES,
    halve,
    read_records,
    read_varint,
    rewrite,
    write_batch,
    write_varint,
)
from sparkmirror.domain.errors import CorruptBatchError
from tests.support.batches import NOW_MS, Rec, decode, encode, fetched, patch

ReadVarint = Callable[[bytes | memoryview, int], tuple[int, int]]
read_varlong = partial(read_varint, bytes_max=VARLONG_BYTES)
ALL = range(len(CODECS))
WHOLE_RANGE = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=10)
BYTES = st.none() | st.binary(max_size=40)
HEADERS = st.lists(st.tuples(st.sampled_from(["", "a", "ключ"]) | TEXT, BYTES), max_size=4).map(tuple)
TIMES = st.integers(-1, 2**41)


@st.composite
def record_lists(draw: Callable[[Any], Any]) -> list[Rec]:
    """Records with gaps between their offsets; never empty."""
    offsets = sorted(draw(st.sets(st.integers(0, 300), min_size=1, max_size=8)))
    return [Rec(offset, draw(TIMES), draw(BYTES), draw(BYTES), draw(HEADERS)) for offset in offsets]


def decoded(batches: list[OutgoingBatch]) -> list[Rec]:
    """Decode the batches as a consumer does, with the batches' upstream offsets."""
    records: list[Rec] = []
    for batch in batches:
        inside = decode(batch.data)
        assert [record.offset for record in inside] == list(range(len(inside)))
        records += [
            record._replace(offset=offset) for record, offset in zip(inside, batch.offsets, strict=True)
        ]
        assert batch.max_timestamp == max(record.timestamp for record in inside)
    return records


@given(WHOLE_RANGE)
def test_varints_are_encoded_as_by_kafka(value: int) -> None:
    ours, theirs = bytearray(), bytearray()
    write_varint(value, ours)
    encode_varint(value, theirs.append)
    assert ours == theirs
    assert read_varlong(memoryview(ours), 0) == (value, len(ours)) == decode_varint(ours, 0)
    if -(2**31) <= value < 2**31:
        assert read_varint(memoryview(ours), 0) == (value, len(ours))


@pytest.mark.parametrize("value", [0, -1, 1, 63, -64, 64, -65, 2**31, 2**63 - 1, -(2**63)])
def test_varints_at_length_boundaries_are_decoded(value: int) -> None:
    data = bytearray(b"skip")
    write_varint(value, data)
    assert read_varlong(memoryview(data + b"more"), 4) == (value, len(data))


@pytest.mark.parametrize("value", [0, -1, 1, 63, -64, 64, -65, 2**31 - 1, -(2**31)])
def test_varints_of_32_bits_at_length_boundaries_are_decoded(value: int) -> None:
    data = bytearray(b"skip")
    write_varint(value, data)
    assert read_varint(memoryview(data + b"more"), 4) == (value, len(data))


@pytest.mark.parametrize(("read", "longest"), [(read_varint, 5), (read_varlong, 10)])
def test_a_varint_ends_after_the_bytes_that_its_type_can_have(read: ReadVarint, longest: int) -> None:
    assert read(b"\x80" * (longest - 1) + b"\x00", 0) == (0, longest)
    with pytest.raises(CorruptBatchError, match=f"varint of more than {longest} bytes"):
        read(memoryview(b"\xff" * 20), 0)


@pytest.mark.parametrize("read", [read_varint, read_varlong])
@given(data=st.binary(max_size=12), at=st.integers(0, 14))
def test_whatever_a_varint_is_read_from_it_is_a_value_or_corrupt(
    read: ReadVarint, data: bytes, at: int
) -> None:
    try:
        value, behind = read(data, at)
    except CorruptBatchError:
        return
    assert at < behind <= len(data)
    bits = 31 if read is read_varint else 63
    assert -(1 << bits) <= value < 1 << bits


@given(records=record_lists(), codec=st.sampled_from(ALL), base=st.integers(0, 2**62))
def test_records_are_read_from_every_codec(records: list[Rec], codec: int, base: int) -> None:
    opened = read_records(fetched(encode(records, codec=codec, base_offset=base)))
    assert [(record.offset, record.timestamp) for record in opened] == [
        (base + record.offset, record.timestamp) for record in records
    ]


@given(records=record_lists(), codec=st.sampled_from(ALL), base=st.integers(0, 2**62))
def test_rewriting_keeps_every_record(records: list[Rec], codec: int, base: int) -> None:
    opened = read_records(fetched(encode(records, base_offset=base)))
    expected = [record._replace(offset=base + record.offset) for record in records]
    assert decoded(rewrite(opened, codec, 1 << 20)) == expected


@given(records=record_lists(), codec=st.sampled_from(ALL), limit=st.integers(70, 400))
def test_rewriting_splits_to_the_limit(records: list[Rec], codec: int, limit: int) -> None:
    batches = rewrite(read_records(fetched(encode(records))), codec, limit)
    assert decoded(batches) == records
    assert all(len(batch.data) <= limit or len(batch.offsets) == 1 for batch in batches)


@given(records=record_lists(), codec=st.sampled_from(ALL))
def test_repeated_halving_keeps_every_record(records: list[Rec], codec: int) -> None:
    waiting, single = rewrite(read_records(fetched(encode(records))), codec, 1 << 20), []
    while waiting:
        first = waiting.pop(0)
        halves = halve(first)
        assert all(len(half.offsets) <= len(first.offsets) for half in halves)
        waiting[:0] = halves
        if not halves:
            single.append(first)
    assert decoded(single) == records
    assert all(len(batch.offsets) == 1 for batch in single)


def test_halving_a_stamped_batch_keeps_its_codec() -> None:
    records = [Rec(delta, value=b"%d" % delta * 50) for delta in range(10)]
    data = memoryview(encode(records, codec=4, base_offset=50, attributes=4))
    rewrite_header(data, 7, 0, 123)
    halves = halve(OutgoingBatch(data, range(50, 60), NOW_MS))
    assert [list(half.offsets) for half in halves] == [[50, 51, 52, 53, 54], [55, 56, 57, 58, 59]]
    assert all(half.data[22] == 4 for half in halves)
    assert decoded(halves) == [record._replace(offset=50 + record.offset) for record in records]


def test_a_written_batch_has_kafkas_header() -> None:
    data = write_batch(read_records(fetched(encode([Rec(3, NOW_MS + 5), Rec(9, NOW_MS)], base_offset=7))), 0)
    (batch,) = iterate_batches(data)
    theirs: Any = DefaultRecordBatch(bytes(data))
    assert has_valid_crc(batch)
    assert (theirs.base_offset, theirs.leader_epoch, theirs.last_offset_delta, theirs.records_count) == (
        *(0, -1, 1),
        2,
    )
    assert (theirs.first_timestamp, theirs.max_timestamp) == (NOW_MS + 5, NOW_MS + 5)
    assert (theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (-1, -1, -1)


def test_records_of_log_append_time_batches_have_the_batch_timestamp() -> None:
    data = encode([Rec(0, 5), Rec(1, 7)], attributes=LOG_APPEND_TIME, max_timestamp=NOW_MS)
    assert [record.timestamp for record in read_records(fetched(data))] == [NOW_MS, NOW_MS]


def test_timestamps_are_relative_to_the_delete_horizon() -> None:
    """KIP-534 stores the horizon in the base timestamp, to which the timestamp deltas are relative."""
    data = encode([Rec(0, 1000), Rec(1, 1010)], attributes=0x40, base_timestamp=400)
    assert [record.timestamp for record in read_records(fetched(data))] == [400, 410]


def test_rewriting_no_records_returns_no_batch() -> None:
    assert rewrite([], 0, 100) == []


NOT_THERE = {
    "nothing": b"",
    "too short": b"\x10\x00",
    "a negative size": b"\x01\x00\x00\x00",
    "an endless varint": b"\xff" * 12,
    "fields beyond the record": b"\x04\x00\x80\x80\x80\x00\x00",
}


@pytest.mark.parametrize("case", NOT_THERE)
def test_missing_record_bytes_are_corrupt(case: str) -> None:
    data = encode([Rec(0)])[:HEADER_BYTES] + NOT_THERE[case]
    with pytest.raises(CorruptBatchError):
        read_records(fetched(patch(data, length=len(data) - 12, record_count=1)))


def test_fewer_records_than_the_header_counts_are_corrupt() -> None:
    with pytest.raises(CorruptBatchError, match="ends before its 3 records"):
        read_records(fetched(encode([Rec(0), Rec(1)], record_count=3)))


def test_more_records_than_the_header_counts_are_corrupt() -> None:
    with pytest.raises(CorruptBatchError, match="bytes follow the batch's 1 records"):
        read_records(fetched(encode([Rec(0), Rec(1)], record_count=1)))
