"""Explains why a topic is mirrored or not, and how far, by the mirror's rules and the clusters' facts.

Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sparkmirror.domain.explanation import Explanation, PartitionExplanation, Verdict
from sparkmirror.domain.ids import Flow, TopicPartition
from sparkmirror.domain.quantities import counted
from sparkmirror.domain.troubles import Trouble
from sparkmirror.storage.progress import PartitionState

LATER_TOPICS: Final = (
    "topics and partitions that come later than the start are not mirrored: refresh.topics.enabled=false; "
    "a restart takes them"
)

AHEAD: Final = "its position is beyond the source's end: the topic was created again, or truncated"


@dataclass(frozen=True, slots=True)
class ConfigDifference:
    """A config whose values differ; None for one that is missing or hidden. `why` gives the reason."""

    name: str
    source: str | None
    target: str | None
    why: str


@dataclass(frozen=True, slots=True)
class MirroredPartition:
    """Offsets are None where they can't be told, or there are none.

    `mirrored_to` is the next offset to be copied, by the stored position or a later report. `state`, `error`,
    `notice` and `incidents` are the mirror's own last words, from its progress topic.
    """

    source: TopicPartition
    target: TopicPartition
    start: int | None = None
    end: int | None = None
    mirrored_to: int | None = None
    target_end: int | None = None
    state: str | None = None
    error: str | None = None
    notice: str | None = None
    incidents: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic in a flow. Numbers of partitions are None where the cluster knows no such topic.

    `hints` say more about a topic that is missing at the source, `obstacles` are what a plan of this topic
    finds in its way, `acls` what the target lacks of them. `troubles` are what
    the mirror has said last about this one.
    """

    flow: Flow
    topic: str
    remote: str
    verdicts: Sequence[Verdict]
    source_partitions: int | None = None
    target_partitions: int | None = None
    configs: Sequence[ConfigDifference] = ()
    acls: Sequence[str] = ()
    partitions: Sequence[MirroredPartition] = ()
    hints: Sequence[str] = ()
    obstacles: Sequence[str] = ()
    notes: Sequence[str] = ()
    refreshes: bool = True
    """Whether topics and partitions that come later are mirrored, too."""
    waits_for_start: bool = False
    """Whether the mirror was stopped in order, or has never run."""
    troubles: Sequence[Trouble] = ()


def explain(facts: TopicFacts) -> Explanation:
    partitions = [_partition(facts, partition) for partition in facts.partitions]
    return Explanation(facts.flow, _obstacles(facts), _notes(facts), partitions, facts.verdicts)


def _obstacles(facts: TopicFacts) -> list[str]:
    if facts.source_partitions is None:
        missing = f"{facts.flow.source} knows no such topic, or the principal may not DESCRIBE it"
        return ["; ".join([missing, *facts.hints])]
    here, there = facts.source_partitions, facts.target_partitions
    if not facts.refreshes and all(it.passes for it in facts.verdicts) and (there is None or there < here):
        lacks = "is not there" if there is None else f"has {counted(there, 'partition')} and needs {here}"
        return [f"{facts.remote} {lacks} on {facts.flow.target}: {LATER_TOPICS}", *facts.obstacles]
    said = [f"{it.word}: {it.text}" for it in facts.troubles if it.requires_action]
    return [*facts.obstacles, *said]


def _notes(facts: TopicFacts) -> list[str]:
    here, there, target = facts.source_partitions, facts.target_partitions, facts.flow.target
    notes = []
    if here is not None and all(verdict.passes for verdict in facts.verdicts):
        if not facts.refreshes and (there is None or there < here):
            pass  # an obstacle
        elif there is None:
            notes.append(f"{facts.remote} is not on {target} yet{_when(facts, 'creates it')}")
        elif there < here:
            lacks = f"{facts.remote} has {counted(there, 'partition')} and needs {here}"
            notes.append(f"{lacks}{_when(facts, 'adds them')}")
        elif there > here:
            notes.append(f"{facts.remote} has {there} partitions and needs {here}: the others stay empty")
    elif there is not None:
        notes.append(f"{facts.remote} is on {target}, and is not written by this flow")
    passing = [f"{it.word}: {it.text}" for it in facts.troubles if not it.requires_action]
    return [*notes, *passing, *facts.notes]


def _when(facts: TopicFacts, what: str) -> str:
    """Announce when it is mirrored, if it will be."""
    when = "next start of the mirror" if facts.waits_for_start else "next refresh"
    return "" if _obstacles(facts) else f": the {when} {what}"


def _partition(facts: TopicFacts, partition: MirroredPartition) -> PartitionExplanation:
    lag = None
    if partition.end is not None and partition.mirrored_to is not None:
        lag = partition.end - partition.mirrored_to
        lag = None if lag < 0 else lag
    why, is_fine = _state(facts, partition, lag)
    if partition.state == PartitionState.STANDBY.value:
        lag, why, is_fine = 0, "standby: the opposite flow has copied its records, until a failback", True
    if partition.incidents:
        counts = ", ".join(f"{kind}: {count}" for kind, count in sorted(partition.incidents.items()))
        why += f"; incidents since its task has started: {counts}"
    if partition.notice and not partition.error:
        why += f"; {partition.notice}"
    numbers = {
        "first_offset": partition.start,
        "end_offset": partition.end,
        "mirrored_to": partition.mirrored_to,
        "lag": lag,
        "target_end_offset": partition.target_end,
    }
    details = {
        "state": partition.state,
        "error": partition.error,
        "notice": partition.notice,
        "incidents": dict(partition.incidents),
    }
    return PartitionExplanation(partition.source, partition.target, why, is_fine, numbers, details)


def _state(facts: TopicFacts, partition: MirroredPartition, lag: int | None) -> tuple[str, bool]:
    if partition.error is not None:
        return f"{(partition.state or 'failed').lower()}: {partition.error}", False
    if partition.mirrored_to is None:
        return _not_begun(facts, partition)
    if partition.start is not None and partition.start > partition.mirrored_to:
        lost = partition.start - partition.mirrored_to
        return f"{counted(lost, 'record')} behind its position are gone from {facts.flow.source}", True
    if lag is None and partition.end is not None:
        return AHEAD, False
    if lag is None:
        return "its end is unknown", True
    return ("caught up" if lag == 0 else f"{counted(lag, 'record')} behind"), True


def _not_begun(facts: TopicFacts, partition: MirroredPartition) -> tuple[str, bool]:
    if _obstacles(facts) and _is_absent(facts, partition):
        return f"not on {facts.flow.target}", False
    if partition.end is not None and partition.end == partition.start:
        return "empty, and not begun", True
    return "not begun: no position of it is stored", True


def _is_absent(facts: TopicFacts, partition: MirroredPartition) -> bool:
    return facts.target_partitions is None or partition.target.partition >= facts.target_partitions
