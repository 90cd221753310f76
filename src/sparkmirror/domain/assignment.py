"""Assigns a MirrorSourceConnector's partitions to tasks: round-robin, or by measured load.

Loads are bytes per second. By load, a partition stays with its task unless tasks are clearly uneven: a new
task starts with new connections and producers, and operators expect a partition where it was.
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from math import fsum

from sparkmirror.domain.ids import TopicPartition


class PartitionAssignment(Enum):
    """`partition.assignment`: how partitions are assigned to tasks."""

    LOAD = "load"
    """Assign by measured load; round-robin as long as none is measured."""
    ROUNDROBIN = "roundrobin"
    """Round-robin, as MM2 does, whatever the load."""


Assignment = tuple[tuple[TopicPartition, ...], ...]
"""The partitions of each task."""

IDLE_BYTES_S = 4096.0
"""The load of a partition without data: its place in fetch sessions, metadata and reports.

A task that copies 300 MB/s checks each of its partitions about once a second, for some 10 µs.
"""

_UNEVEN = 1.25
"""Partitions leave their tasks when the heaviest carries more than this many times what is possible …"""
_EVEN = 1.1
"""… and no more of them than bring it down to this: loads change, so that more would be moved in vain."""
_ROUNDING = 1 - 1e-9
"""A smaller gain is an effect of rounding."""


def assign(partitions: Iterable[TopicPartition], task_count: int) -> Assignment:
    """Assign partitions round-robin to at most `task_count` tasks; no task is empty.

    MM2 assigns in the order of a hash map. Here topics and partitions are sorted first, so that equal
    input gives equal tasks.
    """
    ordered = sorted(partitions)
    tasks = min(task_count, len(ordered))
    return tuple(tuple(ordered[index::tasks]) for index in range(tasks))


def assign_by_load(
    partitions: Iterable[TopicPartition],
    task_count: int,
    load: Mapping[TopicPartition, float],
    previous: Assignment = (),
) -> Assignment:
    """Assign partitions to at most `task_count` tasks so that the heaviest carries little more than it must.

    No task is empty. If no load is known this is `assign`. What is new goes to the lightest task, heaviest
    first (LPT, Graham 1969); a partition without a measurement counts as an average one. Then
    partitions move one by one from the heaviest task to the lightest, each at most once and only where
    the heavier of the two gets lighter: `previous` is never made worse.
    """
    ordered = sorted(partitions)
    measured = [load[partition] for partition in ordered if partition in load]
    if not measured:
        return assign(ordered, task_count)
    average = fsum(measured) / len(measured)
    weights = {partition: load.get(partition, average) + IDLE_BYTES_S for partition in ordered}
    tasks = [_Task(number) for number in range(min(task_count, len(ordered)))]
    _add(tasks, _keep(tasks, weights, previous))
    _fill(tasks)
    filled, heaviest = tuple(task.partitions for task in tasks), max(task.weight for task in tasks)
    _relieve(tasks)
    gains = max(task.weight for task in tasks) < heaviest * _ROUNDING
    # Of several tasks that are equally heavy one may be left as it is: then no move was worth its pause.
    return tuple(task.partitions for task in tasks) if gains else filled


def task_loads(assignment: Assignment, load: Mapping[TopicPartition, float]) -> Sequence[float]:
    """Return what each task carries, its idle partitions included."""
    return [fsum(load.get(partition, 0.0) + IDLE_BYTES_S for partition in task) for task in assignment]


def count_moves(before: Assignment, after: Assignment) -> int:
    """Count partitions that have another task than before; new and lost ones don't count."""
    task_of = {partition: number for number, task in enumerate(before) for partition in task}
    return sum(
        task_of.get(partition, number) != number for number, task in enumerate(after) for partition in task
    )


class _Task:
    """A task while it is filled."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.weight = 0.0
        self.movable: list[tuple[float, TopicPartition]] = []
        """Partitions with their weights."""
        self.moved: list[TopicPartition] = []
        """Partitions that came from another task stay."""

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(sorted([*self.moved, *(partition for _, partition in self.movable)]))

    def take(self, weight: float, partition: TopicPartition) -> None:
        insort(self.movable, (weight, partition))
        self.weight += weight

    def move(self, at: int, target: "_Task") -> None:
        weight, partition = self.movable.pop(at)
        self.weight -= weight
        target.weight += weight
        target.moved.append(partition)

    def best_for(self, target: "_Task") -> int | None:
        """The partition whose move makes the heavier of both lightest; None when none makes it lighter."""
        half = (self.weight - target.weight) / 2
        at = bisect_left(self.movable, (half,))
        near = [index for index in (at - 1, at) if 0 <= index < len(self.movable)]
        found = min(near, key=lambda index: (abs(self.movable[index][0] - half), index), default=None)
        if found is None or target.weight + self.movable[found][0] >= self.weight:
            return None
        return found


def _keep(
    tasks: Sequence[_Task], weights: Mapping[TopicPartition, float], previous: Assignment
) -> list[tuple[float, TopicPartition]]:
    """Give each task what it had, and return the others, heaviest first."""
    left = dict(weights)
    for task, had in zip(tasks, previous, strict=False):
        for partition in had:
            if partition in left:
                task.take(left.pop(partition), partition)
    return sorted(
        ((weight, partition) for partition, weight in left.items()), key=lambda each: (-each[0], each[1])
    )


def _add(tasks: Sequence[_Task], new: Iterable[tuple[float, TopicPartition]]) -> None:
    """Add each partition to the task that is the lightest by then."""
    lightest = [(task.weight, task.number) for task in tasks]
    heapq.heapify(lightest)
    for weight, partition in new:
        task = tasks[lightest[0][1]]
        task.take(weight, partition)
        heapq.heapreplace(lightest, (task.weight, task.number))


def _fill(tasks: Sequence[_Task]) -> None:
    """Give each task a partition: the heaviest that has several gives its heaviest one."""
    for empty in tasks:
        if not empty.movable:
            rich = max((task for task in tasks if len(task.movable) > 1), key=_heaviness)
            rich.move(-1, empty)


def _relieve(tasks: Sequence[_Task]) -> None:
    """Partitions leave the heaviest task until it carries little more than the best dealing would leave it.

    That is the mean, or a partition that is heavier by itself: nothing splits it.
    """
    mean = fsum(task.weight for task in tasks) / len(tasks)
    hottest = max(task.movable[-1][0] for task in tasks if task.movable)
    possible = max(mean, hottest)
    if max(task.weight for task in tasks) <= _UNEVEN * possible:
        return
    while (heaviest := max(tasks, key=_heaviness)).weight > _EVEN * possible:
        lightest = min(tasks, key=lambda task: (task.weight, task.number))
        best = heaviest.best_for(lightest)
        if best is None:
            return
        heaviest.move(best, lightest)


def _heaviness(task: _Task) -> tuple[float, int]:
    return task.weight, -task.number


def slots_share(tasks_max: int, all_tasks_max: int, slots: int) -> int:
    """Return how many slots a connector may take, by its number of tasks and that of all connectors."""
    return max(1, slots * tasks_max // all_tasks_max)
