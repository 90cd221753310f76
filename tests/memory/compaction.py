"""Compacts a log as Kafka's cleaner does (`Cleaner`, `MemoryRecords.filterTo`)."""

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Final

from sparkmirror.batches.record_batch import CODEC_MASK, CONTROL, HEADER_BYTES, LOG_APPEND_TIME, BatchHeader
from tests.memory.partition_log import PartitionLog, Stored
from tests.support.batches import Rec, decode, encode, fetched, patch

_KEPT: Final = (
    *("base_offset", "leader_epoch", "attributes", "last_offset_delta"),
    *("producer_id", "producer_epoch", "base_sequence"),
)


def compact(log: PartitionLog, end: int | None = None) -> None:
    """Clean what is before `end`, in reality the active segment: the newest record of each key stays.

    A batch keeps its first and last offset and its producer's numbers. One that loses all its records is
    kept without any if it is the last of the round, or of a producer that the broker knows. Tombstones and
    control batches stay: their time comes after `delete.retention.ms`.
    """
    end = log.end if end is None else end
    dirty = [stored for stored in log.batches if stored.last_offset < end]
    newest = {record.key: record.offset for stored in dirty for record in _data(stored)}
    _clean(log, dirty, lambda record: record.key is not None and newest[record.key] == record.offset)


def remove(log: PartitionLog, offsets: Container[int]) -> None:
    """Clean away the records at these offsets, as if each had a successor with its key."""

    def is_touched(stored: Stored) -> bool:
        return any(offset in offsets for offset in range(stored.base_offset, stored.last_offset + 1))

    _clean(log, list(filter(is_touched, log.batches)), lambda record: record.offset not in offsets)


def _clean(log: PartitionLog, dirty: Sequence[Stored], keeps: Callable[[Rec], bool]) -> None:
    cleaned = {
        stored.base_offset: _cleaned(log, stored, keeps, is_last=stored is dirty[-1]) for stored in dirty
    }
    batches = (cleaned.get(stored.base_offset, stored) for stored in log.batches)
    log.batches = [stored for stored in batches if stored is not None]
    log.changes += 1


def _data(stored: Stored) -> Iterator[Rec]:
    header = fetched(stored.data).header
    if not header.attributes & CONTROL and header.record_count:
        yield from decode(stored.data)


def _cleaned(
    log: PartitionLog, stored: Stored, keeps: Callable[[Rec], bool], *, is_last: bool
) -> Stored | None:
    header = fetched(stored.data).header
    if header.attributes & CONTROL:
        return stored
    records = list(_data(stored))
    kept = list(filter(keeps, records))
    if kept and len(kept) == len(records):
        return stored
    if not kept and not is_last and not _holds_last_sequence(log, stored, header):
        return None
    return stored._replace(data=bytes(_rebuilt(header, kept)))


def _holds_last_sequence(log: PartitionLog, stored: Stored, header: BatchHeader) -> bool:
    entry = log.producers.entries.get(header.producer_id)
    return bool(entry and entry.batches and entry.batches[-1].base_offset == stored.base_offset)


def _rebuilt(header: BatchHeader, kept: Sequence[Rec]) -> bytearray:
    fields = {name: getattr(header, name) for name in _KEPT}
    if header.attributes & LOG_APPEND_TIME or not kept:
        fields["max_timestamp"] = header.max_timestamp
    if not kept:
        return patch(bytearray(HEADER_BYTES), length=HEADER_BYTES - 12, magic=2, record_count=0, **fields)
    relative = [record._replace(offset=record.offset - header.base_offset) for record in kept]
    return encode(relative, codec=header.attributes & CODEC_MASK, **fields)
