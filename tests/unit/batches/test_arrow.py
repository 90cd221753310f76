"""Records decoded to Arrow equal those that other code reads, and are encoded in the same bytes."""

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparkmirror.batches.arrow import EVERY_OFFSET, Opened, from_arrow, to_arrow
from sparkmirror.batches.arrow_schema import BODIES, CLOSED, SCHEMA
from sparkmirror.batches.few_records import FewOpened
from sparkmirror.batches.record_batch import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    FetchedBatch,
    has_valid_crc,
    iterate_batches,
)
from sparkmirror.batches.record_body import read_body
from sparkmirror.batches.records import RawRecord, read_records, write_batch
from sparkmirror.batches.reencoding import Encoding
from sparkmirror.domain.errors import CorruptBatchError, MalformedRecordError
from sparkmirror.domain.ids import TopicPartition
from tests.support.batches import NOW_MS, Rec, decode, encode, fetched, in_batches, patch

ORDERS: Final = TopicPartition("orders", 3)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
PLAIN: Final = Encoding(0, 1 << 20)
ALL: Final = tuple(SCHEMA.names)

CONTENT = (
    st.none() | st.sampled_from([b"", b"k", b"\xff\xfe", b"v" * 63, b"v" * 64, b"w" * 9000]) | st.binary()
)
NAMES = st.sampled_from(["", "name", "größe", "n" * 200])
HEADERS = st.lists(st.tuples(NAMES, CONTENT), max_size=3).map(tuple)
TIMES = st.sampled_from([NOW_MS, NOW_MS + 1, NOW_MS - 9000, -1, 0, 9_000_000_000_000_000])
RECORDS = st.builds(Rec, st.just(0), TIMES, CONTENT, CONTENT, HEADERS)


@st.composite
def responses(draw: Callable[[Any], Any]) -> list[FetchedBatch]:
    """Batches of every codec with gaps inside and between them, some with LogAppendTime."""
    batches, base = [], draw(st.sampled_from([0, 5, 2**40]))
    for _ in range(draw(st.integers(1, 3))):
        gap = draw(st.sampled_from([1, 1, 3]))
        drawn = draw(st.lists(RECORDS, min_size=1, max_size=6)) * draw(st.sampled_from([1, 1, 30]))
        records = [record._replace(offset=at * gap) for at, record in enumerate(drawn)]
        codec, append_time = draw(st.integers(0, 4)), draw(st.sampled_from([0, 0, LOG_APPEND_TIME]))
        data = encode(records, codec=codec, base_offset=base, attributes=codec | append_time)
        batches.append(fetched(data))
        base += records[-1].offset + draw(st.sampled_from([1, 1, 9]))
    return batches


def one_by_one(batches: Sequence[FetchedBatch]) -> list[RawRecord]:
    return [record for batch in batches for record in read_records(batch)]


def rows_of(batches: Sequence[FetchedBatch]) -> list[dict[str, object]]:
    """The rows as kafka-python's records say."""
    return [
        {
            "key": record.key,
            "value": record.value,
            "topic": "orders",
            "partition": 3,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestampType": int(bool(batch.header.attributes & LOG_APPEND_TIME)),
            "headers": [{"key": name, "value": content} for name, content in record.headers] or None,
        }
        for batch in batches
        for record in decode(batch.data)
    ]


def as_rows(records: pa.RecordBatch) -> list[dict[str, object]]:
    """With timestamps in ms: Python's own end with the year 9999."""
    at = records.schema.get_field_index("timestamp")
    if at >= 0:
        stamps = records.column(at).view(pa.int64()).to_numpy() // 1000
        records = records.set_column(at, "timestamp", pa.array(stamps))
    rows: list[dict[str, object]] = records.to_pylist()
    return rows


@given(responses())
def test_few_records_are_opened_as_many_are(batches: list[FetchedBatch]) -> None:
    first, last = batches[0].header.base_offset, batches[-1].header.last_offset
    for offsets in (EVERY_OFFSET, range(first + 1, last)):
        few, many = (each.of(batches, offsets, 1 << 30) for each in (FewOpened, Opened))
        assert len(few) == len(many)
        for names in (ALL, CLOSED.names, BODIES.names):
            assert few.columns(ORDERS, names) == many.columns(ORDERS, names)
        assert [bytes(each.data) for each in few.packed(PLAIN)] == [
            bytes(each.data) for each in many.packed(PLAIN)
        ]


