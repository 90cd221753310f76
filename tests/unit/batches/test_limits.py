"""Each limit of a type in a record batch: what is just below it, at it, and above it."""

import struct

import numpy as np
import pytest

from sparkmirror.batches.agreement.equality import same_batch, same_record_at
from sparkmirror.batches.columns import index_records, read_varints
from sparkmirror.batches.filler import FILLER_RECORDS_MAX, empty_records, filler_batch
from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.batches.provenance_header import HEADER, ProvenanceHeader
from sparkmirror.batches.record_batch import (
    HEADER_BYTES,
    SEQUENCE_MODULUS,
    BatchHeader,
    FetchedBatch,
    build_batch,
    iterate_batches,
    rewrite_header,
)
from sparkmirror.batches.record_body import RecordBody, read_body, write_body
from sparkmirror.batches.records import (
    BYTES_PER_RECORD,
    VARLONG_BYTES,
    RawRecord,
    check_count,
    new_header,
    read_records,
    read_varint,
    write_batch,
    write_varint,
)
from sparkmirror.batches.reencoding import Encoding, reopen
from sparkmirror.domain.errors import CorruptBatchError
from tests.support.batches import Rec, decode, encode, fetched

INT16_MAX, INT32_MAX, INT64_MAX = 2**15 - 1, 2**31 - 1, 2**63 - 1
INT64_MIN = -(2**63)
WRITER = ProducerId(7, 0)
BODY = write_body(RecordBody(b"key", b"value"))
MANY = 150
"""More records than are opened one by one."""


def varint(value: int) -> bytes:
    out = bytearray()
    write_varint(value, out)
    return bytes(out)


def batch_of(header: BatchHeader, payload: bytes) -> FetchedBatch:
    (batch,) = iterate_batches(build_batch(header, payload))
    return batch


# sequences: 32 bits without a sign, from 0 again behind the largest


@pytest.mark.parametrize(
    ("first", "count", "following"),
    [
        (INT32_MAX - 1, 1, INT32_MAX),
        (INT32_MAX, 1, 0),
        (INT32_MAX - 1, 3, 1),
        (0, INT32_MAX, INT32_MAX),
        (INT32_MAX, INT32_MAX, INT32_MAX - 1),
    ],
)
def test_a_sequence_begins_again_at_0_behind_the_largest(first: int, count: int, following: int) -> None:
    assert ProducerState(WRITER, first, 10).after(count, 20) == ProducerState(WRITER, following, 20)
    header = new_header(0, count, 0, 0)._replace(base_sequence=first)
    assert (header.last_sequence + 1) % SEQUENCE_MODULUS == following
    assert 0 <= header.last_sequence <= INT32_MAX


@pytest.mark.parametrize("first", [INT32_MAX - 1, INT32_MAX, INT32_MAX + 1, 2 * SEQUENCE_MODULUS + 5])
def test_filler_is_numbered_by_offset_within_32_bits(first: int) -> None:
    (batch,) = iterate_batches(filler_batch(first, 3, WRITER, keyed=False).data)
    assert batch.header.base_sequence == first % SEQUENCE_MODULUS


# producers


@pytest.mark.parametrize("producer_id", [0, INT64_MAX - 1, INT64_MAX])
@pytest.mark.parametrize("epoch", [0, INT16_MAX - 1, INT16_MAX])
@pytest.mark.parametrize("sequence", [0, INT32_MAX - 1, INT32_MAX])
def test_the_largest_numbers_of_a_producer_are_written(producer_id: int, epoch: int, sequence: int) -> None:
    data = memoryview(encode([Rec(0)]))
    rewrite_header(data, producer_id, epoch, sequence)
    (batch,) = iterate_batches(data)
    found = batch.header.producer_id, batch.header.producer_epoch, batch.header.base_sequence
    assert found == (producer_id, epoch, sequence)
    assert ProducerId(producer_id, epoch).wrote(batch.header)


