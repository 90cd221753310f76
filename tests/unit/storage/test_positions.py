"""Positions are encoded as by Connect; expected keys are from the JsonConverter of Kafka Connect 4.3.1."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.ids import Alias, ConnectorName, TopicPartition
from sparkmirror.storage.positions import (
    Position,
    SourcePartition,
    parse_source_position_key,
    parse_source_position_value,
    position_record,
    source_position_key,
    source_position_value,
)

CAPTURED = {
    "MirrorSourceConnector": rb'"MirrorSourceConnector"',
    "a/b <>&'": rb'''"a/b <>&'"''',
    'q"u\\o': rb'"q\"u\\o"',
    "\x00\x01\b\t\n\x0b\f\r\x1f\x7f": rb'"\u0000\u0001\b\t\n\u000B\f\r\u001F' + b'\x7f"',
    "\x80é\u2028\u2029": '"\x80é\u2028\u2029"'.encode(),
    "\U0001f600x": rb'"\uD83D\uDE00x"',
}


def test_key_and_value_of_a_position() -> None:
    source = SourcePartition("MirrorSourceConnector", "A", "orders", 12)
    assert source_position_key(source) == (
        b'["MirrorSourceConnector",{"cluster":"A","partition":12,"topic":"orders"}]'
    )
    assert source_position_value(123) == b'{"offset":123}'


@pytest.mark.parametrize(("text", "written"), CAPTURED.items())
def test_strings_are_escaped_as_java_does(text: str, written: bytes) -> None:
    key = source_position_key(SourcePartition(text, text, text, 3))
    assert key == b'[%b,{"cluster":%b,"partition":3,"topic":%b}]' % (written, written, written)


@given(st.builds(SourcePartition, st.text(), st.text(), st.text(), st.integers(0, 2**31 - 1)))
def test_keys_are_json_and_read_back(source: SourcePartition) -> None:
    key = source_position_key(source)
    where = {"cluster": source.cluster_alias, "partition": source.partition, "topic": source.topic}
    assert json.loads(key) == [source.connector, where]
    assert parse_source_position_key(key) == source


def test_a_key_is_read_in_any_order_of_fields() -> None:
    key = b'[ "m", {"topic": "t", "partition": 1, "cluster": "A"} ]'
    assert parse_source_position_key(key) == SourcePartition("m", "A", "t", 1)


@pytest.mark.parametrize(
    "key",
    [
        None,
        b"",
        b"\xff",
        b"not json",
        b"{}",
        b'["m"]',
        b'["m",{"cluster":"A","partition":1,"topic":"t"},3]',
        b'[1,{"cluster":"A","partition":1,"topic":"t"}]',
        b'["m",null]',
        b'["m",["cluster"]]',
        b'["m",{"cluster":"A","partition":"1","topic":"t"}]',
        b'["m",{"cluster":"A","partition":1.5,"topic":"t"}]',
        b'["m",{"cluster":"A","partition":true,"topic":"t"}]',
        b'["m",{"partition":0,"topic":"t","group":"g"}]',
        b'["m",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]',
    ],
)
def test_malformed_and_foreign_keys_are_none(key: bytes | None) -> None:
    assert parse_source_position_key(key) is None


@pytest.mark.parametrize(
    ("value", "offset"),
    [
        (b'{"offset":123}', 123),
        (b'{"offset": 0, "more": 1}', 0),
        (None, None),
        (b"", None),
        (b"null", None),
        (b"{}", None),
        (b"[5]", None),
        (b'{"offset":null}', None),
        (b'{"offset":"5"}', None),
        (b'{"offset":true}', None),
        (b'{"offset":-1}', None),
        (b"{", None),
    ],
)
def test_values(value: bytes | None, offset: int | None) -> None:
    assert parse_source_position_value(value) == offset


@pytest.mark.parametrize(
    ("topic", "partition", "offset", "key", "value"),
    [
        (
            "t",
            0,
            123,
            b'["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t"}]',
            b'{"offset":123}',
        ),
        (
            "B.orders_v1-x",
            2147483647,
            9223372036854775807,
            b'["MirrorSourceConnector",{"cluster":"A","partition":2147483647,"topic":"B.orders_v1-x"}]',
            b'{"offset":9223372036854775807}',
        ),
        (
            "t",
            1,
            0,
            b'["MirrorSourceConnector",{"cluster":"A","partition":1,"topic":"t"}]',
            b'{"offset":0}',
        ),
    ],
)
def test_a_position_has_the_bytes_of_connect(
    topic: str, partition: int, offset: int, key: bytes, value: bytes
) -> None:
    """Looked up by raw key bytes: the order of the fields is that of Java's HashMap."""
    record = position_record(
        ConnectorName("MirrorSourceConnector"), Alias("A"), TopicPartition(topic, partition), Position(offset)
    )
    assert (record.key, record.value) == (key, value)


def test_the_key_chooses_the_partition() -> None:
    record = position_record(ConnectorName("m"), Alias("A"), TopicPartition("t", 0), Position(1))
    assert record.partition is None