@given(responses())
def test_rows_are_the_records(batches: list[FetchedBatch]) -> None:
    found = to_arrow(batches, ORDERS, ALL)
    assert found.schema == SCHEMA
    found.validate(full=True)
    assert as_rows(found) == rows_of(batches)


@given(responses(), st.sets(st.sampled_from(ALL), min_size=1), st.integers(0, 60), st.integers(0, 60))
def test_columns_and_offsets_are_selected(
    batches: list[FetchedBatch], columns: set[str], first: int, count: int
) -> None:
    begin = batches[0].header.base_offset + first
    chosen = sorted(columns)
    found = as_rows(to_arrow(batches, ORDERS, chosen, range(begin, begin + count)))
    expected = [row for row in rows_of(batches) if row["offset"] in range(begin, begin + count)]
    assert found == [{name: row[name] for name in chosen} for row in expected]


@given(responses(), st.integers(0, 4))
def test_round_trip_has_the_same_bytes(batches: list[FetchedBatch], codec: int) -> None:
    records = one_by_one(batches)
    (batch,) = from_arrow(to_arrow(batches, ORDERS, ALL), Encoding(codec, 1 << 30), NOW_MS)
    assert bytes(batch.data) == bytes(write_batch(records, codec))
    assert list(batch.offsets) == [record.offset for record in records]
    assert batch.max_timestamp == max(record.timestamp for record in records)


@given(responses(), st.sampled_from([100, 3000, 20_000]), st.sampled_from([0, 4]), st.booleans())
def test_batches_keep_to_their_limit(
    batches: list[FetchedBatch], bytes_max: int, codec: int, is_gapless: bool
) -> None:
    encoding = Encoding(codec, bytes_max, is_gapless=is_gapless)
    written = from_arrow(to_arrow(batches, ORDERS, ALL), encoding, NOW_MS)
    back = []
    for batch in written:
        (whole,) = iterate_batches(batch.data)
        records = read_records(whole)
        assert has_valid_crc(whole)
        assert whole.header.max_timestamp == batch.max_timestamp
        assert len(batch.data) <= bytes_max or len(records) == 1
        assert batch.is_contiguous or not is_gapless
        back += [record._replace(offset=at) for record, at in zip(records, batch.offsets, strict=True)]
    assert back == one_by_one(batches)


def test_columns_that_are_missing_are_null() -> None:
    records = pa.record_batch({"value": ["a", None, "ü"], "color": [1, 2, 3]})
    (batch,) = from_arrow(records, PLAIN, NOW_MS)
    assert decode(batch.data) == [
        Rec(0, NOW_MS, None, b"a"),
        Rec(1, NOW_MS, None, None),
        Rec(2, NOW_MS, None, "ü".encode()),
    ]
    assert batch.offsets == range(3)


def test_no_rows_make_no_batch() -> None:
    assert from_arrow(pa.RecordBatch.from_pylist([], SCHEMA), PLAIN, NOW_MS) == []


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_timestamps_of_every_unit_are_written_in_ms(unit: str, zone: str | None) -> None:
    at = EPOCH + timedelta(milliseconds=NOW_MS)
    stamps = pa.array([at, None, at], pa.timestamp("us", tz="UTC")).cast(
        pa.timestamp(unit, tz=zone), safe=False
    )
    (batch,) = from_arrow(pa.record_batch({"value": [b"", b"", b""], "timestamp": stamps}), PLAIN, 5)
    assert [record.timestamp for record in decode(batch.data)] == [NOW_MS, 5, NOW_MS]


def test_time_before_1970_is_rounded_down() -> None:
    stamps = pa.array([-1, -1001], pa.int64()).view(pa.timestamp("us", tz="UTC"))
    (batch,) = from_arrow(pa.record_batch({"value": [b"", b""], "timestamp": stamps}), PLAIN, 5)
    assert [record.timestamp for record in decode(batch.data)] == [-1, -2]


def test_a_timestamp_beyond_microseconds_is_refused_by_its_offset() -> None:
    batch = fetched(encode([Rec(0), Rec(1, 2**62)], base_offset=7))
    with pytest.raises(CorruptBatchError, match=f"offset 8: timestamp {2**62} ms"):
        to_arrow([batch], ORDERS, ALL)
    assert to_arrow([batch], ORDERS, ["value", "offset"]).num_rows == 2


