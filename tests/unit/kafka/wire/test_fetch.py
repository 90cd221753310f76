"""Fetch requests and responses equal those of kafka-python; fetch sessions follow KIP-227."""

import struct
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchRequest as TheirRequest
from kafka.protocol.consumer import FetchResponse as TheirResponse

from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.wire.fetch import (
    VERSION_HIGH,
    VERSION_LOW,
    FetchedPartition,
    FetchPosition,
    FetchSession,
    decode_fetch_response,
    next_epoch,
)

SETTINGS = ConsumerSettings(
    ConnectionSettings((("localhost", 9092),), client_id="me"),
    fetch_bytes_max=5_000_000,
    fetch_bytes_min=7,
    fetch_wait_max_s=0.25,
    read_committed=True,
    client_rack="rack-1",
)
VERSIONS = range(VERSION_LOW, VERSION_HIGH + 1)
A0, A1, B5 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("ключ", 5)
IDS = {"a": UUID(int=10), "ключ": UUID(int=11)}
TOPICS = {topic_id.bytes: topic for topic, topic_id in IDS.items()}
LARGE = 1 << 30

FetchTopic = TheirRequest.FetchTopic
Topic = TheirResponse.FetchableTopicResponse
Partition = Topic.PartitionData


def frame_of(session: FetchSession, version: int = 12, bytes_max: int = LARGE) -> bytes:
    return b"".join(session.request(SETTINGS, version, 77, bytes_max))


def read(frame: bytes, version: int = 12) -> Any:
    return TheirRequest.decode(frame, version=version, header=True, framed=True)


def wanted(frame: bytes) -> dict[TopicPartition, tuple[int, int, int]]:
    return {
        TopicPartition(topic.topic, partition.partition): (
            partition.fetch_offset,
            partition.current_leader_epoch,
            partition.partition_max_bytes,
        )
        for topic in read(frame).topics
        for partition in topic.partitions
    }


def forgotten(frame: bytes) -> set[TopicPartition]:
    return {
        TopicPartition(topic.topic, partition)
        for topic in read(frame).forgotten_topics_data
        for partition in topic.partitions
    }


def session_ids(frame: bytes) -> tuple[int, int]:
    request = read(frame)
    return request.session_id, request.session_epoch


def session_of(*partitions: TopicPartition) -> FetchSession:
    session = FetchSession()
    for partition in partitions:
        session.want(partition, position_of(partition))
    return session


def position_of(partition: TopicPartition, offset: int = 10, read_epoch: int = -1) -> FetchPosition:
    return FetchPosition(offset, 3, 1000, read_epoch, IDS[partition.topic].bytes)


def name_of(topic: Any) -> str:
    """By its name or, from version 13 on, its id."""
    return topic.topic or TOPICS[topic.topic_id.bytes]


# requests


@pytest.mark.parametrize("version", VERSIONS)
def test_a_full_request_is_byte_for_byte_theirs(version: int) -> None:
    session = FetchSession()
    session.want(A1, position_of(A1, 1 << 40, read_epoch=2))
    theirs = TheirRequest(
        replica_id=-1,
        max_wait_ms=250,
        min_bytes=7,
        max_bytes=5_000_000,
        isolation_level=1,
        session_id=0,
        session_epoch=0,
        topics=[_their_topic("a", 1, 1 << 40)],
        forgotten_topics_data=[],
        rack_id="rack-1",
    )
    theirs.API_VERSION = version
    theirs.with_header(correlation_id=77, client_id="me")
    assert frame_of(session, version) == bytes(theirs.encode(version=version, header=True, framed=True))


def _their_topic(topic: str, partition: int, offset: int) -> Any:
    fields = {"current_leader_epoch": 3, "last_fetched_epoch": 2, "log_start_offset": -1}
    position = FetchTopic.FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=1000, **fields
    )
    return FetchTopic(topic=topic, topic_id=IDS[topic], partitions=[position])


def test_a_topic_of_another_id_is_another_topic() -> None:
    session = session_of(A0)
    frame_of(session, 13)
    session.accept(9)
    session.want(A0, position_of(A0)._replace(topic_id=UUID(int=99).bytes))
    request = read(frame_of(session, 13), 13)
    assert [topic.topic_id for topic in request.topics] == [UUID(int=99)]
    assert [topic.topic_id for topic in request.forgotten_topics_data] == [IDS["a"]]


