"""Defines the outcome of a copy task, the only rows that go back to the driver."""

import struct
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

SCHEMA = "task int, reason string"
_ARROW = pa.schema([("task", pa.int32()), ("reason", pa.string())])


class EndReason(Enum):
    STOPPED = "stopped"
    """The copy job was stopped."""
    SUPERSEDED = "superseded"
    """A newer copy job runs."""
    OUT_OF_TOUCH = "out of touch"
    """The task could not confirm its copy job for too long. Never an outcome: Spark starts it again."""


@dataclass(frozen=True, slots=True)
class Outcome:
    task: int
    reason: EndReason

    def to_batch(self) -> pa.RecordBatch:
        reason = self.reason.value.encode()
        return _batch(1, struct.pack("=i", self.task), struct.pack("=ii", 0, len(reason)), reason)

    @staticmethod
    def empty_batch() -> pa.RecordBatch:
        """A pulse."""
        return _batch(0, b"", b"", b"")


def _batch(rows: int, tasks: bytes, ends: bytes, reasons: bytes) -> pa.RecordBatch:
    """Make a batch of its columns' buffers: `pa.array` would import pandas into every worker."""
    task = pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(tasks)])
    reason = pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(ends), pa.py_buffer(reasons)])
    return pa.RecordBatch.from_arrays([task, reason], schema=_ARROW)
