"""A function for the flow of a soak: it leaves some records out, and marks others for a filter behind it."""

import zlib

import pyarrow as pa

MARK = "drop"


def is_kept(value: bytes | None) -> bool:
    """Whether a record of this value arrives: it is neither left out nor marked."""
    return _part(value) > 1


def thinned(records: pa.RecordBatch) -> pa.RecordBatch:
    """One of seven records is left out, another one marked, by their values alone."""
    chosen = [_part(value) for value in records.column("value").to_pylist()]
    kept = records.filter(pa.array([number != 0 for number in chosen]))
    at = records.schema.get_field_index("headers")
    field = records.schema.field(at)
    marks = [[{"key": MARK, "value": b""}] if number == 1 else None for number in chosen if number != 0]
    return kept.set_column(at, field, pa.array(marks, field.type))


def _part(value: bytes | None) -> int:
    return zlib.crc32(value or b"") % 7
