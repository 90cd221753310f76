"""Vectors of Kafka's UtilsTest.testMurmur2."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.partitioner import murmur2, partition_for_key


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2(data: bytes, expected: int) -> None:
    assert murmur2(data) == expected


def test_a_negative_hash_is_masked_not_negated() -> None:
    assert partition_for_key(b"21", 25) == (-973932308 & 0x7FFFFFFF) % 25


@given(st.binary(), st.integers(1, 100))
def test_partitions_are_in_range(key: bytes, partitions: int) -> None:
    assert 0 <= partition_for_key(key, partitions) < partitions
