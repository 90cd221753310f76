"""Compacts a log as Kafka's cleaner does (`Cleaner`, `MemoryRecords.filterTo`)."""

from collections.abc import Iterator, Sequence
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
    cleaned = [_cleaned(log, stored, newest, is_last=stored is dirty[-1]) for stored in dirty]
    log.batches = [stored for stored in cleaned if stored is not None] + log.batches[len(dirty) :]


def _data(stored: Stored) -> Iterator[Rec]:
    header = fetched(stored.data).header
    if not header.attributes & CONTROL and header.record_count:
        yield from decode(stored.data)


def _cleaned(
    log: PartitionLog, stored: Stored, newest: dict[bytes | None, int], *, is_last: bool
) -> Stored | None:
    header = fetched(stored.data).header
    if header.attributes & CONTROL:
        return stored
    records = list(_data(stored))
    kept = [record for record in records if record.key is not None and newest[record.key] == record.offset]
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