@pytest.mark.parametrize("version", VERSIONS)
def test_several_topics_and_forgotten_ones(version: int) -> None:
    session = session_of(A0, A1, B5)
    frame_of(session, version)
    session.accept(9)
    session.drop(A0)
    session.drop(B5)
    session.want(A1, position_of(A1, 11))
    request = read(frame_of(session, version), version)
    assert [(name_of(topic), [p.partition for p in topic.partitions]) for topic in request.topics] == [
        ("a", [1])
    ]
    dropped = {name_of(topic): topic.partitions for topic in request.forgotten_topics_data}
    assert dropped == {"a": [0], "ключ": [5]}


def test_no_more_bytes_are_asked_for_than_may_be_taken() -> None:
    assert read(frame_of(session_of(A0), bytes_max=1234)).max_bytes == 1234
    assert read(frame_of(session_of(A0), bytes_max=LARGE)).max_bytes == 5_000_000


# sessions


def test_the_first_request_names_everything_and_the_next_only_changes() -> None:
    session = session_of(A0, A1)
    first = frame_of(session)
    assert session_ids(first) == (0, 0)
    assert wanted(first).keys() == {A0, A1}
    session.accept(55)
    session.want(A1, position_of(A1, 20))
    second = frame_of(session)
    assert session_ids(second) == (55, 1)
    assert wanted(second) == {A1: (20, 3, 1000)}
    session.accept(55)
    third = frame_of(session)
    assert session_ids(third) == (55, 2)
    assert wanted(third) == {}


def test_wanting_the_same_again_is_no_change() -> None:
    session = session_of(A0)
    frame_of(session)
    session.accept(55)
    session.want(A0, position_of(A0))
    assert wanted(frame_of(session)) == {}


def test_another_leader_epoch_is_a_change() -> None:
    session = session_of(A0)
    frame_of(session)
    session.accept(55)
    session.want(A0, position_of(A0)._replace(leader_epoch=4))
    assert wanted(frame_of(session)) == {A0: (10, 4, 1000)}


def test_what_is_dropped_is_forgotten_once() -> None:
    session = session_of(A0, A1)
    frame_of(session)
    session.accept(55)
    session.drop(A0)
    assert A0 not in session
    assert len(session) == 1
    assert forgotten(frame_of(session)) == {A0}
    session.accept(55)
    assert forgotten(frame_of(session)) == set()


def test_dropped_and_wanted_again_is_only_a_change() -> None:
    session = session_of(A0, A1)
    frame_of(session)
    session.accept(55)
    session.drop(A0)
    session.want(A0, position_of(A0))
    frame = frame_of(session)
    assert (wanted(frame), forgotten(frame)) == ({A0: (10, 3, 1000)}, set())


def test_nothing_is_forgotten_that_was_never_told() -> None:
    session = session_of(A0, A1)
    session.drop(A0)
    assert forgotten(frame_of(session)) == set()


def test_after_a_reset_everything_is_told_again() -> None:
    session = session_of(A0, A1)
    frame_of(session)
    session.accept(55)
    session.drop(A1)
    session.reset()
    frame = frame_of(session)
    assert session_ids(frame) == (0, 0)
    assert wanted(frame).keys() == {A0}
    assert forgotten(frame) == set()


def test_a_broker_without_room_for_sessions_gets_full_requests() -> None:
    session = session_of(A0)
    for _ in range(3):
        frame = frame_of(session)
        assert session_ids(frame) == (0, 0)
        assert wanted(frame).keys() == {A0}
        session.accept(0)


def test_the_epoch_wraps_to_one() -> None:
    assert [next_epoch(epoch) for epoch in (0, 1, 2**31 - 2, 2**31 - 1)] == [1, 2, 2**31 - 1, 1]


class SessionModel:
    """The broker's knowledge, from nothing but the requests."""

    def __init__(self) -> None:
        self.held: dict[TopicPartition, int] = {}
        self.epoch = 0

    def take(self, frame: bytes) -> None:
        _, epoch = session_ids(frame)
        if epoch == 0:
            self.held.clear()
        else:
            assert epoch == self.epoch
        self.epoch = epoch + 1
        for partition in forgotten(frame):
            self.held.pop(partition, None)  # as FetchSession.update does
        self.held.update({partition: offset for partition, (offset, _, _) in wanted(frame).items()})


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("want"), st.sampled_from([A0, A1, B5]), st.integers(0, 5)),
            st.tuples(st.just("drop"), st.sampled_from([A0, A1, B5]), st.just(0)),
            st.tuples(st.sampled_from(["send", "lose"]), st.just(A0), st.just(0)),
        ),
        max_size=40,
    )
)
def test_the_broker_always_believes_what_is_wanted(
    steps: Sequence[tuple[str, TopicPartition, int]],
) -> None:
    session, broker, expected = FetchSession(), SessionModel(), dict[TopicPartition, int]()
    for step, partition, offset in [*steps, ("send", A0, 0)]:
        if step == "want":
            session.want(partition, FetchPosition(offset, 0, 1))
            expected[partition] = offset
        elif step == "drop":
            session.drop(partition)
            expected.pop(partition, None)
        elif step == "lose":
            session.reset()
        else:
            broker.take(frame_of(session))
            assert broker.held == expected
            session.accept(9)


