"""Finds the batches of a fetch response that read_committed must not see (KIP-98, `CompletedFetch`).

A new one is made for each response: the broker's list belongs to the response, and a transaction that ended
in an earlier one is not in it.
"""

import heapq
from collections.abc import Iterable

from sparkmirror.batches.record_batch import CONTROL, HEADER_BYTES, TRANSACTIONAL, FetchedBatch

_ABORT = 0
_CONTROL_KEY_TYPE_AT = 2
"""A marker's key is version INT16, type INT16; both follow the key's length varint."""


class AbortedTransactions:
    """The response's aborted list: pairs of producer id and first offset."""

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        self._upcoming = [(first_offset, producer_id) for producer_id, first_offset in aborted]
        heapq.heapify(self._upcoming)
        self._open: set[int] = set()

    def __bool__(self) -> bool:
        """Whether any batch may belong to one."""
        return bool(self._upcoming or self._open)

    def drops(self, batch: FetchedBatch) -> bool:
        """Whether the batch belongs to an aborted transaction. Call it for every batch, in order.

        An id on the list is not enough: its earlier batches may be committed, so a transaction only counts
        from its first offset to its ABORT marker.
        """
        header = batch.header
        while self._upcoming and self._upcoming[0][0] <= header.last_offset:
            self._open.add(heapq.heappop(self._upcoming)[1])
        if header.attributes & CONTROL:
            if is_abort_marker(batch):
                self._open.discard(header.producer_id)
            return False
        return bool(header.attributes & TRANSACTIONAL) and header.producer_id in self._open


def is_abort_marker(batch: FetchedBatch) -> bool:
    """Whether a control batch aborts its transaction."""
    # A control batch holds one uncompressed record: length, attributes, timestamp and offset deltas,
    # key length, then the key. All varints of a marker fit one byte but for the timestamp delta, which is 0.
    record = batch.data[HEADER_BYTES:]
    if len(record) < 9:
        return False
    key = record[5:9]
    return key[_CONTROL_KEY_TYPE_AT] == 0 and key[_CONTROL_KEY_TYPE_AT + 1] == _ABORT
