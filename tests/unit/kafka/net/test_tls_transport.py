"""Frames are cut into TLS records."""

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.kafka.net.tls_transport import next_records

RECORD = 16 << 10
SIZES = st.one_of(st.integers(1, 100), st.integers(1, 3 * RECORD), st.sampled_from((RECORD, 8 * RECORD)))


def cut(buffers: list[bytes]) -> list[bytes]:
    """Take pieces until all is taken, as a channel does."""
    left: list[bytes | memoryview] = list(buffers)
    pieces = []
    while left:
        pieces.append(bytes(next_records(left)))
        sent = len(pieces[-1])
        while left and sent >= len(left[0]):
            sent -= len(left.pop(0))
        if sent:
            left[0] = left[0][sent:]
    return pieces


@given(st.lists(SIZES, min_size=1, max_size=6))
def test_every_record_but_the_last_is_full(sizes: list[int]) -> None:
    buffers = [bytes([number]) * size for number, size in enumerate(sizes)]
    pieces = cut(buffers)
    assert b"".join(pieces) == b"".join(buffers)
    assert all(len(piece) % RECORD == 0 for piece in pieces[:-1])


def test_a_batch_is_not_copied_but_for_its_ends() -> None:
    batch = memoryview(bytes(8 * RECORD))
    taken = next_records([batch[100:], b"next"])
    assert isinstance(taken, memoryview)
    assert (taken.obj is batch.obj, len(taken)) == (True, 7 * RECORD)
