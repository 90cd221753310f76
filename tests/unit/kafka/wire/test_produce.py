"""Requests and responses against kafka-python's protocol classes."""

import struct
from dataclasses import replace
from typing import Any, Literal
from uuid import UUID

import pytest
from kafka.protocol.producer import ProduceRequest as TheirRequest
from kafka.protocol.producer import ProduceResponse as TheirResponse

from sparkmirror.domain.client_settings import ConnectionSettings, ProducerSettings
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.wire.produce import (
    VERSION_BY_ID,
    VERSION_HIGH,
    VERSION_LOW,
    ProducedPartition,
    decode_produce_response,
    encode_produce_request,
)

SETTINGS = ProducerSettings(ConnectionSettings((("localhost", 9092),), client_id="me", request_timeout_s=2.5))
VERSIONS = [*range(VERSION_LOW, VERSION_HIGH + 1), VERSION_BY_ID]
A0, A1, B5 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("ключ", 5)
IDS = {"a": UUID(int=10), "ключ": UUID(int=11)}
TOPICS = {topic_id.bytes: topic for topic, topic_id in IDS.items()}
BATCHES = {A0: memoryview(b"x" * 200), B5: memoryview(b"yy"), A1: memoryview(b"z" * 70)}

Topic = TheirResponse.TopicProduceResponse
Partition = Topic.PartitionProduceResponse


def encoded(
    batches: dict[TopicPartition, memoryview], version: int, settings: ProducerSettings = SETTINGS
) -> bytes:
    topic_ids = {partition: IDS[partition.topic].bytes for partition in batches}
    return b"".join(encode_produce_request(batches, settings, version, 77, topic_ids=topic_ids))


def their_topic(topic: str, *partitions: Any) -> Any:
    return Topic(name=topic, topic_id=IDS[topic], partition_responses=list(partitions))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_is_byte_for_byte_theirs(version: int) -> None:
    data = TheirRequest.TopicProduceData
    theirs = TheirRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=2500,
        topic_data=[
            data(
                name="a",
                topic_id=IDS["a"],
                partition_data=[
                    data.PartitionProduceData(index=0, records=b"x" * 200),
                    data.PartitionProduceData(index=1, records=b"z" * 70),
                ],
            ),
            data(
                name="ключ",
                topic_id=IDS["ключ"],
                partition_data=[data.PartitionProduceData(index=5, records=b"yy")],
            ),
        ],
    )
    theirs.API_VERSION = version
    theirs.with_header(correlation_id=77, client_id="me")
    assert encoded(BATCHES, version) == bytes(theirs.encode(version=version, header=True, framed=True))


def test_batches_are_sent_from_where_they_are() -> None:
    buffers = encode_produce_request(BATCHES, SETTINGS, 11, 77)
    assert [buffer for buffer in buffers if isinstance(buffer, memoryview)] == [
        BATCHES[A0],
        BATCHES[A1],
        BATCHES[B5],
    ]
    assert all(any(buffer is batch for buffer in buffers) for batch in BATCHES.values())


@pytest.mark.parametrize("acks", [-1, 1])
def test_acks_are_those_asked_for(acks: Literal[-1, 1]) -> None:
    frame = encoded(BATCHES, 9, replace(SETTINGS, acks=acks))
    assert TheirRequest.decode(frame, version=9, header=True, framed=True).acks == acks


def response_frame(version: int, *topics: Any, throttle_ms: int = 0) -> bytes:
    response = TheirResponse(responses=list(topics), throttle_time_ms=throttle_ms)
    header = struct.pack(">i", 77) + (b"\x00" if version >= 9 else b"")
    return header + bytes(response.encode(version=version))


def their_partition(number: int, **fields: Any) -> Any:
    values = {"error_code": 0, "base_offset": 1 << 40, "log_append_time_ms": -1, "log_start_offset": 0}
    return Partition(index=number, **{**values, "record_errors": [], "error_message": None, **fields})


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_reads_as_they_wrote_it(version: int) -> None:
    frame = response_frame(
        version,
        their_topic("a", their_partition(0), their_partition(1, error_code=10)),
        their_topic("ключ", their_partition(5, base_offset=0)),
        throttle_ms=2500,
    )
    response = decode_produce_response(memoryview(frame), version, 77, TOPICS)
    assert response.throttle_s == 2.5
    assert response.partitions == [
        ProducedPartition(A0, 0, 1 << 40, None),
        ProducedPartition(A1, 10, 1 << 40, None),
        ProducedPartition(B5, 0, 0, None),
    ]


@pytest.mark.parametrize("version", range(8, VERSION_HIGH + 1))
def test_the_brokers_own_words(version: int) -> None:
    per_record = Partition.BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message="no key")
    topic = Topic(
        name="a",
        partition_responses=[
            their_partition(0, error_code=87, record_errors=[per_record], error_message="invalid records"),
            their_partition(1, error_code=87, record_errors=[per_record]),
        ],
    )
    response = decode_produce_response(memoryview(response_frame(version, topic)), version, 77)
    assert [partition.message for partition in response.partitions] == ["invalid records", "no key"]


def test_tagged_fields_are_skipped() -> None:
    """Version 10 tags the current leader, and the addresses of leaders."""
    leader = Partition.LeaderIdAndEpoch(leader_id=2, leader_epoch=8)
    topic = Topic(
        name="a", partition_responses=[their_partition(0, current_leader=leader), their_partition(1)]
    )
    node = TheirResponse.NodeEndpoint(node_id=2, host="h", port=1, rack=None)
    response = TheirResponse(responses=[topic], throttle_time_ms=4, node_endpoints=[node])
    frame = struct.pack(">i", 77) + b"\x00" + bytes(response.encode(version=10))
    assert [p.partition for p in decode_produce_response(memoryview(frame), 10, 77).partitions] == [A0, A1]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_to_something_else_breaks_the_connection(version: int) -> None:
    with pytest.raises(DisconnectedError, match="out of order"):
        decode_produce_response(memoryview(response_frame(version)), version, 78)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_that_ends_early_breaks_the_connection(version: int) -> None:
    frame = response_frame(version, their_topic("a", their_partition(0)))
    for size in range(len(frame) - 1):
        with pytest.raises(DisconnectedError):
            decode_produce_response(memoryview(frame[:size]), version, 77, TOPICS)
