"""Batch headers compared with kafka-python's, the table of batch actions, and stamping."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from sparkmirror.batches.record_batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchAction,
    BatchHeader,
    OutgoingBatch,
    choose_action,
    has_valid_crc,
    iterate_batches,
    rewrite_header,
)
from sparkmirror.domain.errors import CorruptBatchError
from tests.support.batches import NOW_MS, Rec, decode, encode, fetched, joined, patch

DELETE_HORIZON = 0x40
THREE = [Rec(delta, NOW_MS + 10 * delta, b"k%d" % delta, b"v%d" % delta) for delta in range(3)]


def header_of(**fields: int) -> BatchHeader:
    return fetched(patch(encode(THREE), **fields)).header


def test_header_fields_equal_those_read_by_kafka_python() -> None:
    data = encode(THREE, base_offset=70, leader_epoch=9, producer_id=12, producer_epoch=3, base_sequence=44)
    header = fetched(data).header
    theirs: Any = DefaultRecordBatch(data)
    assert header == BatchHeader(
        base_offset=theirs.base_offset,
        length=theirs.size_in_bytes - 12,
        leader_epoch=theirs.leader_epoch,
        magic=theirs.magic,
        crc=theirs.crc,
        attributes=theirs.attributes,
        last_offset_delta=theirs.last_offset_delta,
        base_timestamp=theirs.first_timestamp,
        max_timestamp=theirs.max_timestamp,
        producer_id=theirs.producer_id,
        producer_epoch=theirs.producer_epoch,
        base_sequence=theirs.base_sequence,
        record_count=theirs.records_count,
    )
    assert header.last_offset == 72
    assert header.is_contiguous


def test_header_has_kafkas_layout() -> None:
    """Check the header of a one-record batch byte by byte."""
    data = encode([Rec(0, 0x0102030405)], base_offset=5, leader_epoch=7)
    expected = (
        struct.pack(">qiib", 5, len(data) - 12, 7, 2),
        struct.pack(">hiqqqhii", 0, 0, 0x0102030405, 0x0102030405, -1, -1, -1, 1),
    )
    assert (bytes(data[:17]), bytes(data[21:HEADER_BYTES])) == expected


@pytest.mark.parametrize("attributes", [0, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON, 0x7FF8])
def test_stamping_clears_all_attributes_except_the_codec(attributes: int) -> None:
    data = encode(THREE, codec=1)
    patch(data, attributes=1 | attributes, base_offset=99, leader_epoch=4)
    before = fetched(data)
    rewrite_header(before.data, 4711, 2, 1 << 30)
    after = fetched(bytearray(before.data))
    assert has_valid_crc(after)
    assert after.header.attributes == 1
    assert (after.header.base_offset, after.header.leader_epoch) == (0, -1)
    assert after.header[-4:] == (4711, 2, 1 << 30, 3)
    assert after.data[HEADER_BYTES:] == data[HEADER_BYTES:]
    assert after.header[6:9] == before.header[6:9]


@given(
    producer_id=st.integers(-1, 2**63 - 1),
    epoch=st.integers(-1, 2**15 - 1),
    sequence=st.integers(-1, 2**31 - 1),
    offset=st.integers(0, 2**62),
)
def test_stamped_batch_is_readable_by_kafka_python(
    producer_id: int, epoch: int, sequence: int, offset: int
) -> None:
    data = encode(THREE, base_offset=offset)
    rewrite_header(memoryview(data), producer_id, epoch, sequence)
    assert decode(data) == THREE
    theirs: Any = DefaultRecordBatch(data)
    assert (theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (producer_id, epoch, sequence)


def test_second_stamp_replaces_the_first() -> None:
    once, twice = memoryview(encode(THREE, base_offset=8)), memoryview(encode(THREE, base_offset=8))
    rewrite_header(once, 1, 2, 3)
    rewrite_header(twice, 9, 9, 9)
    rewrite_header(twice, 1, 2, 3)
    assert once == twice


def test_a_flipped_bit_breaks_the_crc() -> None:
    data = encode(THREE)
    assert has_valid_crc(fetched(data))
    for at in (21, 40, HEADER_BYTES, len(data) - 1):
        broken = bytearray(data)
        broken[at] ^= 0x10
        assert not has_valid_crc(fetched(broken))


def test_every_complete_batch_of_a_response_is_found() -> None:
    batches = [encode(THREE, base_offset=3 * number) for number in range(4)]
    found = list(iterate_batches(joined(batches)))
    assert [bytes(batch.data) for batch in found] == [bytes(batch) for batch in batches]
    assert [batch.header.base_offset for batch in found] == [0, 3, 6, 9]


def test_incomplete_batch_at_the_end_is_ignored() -> None:
    whole, cut = encode(THREE), encode(THREE, base_offset=3)
    for size in range(len(cut)):
        assert len(list(iterate_batches(joined([whole, cut[:size]])))) == 1


def test_an_empty_response_has_no_batches() -> None:
    assert list(iterate_batches(memoryview(b""))) == []


@pytest.mark.parametrize("magic", [0, 1, 3])
def test_error_of_another_format_has_the_offset(magic: int) -> None:
    data = joined([encode(THREE), patch(encode(THREE), base_offset=33, magic=magic)])
    found = iterate_batches(data)
    assert next(found).header.base_offset == 0
    with pytest.raises(CorruptBatchError, match=rf"offset 33: record format v{magic} can't be copied.*v2"):
        next(found)


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48])
def test_impossible_batch_lengths_are_corrupt(length: int) -> None:
    with pytest.raises(CorruptBatchError, match=f"offset 6: batch length {length} is too small"):
        list(iterate_batches(joined([patch(encode(THREE), base_offset=6, length=length)])))


def test_batch_without_records_is_complete() -> None:
    """The cleaner keeps such batches to retain a producer's sequence."""
    (batch,) = iterate_batches(joined([patch(encode(THREE)[:HEADER_BYTES], length=49, record_count=0)]))
    assert batch.header.record_count == 0


