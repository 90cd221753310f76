"""Looks for names in the column of headers of Arrow records, leaves entries out and adds one. Pure."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparkmirror.batches.arrow_schema import HEADERS

Mask = NDArray[np.bool_]


def rows_with(headers: pa.Array, name: str) -> Mask:
    """The rows that have a header of that name."""
    found = np.zeros(len(headers), np.bool_)
    if headers.null_count < len(headers):
        found[_rows_of_entries(headers)[_are_named(headers.flatten(), [name])]] = True
    return found


def without(headers: pa.Array, names: Collection[str], rows: Mask) -> pa.Array:
    """Leave out the headers of these names from these rows; the same object where there are none."""
    if headers.null_count == len(headers):
        return headers
    entries, rows_of = headers.flatten(), _rows_of_entries(headers)
    kept = ~(_are_named(entries, sorted(names)) & rows[rows_of])
    if kept.all():
        return headers
    counts = np.bincount(rows_of[kept], minlength=len(headers))
    return _lists(entries.filter(pa.array(kept)), counts)


def with_added(headers: pa.Array, name: str, value: bytes | None, rows: Mask) -> pa.Array:
    """Add a header to these rows, behind the others."""
    counts, entries = _counts(headers), headers.flatten()
    added = pa.array([{"key": name, "value": value}], HEADERS.value_type)
    ends = np.cumsum(counts + rows)
    chosen = np.full(int(ends[-1]) if len(ends) else 0, len(entries))
    is_old = np.ones(len(chosen), np.bool_)
    is_old[ends[rows] - 1] = False
    chosen[is_old] = np.arange(len(entries))
    return _lists(pa.concat_arrays([entries, added]).take(pa.array(chosen)), counts + rows)


def _counts(headers: pa.Array) -> NDArray[np.int64]:
    counts: NDArray[Any] = headers.value_lengths().fill_null(0).to_numpy()
    return counts.astype(np.int64)


def _rows_of_entries(headers: pa.Array) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(headers)), _counts(headers))


def _are_named(entries: pa.StructArray, names: Collection[str]) -> Mask:
    """Compared as bytes, since names need not be UTF-8."""
    keys = entries.field("key").cast(pa.binary())
    named = pc.is_in(keys, value_set=pa.array([name.encode() for name in names], pa.binary()))
    found: Mask = named.to_numpy(zero_copy_only=False)
    return found


def _lists(entries: pa.StructArray, counts: NDArray[np.int64]) -> pa.Array:
    """A row without entries is null."""
    edges = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32)
    mask = pa.array(counts == 0)
    return pa.ListArray.from_arrays(pa.array(edges), entries, type=HEADERS, mask=mask)
