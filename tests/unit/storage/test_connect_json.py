"""JSON of maps equals that of the JsonConverter of Kafka Connect 4.3.1."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.errors import MalformedRecordError
from sparkmirror.storage.connect_json import in_hash_order, java_text, read_json, write_json

_THE_OTHERS = b'"key-5":5,"key-4":4,"key-3":3,"key-2":2,"key-9":9,"key-8":8,"key-7":7,"key-6":6'
CAPTURED = [
    ('{"topic":"t","partition":0,"cluster":"A"}', b'{"cluster":"A","partition":0,"topic":"t"}'),
    ('{"group":"g","topic":"t","partition":0}', b'{"partition":0,"topic":"t","group":"g"}'),
    (
        '{"targetClusterAlias":"B","sourceClusterAlias":"A"}',
        b'{"sourceClusterAlias":"A","targetClusterAlias":"B"}',
    ),
    (
        '{"offset": 1, "extra": 1.0, "more": null, "yes": true}',
        b'{"offset":1,"more":null,"yes":true,"extra":1.0}',
    ),
    # one hash: as they were put in
    ('{"AaAa":1,"BBBB":2,"AaBB":3,"":4}', b'{"":4,"AaAa":1,"BBBB":2,"AaBB":3}'),
    ('{"BBBB":1,"AaAa":2}', b'{"BBBB":1,"AaAa":2}'),
    # twelve keys fit into the first table, thirteen don't
    (
        json.dumps({f"key-{number}": number for number in range(12)}),
        b'{"key-1":1,"key-10":10,"key-0":0,"key-11":11,%b}' % _THE_OTHERS,
    ),
    (
        json.dumps({f"key-{number}": number for number in range(13)}),
        b'{"key-1":1,"key-10":10,"key-0":0,"key-12":12,"key-11":11,%b}' % _THE_OTHERS,
    ),
    (
        '{"a":1e7,"b":0.001,"c":9.99e-4,"d":-123456.75,"f":-0.0,"g":1.7976931348623157e308}',
        b'{"a":1.0E7,"b":0.001,"c":9.99E-4,"d":-123456.75,"f":0.0,"g":1.7976931348623157E308}',
    ),
    ('{"\\u001f\\ud83d\\ude00":"\\u2028\\"/"}', '{"\\u001F\\uD83D\\uDE00":"\u2028\\"/"}'.encode()),
]
KEYS = st.text(max_size=8)
VALUES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8)


@pytest.mark.parametrize(("read", "written"), CAPTURED)
def test_maps_are_written_as_java_does(read: str, written: bytes) -> None:
    fields = read_json(read.encode())
    assert isinstance(fields, dict)
    assert write_json(in_hash_order(fields)) == written


@given(st.dictionaries(KEYS, VALUES, max_size=40))
def test_order_and_escapes_keep_the_value(fields: dict[str, object]) -> None:
    ordered = in_hash_order(fields)
    assert ordered == fields
    assert in_hash_order(ordered) == ordered
    assert list(in_hash_order(ordered)) == list(ordered)
    assert read_json(write_json(["name", ordered])) == ["name", fields]


@given(st.text(st.characters(categories=["Cs"]) | st.characters(), max_size=5))
def test_half_a_surrogate_pair_is_escaped(text: str) -> None:
    assert read_json(write_json(text)) == json.loads(json.dumps(text))


@pytest.mark.parametrize("nothing", [None, b"", b"  \n", b"null"])
def test_nothing_is_null(nothing: bytes | None) -> None:
    assert read_json(nothing) is None


@pytest.mark.parametrize("data", [b"{", b"\xff", b"NaN", b"Infinity", b"x", b"[" * 200_000])
def test_what_is_no_json_is_said(data: bytes) -> None:
    with pytest.raises(MalformedRecordError, match="no JSON"):
        read_json(data)


def test_maps_are_named_as_java_does() -> None:
    fields = {"cluster": "A", "partition": 0, "none": None, "is": True, "many": 1e7, "list": [1, "x"]}
    assert java_text(fields) == "{cluster=A, partition=0, none=null, is=true, many=1.0E7, list=[1, x]}"
