"""How fast a flow copies when it is behind, by what its tasks have reported while they were."""

from collections.abc import Iterable
from itertools import pairwise
from statistics import median
from typing import Final

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.storage.progress import PartitionProgress

_APART_MAX_S: Final = 10.0
"""Reports come once a second; between two that are further apart something has stood still."""
_SECONDS_MIN: Final = 3
"""So many seconds in which there was more to copy than was copied tell something."""
_SECONDS_MAX: Final = 60


def measured_rate(reports: Iterable[PartitionProgress]) -> float | None:
    """Bytes per second of the whole flow; None if it was never behind for long enough to tell.

    A partition that keeps up is copied as fast as it's written: only one with a backlog of at least what it
    copied since the report before shows what the mirror can do.
    """
    by_partition: dict[TopicPartition, list[PartitionProgress]] = {}
    for report in reports:
        by_partition.setdefault(report.source, []).append(report)
    seconds: dict[int, float] = {}
    for told in by_partition.values():
        for before, after in pairwise(told):
            rate_s = _rate_while_behind(before, after)
            if rate_s is not None:
                second = int(after.updated_at)
                seconds[second] = seconds.get(second, 0.0) + rate_s
    newest = sorted(seconds)[-_SECONDS_MAX:]
    return None if len(newest) < _SECONDS_MIN else median(seconds[second] for second in newest)


def _rate_while_behind(before: PartitionProgress, after: PartitionProgress) -> float | None:
    passed_s = after.updated_at - before.updated_at
    size, records = after.bytes - before.bytes, after.records - before.records
    is_same_run = after.job_epoch == before.job_epoch and size > 0 and records > 0
    if not is_same_run or not 0 < passed_s <= _APART_MAX_S or not after.lag:
        return None
    is_behind = after.lag >= records
    return size / passed_s if is_behind else None
