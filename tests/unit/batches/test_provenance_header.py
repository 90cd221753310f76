"""The header that says which clusters a record has come from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.provenance_header import HEADER, ProvenanceHeader, carried
from sparkmirror.batches.record_body import RecordBody, read_body, write_body
from sparkmirror.domain.errors import CorruptBatchError
from tests.support.batches import NOW_MS, Rec, decode, encode, fetched

A_TO_B, B_TO_C, C_TO_A = ProvenanceHeader("A", "B"), ProvenanceHeader("B", "C"), ProvenanceHeader("C", "A")

optional_bytes = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.binary(max_size=8), optional_bytes), max_size=3).map(tuple)


def with_chain(chain: bytes | None) -> bytes:
    return write_body(RecordBody(b"key", b"value", ((b"own", b"1"), (HEADER, chain))))


@given(optional_bytes, optional_bytes, headers)
def test_what_a_record_holds_stays(
    key: bytes | None, value: bytes | None, own: tuple[tuple[bytes, bytes | None], ...]
) -> None:
    body = A_TO_B.carry(write_body(RecordBody(key, value, own)))
    assert body is not None
    assert read_body(body) == RecordBody(key, value, (*own, (HEADER, b"A")))
    body = B_TO_C.carry(body)
    assert body is not None
    assert read_body(body) == RecordBody(key, value, (*own, (HEADER, b"A,B")))
    assert C_TO_A.carry(body) is None


@pytest.mark.parametrize(
    ("chain", "provenance", "arrives"),
    [
        (b"A", B_TO_C, b"A,B"),
        (b"A", C_TO_A, None),
        (b"C", C_TO_A, None),  # another mirror, which adds nothing, has brought it back
        (b"AA,CC", C_TO_A, b"AA,CC,C"),
        (b"", A_TO_B, b"A"),
        (None, A_TO_B, b"A"),
    ],
)
def test_a_record_goes_where_it_has_not_been(
    chain: bytes | None, provenance: ProvenanceHeader, arrives: bytes | None
) -> None:
    body = provenance.carry(with_chain(chain))
    assert body == (None if arrives is None else with_chain(arrives))


def test_a_value_that_names_the_header_is_no_header() -> None:
    body = A_TO_B.carry(write_body(RecordBody(None, HEADER + b"B")))
    assert body is not None
    assert read_body(body).headers == ((HEADER, b"A"),)


@pytest.mark.parametrize("body", [b"", b"\x14key", b"\x06key\x14"])
def test_fields_that_do_not_fit_are_corrupt(body: bytes) -> None:
    with pytest.raises(CorruptBatchError, match="do not fit"):
        A_TO_B.carry(body)


def test_a_batch_keeps_its_offsets() -> None:
    name = HEADER.decode()
    records = [
        Rec(0, NOW_MS, b"a"),
        Rec(2, NOW_MS + 5, b"b", None, ((name, b"B"),)),
        Rec(7, NOW_MS + 3, b"c"),
    ]
    (batch,) = carried(fetched(encode(records, codec=3, base_offset=40, last_offset_delta=9)), A_TO_B)
    assert (batch.header.base_offset, batch.header.last_offset, batch.header.record_count) == (40, 49, 2)
    assert [record[:4] for record in decode(batch.data)] == [
        (40, NOW_MS, b"a", b"value"),
        (47, NOW_MS + 3, b"c", b"value"),
    ]
    assert carried(fetched(encode([Rec(0, headers=((name, b"A"),))])), A_TO_B) == []
