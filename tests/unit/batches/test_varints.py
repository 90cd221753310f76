"""Numbers of records end: within 5 bytes, or 10 for those of 64 bits."""

import pytest

from sparkmirror.batches.records import VARINT_BYTES, read_varint, write_varint
from sparkmirror.domain.errors import CorruptBatchError


@pytest.mark.parametrize("bytes_max", [VARINT_BYTES, 10])
def test_a_number_that_does_not_end_is_corrupt(bytes_max: int) -> None:
    for more in (0, 1, 1000):
        with pytest.raises(CorruptBatchError):
            read_varint(b"\xff" * (bytes_max + more), 0, bytes_max)
    for size in range(1, bytes_max):
        with pytest.raises(CorruptBatchError):
            read_varint(b"\xff" * size, 0, bytes_max)


@pytest.mark.parametrize(
    ("value", "bytes_max"), [(2**31 - 1, 5), (-(2**31), 5), (2**63 - 1, 10), (-(2**63), 10)]
)
def test_the_largest_numbers_are_read(value: int, bytes_max: int) -> None:
    out = bytearray()
    write_varint(value, out)
    assert len(out) == bytes_max
    assert read_varint(bytes(out), 0, bytes_max) == (value, bytes_max)
