"""The headers of many batches at once, as columns: what `record_batch` reads of one, at speed."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sparkmirror.batches.record_batch import HEADER_BYTES, FetchedBatch

_FIELDS = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)

Headers = NDArray[np.void]
"""One row for each batch, with the fields of `BatchHeader`."""


def headers_of(batches: Sequence[FetchedBatch]) -> Headers:
    return np.frombuffer(b"".join([batch.data[:HEADER_BYTES] for batch in batches]), _FIELDS)


def headers_at(data: memoryview, starts: Sequence[int]) -> Headers:
    """Of the batches that start there; all of them are whole."""
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), HEADER_BYTES)
    return windows[np.array(starts, np.int64)].view(_FIELDS)[:, 0]
