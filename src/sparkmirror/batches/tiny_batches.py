"""Classifies and opens many tiny batches in a row as columns, as a source of one-record batches has them.

Only the walk from one batch to the next, their CRCs and the cutting out of their records are Python loops.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from crc32c import crc32c

from sparkmirror.batches.columns import Column, Headers, headers_at
from sparkmirror.batches.record_batch import (
    CODEC_MASK,
    CONTROL,
    CRC_COVERS_FROM,
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    OFFSET_AND_LENGTH,
    OutgoingBatch,
)
from sparkmirror.batches.reencoding import Encoding, reopen_columns

MANY_BATCHES = 24
"""The count of batches from which columns are faster: see `python -m bench.reencoding`."""


class TinyBatches(NamedTuple):
    """Whole batches of a response. `edges` are where in `data` each begins, and where the last one ends."""

    data: memoryview
    edges: list[int]
    headers: Headers

    @property
    def codec(self) -> int | None:
        """The codec of all of them; None if they have several."""
        codecs = self.headers["attributes"] & CODEC_MASK
        return int(codecs[0]) if (codecs == codecs[0]).all() else None

    def end_position(self, number: int) -> int:
        """The offset behind one of them."""
        header = self.headers[number]
        return int(header["base_offset"]) + int(header["last_offset_delta"]) + 1

    def are_sound(self, *, check_crcs: bool) -> bool:
        """Whether all have the format that can be copied and, if that is checked, the right CRC."""
        if (self.headers["magic"] != MAGIC).any():
            return False
        if not check_crcs:
            return True
        data, edges = self.data, self.edges
        spans = pairwise(edges)
        crcs = [crc32c(data[at + CRC_COVERS_FROM : end]) for at, end in spans]
        return bool((self.headers["crc"] == crcs).all())

    def with_records_from(self, position: int) -> Column:
        """The numbers of those with records at the position or behind it."""
        headers = self.headers
        lasts = headers["base_offset"] + headers["last_offset_delta"]
        have_records = (headers["attributes"] & CONTROL == 0) & (headers["record_count"] != 0)
        chosen: Column = (have_records & (lasts >= position)).nonzero()[0]
        return chosen

    def groups(self, chosen: Column, bytes_max: int) -> Iterator[Column]:
        """Part the chosen ones into neighbours that together have at most so many bytes."""
        sizes = np.diff(self.edges)[chosen].cumsum()
        begin = before = 0
        while begin < len(chosen):
            end = max(begin + 1, int(sizes.searchsorted(before + bytes_max, side="right")))
            yield chosen[begin:end]
            begin, before = end, int(sizes[end - 1])

    def reopen(self, chosen: Column, position: int, encoding: Encoding) -> list[OutgoingBatch]:
        """The chosen ones as `reencoding.reopen` does. Raises CorruptBatchError."""
        edges, data = self.edges, self.data
        payloads = [data[edges[at] + HEADER_BYTES : edges[at + 1]] for at in chosen.tolist()]
        return reopen_columns(self.headers[chosen], payloads, position, encoding)


def part_response(data: memoryview, bytes_max: int) -> Iterator[tuple[memoryview, TinyBatches | None]]:
    """Part a response into runs of many batches of at most `bytes_max`, and what is between; 0: one part."""
    begin = at = 0
    while bytes_max and at < len(data):
        edges = _walk(data, at, bytes_max)
        if len(edges) > MANY_BATCHES:
            if begin < at:
                yield data[begin:at], None
            begin = edges[-1]
            yield data[at:begin], TinyBatches(data, edges, headers_at(data, edges[:-1]))
            at = begin
        else:
            at = edges[-1] + max(_size(data, edges[-1]), HEADER_BYTES)
    yield data[begin:], None


def _walk(data: memoryview, at: int, bytes_max: int) -> list[int]:
    """Find where batches of at most `bytes_max` begin, from `at` on, and where the last one ends."""
    edges = [at]
    note, offset_and_length, end = edges.append, OFFSET_AND_LENGTH.unpack_from, len(data) - HEADER_BYTES
    while at <= end:
        size = offset_and_length(data, at)[1] + LOG_OVERHEAD
        at += size
        if not HEADER_BYTES <= size <= bytes_max or at > len(data):
            break
        note(at)
    return edges


def _size(data: memoryview, at: int) -> int:
    """The size of the batch there, 0 if it is unknown."""
    if at + OFFSET_AND_LENGTH.size > len(data):
        return 0
    return int(OFFSET_AND_LENGTH.unpack_from(data, at)[1]) + LOG_OVERHEAD
