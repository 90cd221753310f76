"""Positions in the bytes that Connect looks up (JsonConverter of the source partition's map)."""

import pytest

from sparkmirror.domain.ids import Alias, ConnectorName, TopicPartition
from sparkmirror.storage.positions import Position, position_record


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
