"""Records of state topics are encoded and decoded unchanged, and malformed bytes are corrupt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.log_records import LogRecord, decode_log_batch, encode_log_batch
from sparkmirror.batches.record_batch import CONTROL, build_batch, iterate_batches
from sparkmirror.batches.records import RawRecord, write_batch
from sparkmirror.domain.errors import CorruptBatchError

NOW_MS = 1_700_000_000_000

optional_bytes = st.none() | st.binary(max_size=40)
log_records = st.builds(
    LogRecord,
    key=optional_bytes,
    value=optional_bytes,
    partition=st.just(3),
    timestamp_ms=st.none() | st.integers(0, 2**41),
    headers=st.lists(st.tuples(st.text(max_size=8), optional_bytes), max_size=3).map(tuple),
)


def read(data: memoryview) -> list[LogRecord]:
    return [record for batch in iterate_batches(data) for record in decode_log_batch(batch, 3)]


@given(st.lists(log_records, min_size=1, max_size=5))
def test_encoded_records_are_decoded_unchanged(records: list[LogRecord]) -> None:
    expected = [
        record._replace(
            offset=at, timestamp_ms=NOW_MS if record.timestamp_ms is None else record.timestamp_ms
        )
        for at, record in enumerate(records)
    ]
    assert read(encode_log_batch(records, NOW_MS)) == expected


def test_transaction_markers_are_skipped() -> None:
    (batch,) = iterate_batches(encode_log_batch([LogRecord(b"k", b"v")], NOW_MS))
    marker = build_batch(batch.header._replace(attributes=CONTROL), bytes(batch.data[61:]))
    assert read(marker) == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x02",  # a key of one byte, and no byte
        b"\x01\x01",  # neither key nor value, and no count of headers
        b"\x01\x01\x02\x02",  # one header with a name of one byte, and no byte
        b"\x01\x01\x02\x02\xff\x01",  # a name that is no UTF-8
    ],
)
def test_fields_longer_than_the_record_are_corrupt(body: bytes) -> None:
    with pytest.raises(CorruptBatchError, match="offset 0: the record's fields do not fit it"):
        read(write_batch([RawRecord(0, NOW_MS, body)], 0))
