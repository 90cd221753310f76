"""Filler: empty records that a broker takes, the same from every attempt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.filler import FILLER_RECORDS_MAX, empty_records, filler_batch, is_filler
from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import HEADER_BYTES, SEQUENCE_MODULUS, FetchedBatch, iterate_batches
from sparkmirror.batches.records import RawRecord, read_records, write_batch

WRITER = ProducerId(7, 0)
MAX_MESSAGE_BYTES = 1048588
NO_KEY, EMPTY_KEY = b"\x01\x01\x00", b"\x00\x01\x00"


def batch_of(data: memoryview) -> FetchedBatch:
    (batch,) = iterate_batches(data)
    return batch


@given(
    count=st.one_of(st.integers(1, 300), st.integers(8100, 8300)),
    first=st.integers(0, 1 << 40),
    keyed=st.booleans(),
)
def test_records_are_empty_and_numbered_by_offset(count: int, first: int, *, keyed: bool) -> None:
    made = filler_batch(first, count, WRITER, keyed=keyed)
    batch = batch_of(made.data)
    assert made.offsets == range(first, first + count)
    assert batch.header.base_sequence == first % SEQUENCE_MODULUS
    assert (batch.header.producer_id, batch.header.producer_epoch) == WRITER
    body = EMPTY_KEY if keyed else NO_KEY
    assert read_records(batch) == [RawRecord(offset, 0, body) for offset in range(count)]
    assert is_filler(batch)


@pytest.mark.parametrize("keyed", [False, True])
def test_the_largest_fits_the_default_limit(*, keyed: bool) -> None:
    made = filler_batch(0, FILLER_RECORDS_MAX, WRITER, keyed=keyed)
    assert len(made.data) < MAX_MESSAGE_BYTES
    assert len(empty_records(FILLER_RECORDS_MAX, keyed=keyed)) > 8 * len(made.data)
    assert is_filler(batch_of(made.data))
    assert bytes(filler_batch(0, FILLER_RECORDS_MAX, WRITER, keyed=keyed).data) == bytes(made.data)


@pytest.mark.parametrize(
    "records",
    [
        [RawRecord(0, 0, b"\x01\x02v\x00")],
        [RawRecord(0, 1, NO_KEY)],
        [RawRecord(0, 0, NO_KEY), RawRecord(1, 0, EMPTY_KEY)],
    ],
)
def test_what_a_producer_wrote_is_no_filler(records: list[RawRecord]) -> None:
    data = write_batch(records, 0)
    assert len(data) > HEADER_BYTES
    assert not is_filler(batch_of(data))
