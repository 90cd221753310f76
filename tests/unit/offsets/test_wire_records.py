"""Byte vectors computed from the layout of KIP-382's schemas."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.errors import MalformedRecordError
from sparkmirror.domain.ids import Alias, Flow, GroupId, TopicPartition
from sparkmirror.offsets.wire_records import Checkpoint, Heartbeat, OffsetSync

Record = OffsetSync | Checkpoint | Heartbeat

SYNC = OffsetSync(TopicPartition("topic-a", 3), 5, 7)
CHECKPOINT = Checkpoint(GroupId("g1"), TopicPartition("source1.topic-a", 3), 10, 8, "")
HEARTBEAT = Heartbeat(Flow(Alias("A"), Alias("B")), 1700000000000)

VECTORS: list[tuple[Record, str, str]] = [
    (SYNC, "0007746f7069632d6100000003", "00000000000000050000000000000007"),
    (
        CHECKPOINT,
        "00026731000f736f75726365312e746f7069632d6100000003",
        "0000000000000000000a00000000000000080000",
    ),
    (HEARTBEAT, "000141000142", "00000000018bcfe56800"),
]


@pytest.mark.parametrize(("record", "key", "value"), VECTORS)
def test_bytes_are_those_of_java(record: Record, key: str, value: str) -> None:
    assert record.encode_key().hex() == key
    assert record.encode_value().hex() == value
    assert type(record).decode(bytes.fromhex(key), bytes.fromhex(value)) == record


@pytest.mark.parametrize(("record", "key", "value"), VECTORS)
def test_bytes_after_the_last_field_are_ignored(record: Record, key: str, value: str) -> None:
    assert type(record).decode(bytes.fromhex(key) + b"x", bytes.fromhex(value) + b"yz") == record


@pytest.mark.parametrize(("record", "key", "value"), VECTORS)
def test_every_missing_byte_is_an_error(record: Record, key: str, value: str) -> None:
    whole_key, whole_value = bytes.fromhex(key), bytes.fromhex(value)
    for end in range(len(whole_key)):
        with pytest.raises(MalformedRecordError):
            type(record).decode(whole_key[:end], whole_value)
    for end in range(len(whole_value)):
        with pytest.raises(MalformedRecordError):
            type(record).decode(whole_key, whole_value[:end])


@pytest.mark.parametrize("record", [CHECKPOINT, HEARTBEAT])
def test_unknown_versions_are_read_as_version_0(record: Checkpoint | Heartbeat) -> None:
    value = b"\x00\x09" + record.encode_value()[2:]
    assert type(record).decode(record.encode_key(), value) == record


def test_a_null_string_is_an_error() -> None:
    with pytest.raises(MalformedRecordError):
        OffsetSync.decode(b"\xff\xff\x00\x00\x00\x00", SYNC.encode_value())


def test_a_string_beyond_kafkas_limit_is_an_error() -> None:
    with pytest.raises(MalformedRecordError, match="32768"):
        Checkpoint(GroupId("x" * 32768), TopicPartition("t", 0), 0, 0).encode_key()


def test_absent_metadata_is_written_as_the_empty_string() -> None:
    absent = replace(CHECKPOINT, metadata=None)
    assert absent.encode_value() == CHECKPOINT.encode_value()
    assert Checkpoint.decode(absent.encode_key(), absent.encode_value()).metadata == ""


TEXT = st.text(max_size=30)
PARTITION = st.builds(TopicPartition, TEXT, st.integers(-(2**31), 2**31 - 1))
OFFSET = st.integers(-(2**63), 2**63 - 1)
RECORDS = st.one_of(
    st.builds(OffsetSync, PARTITION, OFFSET, OFFSET),
    st.builds(Checkpoint, TEXT.map(GroupId), PARTITION, OFFSET, OFFSET, TEXT),
    st.builds(Heartbeat, st.builds(Flow, TEXT.map(Alias), TEXT.map(Alias)), OFFSET),
)


@given(RECORDS)
def test_encoded_records_are_decoded_unchanged(record: Record) -> None:
    assert type(record).decode(record.encode_key(), record.encode_value()) == record
