"""One partition that is copied between clusters in memory, for tests of rare sequences of events.

A record's value is a number, so that the target's records are compared as a list of numbers. What a test
waits for before the sequence begins raises TimeoutError when it does not come.
"""

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.state_writer import StateWriter
from sparkmirror.storage.positions import Position
from tests.memory.committed import places
from tests.memory.partition_log import PartitionLog
from tests.memory.stage import REMOTE, RunningTask, Shape, Stage
from tests.support.batches import Rec, encode
from tests.unit.copy.copied_records import SOURCE, TARGET

SOON_S: Final = 10.0
QUIET_S: Final = 30.0
"""Longer than what a start has to wait for when nothing fails."""


class OnePartition:
    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.plan: TaskPlan = stage.plan()
        self.source: PartitionLog = stage.source.log(SOURCE)
        self.target: PartitionLog = stage.target.log(TARGET)
        self.target_config = stage.target.topics[REMOTE].config
        self._tasks: list[RunningTask] = []

    def start(self) -> RunningTask:
        task = RunningTask(self.stage.network, self.plan)
        self._tasks.append(task)
        return task

    def start_and_copy(self, count: int) -> RunningTask:
        """Start a task, and wait until it has stored that many records, of one batch."""
        task = self.start()
        self.write(range(count))
        self.run_until_stored(count - 1)
        return task

    def write(
        self,
        values: Iterable[int],
        *,
        key: bytes = b"key",
        keys: Iterable[int] | None = None,
        at_ms: int | None = None,
    ) -> None:
        """One batch, of records that have one key, or each its own."""
        now_ms = self.stage.source.now_ms()
        timestamp_ms = now_ms if at_ms is None else at_ms
        of_each = itertools.repeat(key) if keys is None else (b"key-%d" % number for number in keys)
        records = [
            Rec(at, timestamp_ms, own_key, b"%d" % value)
            for at, (value, own_key) in enumerate(zip(values, of_each, strict=False))
        ]
        assert self.source.append(bytes(encode(records)), now_ms).error == 0
        self.stage.source.changed()

    def write_batches(self, first: int, end: int, size: int = 10) -> None:
        for at in range(first, end, size):
            self.write(range(at, at + size))

    @property
    def copied(self) -> list[int]:
        """The values of the target's records."""
        return [value for value in places(self.target)[self.target.start :] if value >= 0]

    @property
    def position(self) -> Position | None:
        """The stored position."""
        return StateWriter(self.plan).read_positions().get(SOURCE)

    def run_for(self, seconds: float) -> None:
        self.stage.run_until(lambda: False, seconds)

    def run_until(self, holds: Callable[[], bool]) -> None:
        if not self.stage.run_until(holds, SOON_S):
            raise TimeoutError(f"{self.target.end} records are on the target, {self.position} is stored")

    def run_until_written(self, end: int) -> None:
        """Until the target's log ends there; whether its position is stored is open."""
        self.run_until(lambda: self.target.end == end)

    def run_until_stored(self, offset: int) -> None:
        deadline = self.stage.time.time() + SOON_S
        while (known := self.position) is None or known.offset != offset:
            self.run_for(0.1)
            if self.stage.time.time() > deadline:
                raise TimeoutError(f"{known} is stored")

    def require_stored(self, offset: int) -> None:
        """A test's sequence of events needs that what was copied since is not stored."""
        known = self.position
        if known is None or known.offset != offset:
            raise TimeoutError(f"{known} is stored")

    def kill_tasks(self) -> None:
        for task in self._tasks:
            task.kill()


@contextmanager
def one_partition(*, preserves_offsets: bool = False) -> Iterator[OnePartition]:
    shape = Shape(
        partitions=1,
        source_brokers=1,
        target_brokers=1,
        reads_committed=preserves_offsets,
        preserves_offsets=preserves_offsets,
    )
    made = OnePartition(Stage(random.Random(1), shape))
    try:
        yield made
    finally:
        made.kill_tasks()


def copy_of(task: RunningTask) -> PartitionCopy:
    (copy,) = task.loop.parts.copies
    return copy
