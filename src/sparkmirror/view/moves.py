"""Answers whether a topic's producers, or a group's consumers, may move to the target now.

Each answer is made of checks, each with its fact. What is not known is no yes.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sparkmirror.domain.quantities import as_date, counted
from sparkmirror.metrics.partition_table import Rows
from sparkmirror.storage.verified import Verified
from sparkmirror.view.flows import FlowView
from sparkmirror.view.groups import GroupsView
from sparkmirror.view.values import GroupView, PartitionView, TopicView
from sparkmirror.view.words import Word

QUIET_FOR_S: Final = 30.0


class Check(NamedTuple):
    """`holds` is None where that is not known."""

    name: str
    holds: bool | None
    fact: str


class Answer(NamedTuple):
    """Tells whether something may move; `what` is its name."""

    what: str
    checks: Sequence[Check]

    @property
    def may_move(self) -> bool:
        return all(check.holds for check in self.checks)


def topic_answer(flow: FlowView, topic: TopicView) -> Answer:
    if topic.state.word is Word.PROMOTED:
        return Answer(topic.name, (Check("promoted", holds=True, fact=topic.state.advice),))
    topic = topic._replace(partitions=list(topic.partitions))  # each check goes through all of them
    quiet = _quiet(topic, flow.age(topic.quiet_since))
    return Answer(topic.name, (_drained(topic), quiet, _verified(flow, topic)))


def group_answers(groups: GroupsView | None, topic: str) -> Sequence[Answer]:
    """Answer for each group that reads the topic."""
    if groups is None:
        return ()
    reading = groups.of_topic(topic)
    return Rows(range(len(reading)), lambda at: group_answer(reading[at], groups))


def group_answer(group: GroupView, of: GroupsView) -> Answer:
    return Answer(group.name, (_exact(group, of), _nobody_there(group, of)))


def _drained(topic: TopicView) -> Check:
    name = "drained"
    unsure = [it for it in topic.partitions if it.lag.records is None or it.state.word is Word.UNKNOWN]
    behind = [it for it in topic.partitions if it.lag.records]
    if behind:
        count = sum(it.lag.records or 0 for it in behind)
        return Check(name, holds=False, fact=f"{counted(count, 'record')} to copy in {_named(behind)}")
    if unsure:
        return Check(name, holds=None, fact=f"the lag is unknown of {_named(unsure)}")
    if (lost := [it for it in topic.partitions if it.state.error is not None]) != []:
        return Check(name, holds=False, fact=f"an error is reported for {_named(lost)}")
    count = len(topic.partitions)
    return Check(name, holds=True, fact=f"{count:,} of {count:,} partitions are copied to their end")


def _quiet(topic: TopicView, quiet_for_s: float | None) -> Check:
    name = "producers quiet"
    unsure = [it for it in topic.partitions if it.quiet_since is None or it.state.word is Word.UNKNOWN]
    if unsure or quiet_for_s is None:
        return Check(name, holds=None, fact=f"the source's end is unknown of {_named(unsure)}")
    fact = f"no record was added for {quiet_for_s:,.0f} s"
    is_quiet = quiet_for_s >= QUIET_FOR_S
    return Check(name, is_quiet, fact if is_quiet else f"{fact}: at least {QUIET_FOR_S:.0f} s are needed")


def _verified(flow: FlowView, topic: TopicView) -> Check:
    """Check that all that was copied was compared, and nothing differs."""
    name = "verified"
    found = [(it, flow.verified.get(it.source)) for it in topic.partitions]
    if (wrong := [it for it, seen in found if seen is not None and seen.differences]) != []:
        return Check(name, holds=False, fact=f"sparkmirror verify found differences in {_named(wrong)}")
    compared = [(it, seen.at, _since(it, seen)) for it, seen in found if seen is not None]
    known = [(at, later) for _, at, later in compared if later is not None]
    if len(known) < len(found) or not known:
        sure = {it.source for it, _, later in compared if later is not None}
        never = [it for it in topic.partitions if it.source not in sure]
        return Check(name, holds=None, fact=f"not compared by sparkmirror verify yet: {_named(never)}")
    last, later = as_date(min(at for at, _ in known)), sum(later for _, later in known)
    if later:
        return Check(name, holds=None, fact=f"equal on {last}; at most {later:,} records were copied since")
    return Check(name, holds=True, fact=f"all that is copied was equal on {last}")


def _since(partition: PartitionView, seen: Verified) -> int | None:
    """Count the records copied since, at most; None where that can't be told, as after a set-back."""
    position = partition.position or 0
    if partition.target is None or seen.upto is None or position < seen.upto:
        return None
    return position - seen.upto


def _exact(group: GroupView, of: GroupsView) -> Check:
    name = "translated exactly"
    age = "" if of.age_s is None else f", {of.age_s:,.0f} s ago"
    if group.error is not None:
        return Check(name, holds=None, fact=f"its offsets can't be read: {group.error}{age}")
    unknown = [it for it in group.partitions if it.behind is None]
    if unknown:
        why = "; ".join(sorted({f"{it.source}: {it.why}" for it in unknown})[:3])
        return Check(name, holds=None, fact=f"{why}{age}")
    behind = sum(it.behind or 0 for it in group.partitions)
    if behind:
        return Check(name, holds=False, fact=f"at most {counted(behind, 'record')} would be read again{age}")
    if group.again:
        return Check(name, holds=False, fact=f"{group.again:,} records are not written there yet{age}")
    count = len(group.partitions)
    return Check(name, holds=True, fact=f"{count:,} partition{'' if count == 1 else 's'}{age}")


def _nobody_there(group: GroupView, of: GroupsView) -> Check:
    name = "nobody on the target"
    if group.is_active is None:
        why = "not read yet" if of.reads_target else "sync.group.offsets.enabled is false"
        return Check(name, holds=None, fact=f"the target's groups are not known: {why}")
    ago = f"{of.target_age_s or 0.0:,.0f} s ago"
    if group.is_active:
        return Check(name, holds=False, fact=f"it had members there {ago}")
    return Check(name, holds=True, fact=f"it had no members there {ago}")


def _named(partitions: Sequence[PartitionView]) -> str:
    names = [str(it.source) for it in partitions[:3]]
    rest = len(partitions) - len(names)
    return ", ".join(names) + (f" and {rest:,} more" if rest else "")
