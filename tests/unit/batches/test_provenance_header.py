"""The provenance header, which lists the clusters that a record has passed through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.provenance_header import HEADER, ProvenanceChange, ProvenanceHeader
from sparkmirror.batches.record_batch import FetchedBatch
from sparkmirror.batches.record_body import RecordBody, read_body, write_body
from sparkmirror.batches.reencoding import carried
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX
from sparkmirror.domain.errors import CorruptBatchError
from tests.support.batches import NOW_MS, Rec, decode, encode, fetched

A_TO_B, B_TO_C, C_TO_A = ProvenanceHeader("A", "B"), ProvenanceHeader("B", "C"), ProvenanceHeader("C", "A")

optional_bytes = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.binary(max_size=8), optional_bytes), max_size=3).map(tuple)


def arriving(data: bytearray) -> list[FetchedBatch]:
    return carried(fetched(data), ProvenanceChange(A_TO_B), DECOMPRESSED_BYTES_MAX)


def with_chain(chain: bytes | None) -> bytes:
    return write_body(RecordBody(b"key", b"value", ((b"own", b"1"), (HEADER, chain))))


@given(optional_bytes, optional_bytes, headers)
def test_other_fields_of_the_record_are_unchanged(
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
        (b"C", C_TO_A, None),  # copied back by a mirror that adds no header
        (b"AA,CC", C_TO_A, b"AA,CC,C"),
        (b"", A_TO_B, b"A"),
        (None, A_TO_B, b"A"),
    ],
)
def test_record_that_has_passed_through_a_cluster_is_dropped(
    chain: bytes | None, provenance: ProvenanceHeader, arrives: bytes | None
) -> None:
    body = provenance.carry(with_chain(chain))
    assert body == (None if arrives is None else with_chain(arrives))


def test_header_name_inside_a_value_is_no_header() -> None:
    body = A_TO_B.carry(write_body(RecordBody(None, HEADER + b"B")))
    assert body is not None
    assert read_body(body).headers == ((HEADER, b"A"),)


@pytest.mark.parametrize("body", [b"", b"\x14key", b"\x06key\x14"])
def test_fields_longer_than_the_record_are_corrupt(body: bytes) -> None:
    with pytest.raises(CorruptBatchError, match="do not fit"):
        A_TO_B.carry(body)


def test_a_batch_keeps_its_offsets() -> None:
    name = HEADER.decode()
    records = [
        Rec(0, NOW_MS, b"a"),
        Rec(2, NOW_MS + 5, b"b", None, ((name, b"B"),)),
        Rec(7, NOW_MS + 3, b"c"),
    ]
    (batch,) = arriving(encode(records, codec=3, base_offset=40, last_offset_delta=9))
    assert (batch.header.base_offset, batch.header.last_offset, batch.header.record_count) == (40, 49, 2)
    assert [record[:4] for record in decode(batch.data)] == [
        (40, NOW_MS, b"a", b"value"),
        (47, NOW_MS + 3, b"c", b"value"),
    ]
    assert arriving(encode([Rec(0, headers=((name, b"A"),))])) == []
