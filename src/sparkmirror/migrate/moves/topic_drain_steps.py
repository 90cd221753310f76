"""Derives the steps that move producers to a flow's target: stopped producers, drained topics, heartbeats.

All but the time since the end offsets changed follows from what both clusters hold, so that an interrupted
migration can be continued.

Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.domain.quantities import counted
from sparkmirror.migrate.steps import Step, StepState, some_of

_HEARTBEATS_MISSED_MAX = 3
_HEARTBEAT_GRACE_S = 5.0
_GAPS_MAX = 100
_GAPS_SHARE = 0.01


class UnchangedEnds:
    """Measures for how long end offsets have not changed."""

    def __init__(self) -> None:
        self._ends: Mapping[TopicPartition, int] | None = None
        self._since = 0.0
        self.changed: list[TopicPartition] = []
        """The partitions whose end changed between the last two observations."""

    def observe(self, ends: Mapping[TopicPartition, int], now: float) -> float:
        """Seconds; `now` is of a clock that only goes forward."""
        before, self._ends = self._ends, dict(ends)
        self.changed = [] if before is None else sorted(p for p, end in ends.items() if before.get(p) != end)
        if before is None or self.changed:
            self._since = now
        return now - self._since


def stop_step(
    topics: Sequence[str],
    cluster: Alias,
    still_s: float,
    still_for_s: float,
    changed: Sequence[TopicPartition],
) -> Step:
    """The step that waits until the end offsets of these topics have not changed for this time."""
    if still_s >= still_for_s:
        text = f"no records have been written to them on {cluster} for {still_s:.0f} s"
        return Step("stop", StepState.DONE, text)
    text = f"stop the producers of {some_of(topics)} on {cluster}; "
    if changed:
        text += f"records are still written to {some_of(changed)}"
    else:
        text += f"their end offsets must not change for {still_for_s:g} s"
    return Step("stop", StepState.WAITING, text)


@dataclass(frozen=True, slots=True)
class PartitionDrain:
    """`source_end` and `target_end` are end offsets; the latter is None while the target lacks the partition.

    `mirrored_to` is the next source offset that the mirror will copy, None before its first. `is_drained`:
    no record is left to copy. `target_next` is the target offset of the record at `source_end`, None if it is
    unknown. `error` is the mirror's own report of why it can't copy the partition.
    """

    source: TopicPartition
    target: TopicPartition
    source_end: int
    mirrored_to: int | None
    is_drained: bool
    target_next: int | None
    target_end: int | None
    error: str | None = None

    @property
    def lag(self) -> int:
        """The lag in offsets; 0 where only transaction markers are left."""
        return 0 if self.is_drained else max(0, self.source_end - (self.mirrored_to or 0))

    @property
    def extra(self) -> int:
        """The offsets that the target has more than the source."""
        return max(0, (self.target_end or 0) - self.source_end)

    @property
    def has_many_more(self) -> bool:
        """Whether offsets differ by more than transaction markers and gaps explain."""
        return self.extra > max(_GAPS_MAX, self.source_end * _GAPS_SHARE)

    @property
    def is_exact(self) -> bool:
        """Whether the target ends at the translated end of the source: nothing else was written to it."""
        return self.target_next is not None and self.target_next == self.target_end


@dataclass(frozen=True, slots=True)
class HeartbeatsSeen:
    """The flow's heartbeats on the target: the last one, and the last at the first survey; epoch, in ms."""

    interval_s: float
    """Infinite for a flow that emits none."""
    first_ms: int | None
    last_ms: int | None
    now_ms: int
    waited_s: float

    def step(self, target: str) -> Step:
        if self.interval_s == float("inf"):
            return Step("heartbeat", StepState.DONE, "this flow emits no heartbeats")
        ago = f"{max(0, self.now_ms - (self.last_ms or 0)) / 1000:,.1f} s ago"
        seen = f"the last one on {target} was emitted {ago}" if self.last_ms else f"there is none on {target}"
        if self.last_ms is not None and self.last_ms != self.first_ms:
            return Step("heartbeat", StepState.DONE, seen)
        if self.waited_s > _HEARTBEATS_MISSED_MAX * self.interval_s + _HEARTBEAT_GRACE_S:
            return Step("heartbeat", StepState.DONE, f"{seen}: the mirror is not running any more")
        return Step("heartbeat", StepState.WAITING, f"wait for the next one; {seen}")


