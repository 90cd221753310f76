"""Transforms of a run's flows, and what becomes of records by them."""

import random
from enum import Enum
from typing import Final

import numpy as np
import pyarrow as pa

from sparkmirror.batches.log_records import Headers
from sparkmirror.transforms.chain import Chain, Filter, Function, HasHeaderKey, InsertHeader, Link
from tests.memory.ledger import Due

_DROP: Final = "drop"
_ADDED: Final = "via", b"drill"
_HERE: Final = "tests.memory.transformed"


class Transforms(Enum):
    HEADERS = "headers"
    """Records with a header are left out, all others get one."""
    FUNCTION = "function"
    """A function leaves records out by their values."""
    BY_CHANCE = "by chance"
    """A function leaves other records out each time: no record must arrive."""

    @property
    def chain(self) -> Chain:
        added = Link(InsertHeader(*_ADDED))
        match self:
            case Transforms.HEADERS:
                return Chain((Link(Filter(), HasHeaderKey(_DROP)), added))
            case Transforms.FUNCTION:
                return Chain((Link(Function(f"{_HERE}:without_some")), added))
            case Transforms.BY_CHANCE:
                return Chain((Link(Function(f"{_HERE}:without_any")), added))

    @property
    def added(self) -> Headers:
        return (_ADDED,)

    def headers_of(self, number: int) -> Headers:
        """The headers with which the source's record is written."""
        return ((_DROP, b""),) if self is Transforms.HEADERS and _is_chosen(number) else ()

    def due_of(self, number: int, due: Due) -> Due:
        """Return what becomes of a record that would be due otherwise."""
        if self is Transforms.BY_CHANCE:
            return Due.MAY if due is Due.MUST else due
        return Due.NEVER if _is_chosen(number) else due


def without_some(records: pa.RecordBatch) -> pa.RecordBatch:
    return records.filter(pa.array([not _is_chosen(_number(value)) for value in records.column("value")]))


def without_any(records: pa.RecordBatch) -> pa.RecordBatch:
    return records.filter(pa.array(np.array([random.random() < 0.6 for _ in range(records.num_rows)], bool)))


def _number(value: pa.Scalar) -> int:
    return int(value.as_py().rpartition(b"-")[2])


def _is_chosen(number: int) -> bool:
    """Whether it is left out: single records, and several in a row."""
    return number % 5 == 2 or number % 13 in (6, 7, 8)
