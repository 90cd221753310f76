"""Decides whether a flow, or some of its topics, has caught up: for `lag` and programs that wait. Pure."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from sparkmirror.domain.ids import Flow
from sparkmirror.domain.quantities import counted, some_of
from sparkmirror.domain.troubles import NEVER_RUN
from sparkmirror.storage.promotions import Promotions
from sparkmirror.view.values import PartitionView, State
from sparkmirror.view.words import CALM, Word, is_fine


class LagLimit(NamedTuple):
    """A partition is as good as caught up when it keeps one of them; `seconds` is None for no such limit.

    `by_word`: or when its state says so, as `status` shows it. Where the mirror reports an error, nothing
    tells that its records are on their way: only `records` count.
    """

    records: int = 0
    seconds: float | None = None
    by_word: bool = False

    def is_kept(self, it: PartitionView) -> bool:
        """Whether a partition, whose lag is known, keeps within the limits."""
        if it.lag.records is not None and it.lag.records <= self.records:
            return True
        if self.by_word and it.state.word is Word.CAUGHT_UP and it.state.error is None:
            return True
        if self.seconds is None or it.lag.seconds is None or it.state.error is not None:
            return False
        return it.lag.seconds <= self.seconds


class ReportedFlow(Protocol):
    """A flow's state as a mirror reports it; `partitions` without those of `promoted` topics."""

    @property
    def flow(self) -> Flow: ...
    @property
    def state(self) -> State: ...
    @property
    def partitions(self) -> Sequence[PartitionView]: ...
    @property
    def promoted(self) -> Promotions: ...
    @property
    def is_running(self) -> bool | None: ...
    @property
    def only_heartbeats(self) -> bool: ...


class FlowLag(NamedTuple):
    """The lag of those topics of a flow that are wanted; `has_topics`: it mirrors some, wanted or not.

    `standby` counts the partitions whose records came by the opposite flow: they have no lag.
    """

    flow: Flow
    state: State
    partitions: Sequence[PartitionView]
    promoted: Promotions
    is_running: bool | None
    only_heartbeats: bool
    has_topics: bool
    limit: LagLimit
    standby: int

    @property
    def records(self) -> int:
        """Add up the records of the partitions whose lag is known."""
        return sum(it.lag.records or 0 for it in self.partitions)

    @property
    def unknown(self) -> list[PartitionView]:
        return [it for it in self.partitions if it.lag.records is None]

    @property
    def behind(self) -> list[PartitionView]:
        """The partitions beyond the limit, the worst first."""
        found = [it for it in self.partitions if it.lag.records is not None and not self.limit.is_kept(it)]
        return sorted(found, key=lambda it: (-(it.lag.records or 0), it.source))

    @property
    def is_caught_up(self) -> bool | None:
        """None where that can't be told."""
        if self.behind or (self.partitions and self.state.error == NEVER_RUN):
            return False
        if not self.has_topics:
            return self.only_heartbeats or is_fine(self.state.word)
        if any(it.state.word is Word.ACTION_REQUIRED for it in self.unknown):
            return False
        return None if self.unknown or not (self.partitions or self.promoted or self.standby) else True


def lag_of(flow: ReportedFlow, is_wanted: Callable[[str], Any], limit: LagLimit) -> FlowLag:
    """`is_wanted` gets the names of topics on the source."""
    wanted = sorted((it for it in flow.partitions if is_wanted(it.source.topic)), key=attrgetter("source"))
    copied = [it for it in wanted if it.state.word is not Word.STANDBY]
    return FlowLag(
        flow.flow,
        flow.state,
        copied,
        {topic: each for topic, each in flow.promoted.items() if is_wanted(topic)},
        flow.is_running,
        flow.only_heartbeats,
        bool(flow.partitions or flow.promoted),
        limit if flow.is_running is not False else LagLimit(limit.records),  # nothing is on its way
        len(wanted) - len(copied),
    )


def waits_for(lags: Sequence[FlowLag]) -> str | None:
    """Say what has not caught up, with the first error, since a wait may be in vain; None if all has."""
    left = [lag for lag in lags if lag.is_caught_up is not True]
    if not left:
        return None
    behind, unknown = sum(len(lag.behind) for lag in left), sum(len(lag.unknown) for lag in left)
    text = f"{some_of([str(lag.flow) for lag in left])}: "
    text += f"{counted(sum(lag.records for lag in left), 'record')} to copy"
    text += f", {counted(behind, 'partition')} behind" + (f", {unknown:,} unknown" if unknown else "")
    causes = [told(lag.state) for lag in left if lag.state.error or lag.state.word not in CALM]
    causes += [f"{it.source}: {told(it.state)}" for lag in left for it in _in_error(lag)]
    return text + "".join(f"; {cause}" for cause in causes[:1])


def _in_error(lag: FlowLag) -> Sequence[PartitionView]:
    """The partitions that have not caught up, and whose task reports an error."""
    return [it for it in (*lag.unknown, *lag.behind) if it.state.error]


def told(state: State) -> str:
    said = state.error or state.advice
    return f"{state.word}: {said}" if said else state.word
