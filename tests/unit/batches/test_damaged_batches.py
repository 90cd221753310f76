"""Damaged batches of every codec: they are read, or they are corrupt; nothing else happens."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparkmirror.batches import compression
from sparkmirror.batches.batch_copying import CopyRules, copy_batches
from sparkmirror.batches.columns import index_records
from sparkmirror.batches.log_records import decode_log_batch
from sparkmirror.batches.provenance_header import ProvenanceHeader
from sparkmirror.batches.record_batch import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    FetchedBatch,
    OutgoingBatch,
    iterate_batches,
)
from sparkmirror.batches.record_body import read_body, read_key
from sparkmirror.batches.records import halve, read_records
from sparkmirror.domain.errors import CorruptBatchError
from tests.support.batches import NOW_MS, Rec, encode, fetched, joined, patch

LIMIT: Final = 4096
MB: Final = 1 << 20
RECORDS: Final = [
    Rec(at, NOW_MS + at, b"key-%d" % at, b"value" * (at % 7), (("name", b"content"),)) for at in range(12)
]
NAMED: Final = ProvenanceHeader("A", "B")


def payload(codec: int, *, is_xerial: bool) -> bytes:
    plain = bytes(encode(RECORDS)[HEADER_BYTES:])
    if is_xerial:
        return compression.compress(2, plain)
    return bytes(encode(RECORDS, codec=codec)[HEADER_BYTES:])


WHOLE: Final = [
    *((codec, payload(codec, is_xerial=False)) for codec in range(5)),
    (2, payload(2, is_xerial=True)),
]


@st.composite
def damaged(draw: Callable[[Any], Any]) -> FetchedBatch:
    """A batch whose contents were changed, cut or lengthened, or whose header counts other records."""
    codec, whole = draw(st.sampled_from(WHOLE))
    data = bytearray(whole)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data) - 1))
        match draw(st.sampled_from(["change", "change", "cut", "insert"])):
            case "change":
                data[at] = draw(st.integers(0, 255))
            case "cut":
                del data[at : at + draw(st.integers(1, 30))]
            case "insert":
                data[at:at] = draw(st.binary(min_size=1, max_size=12))
        if not data:
            break
    count = draw(st.sampled_from([12, 12, 12, 11, 13, 1, 0, -1, 2**31 - 1]))
    attributes = codec | draw(st.sampled_from([0, LOG_APPEND_TIME]))
    base_timestamp = draw(st.sampled_from([NOW_MS, NOW_MS, -(2**63), 2**63 - 1]))
    return batch_of(bytes(data), record_count=count, attributes=attributes, base_timestamp=base_timestamp)


def batch_of(data: bytes, **header: int) -> FetchedBatch:
    whole = encode(RECORDS)[:HEADER_BYTES] + data
    return fetched(patch(whole, length=len(whole) - 12, **header))


def copied(batch: FetchedBatch, rules: CopyRules) -> list[OutgoingBatch]:
    """From its second offset on, so that it must be opened."""
    steps = copy_batches(joined([bytes(batch.data)]), 1, rules, None)
    return [outgoing for step in steps for outgoing in step.batches]


def outgoing(batch: FetchedBatch) -> OutgoingBatch:
    return OutgoingBatch(batch.data, range(batch.header.record_count), NOW_MS)


READERS: Final[Sequence[Callable[[FetchedBatch], object]]] = [
    lambda batch: read_records(batch, LIMIT),
    lambda batch: index_records([batch], LIMIT).bodies(),
    lambda batch: [read_body(record.body) for record in read_records(batch, LIMIT)],
    lambda batch: [read_key(record.body) for record in read_records(batch, LIMIT)],
    lambda batch: [NAMED.carry(record.body) for record in read_records(batch, LIMIT)],
    lambda batch: list(decode_log_batch(batch, 0)),
    lambda batch: copied(batch, CopyRules(decompressed_bytes_max=LIMIT)),
    lambda batch: copied(batch, CopyRules(codec=1, decompressed_bytes_max=LIMIT)),
    lambda batch: copied(batch, CopyRules(batch_bytes_max=100, decompressed_bytes_max=LIMIT)),
]


@given(damaged())
@example(batch_of(b"", record_count=1))
@example(batch_of(b"\xff" * 40, record_count=1))
def test_damaged_batches_are_read_or_corrupt(batch: FetchedBatch) -> None:
    for read in READERS:
        try:
            read(batch)
        except CorruptBatchError:
            continue


@given(damaged())
def test_what_is_copied_of_a_damaged_batch_can_be_read(batch: FetchedBatch) -> None:
    try:
        batches = copied(batch, CopyRules(decompressed_bytes_max=LIMIT))
    except CorruptBatchError:
        return
    for written in batches:
        (back,) = iterate_batches(written.data)
        assert len(read_records(back)) == len(written.offsets) == back.header.record_count


@given(damaged())
def test_a_damaged_batch_is_halved_or_corrupt(batch: FetchedBatch) -> None:
    if batch.header.record_count < 2:
        return
    try:
        halves = halve(outgoing(batch), LIMIT)
    except CorruptBatchError:
        return
    assert sum(len(half.offsets) for half in halves) == batch.header.record_count


@pytest.mark.parametrize("read", [read_body, read_key, NAMED.carry])
@given(data=st.binary(max_size=30))
@example(data=b"\xfe\xff\xff\xff\x0f")
@example(data=b"\x01\x01\xfe\xff\xff\xff\x0f")
def test_arbitrary_bodies_are_read_or_corrupt(read: Callable[[bytes], object], data: bytes) -> None:
    try:
        read(data)
    except CorruptBatchError:
        return


@pytest.mark.parametrize("count", [3, 200])
def test_batches_of_a_negative_number_of_records_are_corrupt_beside_others(count: int) -> None:
    """A sum of numbers hides it."""
    negative = batch_of(b"", record_count=-1)
    with pytest.raises(CorruptBatchError):
        index_records([negative, *[fetched(encode(RECORDS)) for _ in range(count)]], MB)
