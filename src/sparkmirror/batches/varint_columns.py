"""Zig-zag varints of at most 64 bits, read and written a column at a time.

A column costs a few array operations for each byte of its longest varint, however many there are.
"""

import numpy as np
from numpy.typing import NDArray

from sparkmirror.domain.errors import CorruptBatchError

Column = NDArray[np.int64]
Bytes = NDArray[np.uint8]
ZigZag = NDArray[np.uint64]

_MORE = 0x80
_BITS = 0x7F
_WIDTH_MAX = 10


def read_varints(data: Bytes, at: Column) -> tuple[Column, Column]:
    """Their values, and where the field behind each begins.

    Raises IndexError where one lies behind the data, CorruptBatchError where one is too long.
    """
    byte = data[at]
    values = (byte & _BITS).astype(np.uint64)
    behind = at + 1
    longer = (byte >= _MORE).nonzero()[0]
    shift = 7
    while len(longer):
        if shift > 63:
            raise CorruptBatchError("varint is too long")
        byte = data[behind[longer]]
        values[longer] |= (byte & _BITS).astype(np.uint64) << np.uint64(shift)
        behind[longer] += 1
        longer = longer[byte >= _MORE]
        shift += 7
    one = np.uint64(1)
    return (values >> one).view(np.int64) ^ -(values & one).view(np.int64), behind


def zigzag(values: Column) -> ZigZag:
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def widths(values: ZigZag) -> Column:
    """How many bytes each takes as a varint."""
    result = np.ones(len(values), np.int64)
    longest = int(values.max(initial=0))
    for bits in range(7, longest.bit_length(), 7):
        result += values >= np.uint64(1 << bits)
    return result


def write_varints(out: Bytes, at: Column, values: ZigZag) -> None:
    out[at] = values & np.uint64(_BITS)
    rest = values >> np.uint64(7)
    longer = rest.nonzero()[0]
    while len(longer):
        at, rest = at[longer], rest[longer]
        out[at] |= _MORE
        at = at + 1
        out[at] = rest & np.uint64(_BITS)
        rest >>= np.uint64(7)
        longer = rest.nonzero()[0]