@pytest.mark.parametrize(
    "numbers", [(INT64_MAX + 1, 0, 0), (0, INT16_MAX + 1, 0), (0, 0, INT32_MAX + 1)], ids=str
)
def test_no_number_of_a_producer_is_cut(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(struct.error):
        rewrite_header(memoryview(encode([Rec(0)])), *numbers)


# timestamps: 64 bits, and deltas that wrap around


@pytest.mark.parametrize(
    "times",
    [
        [-1, 0, 1],
        [INT64_MAX - 1, INT64_MAX],
        [INT64_MIN, INT64_MIN + 1],
        [INT64_MIN, INT64_MAX],
        [INT64_MAX, INT64_MIN, -1, 0],
        [0, INT64_MIN],
        [-1, INT64_MAX],
    ],
    ids=str,
)
@pytest.mark.parametrize("repeated", [1, MANY])
def test_every_timestamp_is_kept(times: list[int], repeated: int) -> None:
    """Timestamps are written by both ways, as a few records and as columns."""
    records = [RawRecord(at, time, BODY) for at, time in enumerate(times * repeated)]
    batch = next(iterate_batches(write_batch(records, 0)))
    assert read_records(batch) == records
    assert index_records([batch]).timestamps.tolist() == [record.timestamp for record in records]
    (again,) = reopen([batch], 0, Encoding(0, 1 << 30))
    assert read_records(next(iterate_batches(again.data))) == records


@pytest.mark.parametrize("delta", [1, -1])
def test_a_delta_beyond_64_bits_wraps_around_as_in_java(delta: int) -> None:
    base = INT64_MAX if delta > 0 else INT64_MIN
    record = varint(2 + len(varint(delta)) + len(BODY)) + b"\x00" + varint(delta) + varint(0) + BODY
    batch = batch_of(new_header(0, 1, base, base), record)
    wrapped = INT64_MIN if delta > 0 else INT64_MAX
    assert [found.timestamp for found in read_records(batch)] == [wrapped]
    assert index_records([batch]).timestamps.tolist() == [wrapped]


def test_records_that_differ_in_time_only_are_different() -> None:
    one, other = (fetched(encode([Rec(0, timestamp=time)])) for time in (1000, 1001))
    assert not same_record_at(0, one, other, timestamps=True)
    assert same_record_at(0, one, other, timestamps=False)
    assert same_record_at(0, one, fetched(encode([Rec(0, timestamp=1000)])), timestamps=True)
    assert not same_batch(one, other, timestamps=True)
    assert same_batch(one, other, timestamps=False)


# varints


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (value, size)
        for size in range(1, VARLONG_BYTES)
        for value, size in (
            (2 ** (7 * size - 1) - 1, size),
            (2 ** (7 * size - 1), size + 1),
            (-(2 ** (7 * size - 1)), size),
            (-(2 ** (7 * size - 1)) - 1, size + 1),
        )
    ],
)
def test_a_varint_grows_by_a_byte_behind_each_7_bits(value: int, size: int) -> None:
    wire = varint(value)
    assert len(wire) == size
    assert read_varint(wire, 0, VARLONG_BYTES) == (value, size)
    values, behind = read_varints(np.frombuffer(wire, np.uint8), np.array([0]))
    assert (values.tolist(), behind.tolist()) == ([value], [size])


@pytest.mark.parametrize(
    ("wire", "value"),
    [
        (b"\xfe\xff\xff\xff\x0f", INT32_MAX),
        (b"\xff\xff\xff\xff\x0f", -(2**31)),
        (b"\xfe\xff\xff\xff\x7f", INT32_MAX),  # bits above the 32nd, which Java shifts out
        (b"\x80\x80\x80\x80\x10", 0),
    ],
)
def test_a_number_of_32_bits_has_no_more(wire: bytes, value: int) -> None:
    assert read_varint(wire, 0) == (value, 5)
    values, behind = read_varints(np.frombuffer(wire, np.uint8), np.array([0]), 5)
    assert (values.tolist(), behind.tolist()) == ([value], [5])


@pytest.mark.parametrize("bytes_max", [5, VARLONG_BYTES])
def test_a_varint_is_as_long_as_its_type_at_most(bytes_max: int) -> None:
    longest = b"\x80" * (bytes_max - 1) + b"\x00"
    assert read_varint(longest, 0, bytes_max) == (0, bytes_max)
    assert read_varints(np.frombuffer(longest, np.uint8), np.array([0]), bytes_max)[1].tolist() == [bytes_max]
    too_long = b"\x80" * bytes_max + b"\x00"
    with pytest.raises(CorruptBatchError, match=f"more than {bytes_max} bytes"):
        read_varint(too_long, 0, bytes_max)
    with pytest.raises(CorruptBatchError, match=f"more than {bytes_max} bytes"):
        read_varints(np.frombuffer(too_long, np.uint8), np.array([0]), bytes_max)


