"""Derives the steps that move a consumer group to a flow's target, or roll that back, from its offsets.

Everything follows from what both clusters hold, so that an interrupted move can be continued.

Pure.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from sparkmirror.domain.ids import Flow, GroupId, TopicPartition
from sparkmirror.domain.quantities import counted
from sparkmirror.migrate.steps import Step, StepState, some_of
from sparkmirror.storage.written_offsets import WrittenOffset


class MoveState(StrEnum):
    NOT_MIRRORED = "not mirrored yet"
    """The mirror has not copied all that the group has read, or not yet written offset syncs for it."""
    UNKNOWN = "unknown"
    """There is no offset sync that translates the group's offset."""
    TO_WRITE = "to write"
    WRITTEN = "there"
    AHEAD = "ahead"
    """The group has read further on the target; it's never set back."""


@dataclass(frozen=True, slots=True)
class PartitionMove:
    """`source_offset` is committed on the source; `translated` is its offset on the target, if that is known.

    `is_settled`: the mirror will not make the translation more exact. `source_end` and `target_end` are
    end offsets; `target_end` is None while the target lacks the partition.
    """

    source: TopicPartition
    target: TopicPartition
    source_offset: int
    source_end: int
    translated: int | None
    is_settled: bool
    target_offset: int | None
    target_end: int | None
    metadata: str = ""
    is_preserved: bool = False
    """Whether its records have the source's offsets, so that nothing is translated."""

    @property
    def state(self) -> MoveState:
        if not self.is_settled:
            return MoveState.NOT_MIRRORED
        if self.translated is None:
            return MoveState.UNKNOWN
        if self.target_offset is None or self.target_offset < self.translated:
            return MoveState.TO_WRITE
        return MoveState.WRITTEN if self.target_offset == self.translated else MoveState.AHEAD

    @property
    def source_lag(self) -> int:
        return max(0, self.source_end - self.source_offset)

    @property
    def target_lag(self) -> int | None:
        """The records behind the group's next offset on the target: its own, or the one to be written."""
        next_offset = self.translated if self.state is MoveState.TO_WRITE else self.target_offset
        if next_offset is None or self.target_end is None:
            return None
        return max(0, self.target_end - next_offset)


@dataclass(frozen=True, slots=True)
class NotMirrored:
    """A partition that the group has an offset for and that this flow does not mirror."""

    source: TopicPartition
    why: str


@dataclass(frozen=True, slots=True)
class GroupMove:
    """A group as it was found on both clusters.

    `partitions` are those of mirrored topics that it has an offset for; `without_offset` the others of these
    topics. `obstacle` is the reason why it can't be moved at all. `leave_untranslated` lets it move although
    some offsets can't be translated: there its consumers start as their `auto.offset.reset` says.
    """

    flow: Flow
    group: GroupId
    partitions: Sequence[PartitionMove] = ()
    without_offset: Sequence[TopicPartition] = ()
    not_mirrored: Sequence[NotMirrored] = ()
    has_members_on_source: bool = False
    has_members_on_target: bool = False
    members_on_source: Sequence[object] = ()
    members_on_target: Sequence[object] = ()
    """The group's members, as far as they can be described."""
    obstacle: str | None = None
    leave_untranslated: bool = False

    def with_members(self, on_source: Sequence[object], on_target: Sequence[object]) -> Self:
        return replace(self, members_on_source=on_source, members_on_target=on_target)

    def in_state(self, *states: MoveState) -> list[PartitionMove]:
        return [partition for partition in self.partitions if partition.state in states]

    @property
    def to_write(self) -> list[PartitionMove]:
        return self.in_state(MoveState.TO_WRITE)

    def steps(self) -> list[Step]:
        """List the steps in order. Steps after one that waits state what they would do now."""
        if self.obstacle is not None or not self.partitions:
            return [self._check(), *self._steps_of_nothing()]
        return [self._check(), self._wait(), self._mirrored(), self._sync(), self._verify()]

    def _steps_of_nothing(self) -> list[Step]:
        """Return the steps of a group without any known offset to move: none of them is done."""
        source, target = self.flow
        return [
            Step("wait", StepState.TO_DO, f"until its consumers on {source} are stopped"),
            Step("mirror", StepState.TO_DO, "until the mirror has copied all that the group has read"),
            Step("sync", StepState.TO_DO, f"write its translated offsets on {target}"),
            Step("verify", StepState.TO_DO, f"read the offsets back from {target}"),
        ]

    def _check(self) -> Step:
        why = self._impossible()
        if why is not None:
            return Step("check", StepState.IMPOSSIBLE, why)
        behind = sum(partition.source_lag for partition in self.partitions)
        text = f"{_partitions(self.partitions)}, {counted(behind, 'record')} of lag on {self.flow.source}"
        if self.without_offset:
            text += f"; it has no offset for {some_of(self.without_offset)}: auto.offset.reset decides there"
        if self.not_mirrored:
            left = some_of([f"{each.source} ({each.why})" for each in self.not_mirrored])
            text += f"; this flow does not mirror {left}"
        return Step("check", StepState.DONE, text)

    def _impossible(self) -> str | None:
        target, unknown = self.flow.target, self.in_state(MoveState.UNKNOWN)
        if self.obstacle is not None:
            return self.obstacle
        if not self.partitions:
            return f"it has committed nothing on {self.flow.source} that this flow mirrors"
        if unknown and not self.leave_untranslated:
            names = some_of([f"{partition.source} offset {partition.source_offset}" for partition in unknown])
            return (
                f"no offset sync is old enough to translate these offsets to {target}: {names}. "
                "--leave-untranslated moves the others; there auto.offset.reset decides"
            )
        if self.has_members_on_target and self.to_write:
            names = some_of([partition.target for partition in self.to_write])
            members = _named(self.members_on_target)
            return (
                f"it has members on {target}{members}, and its offsets there are behind in {names}: "
                "offsets can be written for a group without members only, so stop its consumers there"
            )
        return None

    def _wait(self) -> Step:
        source = self.flow.source
        if self.has_members_on_source:
            members = _named(self.members_on_source)
            text = f"it has members on {source}{members}: stop its consumers there, and let them commit"
            return Step("wait", StepState.WAITING, text)
        return Step("wait", StepState.DONE, f"it has no members on {source}")

    def _mirrored(self) -> Step:
        behind = self.in_state(MoveState.NOT_MIRRORED)
        if not behind:
            return Step("mirror", StepState.DONE, "the mirror has copied all that the group has read")
        names = some_of([f"{partition.source} up to {partition.source_offset}" for partition in behind])
        text = f"the mirror has not copied, or written an offset sync for: {names}; it must run"
        return Step("mirror", StepState.WAITING, text)

    def _sync(self) -> Step:
        target, count = self.flow.target, len(self.to_write)
        if count:
            same = sum(partition.is_preserved for partition in self.to_write)
            as_they_are = f", {same:,} of them as they are on {self.flow.source}" if same else ""
            return Step("sync", StepState.TO_DO, f"write {counted(count, 'offset')} on {target}{as_they_are}")
        if self.in_state(MoveState.NOT_MIRRORED):
            return Step("sync", StepState.TO_DO, f"write its offsets on {target}, once the mirror is as far")
        ahead = self.in_state(MoveState.AHEAD)
        text = f"its offsets are on {target}"
        if ahead:
            text += f"; it is ahead there in {some_of([partition.target for partition in ahead])}"
        return Step("sync", StepState.DONE, text)

    def _verify(self) -> Step:
        target, found = self.flow.target, self.in_state(MoveState.WRITTEN, MoveState.AHEAD)
        beyond = [each for each in found if (each.target_offset or 0) > (each.target_end or 0)]
        if beyond:
            names = some_of([f"{each.target} offset {each.target_offset}" for each in beyond])
            return Step("verify", StepState.IMPOSSIBLE, f"the log on {target} ends before {names}")
        if len(found) + len(self.in_state(MoveState.UNKNOWN)) < len(self.partitions):
            return Step("verify", StepState.TO_DO, f"read the offsets back from {target}")
        return Step("verify", StepState.DONE, f"{counted(len(found), 'offset')} read back from {target}")


