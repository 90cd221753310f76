"""Key, value and headers are decoded from kafka-python's encoding, also when its bytes are truncated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.record_body import RecordBody, read_body, read_key, write_body
from sparkmirror.batches.records import read_records
from sparkmirror.domain.errors import CorruptBatchError
from tests.support.batches import Rec, encode, fetched

optional_bytes = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=8), optional_bytes), max_size=3).map(tuple)


@given(optional_bytes, optional_bytes, headers)
def test_decoded_fields_equal_the_encoded_ones(
    key: bytes | None, value: bytes | None, named: tuple[tuple[str, bytes | None], ...]
) -> None:
    (record,) = read_records(fetched(encode([Rec(0, key=key, value=value, headers=named)])))
    body = RecordBody(key, value, tuple((name.encode(), content) for name, content in named))
    assert read_body(record.body) == body
    assert read_key(record.body) == key
    assert write_body(body) == record.body


@given(optional_bytes, optional_bytes, headers, st.data())
def test_truncated_body_is_corrupt(
    key: bytes | None,
    value: bytes | None,
    named: tuple[tuple[str, bytes | None], ...],
    data: st.DataObject,
) -> None:
    body = write_body(RecordBody(key, value, tuple((name.encode(), content) for name, content in named)))
    cut = body[: data.draw(st.integers(0, len(body) - 1))]
    with pytest.raises(CorruptBatchError, match="the record's fields do not fit it"):
        read_body(cut)


def test_truncated_key_is_corrupt() -> None:
    with pytest.raises(CorruptBatchError, match="the record's fields do not fit it"):
        read_key(b"\x02")
