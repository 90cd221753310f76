"""Explains why a topic is mirrored or not, and how far, by the mirror's rules and the clusters' facts.

Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.domain.ids import Flow, TopicPartition
from sparkmirror.domain.quantities import counted


@dataclass(frozen=True, slots=True)
class Verdict:
    """One rule's verdict on a topic; `why` names the setting and its pattern, or the part of the name."""

    rule: str
    passes: bool
    why: str


@dataclass(frozen=True, slots=True)
class ConfigDifference:
    """A config whose values differ; None for one that is missing or hidden. `why` gives the reason."""

    name: str
    source: str | None
    target: str | None
    why: str


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """Offsets are None where they can't be told, or there are none.

    `mirrored_to` is the next offset to be copied, by the stored position. `state`, `error`, `notice` and
    `incidents` are the mirror's own last words, from its progress topic.
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
    """One flow's. Numbers of partitions are None where the cluster knows no such topic.

    `hints` say more about a topic that is missing at the source, `obstacles` are what a plan of this topic
    finds in its way, `acls` what the target lacks of them.
    """

    flow: Flow
    topic: str
    remote: str
    verdicts: Sequence[Verdict]
    source_partitions: int | None = None
    target_partitions: int | None = None
    configs: Sequence[ConfigDifference] = ()
    acls: Sequence[str] = ()
    partitions: Sequence[PartitionFacts] = ()
    hints: Sequence[str] = ()
    obstacles: Sequence[str] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class PartitionExplanation:
    facts: PartitionFacts
    lag: int | None
    """In offsets."""
    why: str
    is_fine: bool


@dataclass(frozen=True, slots=True)
class TopicExplanation:
    """`obstacles` keep the topic, or some of its partitions, from being mirrored; `notes` don't."""

    facts: TopicFacts
    obstacles: Sequence[str]
    notes: Sequence[str]
    partitions: Sequence[PartitionExplanation]

    @property
    def is_mirrored(self) -> bool:
        rules_pass = all(verdict.passes for verdict in self.facts.verdicts)
        return rules_pass and not self.obstacles and all(each.is_fine for each in self.partitions)


def explain(facts: TopicFacts) -> TopicExplanation:
    return TopicExplanation(
        facts,
        _obstacles(facts),
        _notes(facts),
        [_partition(facts, partition) for partition in facts.partitions],
    )


def _obstacles(facts: TopicFacts) -> list[str]:
    if facts.source_partitions is None:
        return [
            f"{facts.flow.source} knows no such topic, or the principal may not DESCRIBE it",
            *facts.hints,
        ]
    return list(facts.obstacles)


def _notes(facts: TopicFacts) -> list[str]:
    here, there, target = facts.source_partitions, facts.target_partitions, facts.flow.target
    notes = []
    if here is not None and all(verdict.passes for verdict in facts.verdicts):
        if there is None:
            notes.append(f"{facts.remote} is not on {target} yet: the next refresh of topics creates it")
        elif there < here:
            notes.append(
                f"{facts.remote} has {there} partitions and needs {here}: the next refresh adds them"
            )
        elif there > here:
            notes.append(f"{facts.remote} has {there} partitions and needs {here}: the others stay empty")
    elif there is not None:
        notes.append(f"{facts.remote} is on {target}, and is not written by this flow")
    return [*notes, *facts.notes]


def _partition(facts: TopicFacts, partition: PartitionFacts) -> PartitionExplanation:
    lag = None
    if partition.end is not None and partition.mirrored_to is not None:
        lag = max(0, partition.end - partition.mirrored_to)
    why, is_fine = _state(facts, partition, lag)
    if partition.incidents:
        counts = ", ".join(f"{kind}: {count}" for kind, count in sorted(partition.incidents.items()))
        why += f"; incidents since its task has started: {counts}"
    if partition.notice and not partition.error:
        why += f"; {partition.notice}"
    return PartitionExplanation(partition, lag, why, is_fine)


def _state(facts: TopicFacts, partition: PartitionFacts, lag: int | None) -> tuple[str, bool]:
    if partition.error is not None:
        return f"{(partition.state or 'failed').lower()}: {partition.error}", False
    if partition.mirrored_to is None:
        if partition.end is not None and partition.end == partition.start:
            return "empty, and not begun", True
        return "not begun: no position of it is stored", True
    if partition.start is not None and partition.start > partition.mirrored_to:
        lost = partition.start - partition.mirrored_to
        return f"{lost:,} records behind its position are gone from {facts.flow.source}", True
    if lag is None:
        return "its end is unknown", True
    return ("caught up" if lag == 0 else f"{counted(lag, 'record')} behind"), True
