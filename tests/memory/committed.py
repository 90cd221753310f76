"""Reads a log in memory as it counts: what is replicated and not aborted. Decodes each batch once."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from sparkmirror.batches.log_records import LogRecord, decode_log_batch
from sparkmirror.batches.record_batch import CONTROL, BatchHeader, iterate_batches
from tests.memory.partition_log import PartitionLog

IsCommitted = Callable[[int], bool]
"""Whether a producer id's open transaction is decided, though its markers are not written yet."""

_CACHED = 1 << 14


class Decoded(NamedTuple):
    header: BatchHeader
    records: tuple[LogRecord, ...]
    """None of a control batch."""


@lru_cache(_CACHED)
def decoded(data: bytes) -> Decoded:
    (batch,) = iterate_batches(memoryview(bytearray(data)))
    records = () if batch.header.attributes & CONTROL else tuple(decode_log_batch(batch, 0))
    return Decoded(batch.header, records)


def committed(log: PartitionLog, is_committed: IsCommitted = lambda _: False) -> Iterator[Decoded]:
    """The batches that followers have and that belong to no aborted or open transaction."""
    open_since = {
        producer_id: entry.transaction_start
        for producer_id, entry in log.producers.entries.items()
        if entry.transaction_start is not None and not is_committed(producer_id)
    }
    for stored in log.batches:
        if stored.last_offset >= log.high_watermark:
            return
        batch = decoded(stored.data)
        producer_id, offset = batch.header.producer_id, stored.base_offset
        if offset >= open_since.get(producer_id, offset + 1):
            continue
        if not any(
            aborted.producer_id == producer_id and aborted.first_offset <= offset <= aborted.last_offset
            for aborted in log.aborted
        ):
            yield batch


def committed_records(log: PartitionLog, is_committed: IsCommitted = lambda _: False) -> Iterator[LogRecord]:
    for batch in committed(log, is_committed):
        yield from batch.records


def places(log: PartitionLog) -> list[int]:
    """Return by offset the number that is the committed record's value, -1 for none."""
    found: list[int] = []
    for record in committed_records(log):
        found += [-1] * (record.offset - len(found))
        found.append(int(record.value or b"-1"))
    return found
