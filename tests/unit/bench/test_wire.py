import struct

import pytest

from bench.errors import BenchError
from bench.wire import (
    Batch,
    batches_in,
    commit_errors,
    decode_fetched,
    decode_list_offsets,
    encode_commit,
    encode_list_offsets,
    encode_produce,
    produce_errors,
)


def stored_batch(base_offset: int, records: int, content: bytes = b"") -> bytes:
    rest = bytes(11) + struct.pack(">i", records - 1) + bytes(30) + struct.pack(">i", records) + content
    return struct.pack(">qi", base_offset, len(rest)) + rest


def test_batches_get_base_offset_0_and_keep_everything_else() -> None:
    stored = stored_batch(70, 3, b"abc")
    assert list(batches_in(stored)) == [Batch(bytes(8) + stored[8:], 3, 73)]


def test_transaction_marker_is_distinguished_from_records() -> None:
    data, marker = stored_batch(0, 2), bytearray(stored_batch(2, 1))
    marker[22] |= 0x20
    assert [batch.is_control for batch in batches_in(data + marker)] == [False, True]


def test_a_part_of_a_batch_at_the_end_is_left_out() -> None:
    whole, cut = stored_batch(0, 2), stored_batch(2, 5)
    for length in (5, 20, len(cut) - 1):
        assert [batch.next_offset for batch in batches_in(whole + cut[:length])] == [2]


def test_a_fetch_response_is_read_past_its_aborted_transactions() -> None:
    head = struct.pack(">iih1siihqqi", 0, 1, 1, b"t", 1, 0, 0, 9, 9, 1)
    fetched = decode_fetched(head + bytes(16) + struct.pack(">i3s", 3, b"abc"))
    assert (fetched.records, fetched.high_watermark) == (b"abc", 9)


def test_an_error_in_a_fetch_response_is_named() -> None:
    with pytest.raises(BenchError, match="error 3"):
        decode_fetched(struct.pack(">iih1siihqqii", 0, 1, 1, b"t", 1, 0, 3, -1, -1, 0, 0))


def test_list_offsets_there_and_back_in_whatever_order_the_broker_answers() -> None:
    assert len(encode_list_offsets("topic", 8)) == 4 + 4 + 2 + 5 + 4 + 8 * 12
    head = struct.pack(">ih1si", 1, 1, b"t", 2)
    first, second = struct.pack(">ihqq", 0, 0, -1, 5), struct.pack(">ihqq", 1, 0, -1, 7)
    assert decode_list_offsets(head + first + second) == [5, 7]
    assert decode_list_offsets(head + second + first) == [5, 7]


def test_a_partition_without_leader_is_an_error() -> None:
    with pytest.raises(BenchError, match=r"\[6\]"):
        decode_list_offsets(struct.pack(">ih1si", 1, 1, b"t", 1) + struct.pack(">ihqq", 0, 6, -1, -1))


def test_a_produce_request_keeps_batches_as_buffers_of_their_own() -> None:
    parts = encode_produce("t", {0: b"first", 5: b"second"})
    assert [parts[2], parts[4]] == [b"first", b"second"]


def test_produce_errors_are_the_codes_that_are_not_0() -> None:
    body = (
        struct.pack(">ih1si", 1, 1, b"t", 2)
        + struct.pack(">ihqq", 0, 0, 4, -1)
        + struct.pack(">ihqq", 1, 10, -1, -1)
    )
    assert produce_errors(body) == [10]


def test_commit_without_members_has_no_generation() -> None:
    head = b"\0\x01g" + b"\xff" * 4 + b"\0\0" + b"\xff" * 8
    offsets = b"\0\0\0\x01" + b"\0\x02ab" + b"\0\0\0\x02" + struct.pack(">iqhiqh", 0, 5, 0, 3, 7, 0)
    assert encode_commit("g", {"ab": {0: 5, 3: 7}}) == head + offsets


def test_the_errors_of_a_commit_are_those_of_any_partition() -> None:
    one = b"\0\x01a" + struct.pack(">iihih", 2, 0, 0, 1, 16)
    other = b"\0\x02bc" + struct.pack(">iih", 1, 0, 25)
    assert commit_errors(struct.pack(">i", 2) + one + other) == {16, 25}
