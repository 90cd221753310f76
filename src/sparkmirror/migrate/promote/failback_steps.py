"""Derives the steps that let the old source of promoted topics follow the new original; and those back.

`flow` is the one that continues: from the original to the old source. Everything but the time since the end
offsets changed follows from what both clusters hold.

Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.domain.ids import Flow, TopicPartition
from sparkmirror.domain.printable import printable
from sparkmirror.domain.quantities import counted
from sparkmirror.migrate.moves.topic_drain_steps import stop_step
from sparkmirror.migrate.promote.log_comparison import Differences, Kind, Parted
from sparkmirror.migrate.steps import Step, StepState, some_of
from sparkmirror.storage.failbacks import Failbacks


@dataclass(frozen=True, slots=True)
class PartitionFailback:
    """`source` is of the original. `parted` is as of this survey; the end of a missing log is None.

    `differences` stand in the way of equal offsets; None where `follows` says that the flow continues.
    """

    source: TopicPartition
    target: TopicPartition
    source_end: int
    target_end: int | None
    parted: Parted
    differences: Differences | None
    follows: bool = False

    @property
    def is_beyond(self) -> bool:
        """Whether the old source ends behind the original, so that its offsets are taken."""
        return not self.follows and (self.target_end or 0) > max(self.source_end, self.parted.offset)

    @property
    def is_in_the_way(self) -> bool:
        return bool(self.differences) or self.is_beyond

    @property
    def own(self) -> int:
        return 0 if self.differences is None else self.differences.own

    @property
    def lag(self) -> int:
        """The lag in offsets; an offset in a gap has no record."""
        return max(0, self.source_end - (self.target_end or 0))


@dataclass(frozen=True, slots=True)
class TopicsFailback:
    """Some promoted topics as found on both clusters; the old source has not changed for `still_s`.

    `deletes` says that topics with records of their own may be deleted, `aside` is the topic that these
    records are copied to before, and `kept` how many of them are there.
    """

    flow: Flow
    partitions: Sequence[PartitionFailback]
    still_s: float
    still_for_s: float
    changed: Sequence[TopicPartition] = ()
    deletes: bool = False
    aside: str | None = None
    kept: int = 0
    obstacle: str | None = None

    def steps(self) -> list[Step]:
        """List the steps in order. Steps after one that waits state what holds now."""
        return [
            self._check(),
            self._compare(),
            self._stop(),
            self._keep(),
            self._switch(),
            self._verify(),
        ]

    @property
    def left(self) -> list[PartitionFailback]:
        """The partitions that the flow can't continue with yet."""
        return [each for each in self.partitions if not each.follows]

    @property
    def to_delete(self) -> list[str]:
        """The topics on the old source whose logs can't follow."""
        return sorted({each.target.topic for each in self.left if each.is_in_the_way})

    @property
    def own(self) -> int:
        """The records that are lost with them."""
        return sum(each.own for each in self.left)

    @property
    def must_keep(self) -> bool:
        return self.aside is not None and self.kept < self.own

    def _topics(self) -> list[str]:
        return sorted({each.target.topic for each in self.partitions})

    def _check(self) -> Step:
        if self.obstacle is not None:
            return Step("check", StepState.IMPOSSIBLE, self.obstacle)
        text = (
            f"{counted(len(self.partitions), 'partition')} of {counted(len(self._topics()), 'topic')}, whose "
            f"original is on {self.flow.source}"
        )
        return Step("check", StepState.DONE, text)

    def _compare(self) -> Step:
        source, target = self.flow
        found = [each for each in self.left if each.is_in_the_way]
        if not found:
            if self.obstacle is not None:
                return Step("compare", StepState.TO_DO, "compare both logs behind the parting")
            return Step("compare", StepState.DONE, f"{target} has nothing that {source} does not have")
        names = some_of([self._named(each) for each in found])
        text = f"these can't follow {source}, since their offsets on {target} are taken: {names}"
        if self.deletes:
            return Step("compare", StepState.DONE, f"{text}. --delete: their topics are recreated")
        keeping = (
            f", --keep-aside TOPIC copies the {counted(self.own, 'record')} of {target} to a topic first"
        )
        text += (
            f". Decide: --delete deletes {some_of(self.to_delete)} on {target}, and the flow copies all of "
        )
        return Step(
            "compare", StepState.IMPOSSIBLE, f"{text}{source}'s records again{keeping if self.own else ''}"
        )

    def _named(self, each: PartitionFailback) -> str:
        found = each.differences
        if not found:
            return (
                f"{each.target} (ends at {each.target_end}, and at {each.source_end} on {self.flow.source})"
            )
        words = {Kind.ALONE: "there alone", Kind.OTHER: "in conflict", Kind.PASSED: "missing"}
        counts = ", ".join(
            f"{counted(found.counts[kind], 'record')} {word}"
            for kind, word in words.items()
            if found.counts[kind]
        )
        keys = [printable("no key" if key is None else key.decode(errors="replace")) for key in found.keys]
        behind = f", keys {', '.join(keys)}{' …' if found.own > len(keys) else ''}" if keys else ""
        return f"{each.target} ({counts}, offsets {found.first} to {found.last}{behind})"

    def _stop(self) -> Step:
        target = self.flow.target
        if not self.left:
            return Step("stop", StepState.DONE, f"only {self.flow} writes them on {target}")
        return stop_step(self._topics(), target, self.still_s, self.still_for_s, self.changed)

    def _keep(self) -> Step:
        target = self.flow.target
        if not self.own:
            return Step("keep", StepState.DONE, f"nothing of {target} is lost")
        count = counted(self.own, "record")
        if self.aside is None:
            return Step("keep", StepState.DONE, f"{count} of {target} are not kept (--keep-aside)")
        if self.must_keep:
            return Step("keep", StepState.TO_DO, f"copy {count} of {target} to {self.aside} there")
        return Step("keep", StepState.DONE, f"{count} of {target} are in {self.aside} there")

    def _switch(self) -> Step:
        if not self.left and self.obstacle is None:
            return Step("switch", StepState.DONE, f"{self.flow} continues with them; it must run")
        text = f"let {self.flow} continue where the logs on {self.flow.target} end"
        if self.deletes and self.to_delete:
            text += f", delete {some_of(self.to_delete)} there, which it recreates"
        return Step("switch", StepState.TO_DO, text)

    def _verify(self) -> Step:
        source, target = self.flow
        if self.left or self.obstacle is not None:
            return Step("verify", StepState.TO_DO, "compare the end offsets of both clusters")
        behind = [each for each in self.partitions if each.lag]
        equal, of = len(self.partitions) - len(behind), counted(len(self.partitions), "partition")
        said = [f"{equal:,} of {of} on {target} end where {source} does"] if equal or not behind else []
        if behind:
            names = some_of([f"{each.target} ({counted(each.lag, 'offset')})" for each in behind])
            said.append(f"{self.flow} has to copy {names}")
        return Step("verify", StepState.DONE, "; ".join(said), is_partial=bool(behind))


