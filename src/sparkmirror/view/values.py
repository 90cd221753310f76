"""The values of a view. None means unknown, and never 0.

Times are ages in seconds at the moment of the view, except `quiet_since`, when the source's end was first
seen to be where it is: `FlowView.age` tells how long ago. So a quiet topic is the same value in each view.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from sparkmirror.domain.ids import ConnectorName, GroupId, TopicPartition
from sparkmirror.metrics.looks import Latencies
from sparkmirror.view.words import Word


class State(NamedTuple):
    """A thing's word; since how many seconds it holds, as far as that is known; the error, and what to do."""

    word: Word
    for_s: float | None = None
    error: str | None = None
    advice: str = ""


class Lag(NamedTuple):
    """Counts records by offsets, and how long the oldest of them has been in the source. None: unknown."""

    records: int | None
    seconds: float | None


class Speed(NamedTuple):
    """Per second, of the last 30 to 60 s; of several partitions, the sum of those that are known."""

    records: float | None
    bytes: float | None


class PartitionView(NamedTuple):
    """`position` is the next source offset to copy; `left_s` is when the lag is gone, as it shrinks now.

    Where the topic is promoted, `position` is the offset of the parting.
    """

    source: TopicPartition
    target: TopicPartition | None
    task: int | None
    state: State
    position: int | None
    source_end: int | None
    lag: Lag
    left_s: float | None
    quiet_since: float | None
    speed: Speed
    latencies: Latencies | None
    incidents: Mapping[str, int]
    lost: int
    filtered: int
    notice: str | None

    @property
    def median_and_high_ms(self) -> tuple[float | None, float | None]:
        """The median latency and the 99th percentile. Computed here: few partitions are looked at alone."""
        if self.latencies is None:
            return None, None
        median, high = self.latencies.recent.quantiles(0.5, 0.99)
        return median, high


class TopicView(NamedTuple):
    """A topic of the source; `target` is its name on the target, None before a partition has reported.

    `worst_first` has its partitions in another order, made when it is asked for.
    """

    name: str
    target: str | None
    state: State
    partitions: Sequence[PartitionView]
    worst_first: Callable[[], Sequence[PartitionView]]
    lag: Lag
    left_s: float | None
    speed: Speed
    quiet_since: float | None


class ConnectorView(NamedTuple):
    """`settings` are as they were written, without secrets; empty where they are not known."""

    name: ConnectorName
    kind: str
    state: State
    settings: Mapping[str, str] = MappingProxyType({})


class GroupPartitionView(NamedTuple):
    """`again` is how many records would be read again if the group moved now; None where that is unknown.

    `translated` is its place on the target, exact when `behind` is 0, else at most `behind` too early;
    `written` is what group offset sync has committed there.
    """

    source: TopicPartition
    target: TopicPartition
    committed: int
    translated: int | None
    behind: int | None
    checkpoint: int | None
    written: int | None
    again: int | None
    why: str


class GroupView(NamedTuple):
    """`is_active` on the target: it has members there; None where the target's groups are not read.

    `error` is why its offsets could not be read, on the source, where there are no partitions then, or on
    the target.
    """

    name: GroupId
    partitions: Sequence[GroupPartitionView]
    is_active: bool | None
    error: str | None = None

    @property
    def is_exact(self) -> bool:
        return self.error is None and all(partition.behind == 0 for partition in self.partitions)

    @property
    def again(self) -> int | None:
        counts = [partition.again for partition in self.partitions]
        return (
            None
            if None in counts or self.error is not None
            else sum(count for count in counts if count is not None)
        )
