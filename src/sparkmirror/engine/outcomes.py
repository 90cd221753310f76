"""Why a copy task ended: the only rows that go back to the driver."""

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

SCHEMA = "task int, reason string"
_ARROW = pa.schema([("task", pa.int32()), ("reason", pa.string())])


class EndReason(Enum):
    STOPPED = "stopped"
    """Its generation was stopped."""
    SUPERSEDED = "superseded"
    """A newer generation runs."""
    OUT_OF_TOUCH = "out of touch"
    """It could not confirm its generation for too long. Never an outcome: Spark starts the task again."""


@dataclass(frozen=True, slots=True)
class Outcome:
    task: int
    reason: EndReason

    def to_batch(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [
                pa.array([self.task], pa.int32()),
                pa.array([self.reason.value], pa.string()),
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
            ],
            schema=_ARROW,
        )