@dataclass(frozen=True, slots=True)
class FailbackRollback:
    """The failbacks of some topics, with which the flow is to stop. `ended` are those of a promoted flow."""

    flow: Flow
    failbacks: Failbacks
    ended: Sequence[str] = ()

    def steps(self) -> list[Step]:
        return [self._check(), self._stop()]

    def _check(self) -> Step:
        target = self.flow.target
        if self.ended:
            text = (
                f"{self.flow} is promoted for {some_of(self.ended)}: {target} has taken over, and "
                "applications may have written there"
            )
            return Step("check", StepState.IMPOSSIBLE, text)
        if not self.failbacks:
            return Step("check", StepState.DONE, "none of these topics was failed back")
        return Step("check", StepState.DONE, f"{self.flow} continues with {some_of(sorted(self.failbacks))}")

    def _stop(self) -> Step:
        if not self.failbacks:
            return Step("stop", StepState.DONE, f"{self.flow} does not copy them")
        text = f"stop {self.flow} for them: {self.flow.target} keeps what it has"
        return Step("stop", StepState.TO_DO, text)


def rows_of(failback: TopicsFailback) -> list[Mapping[str, str | int | None]]:
    """Return a row per partition: its end on both clusters, where both logs diverge, and what blocks it."""
    return [
        {
            "source": str(each.source),
            "source_end": each.source_end,
            "target": str(each.target),
            "target_end": each.target_end,
            "parted_at": each.parted.offset,
            "own_records": each.own,
            "state": "follows" if each.follows else "taken" if each.is_in_the_way else "parted",
        }
        for each in failback.partitions
    ]
