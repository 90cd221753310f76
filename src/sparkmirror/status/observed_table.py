"""Puts what is known from Kafka alone into a look at partitions, and takes out what nobody can tell."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.looks import Latencies, Motion, PartitionLook
from sparkmirror.metrics.partition_table import NAN, Flags, Numbers, PartitionTable
from sparkmirror.storage.progress import PartitionProgress

POSITION_INTERVAL_S: Final = 60.0
"""Java's `offset.flush.interval.ms`."""


class Observed(NamedTuple):
    """Of each partition, of one look at Kafka; NaN where it is unknown.

    Foreign partitions are those that no task of this mirror reports, as Java's. `task` is that of the report;
    `oldest_s` was the age of the oldest record to copy.
    """

    is_foreign: Flags
    task: Numbers
    moved_s: Numbers
    closed: Numbers
    oldest_s: Numbers


def observed_of(
    sources: Sequence[TopicPartition],
    reports: Mapping[TopicPartition, PartitionProgress],
    oldest_s: Mapping[TopicPartition, float],
    motion: Callable[[TopicPartition], Motion | None],
) -> Observed:
    """`reports` are those of this mirror's tasks."""
    tasks = [NAN if (report := reports.get(it)) is None else float(report.task) for it in sources]
    moved = [(NAN, NAN) if (known := motion(it)) is None else known for it in sources]
    return Observed(
        np.isnan(tasks),
        np.array(tasks, np.float64),
        np.array([seconds for seconds, _ in moved], np.float64),
        np.array([float(closed) for _, closed in moved], np.float64),
        np.array([oldest_s.get(it, NAN) for it in sources], np.float64),
    )


def with_observed(table: PartitionTable, of: Observed, passed_s: float) -> PartitionTable:
    """`passed_s` is since the look at Kafka; partitions are those of `of`, in its order."""
    columns, oldest_s = table.columns, of.oldest_s + passed_s
    changed = columns._replace(
        task=of.task,
        byte_rate=np.where(of.is_foreign, NAN, columns.byte_rate),
        moved_s=np.where(of.is_foreign, of.moved_s, columns.moved_s),
        closed=np.where(of.is_foreign, of.closed, columns.closed),
        slack_s=np.where(of.is_foreign, POSITION_INTERVAL_S, 0.0),
        lag_s=np.where(np.isnan(oldest_s), columns.lag_s, oldest_s),
    )
    look = partial(_look, table, of, oldest_s)
    return PartitionTable(table.sources, changed, look, table.report, partial(_latencies, look, of))


def _look(table: PartitionTable, of: Observed, oldest_s: Numbers, row: int) -> PartitionLook:
    look = table[row]
    if of.is_foreign[row]:
        is_moved = not np.isnan(of.moved_s[row])
        look = look._replace(
            task=None,
            byte_rate=None,
            latencies=None,
            motion=Motion(float(of.moved_s[row]), int(of.closed[row])) if is_moved else None,
            slack_s=POSITION_INTERVAL_S,
        )
    else:
        look = look._replace(task=int(of.task[row]))
    return look if np.isnan(oldest_s[row]) else look._replace(lag_s=float(oldest_s[row]))


def _latencies(look: Callable[[int], PartitionLook], of: Observed) -> Iterator[Latencies]:
    looks = (look(row) for row in np.flatnonzero(~of.is_foreign).tolist())
    return (it.latencies for it in looks if it.latencies is not None)
