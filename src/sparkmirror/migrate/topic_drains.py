"""Moving producers to the target of a flow: whether they have stopped, and whether all of it has arrived.

Everything but the standing still follows from what both clusters hold, so whoever looks again sees how far
it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.domain.ids import Flow, TopicPartition
from sparkmirror.migrate.steps import Step, StepState, some_of

_HEARTBEATS_MISSED_MAX = 3
_HEARTBEAT_GRACE_S = 5.0


class StandStill:
    """For how long end offsets have not moved."""

    def __init__(self) -> None:
        self._ends: Mapping[TopicPartition, int] | None = None
        self._since = 0.0
        self.moved: list[TopicPartition] = []
        """Which did between the last two looks."""

    def observe(self, ends: Mapping[TopicPartition, int], now: float) -> float:
        """Seconds; `now` is of a clock that only goes forward."""
        before, self._ends = self._ends, dict(ends)
        self.moved = [] if before is None else sorted(p for p, end in ends.items() if before.get(p) != end)
        if before is None or self.moved:
            self._since = now
        return now - self._since


@dataclass(frozen=True, slots=True)
class PartitionDrain:
    """`source_end` and `target_end` are end offsets; the latter is None while the target lacks the partition.

    `mirrored_to` is the next source offset that the mirror will copy, None before its first. `is_drained`:
    nothing that it would copy is left. `target_next` is where the record of `source_end` would be on the
    target, None if that can't be told. `error` is the mirror's own word on why it does not get on.
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
        """In offsets; 0 where only markers of transactions are left."""
        return 0 if self.is_drained else max(0, self.source_end - (self.mirrored_to or 0))

    @property
    def is_exact(self) -> bool:
        """Whether the target ends exactly where the source's end is there: nobody else wrote to it."""
        return self.target_next is not None and self.target_next == self.target_end


@dataclass(frozen=True, slots=True)
class HeartbeatsSeen:
    """The flow's heartbeats on the target: the last one, and the last when we began to look; epoch, in ms."""

    interval_s: float
    """Infinite for a flow that emits none."""
    first_ms: int | None
    last_ms: int | None
    now_ms: int
    looked_for_s: float

    def step(self, target: str) -> Step:
        if self.interval_s == float("inf"):
            return Step("heartbeat", StepState.DONE, "this flow emits no heartbeats")
        ago = f"{max(0, self.now_ms - (self.last_ms or 0)) / 1000:,.1f} s ago"
        seen = f"the last one on {target} was emitted {ago}" if self.last_ms else f"there is none on {target}"
        if self.last_ms is not None and self.last_ms != self.first_ms:
            return Step("heartbeat", StepState.DONE, seen)
        if self.looked_for_s > _HEARTBEATS_MISSED_MAX * self.interval_s + _HEARTBEAT_GRACE_S:
            return Step("heartbeat", StepState.DONE, f"{seen}: the mirror does not run any more")
        return Step("heartbeat", StepState.WAITING, f"wait for the next one; {seen}")


@dataclass(frozen=True, slots=True)
class TopicsDrain:
    """Some topics of a flow as they were found on both clusters. Seconds are of standing still."""

    flow: Flow
    partitions: Sequence[PartitionDrain]
    heartbeats: HeartbeatsSeen
    still_s: float
    still_for_s: float
    moved: Sequence[TopicPartition] = ()
    trouble: str | None = None

    @property
    def topics(self) -> list[str]:
        return sorted({partition.source.topic for partition in self.partitions})

    def steps(self) -> list[Step]:
        """All of them, in order. After one that waits the others say how it is now."""
        return [
            self._check(),
            self._stop(),
            self._drain(),
            self.heartbeats.step(self.flow.target),
            self._verify(),
        ]

    def _check(self) -> Step:
        if self.trouble is not None:
            return Step("check", StepState.IMPOSSIBLE, self.trouble)
        lag = sum(partition.lag for partition in self.partitions)
        count = f"{len(self.partitions):,} partitions of {len(self.topics):,} topics"
        return Step("check", StepState.DONE, f"{count}, {lag:,} records not mirrored yet")

    def _stop(self) -> Step:
        source = self.flow.source
        if self.still_s >= self.still_for_s:
            text = f"nobody has written to them on {source} for {self.still_s:.0f} s"
            return Step("stop", StepState.DONE, text)
        text = f"stop the producers of {some_of(self.topics)} on {source}; "
        if self.moved:
            text += f"somebody still writes to {some_of(self.moved)}"
        else:
            text += f"its end offsets have to stand still for {self.still_for_s:g} s"
        return Step("stop", StepState.WAITING, text)

    def _drain(self) -> Step:
        behind = [partition for partition in self.partitions if not partition.is_drained]
        if not behind:
            return Step("drain", StepState.DONE, f"all of it is on {self.flow.target}")
        failed = [partition for partition in behind if partition.error is not None]
        text = f"the mirror has to copy {sum(partition.lag for partition in behind):,} more records: "
        text += some_of([f"{partition.source} up to {partition.source_end}" for partition in behind])
        text += f". It says of {failed[0].source}: {failed[0].error}" if failed else ". Does it run?"
        return Step("drain", StepState.WAITING, text)

    def _verify(self) -> Step:
        target = self.flow.target
        short = [each for each in self.partitions if (each.target_next or 0) > (each.target_end or 0)]
        if short:
            names = some_of(
                [f"{each.target} (at {each.target_end}, not {each.target_next})" for each in short]
            )
            return Step(
                "verify", StepState.IMPOSSIBLE, f"{target} has lost records: these end too early: {names}"
            )
        if not all(partition.is_drained for partition in self.partitions):
            return Step("verify", StepState.TO_DO, "compare the end offsets of both clusters")
        exact = sum(partition.is_exact for partition in self.partitions)
        count = len(self.partitions)
        text = f"{exact:,} of {count:,} partitions end on {target} exactly where their source does"
        return Step("verify", StepState.DONE, text)
