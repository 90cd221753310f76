"""Tells whether a task has the same rows as before, in whatever order they come. Pure."""

from collections.abc import Iterator
from itertools import repeat

import numpy as np
import pyarrow as pa
from crc32c import crc32c

_MODULUS = 1 << 64
_FACTORS = {"key": 0x9E3779B97F4A7C15, "value": 0xC2B2AE3D27D4EB4F, "topic": 0x165667B19E3779F9}


class Digest:
    """A sum over rows of a hash of key, value and topic; and their count."""

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0

    def add(self, records: pa.RecordBatch) -> None:
        columns = [
            _hashes(records.column(name).cast(pa.binary()), factor)
            if name in records.schema.names
            else repeat(0)
            for name, factor in _FACTORS.items()
        ]
        for parts in zip(range(records.num_rows), *columns, strict=False):
            mixed = sum(parts[1:]) % _MODULUS
            self._sum += (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9
        self._sum %= _MODULUS
        self.rows += records.num_rows

    def __str__(self) -> str:
        return f"{self._sum:016x}"


def _hashes(values: pa.Array, factor: int) -> Iterator[int]:
    if values.null_count == len(values):
        return repeat(factor)
    edges = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    data = memoryview(values.buffers()[2] or b"")
    ends = edges.tolist()
    valid = values.is_valid().to_pylist()
    return (
        (crc32c(data[begin:end]) + 2) * factor if there else factor
        for begin, end, there in zip(ends[:-1], ends[1:], valid, strict=True)
    )
