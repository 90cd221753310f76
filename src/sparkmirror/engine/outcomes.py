"""Why a copy task ended: the only rows that go back to the driver."""

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

SCHEMA = "task int, reason string, detail string"
_ARROW = pa.schema([("task", pa.int32()), ("reason", pa.string()), ("detail", pa.string())])


class EndReason(Enum):
    STOPPED = "stopped"
    """Its generation was stopped."""
    SUPERSEDED = "superseded"
    """A newer generation runs."""
    OUT_OF_TOUCH = "out of touch"
    """It could not confirm its generation for too long."""
    BUG = "bug"
    """It raised; `detail` holds the traceback."""


@dataclass(frozen=True, slots=True)
class Outcome:
    task: int
    reason: EndReason
    detail: str

    def to_batch(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [
                pa.array([self.task], pa.int32()),
                pa.array([self.reason.value], pa.string()),
                pa.array([self.detail], pa.string()),
            ],
            schema=_ARROW,
        )

    @staticmethod
    def empty_batch() -> pa.RecordBatch:
        """A pulse. Made of empty buffers: `pa.array([])` would import pandas into every worker."""
        none, empty = None, pa.py_buffer(b"")
        return pa.RecordBatch.from_arrays(
            [
                pa.Array.from_buffers(pa.int32(), 0, [none, empty]),
                pa.Array.from_buffers(pa.string(), 0, [none, empty, empty]),
                pa.Array.from_buffers(pa.string(), 0, [none, empty, empty]),
            ],
            schema=_ARROW,
        )
