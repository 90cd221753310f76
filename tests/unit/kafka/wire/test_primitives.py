import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.kafka.wire import primitives as wire
from sparkmirror.kafka.wire.primitives import Reader


def reader(data: bytes, *, flexible: bool = True) -> Reader:
    return Reader(memoryview(data), flexible=flexible)


@pytest.mark.parametrize(
    ("value", "data"), [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**31, "8080808008")]
)
def test_unsigned_varints_as_kip_482_writes_them(value: int, data: str) -> None:
    assert wire.unsigned_varint(value).hex() == data
    assert reader(bytes.fromhex(data)).unsigned_varint() == value


@given(text=st.text(max_size=300), flexible=st.booleans())
def test_strings_come_back(text: str, flexible: bool) -> None:
    data = wire.string(text, compact=flexible)
    read = reader(data, flexible=flexible)
    assert (read.string(), read.at) == (text, len(data))


@pytest.mark.parametrize("flexible", [True, False])
def test_null_is_not_empty(flexible: bool) -> None:
    assert reader(wire.null_string(compact=flexible), flexible=flexible).string() is None
    assert reader(wire.string("", compact=flexible), flexible=flexible).string() == ""
    assert reader(wire.array_size(-1, compact=flexible), flexible=flexible).array_size() == -1
    assert reader(wire.array_size(0, compact=flexible), flexible=flexible).array_size() == 0
    assert reader(wire.array_size(-1, compact=flexible), flexible=flexible).bytes() is None


def test_tags_of_the_future_are_skipped() -> None:
    tagged = b"\x02" + b"\x00\x03abc" + b"\x81\x01\x80\x01" + b"x" * 128 + b"next"
    read = reader(tagged)
    read.skip_tags()
    assert tagged[read.at :] == b"next"


def test_there_are_no_tags_in_old_versions() -> None:
    read = reader(b"\x05", flexible=False)
    read.skip_tags()
    assert read.at == 0


def test_a_request_header_has_a_plain_client_id_in_every_version() -> None:
    plain = struct.pack(">hhi", 1, 12, 9) + b"\x00\x02me"
    assert wire.request_header(1, 12, 9, "me", flexible=False) == plain
    assert wire.request_header(1, 12, 9, "me", flexible=True) == plain + b"\x00"
