"""Produce in a transaction against kafka-python's protocol classes."""

import pytest
from kafka.protocol.producer import ProduceRequest as TheirRequest

from sparkmirror.domain.client_settings import ConnectionSettings, ProducerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.wire.produce import VERSION_ADDING_PARTITIONS, VERSION_LOW, encode_produce_request

SETTINGS = ProducerSettings(ConnectionSettings((("localhost", 9092),), client_id="me", request_timeout_s=2.5))


@pytest.mark.parametrize("version", range(VERSION_LOW, VERSION_ADDING_PARTITIONS + 1))
@pytest.mark.parametrize("transactional_id", ["connect-1", "ключ", None])
def test_a_request_is_byte_for_byte_theirs(version: int, transactional_id: str | None) -> None:
    data = TheirRequest.TopicProduceData
    partition = data.PartitionProduceData(index=3, records=b"x" * 200)
    theirs = TheirRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=2500,
        topic_data=[data(name="a", partition_data=[partition])],
    )
    theirs.API_VERSION = version
    theirs.with_header(correlation_id=77, client_id="me")
    ours = encode_produce_request(
        {TopicPartition("a", 3): memoryview(b"x" * 200)},
        SETTINGS,
        version,
        77,
        transactional_id=transactional_id,
    )
    assert b"".join(ours) == bytes(theirs.encode(version=version, header=True, framed=True))
