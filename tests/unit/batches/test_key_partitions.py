"""Partitions of columns of keys are those that kafka-python's partitioner, a port of Java's, chooses."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.key_partitions import key_partitions
from sparkmirror.kafka.data.keyed_batches import partition_of

KEYS = st.lists(st.none() | st.binary(max_size=40), max_size=30)


@given(KEYS, st.integers(1, 100))
def test_keys_of_any_size(keys: list[bytes | None], count: int) -> None:
    expected = [-1 if key is None else partition_of(key, count) for key in keys]
    assert key_partitions(pa.array(keys, pa.binary()), count).tolist() == expected


@pytest.mark.parametrize("first", [0, 3])
def test_slices(first: int) -> None:
    keys = [b"a", b"bc", None, b"def", b"", b"1234"]
    expected = [-1 if key is None else partition_of(key, 7) for key in keys[first:]]
    assert key_partitions(pa.array(keys).slice(first), 7).tolist() == expected
