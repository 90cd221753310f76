"""Makes the view of a flow's copy tasks from that of its partitions."""

from typing import NamedTuple

import numpy as np

from sparkmirror.view.flows import FlowView
from sparkmirror.view.sums import Sums
from sparkmirror.view.values import Lag, Speed, State


class TaskView(NamedTuple):
    """`state` is that of its worst partition."""

    number: int
    state: State
    partitions: int
    lag: Lag
    speed: Speed


def tasks_of(flow: FlowView) -> list[TaskView]:
    """List the tasks by their numbers; there is none where nobody reports tasks, as with Java's mirror."""
    rows = flow.topics.layout.rows
    of = flow.topics.partitions.tasks[rows]
    order = np.argsort(of, kind="stable")[: np.count_nonzero(~np.isnan(of))]  # NaN comes last
    tasks, starts = np.unique(of[order], return_index=True)
    sums = Sums(flow.topics.partitions, rows[order], starts)
    return [
        TaskView(int(task), sums.state(at), len(sums.rows(at)), sums.lag(at), sums.speed(at))
        for at, task in enumerate(tasks.tolist())
    ]
