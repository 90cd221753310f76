"""Lists what is migrated by a flow: groups that moved, topics promoted, failed back, or created again."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.storage.failbacks import Failback
from sparkmirror.storage.migrations import Begun, Migrations, Moved
from sparkmirror.storage.promotions import Promotion
from sparkmirror.view.flows import FlowView


class MigrationKind(StrEnum):
    GROUP = "group"
    PROMOTION = "promotion"
    FAILBACK = "failback"
    REMAKE = "remake"


class MigratedPartition(NamedTuple):
    """A partition of the target for a group, of the source otherwise.

    `offset` is where the group was set, where both logs part, before which the target's log counts as the
    flow's own, or up to where it is copied before groups continue. `other` is where the group was before, or
    where the source ended at the parting; None where there is none, or nobody looked.
    """

    partition: TopicPartition
    offset: int
    other: int | None = None


class Migration(NamedTuple):
    """`name` is that of the group or topic; `at_ms` is when it came to its `stage`."""

    kind: MigrationKind
    name: str
    at_ms: int
    stage: str
    partitions: Sequence[MigratedPartition]


def migrations_matching(flow: FlowView, part: str) -> Sequence[Migration]:
    """Newest first, those whose names contain `part`; none before they were read."""
    known = None if flow.migrations is None else flow.migrations.known
    found = [] if known is None else [it for it in _all(known) if part in it.name]
    return sorted(found, key=lambda it: (-it.at_ms, it.kind, it.name))


def _all(known: Migrations) -> Iterator[Migration]:
    for group, moved in known.groups.items():
        yield _group(group, moved)
    for topic, promotion in known.promotions.items():
        yield _promotion(topic, promotion)
    for topic, failback in known.failbacks.items():
        yield _failback(topic, failback)
    for topic, begun in known.remakes.items():
        yield _remake(topic, begun)


def _group(group: GroupId, moved: Moved) -> Migration:
    offsets = sorted(moved.offsets, key=lambda it: it.partition)
    partitions = [MigratedPartition(it.partition, it.written, it.earlier) for it in offsets]
    return Migration(MigrationKind.GROUP, group, moved.at_ms, "moved", partitions)


def _promotion(topic: str, promotion: Promotion) -> Migration:
    partitions = [
        MigratedPartition(TopicPartition(topic, number), it.offset, it.source_end)
        for number, it in sorted(promotion.partings.items())
    ]
    return Migration(MigrationKind.PROMOTION, topic, promotion.at_ms, promotion.stage.value, partitions)


def _failback(topic: str, failback: Failback) -> Migration:
    """Tell how the flow continues: after what the target has, or in a topic that was created again."""
    partitions = [
        MigratedPartition(TopicPartition(topic, number), offset)
        for number, offset in sorted(failback.beginnings.items())
    ]
    stage = (
        "continues in a topic that was created again"
        if failback.deleted_id
        else "continues after the parting"
    )
    return Migration(MigrationKind.FAILBACK, topic, failback.at_ms, stage, partitions)


def _remake(topic: str, begun: Begun) -> Migration:
    ends = sorted(begun.remake.ends.items())
    partitions = [MigratedPartition(TopicPartition(topic, number), end) for number, end in ends]
    return Migration(MigrationKind.REMAKE, topic, begun.at_ms, "being created again", partitions)
