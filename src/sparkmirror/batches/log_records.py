"""Encodes and decodes the records of the state topics (positions, syncs, heartbeats, progress).

Mirrored data is never read this way: see `record_batch` and `records`.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sparkmirror.batches.compression import CODECS
from sparkmirror.batches.record_batch import CONTROL, FetchedBatch
from sparkmirror.batches.record_body import RecordBody, read_body, write_body
from sparkmirror.batches.records import RawRecord, naming_offset, read_records, write_batch
from sparkmirror.domain.errors import CorruptBatchError

Headers = tuple[tuple[str, bytes | None], ...]

_UNCOMPRESSED = CODECS.index("none")


class LogRecord(NamedTuple):
    """`partition` None lets the key choose (murmur2, as Java); `timestamp_ms` None means now."""

    key: bytes | None
    value: bytes | None
    partition: int | None = 0
    timestamp_ms: int | None = None
    offset: int = -1
    headers: Headers = ()


def encode_log_batch(records: Sequence[LogRecord], now_ms: int) -> memoryview:
    """Encode these records, at least one, as one uncompressed batch to be produced."""
    return write_batch(
        [
            RawRecord(
                at, now_ms if record.timestamp_ms is None else record.timestamp_ms, _encode_body(record)
            )
            for at, record in enumerate(records)
        ],
        _UNCOMPRESSED,
    )


def decode_log_batch(batch: FetchedBatch, partition: int) -> Iterator[LogRecord]:
    """Decode the records of a batch, none of a control batch. Raises CorruptBatchError."""
    if batch.header.attributes & CONTROL:
        return
    for record in read_records(batch):
        with naming_offset(record.offset):
            decoded = _decode(record, partition)
        yield decoded


def _encode_body(record: LogRecord) -> bytes:
    headers = tuple((name.encode(), content) for name, content in record.headers)
    return write_body(RecordBody(record.key, record.value, headers))


def _decode(record: RawRecord, partition: int) -> LogRecord:
    key, value, raw_headers = read_body(record.body)
    try:
        headers = tuple((name.decode(), content) for name, content in raw_headers)
    except UnicodeDecodeError as error:
        raise CorruptBatchError(f"the record's fields do not fit it: {error}") from error
    return LogRecord(key, value, partition, record.timestamp, record.offset, headers)


def compact_json(value: object) -> bytes:
    """The JSON of this project's own records: without spaces, in UTF-8."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def parsed_json(data: bytes | None) -> Any:
    """A key or value from its JSON; None where there is none, and for what is no JSON."""
    try:
        return json.loads(data) if data else None
    except (ValueError, RecursionError):
        return None
