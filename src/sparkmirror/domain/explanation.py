"""Explanations of what a flow does with a topic or a group: of the whole, and of each partition.

Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparkmirror.domain.ids import Flow, TopicPartition


@dataclass(frozen=True, slots=True)
class Verdict:
    """One rule's verdict; `why` names the setting and its pattern, or the part of the name."""

    rule: str
    passes: bool
    why: str


@dataclass(frozen=True, slots=True)
class PartitionExplanation:
    """`numbers` are offsets and lags by their names in JSON, None where unknown; `details` the rest."""

    source: TopicPartition
    target: TopicPartition
    why: str
    is_fine: bool
    numbers: Mapping[str, int | None]
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        named = {"source": str(self.source), "target": str(self.target), "why": self.why}
        return {**named, **self.numbers, **self.details}


@dataclass(frozen=True, slots=True)
class Explanation:
    """`obstacles` keep the whole, or some of its partitions, from being mirrored or synced; `notes` don't."""

    flow: Flow
    obstacles: Sequence[str]
    notes: Sequence[str]
    partitions: Sequence[PartitionExplanation]
    rules: Sequence[Verdict] = ()

    @property
    def is_fine(self) -> bool:
        parts_are_fine = all(each.is_fine for each in self.partitions)
        return parts_are_fine and not self.obstacles and all(rule.passes for rule in self.rules)

    def to_json(self) -> dict[str, Any]:
        return {
            "flow": str(self.flow),
            "obstacles": list(self.obstacles),
            "notes": list(self.notes),
            "partitions": [each.to_json() for each in self.partitions],
        }
