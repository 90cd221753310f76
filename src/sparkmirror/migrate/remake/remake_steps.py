"""Derives the steps that recreate a mirrored topic with its source's offsets, from what both clusters hold.

Kafka renames no topic, and moves no log: the topic on the target is deleted, and the flow copies all of its
source again. What only the target still has is lost, so it is said before. The same is done, where that is
wanted, instead of filling what retention has taken from the source before it was copied.

Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.domain.ids import Flow, GroupId, TopicPartition
from sparkmirror.domain.quantities import counted
from sparkmirror.migrate.steps import Step, StepState, some_of
from sparkmirror.storage.remakes import Remake


@dataclass(frozen=True, slots=True)
class PartitionRemake:
    """Both logs of a partition; the target's offsets are None while the topic is missing there.

    `is_same`: by its position, the target's log has the source's offsets. `is_begun`: the flow has
    stored a position of this very topic; `was_begun`: of one of its name that is gone. The target has at most
    `older` records that the source has removed since, None if that is unknown; `foreign` counts records of
    producers that are not this flow's.
    """

    source: TopicPartition
    target: TopicPartition
    source_start: int
    source_end: int
    target_start: int | None
    target_end: int | None
    is_same: bool = False
    is_begun: bool = False
    was_begun: bool = False
    older: int | None = 0
    foreign: int = 0

    @property
    def is_other(self) -> bool:
        """Whether it holds something with other offsets, as far as that is known.

        A position follows its records by a second. What the flow fills first is before its source.
        """
        if self.is_begun:
            return bool(self.target_end) and not self.is_same
        return not self.was_begun and (self.target_end or 0) > self.source_start

    @property
    def is_outrun(self) -> bool:
        """Whether retention has taken from the source what comes next: a gap, in which markers are due."""
        return self.is_same and (self.target_end or 0) < self.source_start

    @property
    def has_started_over(self) -> bool:
        """Whether the log begins where its source does, and holds its records, or nothing if it has none."""
        if self.target_start is None or self.target_start < self.source_start:
            return False
        return self.is_same or self.target_start == self.target_end == self.source_end


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """A group's offset on the target and the one on the source; None where that is unknown.

    From there it reads at most `again` records a second time, None if that is unknown.
    """

    group: GroupId
    source: TopicPartition
    target: TopicPartition
    offset: int
    place: int | None
    again: int | None = 0
    metadata: str = ""
    is_active: bool = False


@dataclass(frozen=True, slots=True)
class TopicRemake:
    """A topic, named as on the source. `remake` is what was recorded before the topic was deleted.

    `target_id` is empty while the topic is missing. `groups` are those with offsets in it on the target;
    `active` the names of those of them, or of those remembered, that have members. `deletes` accepts losses,
    `leave_untranslated` groups whose places can't be told. `recreates` wants no markers in gaps before the
    source's start.
    """

    flow: Flow
    topic: str
    partitions: Sequence[PartitionRemake] = ()
    target_id: bytes = b""
    remake: Remake | None = None
    groups: Sequence[GroupPlace] = ()
    active: Sequence[GroupId] = ()
    size_bytes: int | None = None
    deletes: bool = False
    leave_untranslated: bool = False
    recreates: bool = False
    obstacle: str | None = None

    @property
    def is_due(self) -> bool:
        """Whether the topic must be deleted on the target."""
        if self.remake is not None:
            return self.remake.old_id == self.target_id
        return any(each.is_other or (self.recreates and each.is_outrun) for each in self.partitions)

    @property
    def is_missing(self) -> bool:
        """Whether it was deleted, and is not recreated yet."""
        return self.remake is not None and not self.target_id

    def steps(self) -> list[Step]:
        """List the steps in order. Steps after one that waits state what holds now."""
        return [
            self._check(),
            self._stop(),
            self._switch(),
            self._copy(),
            self._groups(),
            self._verify(),
        ]

    def _check(self) -> Step:
        if (why := self.obstacle or self._losses()) is not None:
            return Step("check", StepState.IMPOSSIBLE, why)
        source, target = self.flow
        count = counted(len(self.partitions), "partition")
        if not self.is_due:
            text = "is being created again" if self.remake is not None else f"has the offsets of {source}"
            return Step("check", StepState.DONE, f"{self.topic}, with {count}, {text}")
        others = sum(each.is_other for each in self.partitions)
        outrun = sum(each.is_outrun for each in self.partitions)
        found = [f"{others:,} of {count} have other offsets on {target}"] if others else []
        found += [f"{outrun:,} of {count} end on {target} before {source} begins"] if outrun else []
        filled = sum(each.source_start for each in self.partitions)
        size = "all" if self.size_bytes is None else f"{self.size_bytes / 1e6:,.1f} MB"
        return Step(
            "check",
            StepState.DONE,
            f"{', and '.join(found)}; {size} of {source} will be copied again, "
            f"behind {filled:,} offsets that are filled first",
        )

    def _losses(self) -> str | None:
        """Return the losses that the user has not accepted."""
        if not self.is_due:
            return None
        source, target = self.flow
        found = []
        if foreign := sum(each.foreign for each in self.partitions):
            found.append(f"{counted(foreign, 'record')} that others than {self.flow} have written")
        older = [each.older for each in self.partitions]
        if any(older):
            upto = f"up to {counted(sum(filter(None, older)), 'record')}"
            found.append(f"{upto} that {source} has removed since")
        if None in older:
            found.append(f"perhaps records that {source} has removed since: no offset sync tells")
        if found and not self.deletes:
            return f"{target} would lose {', and '.join(found)}. --delete accepts that"
        unknown = [each for each in self.groups if each.place is None]
        if unknown and not self.leave_untranslated:
            names = some_of([f"{each.group} in {each.target} at {each.offset}" for each in unknown])
            return (
                f"no offset sync is old enough to tell where these groups are on {source}: {names}. "
                "--leave-untranslated leaves them out; there auto.offset.reset decides"
            )
        return None

    def _stop(self) -> Step:
        target = self.flow.target
        if self.active and (self.is_due or self.remake is not None):
            text = (
                f"these groups have members on {target}: {some_of(self.active)}. Stop their consumers there"
            )
            return Step("stop", StepState.WAITING, text)
        return Step("stop", StepState.DONE, f"no group that has read it on {target} has members there")

    def _switch(self) -> Step:
        target = self.flow.target
        if self.is_due:
            text = f"remember {self._moves()}, delete the topic on {target}, and recreate it"
            return Step("switch", StepState.TO_DO, text)
        if self.is_missing:
            return Step("switch", StepState.TO_DO, f"recreate the topic on {target}")
        return Step("switch", StepState.DONE, f"{target} has no record of it with another offset")

    def _moves(self) -> str:
        moved = [each for each in self.groups if each.place is not None]
        again = [each.again for each in moved]
        text = f"{counted(len(moved), 'offset')} of groups"
        if any(again):
            text += f", of which some read up to {max(filter(None, again)):,} records again"
        return text + (", and some begin earlier than they are" if None in again else "")

    def _copy(self) -> Step:
        source, target = self.flow
        if self.obstacle is not None or self.is_due or self.is_missing:
            return Step("copy", StepState.TO_DO, f"until {self.flow} has copied what {source} has")
        again = [each for each in self.partitions if each.is_begun and not each.is_same]
        if again:
            text = f"{self.flow} copies {some_of([each.target for each in again])} with other offsets"
            return Step(
                "copy", StepState.IMPOSSIBLE, f"{text}: restart it with this file, and run this again"
            )
        if left := [each for each in self.partitions if not self._is_there(each)]:
            names = some_of([f"{each.target} (ends at {each.target_end})" for each in left])
            text = f"{self.flow} has to copy {names}. Does it run, with this file?"
            return Step("copy", StepState.WAITING, text)
        return Step("copy", StepState.DONE, f"what {target} has of it has the offsets of {source}")

    def _is_there(self, partition: PartitionRemake) -> bool:
        if self.remake is None:
            return partition.is_same or not partition.was_begun
        upto = self.remake.ends.get(partition.source.partition, 0)
        return partition.has_started_over and (partition.target_end or 0) >= upto

    def _groups(self) -> Step:
        source, target = self.flow
        if self.remake is not None or self.is_due or self.obstacle is not None:
            count = len(self.groups) if self.remake is None else len(self.remake.groups)
            text = f"write {counted(count, 'offset')} of groups on {target}, as offsets of {source}"
            return Step("groups", StepState.TO_DO, text)
        return Step("groups", StepState.DONE, f"offsets of groups on {target} are those of {source}")

    def _verify(self) -> Step:
        source, target = self.flow
        if self.remake is not None or self.is_due or self.obstacle is not None:
            return Step("verify", StepState.TO_DO, "compare both logs' offsets")
        behind = [each for each in self.partitions if (each.target_end or 0) < each.source_end]
        text = f"{len(self.partitions) - len(behind):,} of {counted(len(self.partitions), 'partition')} end "
        text += f"on {target} where {source} does"
        if behind:
            names = some_of([f"{each.target} at {each.target_end or 0}" for each in behind])
            text += f"; {self.flow} continues with {names}"
        return Step("verify", StepState.DONE, text, is_partial=bool(behind))


def rows_of(remake: TopicRemake) -> list[Mapping[str, str | int | None]]:
    """Return a row per partition: its start and end on both clusters, and whether its offsets agree."""
    return [
        {
            "source": str(each.source),
            "source_start": each.source_start,
            "source_end": each.source_end,
            "target": str(each.target),
            "target_start": each.target_start,
            "target_end": each.target_end,
            "state": _state_of(each),
        }
        for each in remake.partitions
    ]


def _state_of(partition: PartitionRemake) -> str:
    if partition.is_other:
        return "other offsets"
    if partition.is_outrun:
        return "ends before its source"
    return "same" if partition.is_same else "empty"
