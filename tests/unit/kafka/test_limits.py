"""Each limit of a type in requests and responses: what is just below it, at it, and above it."""

import struct
import uuid
from collections.abc import Sequence

import pytest
from kafka.protocol.metadata import MetadataResponse

from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings, ProducerSettings
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.admin.topic_listing import TopicLister
from sparkmirror.kafka.net.channel import Channel
from sparkmirror.kafka.wire import primitives as wire
from sparkmirror.kafka.wire.fetch import FetchPosition, encode_fetch_request, next_epoch
from sparkmirror.kafka.wire.primitives import Reader
from sparkmirror.kafka.wire.produce import encode_produce_request
from tests.support.canned_responses import CannedConnection, cluster_of

INT16_MAX, INT32_MAX, INT64_MAX = 2**15 - 1, 2**31 - 1, 2**63 - 1
BROKERS = (("b", 9092),)


def reader(data: bytes, *, flexible: bool = True) -> Reader:
    return Reader(memoryview(data), flexible=flexible)


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16382, 16383, 16384, INT16_MAX])
@pytest.mark.parametrize("compact", [True, False])
def test_strings_around_each_width_of_their_length_come_back(size: int, *, compact: bool) -> None:
    text = "x" * size
    data = wire.string(text, compact=compact)
    read = reader(data + b"next", flexible=compact)
    assert (read.string(), read.at) == (text, len(data))


