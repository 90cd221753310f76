"""Makes the view of a flow's copy tasks from that of its partitions."""

from collections import defaultdict
from typing import NamedTuple

from sparkmirror.view.topics import lag_of, speed_of, worst_state
from sparkmirror.view.values import FlowView, Lag, PartitionView, Speed, State


class TaskView(NamedTuple):
    """`state` is that of its worst partition."""

    number: int
    state: State
    partitions: int
    lag: Lag
    speed: Speed


def tasks_of(flow: FlowView) -> list[TaskView]:
    """In the order of their numbers; none where nobody reports tasks, as of Java's mirror."""
    by_task: dict[int, list[PartitionView]] = defaultdict(list)
    for topic in flow.topics:
        for it in topic.partitions:
            if it.task is not None:
                by_task[it.task].append(it)
    return [
        TaskView(task, worst_state([it.state for it in of]), len(of), lag_of(of), speed_of(of))
        for task, of in sorted(by_task.items())
    ]