# lengths and counts


@pytest.mark.parametrize("border", [1 << 6, 1 << 13, 1 << 20])
@pytest.mark.parametrize("beside", [-12, -11, -10, -9, -8, -7, -2, -1, 0, 1])
def test_records_around_each_width_of_their_length_are_found(border: int, beside: int) -> None:
    """The length of a record, and of its value, take a byte more there."""
    size = border + beside
    sizes = [size, 0, size, size + 1, size - 1]
    records = [Rec(at, 1000 + at, None, b"v" * size) for at, size in enumerate(sizes)]
    batch = fetched(encode(records))
    assert index_records([batch]).bodies() == [record.body for record in read_records(batch)]
    (again,) = reopen([batch], 1, Encoding(0, 1 << 30))
    kept = [record._replace(offset=at) for at, record in enumerate(records[1:])]
    assert decode(again.data) == kept


@pytest.mark.parametrize("count", [63, 64, 65, 8191, 8192, 8193])
def test_offset_deltas_around_each_width_are_written(count: int) -> None:
    batch = fetched(encode([Rec(at, 1000) for at in range(count)]))
    (again,) = reopen([batch], 1, Encoding(0, 1 << 30))
    found = next(iterate_batches(again.data))
    assert found.header.last_offset_delta == count - 2
    assert [record.offset for record in read_records(found)] == list(range(count - 1))


@pytest.mark.parametrize("count", [0, 62, 63, 64, 8190, 8191, 8192])
def test_headers_around_each_width_of_their_count_are_kept(count: int) -> None:
    headers = tuple((b"h", b"%d" % at) for at in range(count))
    body = ProvenanceHeader("A", "B").carry(write_body(RecordBody(b"k", None, headers)))
    assert body is not None
    assert read_body(body) == RecordBody(b"k", None, (*headers, (HEADER, b"A")))


@pytest.mark.parametrize("count", [63, 64, 65, 8191, 8192, 8193, FILLER_RECORDS_MAX])
def test_filler_around_each_width_of_its_offsets_is_read(count: int) -> None:
    batch = batch_of(new_header(0, count, 0, 0), empty_records(count, keyed=False))
    assert index_records([batch], 1 << 30).offsets.tolist() == list(range(count))


@pytest.mark.parametrize(("records", "is_allowed"), [(99, True), (100, True), (101, False)])
def test_records_that_are_opened_together_are_limited(records: int, *, is_allowed: bool) -> None:
    bytes_max = 100 * BYTES_PER_RECORD
    if is_allowed:
        check_count(records, bytes_max)
        return
    with pytest.raises(CorruptBatchError, match="101 records"):
        check_count(records, bytes_max)


@pytest.mark.parametrize(("size", "is_whole"), [(-1, False), (0, True), (1, True)])
def test_a_batch_is_whole_with_its_last_byte(size: int, *, is_whole: bool) -> None:
    data = encode([Rec(0)]) + b"\x00"
    cut = memoryview(data)[: len(data) - 1 + size]
    assert len(list(iterate_batches(cut))) == is_whole


def test_a_batch_is_at_least_its_header() -> None:
    empty = batch_of(new_header(0, 0, 0, 0)._replace(last_offset_delta=0), b"")
    assert len(empty.data) == HEADER_BYTES
    short = bytearray(empty.data)
    struct.pack_into(">i", short, 8, HEADER_BYTES - 13)
    with pytest.raises(CorruptBatchError, match="too small"):
        list(iterate_batches(memoryview(short)))


@pytest.mark.parametrize("offset", [2**31 - 1, 2**31, 2**53 + 1, INT64_MAX - 2])
def test_the_largest_offsets_are_exact(offset: int) -> None:
    batch = fetched(encode([Rec(0), Rec(1)], base_offset=offset))
    assert (batch.header.base_offset, batch.header.last_offset) == (offset, offset + 1)
    assert [record.offset for record in read_records(batch)] == [offset, offset + 1]
    assert index_records([batch]).offsets.tolist() == [offset, offset + 1]