@dataclass(frozen=True, slots=True)
class TopicsDrain:
    """Some topics of a flow as found on both clusters; their end offsets have not changed for `still_s`."""

    flow: Flow
    partitions: Sequence[PartitionDrain]
    heartbeats: HeartbeatsSeen
    still_s: float
    still_for_s: float
    changed: Sequence[TopicPartition] = ()
    obstacle: str | None = None

    @property
    def topics(self) -> list[str]:
        return sorted({partition.source.topic for partition in self.partitions})

    def steps(self) -> list[Step]:
        """List the steps in order. Steps after one that waits state what holds now."""
        if self.obstacle is not None:
            return [self._check(), *self._steps_of_nothing()]
        return [
            self._check(),
            self.stop(),
            self.drain(),
            self.heartbeats.step(self.flow.target),
            self._verify(),
        ]

    def _steps_of_nothing(self) -> list[Step]:
        source, target = self.flow
        return [
            Step("stop", StepState.TO_DO, f"until nothing is written on {source} any more"),
            Step("drain", StepState.TO_DO, f"until all records are on {target}"),
            Step("heartbeat", StepState.TO_DO, f"the flow's last one on {target}"),
            Step("verify", StepState.TO_DO, "compare the end offsets of both clusters"),
        ]

    def _check(self) -> Step:
        if self.obstacle is not None:
            return Step("check", StepState.IMPOSSIBLE, self.obstacle)
        lag = sum(partition.lag for partition in self.partitions)
        count = f"{counted(len(self.partitions), 'partition')} of {counted(len(self.topics), 'topic')}"
        return Step("check", StepState.DONE, f"{count}, {counted(lag, 'record')} not mirrored yet")

    def stop(self) -> Step:
        return stop_step(self.topics, self.flow.source, self.still_s, self.still_for_s, self.changed)

    def drain(self) -> Step:
        behind = [partition for partition in self.partitions if not partition.is_drained]
        if not behind:
            return Step("drain", StepState.DONE, f"all records are on {self.flow.target}")
        failed = [partition for partition in behind if partition.error is not None]
        text = f"the mirror has to copy {sum(partition.lag for partition in behind):,} more records: "
        text += some_of([f"{partition.source} up to {partition.source_end}" for partition in behind])
        text += f". It reports for {failed[0].source}: {failed[0].error}" if failed else "; it must run"
        return Step("drain", StepState.WAITING, text)

    def _verify(self) -> Step:
        target = self.flow.target
        short = [each for each in self.partitions if (each.target_next or 0) > (each.target_end or 0)]
        if short:
            names = some_of(
                [f"{each.target} (at {each.target_end}, not {each.target_next})" for each in short]
            )
            return Step(
                "verify",
                StepState.IMPOSSIBLE,
                f"{target} has lost records, these partitions end too early: {names}",
            )
        if not all(partition.is_drained for partition in self.partitions):
            return Step("verify", StepState.TO_DO, "compare the end offsets of both clusters")
        exact = sum(partition.is_exact for partition in self.partitions)
        text = (
            f"in {exact:,} of {len(self.partitions):,} partitions the last record on {target} is the copy of "
            "the source's last"
        )
        more = [f"{each.target} ({each.extra:,} more)" for each in self.partitions if each.has_many_more]
        if more:
            text += "; these end at much higher offsets than their source, by records of others or second "
            text += f"copies: {some_of(more)}"
        return Step("verify", StepState.DONE, text)
