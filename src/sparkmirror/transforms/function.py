"""Calls a user's function of a record batch, as for `mapInArrow`, and checks what it returns. Pure."""

import numpy as np
import pyarrow as pa

from sparkmirror.batches.arrow import SCHEMA
from sparkmirror.config.plugin_guard import FAILURES, described
from sparkmirror.config.plugin_points import UnusablePluginError, find_function

_ROUTED = ("topic", "partition")


class FunctionFailedError(Exception):
    """The function has raised, or returned something else than these records; the message says what."""


def call(reference: str, records: pa.RecordBatch) -> pa.RecordBatch:
    """Apply the function to the records; returns the same object where all are as they were.

    Raises FunctionFailedError.
    """
    try:
        changed = find_function(reference)(records)
    except UnusablePluginError as error:
        raise FunctionFailedError(f"{reference}: {error}") from error
    except FAILURES as error:
        raise FunctionFailedError(f"{reference} raised {described(error)}") from error
    problem = _problem(records, changed)
    if problem is not None:
        raise FunctionFailedError(f"{reference} returned {problem}")
    return records if changed.num_rows == records.num_rows and changed.equals(records) else changed


def _problem(records: pa.RecordBatch, changed: object) -> str | None:
    """Say why this is not some of the records in their order; None if it is."""
    if not isinstance(changed, pa.RecordBatch):
        return f"an object of type {type(changed).__name__}, not a pyarrow.RecordBatch"
    if not changed.schema.equals(SCHEMA):
        return f"another schema: {_differences(changed.schema)}"
    return _of_offsets(records, changed) or _of_contents(records, changed)


def _of_offsets(records: pa.RecordBatch, changed: pa.RecordBatch) -> str | None:
    before, offsets = records.column("offset").to_numpy(), changed.column("offset")
    if offsets.null_count:
        return "a record without its offset"
    after = offsets.to_numpy()
    if len(after) > len(before) or not np.isin(after, before).all():
        return "records with other offsets, or more than once; it may only leave out and change records"
    if not (after[1:] > after[:-1]).all():
        return "records in another order, or more than once"
    return None


def _of_contents(records: pa.RecordBatch, changed: pa.RecordBatch) -> str | None:
    moved = next((name for name in _ROUTED if _has_others(records.column(name), changed.column(name))), None)
    if moved is not None:
        return f"records with another {moved}; a function can't move records"
    if changed.column("headers").flatten().field("key").null_count:
        return "a header without a key"
    return None


def _has_others(all_the_same: pa.Array, values: pa.Array) -> bool:
    return len(values) > 0 and values.unique().to_pylist() != [all_the_same[0].as_py()]


def _differences(schema: pa.Schema) -> str:
    missing = [name for name in SCHEMA.names if name not in schema.names]
    if missing:
        return f"the column {missing[0]} is missing"
    more = [name for name in schema.names if name not in SCHEMA.names]
    if more:
        return f"there is no column {more[0]}"
    for field in schema:
        wanted = SCHEMA.field(field.name)
        if not field.equals(wanted):
            return f"the column {field.name} is {field.type}, not {wanted.type}"
    return "its columns are in another order"
