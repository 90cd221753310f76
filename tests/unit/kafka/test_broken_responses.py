"""Responses of any bytes: decoding ends, with the error that a broken connection has."""

import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final
from uuid import uuid4

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthenticationError, DisconnectedError, SparkmirrorError
from sparkmirror.domain.sasl import SCRAM, SaslSettings, TokenSource
from sparkmirror.kafka.admin.topic_listing import decode_topics
from sparkmirror.kafka.net.channel import Channel
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.net.login import Login
from sparkmirror.kafka.wire.fetch import decode_fetch_response
from sparkmirror.kafka.wire.primitives import UNREADABLE, Reader
from sparkmirror.kafka.wire.produce import decode_produce_response

Decode = Callable[[memoryview, int, int], object]
LOGINS: Final = (
    SaslSettings("PLAIN", "alice", "hush"),
    SaslSettings("SCRAM-SHA-512", "alice", "hush"),
    SaslSettings("OAUTHBEARER", token=TokenSource(subject="alice")),
)
HUGE: Final = b"\x7f\xff\xff\xff"
ANY_FRAME: Final = st.binary(max_size=80) | st.lists(
    st.sampled_from((b"\0", b"\0\0", b"\0\0\0\1", b"\1", b"\xff\xff\xff\xff", b"\xff" * 4 + b"\x07", HUGE)),
    max_size=20,
).map(b"".join)
"""Any bytes, and those that announce many or long fields."""
SCRAM_ANSWERS: Final = st.lists(
    st.sampled_from(("r=", "s=", "i=", "v=", "4096", "99999999999", "abcd", "====", ",", "é")), max_size=10
).map(lambda words: "".join(words).encode())


class Answers:
    """A transport that has received these bytes, and nothing more will come."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.is_closed = False

    def fileno(self) -> int:
        return -1

    def set_timeout(self, timeout_s: float) -> None:
        pass

    def receive_into(self, view: memoryview) -> int | None:
        if not self._data:
            raise DisconnectedError("there closed the connection")
        piece, self._data = self._data[: len(view)], self._data[len(view) :]
        view[: len(piece)] = piece
        return len(piece)

    def send(self, buffers: Sequence[bytes | memoryview]) -> int:
        return sum(map(len, buffers))

    def close(self) -> None:
        self.is_closed = True


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


@given(
    st.binary(max_size=40) | st.lists(ANY_FRAME, max_size=3).map(lambda found: b"".join(map(framed, found)))
)
def test_any_answers_to_a_new_connection_are_a_clear_error(data: bytes) -> None:
    transport = Answers(data)
    settings = ConnectionSettings((("there", 9092),), sasl=LOGINS[0])
    with pytest.raises(SparkmirrorError):
        Connection(transport, "there:9092", "me").negotiate("there", settings, 1.0)
    assert transport.is_closed


def framed(answer: bytes) -> bytes:
    return len(answer).to_bytes(4, "big") + answer


@given(st.sampled_from(LOGINS), st.lists(st.binary(max_size=60) | SCRAM_ANSWERS, min_size=1, max_size=3))
def test_any_answers_to_a_login_let_it_in_or_are_refused(sasl: SaslSettings, answers: list[bytes]) -> None:
    settings = ConnectionSettings((("there", 9092),), alias="near", sasl=sasl)
    steps = Login(settings, "there", f"there:{uuid4()}").steps({})  # a refusal counts for an address
    steps.send(None)
    said, is_in = "near: there:", False
    try:
        steps.send(SaslHandshakeResponse(error_code=0, mechanisms=[]))
        for answer in answers:
            steps.send(SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=answer))
    except AuthenticationError as error:
        said = str(error)
    except StopIteration:
        is_in = True
    assert said.startswith("near: there:")
    assert "hush" not in said
    assert not (is_in and sasl.mechanism in SCRAM), "a server that does not know the password was let in"


def test_an_announced_size_takes_no_memory_before_a_broker_has_shown_that_it_is_one() -> None:
    tracemalloc.start()
    for size in (HUGE, b"\x40\0\0\1", b"\xff\xff\xff\xff", b"\0\0\0\0"):
        with pytest.raises(DisconnectedError, match="is this a Kafka port"):
            list(Channel(Answers(size + b"x" * 100), "there:9092").receive())
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