class RollbackState(StrEnum):
    TO_RESTORE = "to restore"
    TO_REMOVE = "to remove"
    RESTORED = "back"


@dataclass(frozen=True, slots=True)
class PartitionRollback:
    """`current` is the group's offset on the target now."""

    offset: WrittenOffset
    current: int | None

    @property
    def state(self) -> RollbackState:
        if self.current == self.offset.earlier:
            return RollbackState.RESTORED
        return RollbackState.TO_REMOVE if self.offset.earlier is None else RollbackState.TO_RESTORE


@dataclass(frozen=True, slots=True)
class GroupRollback:
    """A group whose offsets on the target are to become what they were before a migration wrote them."""

    flow: Flow
    group: GroupId
    partitions: Sequence[PartitionRollback] = ()
    has_members_on_target: bool = False
    obstacle: str | None = None
    syncs_by_itself: bool = False
    """Whether the flow has `sync.group.offsets.enabled`."""

    def steps(self) -> list[Step]:
        return [self._check(), self._wait(), self._restore()]

    def in_state(self, state: RollbackState) -> list[PartitionRollback]:
        return [partition for partition in self.partitions if partition.state is state]

    def _check(self) -> Step:
        target = self.flow.target
        if self.obstacle is not None:
            return Step("check", StepState.IMPOSSIBLE, self.obstacle)
        if not self.partitions:
            return Step("check", StepState.DONE, f"no offset that a migration wrote on {target} is left")
        moved = [each for each in self.partitions if (each.current or 0) > each.offset.written]
        text = f"{len(self.partitions):,} offsets were written on {target}"
        if moved:
            names = some_of([each.offset.partition for each in moved])
            text += f"; it has read further there since, in {names}, and will read these records again"
        if self.syncs_by_itself and self.partitions:
            text += (
                f"; {self.flow} has sync.group.offsets.enabled and will write offsets again: disable it first"
            )
        return Step("check", StepState.DONE, text)

    def _wait(self) -> Step:
        target = self.flow.target
        if self.has_members_on_target and (
            self.in_state(RollbackState.TO_RESTORE) or self.in_state(RollbackState.TO_REMOVE)
        ):
            return Step("wait", StepState.WAITING, f"it has members on {target}: stop its consumers there")
        return Step("wait", StepState.DONE, f"it has no active members on {target}")

    def _restore(self) -> Step:
        restore, remove = (
            len(self.in_state(RollbackState.TO_RESTORE)),
            len(self.in_state(RollbackState.TO_REMOVE)),
        )
        if not restore and not remove:
            return Step(
                "restore", StepState.DONE, f"its offsets on {self.flow.target} are what they were before"
            )
        parts = [f"set {restore:,} offsets back"] if restore else []
        parts += [f"remove {remove:,} that were not there before"] if remove else []
        return Step("restore", StepState.TO_DO, f"{' and '.join(parts)} on {self.flow.target}")


def _partitions(moves: Sequence[PartitionMove]) -> str:
    topics: Collection[str] = {move.source.topic for move in moves}
    return f"{counted(len(moves), 'partition')} of {counted(len(topics), 'topic')}"


def _named(members: Sequence[object]) -> str:
    return f" ({some_of(members)})" if members else ""
