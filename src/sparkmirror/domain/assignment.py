"""How MirrorSourceConnector deals partitions to tasks."""

from collections.abc import Iterable

from sparkmirror.domain.ids import TopicPartition


def assign(partitions: Iterable[TopicPartition], task_count: int) -> tuple[tuple[TopicPartition, ...], ...]:
    """Deal partitions round-robin to at most `task_count` tasks; no task is empty.

    MM2 deals in the order of a hash map. Here topics and partitions are sorted first, so that equal
    input gives equal tasks.
    """
    ordered = sorted(partitions)
    tasks = min(task_count, len(ordered))
    return tuple(tuple(ordered[index::tasks]) for index in range(tasks))
