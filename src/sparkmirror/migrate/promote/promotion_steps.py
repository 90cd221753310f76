"""Derives the steps that make a flow's copies the originals: drained, fenced, groups moved; and those back.

Everything but the time since the end offsets changed follows from what both clusters hold, so that an
interrupted promotion can be continued.

Pure.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sparkmirror.domain.ids import Flow, TopicPartition
from sparkmirror.domain.quantities import counted
from sparkmirror.migrate.moves.group_move_steps import GroupMove
from sparkmirror.migrate.moves.topic_drain_steps import TopicsDrain
from sparkmirror.migrate.steps import Step, StepState, some_of
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.storage.promotions import Parting, Promotions, Stage


@dataclass(frozen=True, slots=True)
class Ends:
    """The ends of both logs of a partition; None for a log that does not exist."""

    source: int | None
    target: int | None


@dataclass(frozen=True, slots=True)
class TopicsPromotion:
    """Some topics of a flow as found on both clusters.

    `drain` is of those that are not promoted yet. `others` are topics that were asked for and whose offsets
    are not preserved, `translated` partitions that continue with other offsets, `filled` those whose target
    begins with filler. `moves` are the groups that have offsets there; None where none can be moved.
    """

    flow: Flow
    partitions: Sequence[CopyPartition]
    promotions: Promotions
    ends: Mapping[TopicPartition, Ends]
    """The ends, by source partition."""
    drain: TopicsDrain
    others: Sequence[str] = ()
    translated: Sequence[TopicPartition] = ()
    filled: Sequence[TopicPartition] = ()
    longer: Sequence[TopicPartition] = ()
    """The partitions with records on the target behind the end of the source."""
    ended: Collection[TopicPartition] = ()
    """The promoted partitions whose source has no record behind the parting, only offsets of markers."""
    moves: Sequence[GroupMove] | None = None
    stops_at_now: bool = False
    is_source_gone: bool = False
    """Whether the source cluster was left out."""
    obstacle: str | None = None

    def steps(self) -> list[Step]:
        """List the steps in order. Steps after one that waits state what holds now."""
        if (why := self._impossible()) is not None:
            return [Step("check", StepState.IMPOSSIBLE, why), *self._steps_of_nothing()]
        return [
            self._check(),
            self._start(),
            self._stop(),
            self._drain(),
            self._switch(),
            self._groups(),
            self._verify(),
        ]

    def stage(self, topic: str) -> Stage | None:
        found = self.promotions.get(topic)
        return None if found is None else found.stage

    @property
    def left(self) -> list[CopyPartition]:
        """The partitions that are not promoted yet."""
        return [each for each in self.partitions if self.stage(each.source.topic) is not Stage.PROMOTED]

    @property
    def to_write(self) -> list[GroupMove]:
        """The groups whose offsets are to be copied, and can be."""
        moves = self.moves or ()
        return [
            move for move in moves if move.to_write and not move.obstacle and not move.has_members_on_target
        ]

    def parting(self, partition: TopicPartition) -> Parting | None:
        promotion = self.promotions.get(partition.topic)
        return None if promotion is None else promotion.partings.get(partition.partition)

    def _topics(self) -> list[str]:
        return sorted({each.source.topic for each in self.partitions})

    def _in(self, *stages: Stage) -> list[str]:
        return [topic for topic in self._topics() if self.stage(topic) in stages]

    def _impossible(self) -> str | None:
        source, target = self.flow
        if self.obstacle is not None:
            return self.obstacle
        if self.translated:
            return (
                f"{some_of(self.translated)} have other offsets on {target} than on {source}: "
                "use sparkmirror migrate, which translates"
            )
        if self.longer:
            names = some_of(
                [
                    f"{at} ({self.ends[at].target}, and {self.ends[at].source} on {source})"
                    for at in self.longer
                ]
            )
            return (
                f"on {target} these have records behind the end that they have on {source}, of others or "
                f"since {source} has lost some: {names}"
            )
        late = [topic for topic in self._in(Stage.STOPPING) if self._has_records_left(topic)]
        if late and not self.stops_at_now:
            return (
                f"after the flow was stopped for them, records were written to {some_of(late)} on {source}: "
                "--roll-back lets the mirror copy them, --stop-at-now leaves them there"
            )
        return None

    def _has_records_left(self, topic: str) -> bool:
        return any(each.source.topic == topic and not each.is_drained for each in self.drain.partitions)

    def _steps_of_nothing(self) -> list[Step]:
        source, target = self.flow
        return [
            Step("start", StepState.TO_DO, "until each log begins with its source's records"),
            Step("stop", StepState.TO_DO, f"until nothing is written on {source} any more"),
            Step("drain", StepState.TO_DO, f"until all records are on {target}"),
            Step("switch", StepState.TO_DO, f"stop the flow for them, and fence it on {target}"),
            Step("groups", StepState.TO_DO, "copy the groups' offsets"),
            Step("verify", StepState.TO_DO, "compare the end offsets of both clusters"),
        ]

    def _check(self) -> Step:
        topics = self._topics()
        text = (
            f"{counted(len(self.partitions), 'partition')} of {counted(len(topics), 'topic')}, "
            f"{counted(sum(each.lag for each in self.drain.partitions), 'record')} not mirrored yet"
        )
        if self.others:
            text += f"; not of them, since their offsets are not preserved: {some_of(self.others)}"
        return Step("check", StepState.DONE, text)

    def _start(self) -> Step:
        if missing := [each.target for each in self.left if self.ends[each.source].target is None]:
            text = f"the mirror has to make {some_of(missing)} on {self.flow.target}; it must run"
            return Step("start", StepState.WAITING, text)
        if self.filled:
            text = f"the mirror has to delete what fills the beginning of {some_of(self.filled)}; it must run"
            return Step("start", StepState.WAITING, text)
        return Step("start", StepState.DONE, "each log begins with its source's records")

    def _stop(self) -> Step:
        source = self.flow.source
        if not self.left:
            return Step("stop", StepState.DONE, f"the flow has left them on {source}")
        if self.is_source_gone:
            return Step("stop", StepState.DONE, f"{source} is not asked (--source-is-gone)")
        if self.stops_at_now:
            text = f"what is written to them on {source} from now on may stay there alone"
            return Step("stop", StepState.DONE, text)
        if self._in(Stage.STOPPING, Stage.SWITCHING):
            return Step("stop", StepState.DONE, "an earlier run has stopped the flow for them")
        return self.drain.stop()

    def _drain(self) -> Step:
        if not self.left:
            return Step("drain", StepState.DONE, f"all records are on {self.flow.target}")
        if self.is_source_gone:
            text = f"what the mirror has copied counts; what else {self.flow.source} has stays there alone"
            return Step("drain", StepState.DONE, text)
        over = {Stage.SWITCHING, Stage.STOPPING} if self.stops_at_now else {Stage.SWITCHING}
        if all(self.stage(each.source.topic) in over for each in self.left):
            return Step("drain", StepState.DONE, "an earlier run found them drained")
        return self.drain.drain()

    def _switch(self) -> Step:
        target = self.flow.target
        if not self.left:
            last = max(self.promotions[topic].at_ms for topic in self._topics())
            when = datetime.fromtimestamp(last / 1000, UTC).isoformat(" ", "seconds")
            return Step("switch", StepState.DONE, f"since {when} the flow can't write them on {target}")
        begun = self._in(Stage.STOPPING, Stage.SWITCHING)
        text = f"stop the flow for {counted(len({each.source.topic for each in self.left}), 'topic')}, bring "
        text += f"them to their source's end, and fence the flow on {target}"
        if begun:
            text += f"; an earlier run has begun that for {some_of(begun)}"
        return Step("switch", StepState.TO_DO, text)

    def _groups(self) -> Step:
        target = self.flow.target
        if self.is_source_gone:
            text = f"{self.flow.source} is not asked for offsets: see sparkmirror translate-offsets"
            return Step("groups", StepState.DONE, text)
        if self.moves is None:
            text = f"{self.flow} emits no checkpoints or no offset syncs: no group's offsets are copied"
            return Step("groups", StepState.DONE, text)
        count = counted(sum(len(move.to_write) for move in self.to_write), "offset")
        if self.left or self.to_write:
            text = f"copy {count} of {counted(len(self.to_write), 'group')} to {target}, as they are"
            return Step("groups", StepState.TO_DO, text + self._groups_left())
        text = f"the offsets of {counted(len(self.moves), 'group')} are on {target}"
        left = self._groups_left()
        return Step("groups", StepState.DONE, text + left, is_partial=bool(left))

    def _groups_left(self) -> str:
        """Describe the groups that can't be copied, or whose copies may be overwritten."""
        source, target = self.flow
        moves = self.moves or ()
        text = ""
        if active := [move.group for move in moves if move.has_members_on_source]:
            text += f"; {some_of(active)} still have members on {source}: stop them, then run this once more"
        if ahead := [move.group for move in moves if move.to_write and move.has_members_on_target]:
            text += f"; {some_of(ahead)} have members on {target}, and offsets behind those on {source}"
        if failed := [f"{move.group} ({move.obstacle})" for move in moves if move.obstacle]:
            text += f"; not copied: {some_of(failed)}"
        return text

    def _verify(self) -> Step:
        source, target = self.flow
        if self.left:
            return Step("verify", StepState.TO_DO, "compare the end offsets of both clusters")
        lost, late, kept = [], [], 0
        for each in self.partitions:
            parting, ends = self.parting(each.source), self.ends[each.source]
            if parting is None or (ends.target or 0) < parting.offset:
                lost.append(each.target)
            elif (ends.source or 0) > parting.offset and each.source not in self.ended:
                late.append(f"{each.source} ({counted((ends.source or 0) - parting.offset, 'offset')})")
            else:
                kept += 1
        if lost:
            return Step("verify", StepState.IMPOSSIBLE, f"{target} has lost records of {some_of(lost)}")
        text = f"{kept:,} of {counted(len(self.partitions), 'partition')} have all that {source} has"
        if self.is_source_gone:
            text = f"{counted(kept, 'partition')} can be written; {source} is not asked what else it has"
        if late:
            text += f"; these have more on {source}, which is not on {target}: {some_of(late)}"
        return Step("verify", StepState.DONE, text, is_partial=bool(late))