# responses


def their_partition(number: int, records: bytes | None, **fields: Any) -> Any:
    values = {
        "error_code": 0,
        "high_watermark": 1 << 40,
        "last_stable_offset": 99,
        "log_start_offset": 3,
        "aborted_transactions": None,
        "preferred_read_replica": -1,
        "records": records,
    }
    return Partition(partition_index=number, **{**values, **fields})


def response_frame(
    version: int, *topics: Any, throttle_ms: int = 0, error: int = 0, session_id: int = 5
) -> bytes:
    response = TheirResponse(
        throttle_time_ms=throttle_ms, error_code=error, session_id=session_id, responses=list(topics)
    )
    header = struct.pack(">i", 77) + (b"\x00" if version >= 12 else b"")
    return header + bytes(response.encode(version=version))


def decoded(frame: bytes, version: int) -> Any:
    return decode_fetch_response(memoryview(frame), version, 77, TOPICS)


def their_topic(topic: str, *partitions: Any) -> Any:
    return Topic(topic=topic, topic_id=IDS[topic], partitions=list(partitions))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_reads_as_they_wrote_it(version: int) -> None:
    aborted = [Partition.AbortedTransaction(producer_id=4, first_offset=1 << 33)] * 2
    frame = response_frame(
        version,
        their_topic("a", their_partition(0, b"abc"), their_partition(1, None, error_code=1)),
        their_topic("ключ", their_partition(5, b"", aborted_transactions=aborted)),
        throttle_ms=1500,
    )
    response = decoded(frame, version)
    assert (response.throttle_s, response.error, response.session_id) == (1.5, 0, 5)
    both = [(4, 1 << 33)] * 2
    assert response.partitions == [
        FetchedPartition(A0, 0, 1 << 40, 99, 3, [], -1, memoryview(b"abc")),
        FetchedPartition(A1, 1, 1 << 40, 99, 3, [], -1, memoryview(b"")),
        FetchedPartition(B5, 0, 1 << 40, 99, 3, both, -1, memoryview(b"")),
    ]


@pytest.mark.parametrize("version", [11, 12, 13])
def test_the_broker_may_prefer_a_follower(version: int) -> None:
    topic = their_topic("a", their_partition(0, None, preferred_read_replica=2))
    (partition,) = decoded(response_frame(version, topic), version).partitions
    assert partition.preferred_read_replica == 2


@pytest.mark.parametrize("version", VERSIONS)
def test_an_error_of_the_whole_request(version: int) -> None:
    response = decoded(response_frame(version, error=71, session_id=0), version)
    assert (response.error, response.session_id, response.partitions) == (71, 0, [])


def test_tagged_fields_are_skipped_but_for_where_a_log_diverges() -> None:
    """Version 12 tags a diverging epoch, a current leader and a snapshot."""
    tagged = their_partition(
        0,
        b"abc",
        diverging_epoch=Partition.EpochEndOffset(epoch=3, end_offset=9),
        current_leader=Partition.LeaderIdAndEpoch(leader_id=2, leader_epoch=8),
    )
    frame = response_frame(12, Topic(topic="a", partitions=[tagged, their_partition(1, b"de")]))
    partitions = decoded(frame, 12).partitions
    assert [bytes(partition.records) for partition in partitions] == [b"abc", b"de"]
    assert [(found.diverged_at, found.diverging_epoch) for found in partitions] == [(9, 3), (None, -1)]


def test_records_are_a_writable_view_of_the_frame() -> None:
    frame = bytearray(response_frame(12, Topic(topic="a", partitions=[their_partition(0, b"abc")])))
    (partition,) = decode_fetch_response(memoryview(frame), 12, 77).partitions
    partition.records[0] = ord("X")
    assert b"Xbc" in frame


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_to_something_else_breaks_the_connection(version: int) -> None:
    frame = response_frame(version)
    with pytest.raises(DisconnectedError, match="out of order"):
        decode_fetch_response(memoryview(frame), version, 78)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_that_ends_early_breaks_the_connection(version: int) -> None:
    frame = response_frame(version, their_topic("a", their_partition(0, b"")))
    for size in range(len(frame) - (4 if version < 12 else 1)):
        with pytest.raises(DisconnectedError):
            decoded(frame[:size], version)
