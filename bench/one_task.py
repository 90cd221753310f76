"""One copy task without Spark, in a thread of this process: it begins at once, so short runs can be many.

Measured from outside as the mirrors are, by the target's end offsets.
"""

import threading
import time
from dataclasses import dataclass

from bench.errors import BenchError
from bench.topics import Topics
from sparkmirror.copy.copy_loop import CopyLoop
from sparkmirror.copy.copy_plan import TaskPlan

_POLL_S = 0.01
_TIMEOUT_S = 60.0
_WARM = 0.1
"""The share of the records that is not measured: connections are made, producer ids proven."""


@dataclass(frozen=True, slots=True)
class TaskRun:
    """`start_s` is the time until the first record has come. `cpu_s` is this process's, with the probe's."""

    start_s: float
    records: int
    seconds: float
    cpu_s: float

    @property
    def records_per_s(self) -> float:
        return self.records / self.seconds


@dataclass(frozen=True, slots=True)
class _Sight:
    """The records on the target at one moment, and this process's CPU seconds until then."""

    at_s: float
    records: int
    cpu_s: float


def copy(plan: TaskPlan, ends: Topics, records: int) -> TaskRun:
    """Copy one topic of so many records; measured from a tenth of them to the last."""
    loop = CopyLoop(plan)
    thread = threading.Thread(target=loop.run, daemon=True)
    began_s = time.monotonic()
    thread.start()
    try:
        first = _await(plan, ends, 1)
        warm = _await(plan, ends, int(records * _WARM))
        last = _await(plan, ends, records)
    finally:
        loop.stop()
        thread.join()
    return TaskRun(
        first.at_s - began_s, last.records - warm.records, last.at_s - warm.at_s, last.cpu_s - warm.cpu_s
    )


def _await(plan: TaskPlan, ends: Topics, records: int) -> _Sight:
    topic, partitions = plan.partitions[0].target_topic, len(plan.partitions)
    deadline = time.monotonic() + _TIMEOUT_S
    while (there := ends.end_offsets(topic, partitions)) < records:
        if time.monotonic() > deadline:
            raise BenchError(f"a copy task brought {there} of {records} records in {_TIMEOUT_S:.0f} s")
        time.sleep(_POLL_S)
    return _Sight(time.monotonic(), there, time.process_time())
