"""Puts what is known from Kafka alone into a table of partitions, and removes what is not known."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import numpy as np

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.looks import Latencies, Motion, PartitionLook
from sparkmirror.metrics.partition_table import NAN, Columns, PartitionTable
from sparkmirror.status.flow_look import FlowLook

POSITION_INTERVAL_S: Final = 60.0
"""Java's `offset.flush.interval.ms`."""
_GUESSED_MAX_S: Final = 5.0
"""An oldest record that was not found is at least as old as it has been missed: no proof that it is new."""


def watched_table(
    table: PartitionTable,
    flow: FlowLook,
    motion: Callable[[TopicPartition], Motion | None],
    passed_s: float,
) -> PartitionTable:
    """`motion` is for partitions that no task of this mirror reports, as Java's; `passed_s` since `flow`."""
    columns = _columns(table, flow, motion, passed_s)
    look = partial(_look, table, columns)
    return PartitionTable(table.sources, columns, look, table.report, partial(_latencies, look, columns))


def _columns(
    table: PartitionTable,
    flow: FlowLook,
    motion: Callable[[TopicPartition], Motion | None],
    passed_s: float,
) -> Columns:
    own, known, sources = flow.reported, table.columns, table.sources
    tasks = np.array([NAN if (report := own.get(it)) is None else report.task for it in sources], np.float64)
    moved = [(NAN, NAN) if (steps := motion(it)) is None else steps for it in sources]
    oldest_s = np.array([flow.oldest_s.get(it, NAN) for it in sources], np.float64) + passed_s
    throttled = np.array([flow.throttled.get(it, (0.0, 0.0)) for it in tasks.tolist()]).reshape(-1, 2)
    is_foreign = np.isnan(tasks)
    stored = {it.source for it in flow.partitions if it.position is not None}
    is_stored = np.array([it in stored for it in sources], np.bool_)
    is_guess = (known.lag > 0) & (known.lag_s <= _GUESSED_MAX_S)
    return known._replace(
        task=tasks,
        byte_rate=np.where(is_foreign, NAN, known.byte_rate),
        moved_s=np.where(is_foreign, np.array([float(it) for it, _ in moved]), known.moved_s),
        closed=np.where(is_foreign, np.array([float(it) for _, it in moved]), known.closed),
        # Nobody is behind by what the look could not have yet: a position may be stored later than it is
        # reached. Where none was ever stored, nothing says that records are copied.
        slack_s=np.where(is_foreign & is_stored, POSITION_INTERVAL_S, passed_s),
        lag_s=np.where(np.isnan(oldest_s) & ~is_guess, known.lag_s, oldest_s),
        source_throttled=throttled[:, 0],
        target_throttled=throttled[:, 1],
    )


def _look(table: PartitionTable, columns: Columns, row: int) -> PartitionLook:
    look, task, lag_s, moved_s = (
        table[row],
        *(it.item(row) for it in (columns.task, columns.lag_s, columns.moved_s)),
    )
    look = look._replace(slack_s=columns.slack_s.item(row), lag_s=None if np.isnan(lag_s) else lag_s)
    if not np.isnan(task):
        shares = columns.source_throttled.item(row), columns.target_throttled.item(row)
        return look._replace(task=int(task), source_throttled=shares[0], target_throttled=shares[1])
    return look._replace(
        task=None,
        byte_rate=None,
        latencies=None,
        motion=None if np.isnan(moved_s) else Motion(moved_s, int(columns.closed.item(row))),
    )


def _latencies(look: Callable[[int], PartitionLook], columns: Columns) -> Iterator[Latencies]:
    looks = (look(row) for row in np.flatnonzero(~np.isnan(columns.task)).tolist())
    return (it.latencies for it in looks if it.latencies is not None)