def test_sliced_and_chunked_columns_are_written_as_they_are() -> None:
    """Filters and Spark's own batches leave such columns: views with offsets, nulls above contents."""
    batches = in_batches(
        [Rec(at, NOW_MS + at, b"k%d" % at, b"v%d" % at, (("h", b"%d" % at),) * (at % 3)) for at in range(40)],
        [40],
    )
    whole = to_arrow(batches, ORDERS, ALL)
    (sliced,) = from_arrow(whole.slice(7, 20), PLAIN, NOW_MS)
    assert bytes(sliced.data) == bytes(write_batch(one_by_one(batches)[7:27], 0))
    odd = whole.filter(pa.array([at % 2 == 1 for at in range(40)]))
    (filtered,) = from_arrow(odd, PLAIN, NOW_MS)
    assert bytes(filtered.data) == bytes(write_batch(one_by_one(batches)[1::2], 0))
    assert list(filtered.offsets) == list(range(1, 40, 2))


def test_a_null_list_of_headers_hides_its_contents() -> None:
    entries = pa.array(
        [{"key": "a", "value": b"1"}, {"key": "b", "value": None}], SCHEMA.field("headers").type.value_type
    )
    headers = pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()),
        entries,
        type=SCHEMA.field("headers").type,
        mask=pa.array([True, False]),
    )
    (batch,) = from_arrow(pa.record_batch({"value": [b"", b""], "headers": headers}), PLAIN, NOW_MS)
    assert [record.headers for record in decode(batch.data)] == [(), (("b", None),)]


def test_a_header_without_a_key_is_refused() -> None:
    headers = pa.array([[{"key": None, "value": b"1"}]], SCHEMA.field("headers").type)
    with pytest.raises(MalformedRecordError, match="header without a key"):
        from_arrow(pa.record_batch({"value": [b""], "headers": headers}), PLAIN, NOW_MS)


def test_unknown_columns_are_refused() -> None:
    with pytest.raises(KeyError, match="color"):
        to_arrow([fetched(encode([Rec(0)]))], ORDERS, ["color"])


def bodies_of(batch: FetchedBatch) -> list[tuple[object, ...]] | None:
    """Return the bodies, read one by one; None for CorruptBatchError, any other exception fails the test."""
    try:
        bodies = [read_body(record.body) for record in read_records(batch)]
    except CorruptBatchError:
        return None
    return [(body.key, body.value, [(name, value) for name, value in body.headers]) for body in bodies]


def bodies_from_arrow(batch: FetchedBatch) -> list[tuple[object, ...]] | None:
    try:
        found = to_arrow([batch], ORDERS, ("key", "value", "headers"), range(-(2**62), 2**62))
    except CorruptBatchError:
        return None
    keys, values = found.column(0).to_pylist(), found.column(1).to_pylist()
    pairs = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
    headers = [
        [(header["key"], header["value"]) for header in row or []]
        for row in found.column(2).cast(pairs).to_pylist()
    ]
    return list(zip(keys, values, headers, strict=True))


@given(payload=st.binary(max_size=60), count=st.integers(1, 12))
@example(payload=b"\x0c\x00\x00\x00\x01\x01\x80\x80\x80\x80\x08", count=1)
@example(payload=b"\x10\x00\x00\x00\x01\x01\x02\xff\xff\xff\xff\x0f", count=1)
def test_arbitrary_bytes_are_corrupt_or_rows(payload: bytes, count: int) -> None:
    header = encode([Rec(0)])[:HEADER_BYTES]
    length = HEADER_BYTES - 12 + len(payload)
    batch = fetched(patch(header + payload, length=length, record_count=count, last_offset_delta=count - 1))
    rows = bodies_from_arrow(batch)
    assert rows is None or rows == bodies_of(batch)


@pytest.mark.parametrize("seed", range(10))
def test_flipped_bytes_are_corrupt_or_rows(seed: int) -> None:
    chance = random.Random(seed)
    whole = encode(
        [
            Rec(at, NOW_MS + at, b"key", chance.randbytes(chance.randrange(9)), (("h", b"1"), ("i", None)))
            for at in range(12)
        ]
    )
    read = 0
    for _ in range(200):
        data = bytearray(whole)
        data[chance.randrange(HEADER_BYTES, len(data))] = chance.randrange(256)
        batch = fetched(data)
        rows = bodies_from_arrow(batch)
        assert rows is None or rows == bodies_of(batch)
        read += rows is not None
    assert read
    assert to_arrow([fetched(whole)], ORDERS, ALL, EVERY_OFFSET).num_rows == 12