@dataclass(frozen=True, slots=True)
class PromotionRollback:
    """The promotions of some topics, which are to be copied again.

    `gone` are promoted topics that are not on the target any more, or recreated there since.
    """

    flow: Flow
    promotions: Promotions
    gone: Sequence[str] = ()

    def steps(self) -> list[Step]:
        return [self._check(), self._reopen()]

    @property
    def to_undo(self) -> list[str]:
        return [
            topic
            for topic, promotion in self.promotions.items()
            if topic in self.gone or promotion.stage is Stage.STOPPING
        ]

    def _check(self) -> Step:
        final = [topic for topic in self.promotions if topic not in self.to_undo]
        if final:
            text = (
                f"{some_of(sorted(final))} can't be copied again: the flow is fenced there, and applications "
                f"may have written them on {self.flow.target}, where the originals are now: sparkmirror "
                "failback lets the former source follow them"
            )
            return Step("check", StepState.IMPOSSIBLE, text)
        if not self.promotions:
            return Step("check", StepState.DONE, "none of these topics is promoted")
        return Step("check", StepState.DONE, f"the flow is stopped for {some_of(sorted(self.promotions))}")

    def _reopen(self) -> Step:
        if not self.promotions:
            return Step("reopen", StepState.DONE, "the flow copies them")
        return Step("reopen", StepState.TO_DO, "let the flow copy them again")


def rows_of(promotion: TopicsPromotion) -> list[Mapping[str, str | int | None]]:
    """Return a row per partition: its end on both clusters, and where both logs diverge."""
    drained = {each.source: each for each in promotion.drain.partitions}
    rows: list[Mapping[str, str | int | None]] = []
    for each in promotion.partitions:
        ends, parting, drain = (
            promotion.ends[each.source],
            promotion.parting(each.source),
            drained.get(each.source),
        )
        stage = promotion.stage(each.source.topic)
        rows.append(
            {
                "source": str(each.source),
                "source_end": ends.source,
                "lag": None if drain is None else drain.lag,
                "target": str(each.target),
                "target_end": ends.target,
                "parted_at": None if parting is None else parting.offset,
                "state": "copied" if stage is None else stage.value,
            }
        )
    return rows
