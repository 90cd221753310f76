"""Faults that a mirror must never make, planted into what the target holds: each checker must find them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tests.support.batches import Rec

Fault = Callable[[Sequence[Rec], int], list[Rec]]
"""The records that are on the target, with the fault at a place."""


def dropped(records: Sequence[Rec], at: int) -> list[Rec]:
    return [*records[:at], *records[at + 1 :]]


def doubled(records: Sequence[Rec], at: int) -> list[Rec]:
    return [*records[: at + 1], *records[at:]]


def swapped(records: Sequence[Rec], at: int) -> list[Rec]:
    """Swap a record with its neighbour."""
    first = min(at, len(records) - 2)
    return [*records[:first], records[first + 1], records[first], *records[first + 2 :]]


def key_altered(records: Sequence[Rec], at: int) -> list[Rec]:
    return _with(records, at, records[at]._replace(key=_altered(records[at].key)))


def value_altered(records: Sequence[Rec], at: int) -> list[Rec]:
    return _with(records, at, records[at]._replace(value=_altered(records[at].value)))


def header_altered(records: Sequence[Rec], at: int) -> list[Rec]:
    """Alter a header, or add one to a record without any."""
    (name, value), *others = records[at].headers or (("header", None),)
    return _with(records, at, records[at]._replace(headers=((name, _altered(value)), *others)))


def timestamp_altered(records: Sequence[Rec], at: int) -> list[Rec]:
    return _with(records, at, records[at]._replace(timestamp=records[at].timestamp ^ 1))


FAULTS: Final[Mapping[str, Fault]] = {
    fault.__name__: fault
    for fault in (
        dropped,
        doubled,
        swapped,
        key_altered,
        value_altered,
        header_altered,
        timestamp_altered,
    )
}


def _altered(data: bytes | None) -> bytes:
    """Change one bit of the last byte."""
    return bytes((*(data or b"\0")[:-1], (data or b"\0")[-1] ^ 1))


def _with(records: Sequence[Rec], at: int, record: Rec) -> list[Rec]:
    return [*records[:at], record, *records[at + 1 :]]
