"""Divides what a query reads into tasks, like `KafkaOffsetRangeCalculator` of Spark's Kafka source. Pure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sparkmirror.domain.ids import TopicPartition


class OffsetRange(NamedTuple):
    """The records of a partition from `first` on, before `end`.

    `epoch` is a leader epoch in which the log reached `first`, -1 if none is known.
    """

    partition: TopicPartition
    first: int
    end: int
    epoch: int = -1

    @property
    def size(self) -> int:
        return self.end - self.first


def divided(
    ranges: Sequence[OffsetRange], tasks_min: int | None, task_records_max: int | None
) -> list[OffsetRange]:
    """Divide into at least `tasks_min` ranges, if records suffice, of at most `task_records_max` each."""
    filled = [each for each in ranges if each.size > 0]
    if task_records_max is not None:
        filled = [part for each in filled for part in _parts(each, -(-each.size // task_records_max))]
    if tasks_min is None or len(filled) >= tasks_min:
        return filled
    total = sum(each.size for each in filled)
    whole = [each for each in filled if _share(each.size, total, tasks_min) == 1]
    split_total = total - sum(each.size for each in whole)
    split_tasks = max(tasks_min - len(whole), 1)
    return [
        part
        for each in filled
        for part in _parts(each, 1 if each in whole else _share(each.size, split_total, split_tasks))
    ]


def _share(size: int, total: int, tasks: int) -> int:
    return max(int(size / total * tasks + 0.5), 1)


def _parts(whole: OffsetRange, count: int) -> Iterator[OffsetRange]:
    first = whole.first
    for left in range(count, 0, -1):
        end = first + (whole.end - first) // left
        if end > first:
            yield whole._replace(first=first, end=end, epoch=whole.epoch if first == whole.first else -1)
        first = end