def test_a_string_of_more_than_16_bits_is_not_cut() -> None:
    with pytest.raises(struct.error):
        wire.string("x" * (INT16_MAX + 1), compact=False)
    assert reader(wire.string("x" * (INT16_MAX + 1), compact=True)).string() == "x" * (INT16_MAX + 1)
    assert len(wire.string("é" * (INT16_MAX // 2), compact=False)) == 2 + INT16_MAX - 1, "bytes count"
    with pytest.raises(struct.error):
        wire.string("é" * (INT16_MAX // 2 + 1), compact=False)


@pytest.mark.parametrize("count", [-1, 0, 126, 127, 128, 16382, 16383, INT32_MAX - 1, INT32_MAX])
@pytest.mark.parametrize("compact", [True, False])
def test_sizes_of_arrays_come_back(count: int, *, compact: bool) -> None:
    data = wire.array_size(count, compact=compact)
    assert reader(data, flexible=compact).array_size() == count


def test_no_size_of_an_array_is_cut() -> None:
    with pytest.raises(struct.error):
        wire.array_size(INT32_MAX + 1, compact=False)


@pytest.mark.parametrize("size", range(1, 6))
def test_an_unsigned_varint_grows_by_a_byte_behind_each_7_bits(size: int) -> None:
    last = 2 ** (7 * size) - 1
    assert len(wire.unsigned_varint(last)) == size
    assert reader(wire.unsigned_varint(last)).unsigned_varint() == last
    assert len(wire.unsigned_varint(last + 1)) == size + 1


def test_an_unsigned_varint_has_5_bytes_at_most() -> None:
    assert reader(b"\x80\x80\x80\x80\x00").unsigned_varint() == 0
    with pytest.raises(ValueError, match="more than 5 bytes"):
        reader(b"\x80\x80\x80\x80\x80\x00").unsigned_varint()


@pytest.mark.parametrize(
    ("epoch", "following"), [(0, 1), (INT32_MAX - 1, INT32_MAX), (INT32_MAX, 1)], ids=str
)
def test_the_epoch_of_a_fetch_session_is_never_0_again(epoch: int, following: int) -> None:
    """0 would ask for a new session."""
    assert next_epoch(epoch) == following


@pytest.mark.parametrize("version", [11, 12, 13])
@pytest.mark.parametrize("offset", [0, INT32_MAX, INT32_MAX + 1, INT64_MAX])
def test_the_largest_offsets_are_asked_for(version: int, offset: int) -> None:
    position = FetchPosition(offset, INT32_MAX, INT32_MAX, INT32_MAX, uuid.UUID(int=1).bytes)
    settings = ConsumerSettings(ConnectionSettings(BROKERS))
    frame = encode_fetch_request({TopicPartition("t", INT32_MAX): position}, settings, version, 1, INT32_MAX)
    asked = struct.pack(">iiq", INT32_MAX, INT32_MAX, offset)
    assert asked in b"".join(frame)


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("size", [126, 127, 128, 16382, 16383, 16384])
def test_batches_around_each_width_of_their_size_are_framed(version: int, size: int) -> None:
    settings = ProducerSettings(ConnectionSettings(BROKERS))
    batch = memoryview(bytes(size))
    buffers = encode_produce_request({TopicPartition("t", 0): batch}, settings, version, 1)
    frame = b"".join(bytes(part) for part in buffers)
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    length = wire.unsigned_varint(size + 1) if version >= 9 else struct.pack(">i", size)
    assert struct.pack(">i", 0) + length + batch in frame


@pytest.mark.parametrize("timeout_ms", [1, INT32_MAX - 1, INT32_MAX])
def test_the_longest_timeout_is_sent(timeout_ms: int) -> None:
    settings = ProducerSettings(ConnectionSettings(BROKERS, request_timeout_s=timeout_ms / 1000))
    buffers = encode_produce_request({TopicPartition("t", 0): memoryview(b"x")}, settings, 9, 1)
    assert struct.pack(">hi", settings.acks, int(settings.followers_timeout_s * 1000)) in bytes(buffers[1])


Topic = MetadataResponse.MetadataResponseTopic


@pytest.mark.parametrize("version", [7, 8, 9, 10, 12])
@pytest.mark.parametrize("size", [1, 125, 126, 127, 128, 248, 249])
@pytest.mark.parametrize("partitions", [0, 1, 125, 126, 127, 128])
def test_topics_around_each_width_of_their_sizes_are_listed(version: int, size: int, partitions: int) -> None:
    each = [
        Topic.MetadataResponsePartition(
            error_code=0,
            partition_index=at,
            leader_id=1,
            leader_epoch=7,
            replica_nodes=[1],
            isr_nodes=[1],
            offline_replicas=[],
        )
        for at in range(partitions)
    ]
    names = ["x" * size, "y"]
    response = MetadataResponse(
        brokers=[],
        cluster_id="id",
        controller_id=1,
        topics=[
            Topic(error_code=0, name=name, topic_id=uuid.UUID(int=1), is_internal=False, partitions=each)
            for name in names
        ],
    )
    data = bytes(response.encode(version=version))
    cluster = cluster_of(CannedConnection([data], version, flexible=version >= 9))
    assert TopicLister(cluster).read().counts == dict.fromkeys(names, partitions)


class Announcing:
    """A transport on which a size arrives, and then nothing."""

    def __init__(self, *sizes: bytes) -> None:
        self._arriving = bytearray(b"".join(sizes))

    def fileno(self) -> int:
        return -1

    def close(self) -> None: ...

    def set_timeout(self, timeout_s: float | None) -> None: ...

    def send(self, buffers: Sequence[bytes | memoryview]) -> int:
        return sum(map(len, buffers))

    def receive_into(self, into: memoryview) -> int | None:
        some = self._arriving[: len(into)]
        del self._arriving[: len(some)]
        into[: len(some)] = some
        return len(some) or None


@pytest.mark.parametrize(
    ("size", "is_taken"), [(-1, False), (0, False), (1, True), (1 << 20, True), ((1 << 20) + 1, False)]
)
def test_the_first_answer_is_no_larger_than_a_brokers(size: int, *, is_taken: bool) -> None:
    channel = Channel(Announcing(struct.pack(">i", size)), "b:9092")
    if is_taken:
        assert list(channel.receive()) == []
        return
    with pytest.raises(DisconnectedError, match=f"an answer of {size} bytes"):
        list(channel.receive())


@pytest.mark.parametrize(("size", "is_taken"), [((1 << 20) + 1, True), ((1 << 30) + 1, False)])
def test_later_answers_may_be_larger(size: int, *, is_taken: bool) -> None:
    first = struct.pack(">i", 1) + b"x"
    frames = Channel(Announcing(first, struct.pack(">i", size)), "b:9092").receive()
    assert bytes(next(frames)) == b"x"
    if is_taken:
        assert list(frames) == []
        return
    with pytest.raises(DisconnectedError, match=f"an answer of {size} bytes"):
        list(frames)
