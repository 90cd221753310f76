"""Finds the records of the source that the target already has, by comparing the records themselves.

Never by counting: when compaction or retention has changed the source meanwhile, walking so many records
forward would skip some that were never copied.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from sparkmirror.batches.batch_copying import Step
from sparkmirror.batches.record_batch import (
    CODEC_MASK,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    FetchedBatch,
    OutgoingBatch,
    iterate_batches,
)
from sparkmirror.batches.records import RawRecord, read_records
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX


class Match(NamedTuple):
    """`position` is the next source offset to copy.

    `is_whole` means that every record of the tail is one of the source's, in order.
    """

    position: int
    is_whole: bool


def match(
    tail: Iterable[FetchedBatch],
    steps: Iterable[Step],
    position: int,
    *,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> Match:
    """Walk the source's `steps` from `position` for as long as the target's `tail` has their records.

    Records of the tail that the source has lost meanwhile (compaction) are passed over. Both are taken only
    as far as needed. Where the target gave a batch timestamps of its own, keys, values and headers decide.
    """
    unmatched = _Tail(tail, decompressed_bytes_max)
    for step in steps:
        for batch in step.batches:
            if unmatched.is_empty:
                return Match(position, unmatched.is_whole)
            if unmatched.pop_equal(batch):
                position = batch.offsets[-1] + 1
                continue
            records = _records_of(batch, decompressed_bytes_max)
            for record, offset in zip(records, batch.offsets, strict=True):
                if not unmatched.find(record):
                    return Match(position, unmatched.is_whole)
                position = offset + 1
        position = step.position
        if unmatched.is_empty:
            break
    return Match(position, unmatched.is_whole and unmatched.is_empty)


class _Tail:
    def __init__(self, batches: Iterable[FetchedBatch], bytes_max: int) -> None:
        self._batches = iter(batches)
        self._bytes_max = bytes_max
        self._next = next(self._batches, None)
        self._opened: deque[RawRecord] = deque()
        self._is_stamped = False
        """Whether the target gave the opened records timestamps of its own."""
        self.is_whole = True
        """Whether no record had to be passed over."""

    @property
    def is_empty(self) -> bool:
        return not self._opened and self._next is None

    def pop_equal(self, copy: OutgoingBatch) -> bool:
        """Take the next batch if it's this one, byte for byte: then nothing has to be opened."""
        if self._opened or self._next is None:
            return False
        (source,) = iterate_batches(copy.data)
        if _contents(source) != _contents(self._next):
            return False
        self._next = next(self._batches, None)
        return True

    def find(self, record: RawRecord) -> bool:
        """Take everything up to and including this record; False, with nothing left, if it isn't there."""
        while not self.is_empty:
            if not self._opened and self._next is not None:
                self._opened.extend(read_records(self._next, self._bytes_max))
                self._is_stamped = bool(self._next.header.attributes & LOG_APPEND_TIME)
                self._next = next(self._batches, None)
            found = self._opened.popleft()
            if found.body == record.body and (self._is_stamped or found.timestamp == record.timestamp):
                return True
            self.is_whole = False
        return False


def _contents(batch: FetchedBatch) -> tuple[object, ...]:
    header = batch.header
    return (
        header.record_count,
        header.last_offset_delta,
        header.base_timestamp,
        header.attributes & CODEC_MASK,
        bytes(batch.data[HEADER_BYTES:]),  # views are compared item by item
    )


def _records_of(batch: OutgoingBatch, bytes_max: int) -> list[RawRecord]:
    (fetched,) = iterate_batches(batch.data)
    return read_records(fetched, bytes_max)