LOGGED = {"attributes": LOG_APPEND_TIME}
MARKER = {"attributes": CONTROL | TRANSACTIONAL}
GAPS = {"record_count": 2}
EMPTIED = {"record_count": 0}
# A batch of offsets 100 to 102: how its header differs, the position, whether the target stamps, the action.
ACTIONS: dict[str, tuple[dict[str, int], int, bool, BatchAction]] = {
    "as it is": ({}, 100, False, BatchAction.FAST),
    "position in a gap before it": ({}, 90, False, BatchAction.FAST),
    "position inside": ({}, 101, False, BatchAction.REWRITE),
    "position on its last record": ({}, 102, False, BatchAction.REWRITE),
    "position right after it": ({}, 103, False, BatchAction.BEHIND),
    "gaps inside": (GAPS, 100, False, BatchAction.REWRITE),
    "gaps, position inside": (GAPS, 101, False, BatchAction.REWRITE),
    "emptied by compaction": (EMPTIED, 100, False, BatchAction.NOTHING_LEFT),
    "emptied, position inside": (EMPTIED, 101, False, BatchAction.NOTHING_LEFT),
    "a marker": (MARKER, 100, False, BatchAction.NOTHING_LEFT),
    "a marker behind": (MARKER, 103, False, BatchAction.BEHIND),
    "transactional": ({"attributes": TRANSACTIONAL}, 100, False, BatchAction.FAST),
    "compressed": ({"attributes": 4}, 100, False, BatchAction.FAST),
    "a delete horizon": ({"attributes": DELETE_HORIZON}, 100, False, BatchAction.FAST),
    "LogAppendTime to CreateTime": (LOGGED, 100, False, BatchAction.REWRITE),
    "LogAppendTime to LogAppendTime": (LOGGED, 100, True, BatchAction.FAST),
    "CreateTime to LogAppendTime": ({}, 100, True, BatchAction.FAST),
    "LogAppendTime to LogAppendTime, gaps": ({**LOGGED, **GAPS}, 100, True, BatchAction.REWRITE),
    "LogAppendTime to CreateTime, emptied": ({**LOGGED, **EMPTIED}, 100, False, BatchAction.NOTHING_LEFT),
}


@pytest.mark.parametrize("case", ACTIONS)
def test_batch_action_follows_from_header_and_position(case: str) -> None:
    fields, position, stamps, action = ACTIONS[case]
    header = header_of(base_offset=100, **fields)
    assert choose_action(header, position, target_stamps_append_time=stamps) is action


def test_codec_mask_covers_every_codec() -> None:
    assert [header_of(attributes=codec).attributes & CODEC_MASK for codec in range(5)] == [0, 1, 2, 3, 4]


def test_outgoing_batch_is_contiguous_without_missing_offsets() -> None:
    assert OutgoingBatch(memoryview(b""), range(5, 9), 0).is_contiguous
    assert OutgoingBatch(memoryview(b""), (5, 6, 7), 0).is_contiguous
    assert not OutgoingBatch(memoryview(b""), (5, 7, 8), 0).is_contiguous
