"""Responses of any bytes: decoding ends, with the error that a broken connection has."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.kafka.fetch import decode_fetch_response
from sparkmirror.kafka.produce import decode_produce_response
from sparkmirror.kafka.topic_listing import decode_topics
from sparkmirror.kafka.wire import UNREADABLE, Reader

Decode = Callable[[memoryview, int, int], object]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_numbers_of_up_to_5_bytes_are_read(size: int) -> None:
    data = memoryview(b"\xff" * (size - 1) + b"\x01")
    assert Reader(data, flexible=True).unsigned_varint() == (1 << 7 * (size - 1)) + (1 << 7 * (size - 1)) - 1


def test_a_number_ends_after_5_bytes() -> None:
    endless = b"\xff" * 100
    with pytest.raises(ValueError, match="more than 5 bytes"):
        Reader(memoryview(endless), flexible=True).unsigned_varint()
    with pytest.raises(ValueError, match="more than 5 bytes"):
        list(decode_topics(endless, 12))


@pytest.mark.parametrize("decode", [decode_fetch_response, decode_produce_response])
@pytest.mark.parametrize("version", [4, 9, 12, 13])
@given(data=st.binary(max_size=300))
@example(data=b"\0" * 12 + b"\xff" * 9 + b"\x01" + b"\0" * 40)
def test_any_bytes_are_a_response_or_a_broken_connection(decode: Decode, version: int, data: bytes) -> None:
    with suppress(DisconnectedError):
        decode(memoryview(b"\0\0\0\7" + data), version, 7)


@pytest.mark.parametrize("version", [5, 9, 12])
@given(data=st.binary(max_size=300))
def test_any_bytes_are_topics_or_unreadable(version: int, data: bytes) -> None:
    with suppress(*UNREADABLE):
        list(decode_topics(data, version))
