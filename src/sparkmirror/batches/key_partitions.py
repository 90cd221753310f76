"""Chooses partitions by keys as Java's default partitioner does, a column of keys at once. Pure."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_Hashes = NDArray[np.uint32]
_SEED: Final = np.uint32(0x9747B28C)
_FACTOR: Final = np.uint32(0x5BD1E995)
_POSITIVE: Final = np.uint32(0x7FFFFFFF)


def key_partitions(keys: pa.Array, count: int) -> NDArray[np.int64]:
    """The partitions of binary keys among `count`; -1 for a null, which may go to any."""
    found = np.full(len(keys), -1, np.int64)
    if not len(keys) or keys.null_count == len(keys):
        return found
    edges = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1]
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    valid = keys.is_valid().to_numpy(zero_copy_only=False)
    sizes = np.diff(edges)
    for size in np.unique(sizes[valid]).tolist():
        rows = np.flatnonzero(valid & (sizes == size))
        places = edges[rows].astype(np.int64)[:, None] + np.arange(size)
        found[rows] = (_murmur2(data[places]) & _POSITIVE).astype(np.int64) % count
    return found


def _murmur2(keys: Any) -> _Hashes:
    """The hashes of keys of one size, a row each."""
    count, size = keys.shape
    hashes: _Hashes = np.full(count, _SEED ^ np.uint32(size), np.uint32)
    whole = size - size % 4
    words = np.ascontiguousarray(keys[:, :whole]).view("<u4").reshape(count, whole // 4)
    for at in range(whole // 4):
        word = words[:, at] * _FACTOR
        word ^= word >> np.uint32(24)
        hashes = hashes * _FACTOR ^ word * _FACTOR
    for at in reversed(range(whole, size)):
        hashes ^= keys[:, at].astype(np.uint32) << np.uint32(8 * (at - whole))
    if size > whole:
        hashes = hashes * _FACTOR
    hashes ^= hashes >> np.uint32(13)
    hashes = hashes * _FACTOR
    hashes ^= hashes >> np.uint32(15)
    return hashes
