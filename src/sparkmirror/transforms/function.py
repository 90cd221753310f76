"""Calls a user's function of a record batch, as for `mapInArrow`, and checks what it returns. Pure."""

import numpy as np
import pyarrow as pa

from sparkmirror.batches.arrow_schema import SCHEMA
from sparkmirror.config.plugin_guard import FAILURES, described
from sparkmirror.config.plugin_points import UnusablePluginError, find_function

_ROUTED = ("topic", "partition")
"""The columns that are the same for all records of a partition."""
_CHANGEABLE = ("key", "value", "timestamp", "headers")


class FunctionFailedError(Exception):
    """The function has raised, or returned something else than these records; the message says what."""


def call(reference: str, records: pa.RecordBatch) -> tuple[pa.RecordBatch, bool]:
    """Apply the function to the records; returns too whether those that it keeps are as they were.

    The records are the same object where all are as they were. Raises FunctionFailedError.
    """
    try:
        changed = find_function(reference)(records)
    except UnusablePluginError as error:
        raise FunctionFailedError(f"{reference}: {error}") from error
    except FAILURES as error:
        raise FunctionFailedError(f"{reference} raised {described(error)}") from error
    if isinstance(changed, pa.RecordBatch) and changed.equals(records):
        return records, True
    problem = _of_type(changed) or _of_offsets(records, changed) or _of_contents(records, changed)
    if problem is not None:
        raise FunctionFailedError(f"{reference} returned {problem}")
    return changed, _are_same(records, changed)


def _of_type(changed: object) -> str | None:
    if not isinstance(changed, pa.RecordBatch):
        return f"an object of type {type(changed).__name__}, not a pyarrow.RecordBatch"
    if not changed.schema.equals(SCHEMA):
        return f"another schema: {_differences(changed.schema)}"
    return None


def _of_offsets(records: pa.RecordBatch, changed: pa.RecordBatch) -> str | None:
    """Say why these are not some of the records in their order; None if they are."""
    if changed.column("offset").null_count:
        return "a record without its offset"
    before, after = (each.column("offset").to_numpy() for each in (records, changed))
    if len(after) > len(before) or (before.take(np.searchsorted(before, after), mode="clip") != after).any():
        return "records with other offsets, or more than once; it may only leave out and change records"
    if not (after[1:] > after[:-1]).all():
        return "records in another order, or more than once"
    return None


def _of_contents(records: pa.RecordBatch, changed: pa.RecordBatch) -> str | None:
    """Say what may not be as it is; None if it may."""
    first = slice(0, changed.num_rows)
    moved = next((name for name in _ROUTED if changed.column(name) != records.column(name)[first]), None)
    if moved is not None:
        return f"records with another {moved}; a function can't move records"
    if changed.column("headers").flatten().field("key").null_count:
        return "a header without a key"
    return None


def _are_same(records: pa.RecordBatch, changed: pa.RecordBatch) -> bool:
    """Whether some were left out, and the others have the same contents."""
    if changed.num_rows == records.num_rows:
        return False
    offsets = (each.column("offset").to_numpy() for each in (records, changed))
    rows = pa.array(np.searchsorted(*offsets))
    return all(records.column(name).take(rows).equals(changed.column(name)) for name in _CHANGEABLE)


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
