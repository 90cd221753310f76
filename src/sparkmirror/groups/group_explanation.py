"""Explains a consumer group's offsets on the target, by the mirror's rules and the clusters' facts. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from sparkmirror.domain.explanation import Explanation, PartitionExplanation
from sparkmirror.domain.ids import Flow, GroupId, TopicPartition
from sparkmirror.domain.troubles import Trouble
from sparkmirror.offsets.checkpoints import CheckpointBook, is_refuted, offsets_to_write
from sparkmirror.offsets.translation import Place, SyncHistory
from sparkmirror.offsets.wire_records import Checkpoint

LATER_GROUPS: Final = (
    "groups that come later than the start are not followed: refresh.groups.enabled=false; "
    "a restart takes them"
)


class Translation(StrEnum):
    EXACT = "exact"
    APPROXIMATE = "approximate"
    FILTERED = "filtered"
    NO_SYNC = "no sync yet"
    OLDER = "older than the first sync"
    UNREADABLE = "unreadable"


_FOLLOWING: Final = frozenset({Translation.EXACT, Translation.APPROXIMATE})


@dataclass(frozen=True, slots=True)
class GroupThere:
    """A group on one cluster. `kind` is Kafka's word for its type, empty if the cluster lists none such.

    `error` is why something about it is unknown.
    """

    kind: str = ""
    is_consumer_group: bool = True
    is_active: bool = False
    members: Sequence[str] = ()
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    error: str | None = None
    refusal: str | None = None
    """Why the cluster does not take the mirror's offsets of the group."""


@dataclass(frozen=True, slots=True)
class CommittedPartition:
    """A partition that the group has committed for on the source. An end is None where it is unknown."""

    source: TopicPartition
    target: TopicPartition
    history: SyncHistory | None
    checkpoint: Checkpoint | None
    source_end: int | None = None
    target_end: int | None = None
    left_out: str | None = None
    """The setting or rule that keeps the topic from being mirrored."""
    error: str | None = None
    refusal: str | None = None
    """Why the target does not take the mirror's offsets for the topic."""
    lookup: str = ""
    """The result of looking the offset up in the records, which is in `history` too; empty without."""


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A group in a flow. `refused_by` is the setting that excludes it, `syncs_offsets` that of its name."""

    flow: Flow
    group: GroupId
    source: GroupThere
    target: GroupThere
    partitions: Sequence[CommittedPartition] = ()
    refused_by: str | None = None
    syncs_offsets: bool = True
    off_because: str | None = None
    """The setting by which the flow emits no checkpoints at all."""
    refreshes: bool = True
    """Whether groups that come later are followed, too."""
    troubles: Sequence[Trouble] = ()
    """The mirror's last troubles with this group."""

    @property
    def is_left_out(self) -> bool:
        """Whether it came later, as far as its checkpoints show that."""
        return not self.refreshes and not any(it.checkpoint for it in self.partitions)


def explain(facts: GroupFacts) -> Explanation:
    obstacles = _obstacles(facts)
    partitions = [_partition(facts, partition, may_write=not obstacles) for partition in facts.partitions]
    return Explanation(facts.flow, obstacles, (), partitions)


def _obstacles(facts: GroupFacts) -> list[str]:
    source, flow = facts.source, facts.flow
    if facts.off_because:
        return [f"the flow emits no checkpoints: {facts.off_because}"]
    found = []
    if facts.refused_by:
        found.append(f"filtered: {facts.refused_by} leaves the group out")
    if source.error:
        found.append(source.error)
    elif not source.kind:
        found.append(f"{flow.source} knows no such group, or the principal may not DESCRIBE it")
    elif not source.is_consumer_group:
        found.append(f"is a {source.kind} group on {flow.source}: such groups are left alone")
    elif facts.is_left_out:
        found.append(f"no checkpoint of it was written, and {LATER_GROUPS}")
    elif not source.committed:
        found.append(f"has committed no offset on {flow.source}")
    if not facts.syncs_offsets:
        found.append("sync.group.offsets.enabled is false: checkpoints are written, offsets are not")
    said = [f"{it.word}: {it.text}" for it in facts.troubles if facts.target.refusal is None]
    return [*found, *_obstacles_there(facts.target, flow), *said]


def _obstacles_there(target: GroupThere, flow: Flow) -> list[str]:
    found = [] if target.refusal is None else [target.refusal]
    if target.error:
        found.append(target.error)
    elif target.kind and not target.is_consumer_group:
        found.append(f"is a {target.kind} group on {flow.target}: such groups are left alone")
    elif target.is_active:
        members = ", ".join(target.members) or "unknown members"
        found.append(f"active on {flow.target}, which takes offsets from its members only: {members}")
    return found


def _partition(facts: GroupFacts, partition: CommittedPartition, *, may_write: bool) -> PartitionExplanation:
    committed = facts.source.committed[partition.source]
    there = facts.target.committed.get(partition.target)
    place = None if partition.history is None else partition.history.place(committed)
    translation, why = _translated(partition, place)
    coming = _coming_checkpoint(facts.group, partition, committed, place)
    writes: Mapping[TopicPartition, Checkpoint] = {}
    is_there = partition.target_end is not None
    if coming is not None and may_write and is_there and not (partition.left_out or partition.refusal):
        writes = offsets_to_write(
            {partition.target: coming}, {} if there is None else {partition.target: there}
        )
        if not writes and there is not None and there > coming.downstream_offset:
            why += f"; ahead of that on {facts.flow.target}, and never set back"
    last = partition.checkpoint
    numbers = {
        "source_offset": committed,
        "source_lag": _lag(partition.source_end, committed),
        "translated_offset": None if place is None else place.offset,
        "checkpoint_offset": None if last is None else last.downstream_offset,
        "target_offset": there,
        "target_lag": None if there is None else _lag(partition.target_end, there),
        "next_sync_writes": writes[partition.target].downstream_offset if writes else None,
    }
    details = {"translation": translation, "read_again_max": None if place is None else place.behind_max}
    is_fine = translation in _FOLLOWING and not facts.is_left_out
    why = f"not followed; {why}" if facts.is_left_out else why
    return PartitionExplanation(partition.source, partition.target, why, is_fine, numbers, details)


def _translated(partition: CommittedPartition, place: Place | None) -> tuple[Translation, str]:
    history, last = partition.history, partition.checkpoint
    if partition.left_out:
        return Translation.FILTERED, f"{partition.left_out} leaves the topic out"
    if partition.refusal or partition.error:
        return Translation.UNREADABLE, partition.refusal or partition.error or ""
    if history is None:
        return Translation.NO_SYNC, "no offset sync: nothing of the partition was mirrored yet"
    translation, why = _placed(history, place)
    if partition.lookup:
        why += f"; {partition.lookup}"
    if last is not None and is_refuted(last, history):
        why += f"; the last checkpoint, {last.downstream_offset}, is about a log that the target has lost"
    return translation, why


def _placed(history: SyncHistory, place: Place | None) -> tuple[Translation, str]:
    if place is None:
        why = f"before {history.begin}, the first offset that a sync covers"
        return Translation.OLDER, f"{why}: consumers begin by auto.offset.reset"
    if place.behind_max == 0:
        return Translation.EXACT, "translated exactly"
    if place.behind_max is None:
        newest = history.syncs[0].upstream_offset
        return (
            Translation.APPROXIMATE,
            f"ahead of the newest offset sync, {newest}: the next one may translate it",
        )
    return (
        Translation.APPROXIMATE,
        f"between two offset syncs: at most {place.behind_max} records are read again",
    )


def _coming_checkpoint(
    group: GroupId, partition: CommittedPartition, committed: int, place: Place | None
) -> Checkpoint | None:
    """The one that counts after the mirror's next refresh."""
    last, history = partition.checkpoint, partition.history
    if place is not None and history is not None:
        coming = Checkpoint(group, partition.target, committed, place.offset)
        if CheckpointBook([] if last is None else [last]).is_news(coming, history):
            return coming
    return None if last is None or is_refuted(last, history) else last


def _lag(end: int | None, offset: int) -> int | None:
    return None if end is None else max(0, end - offset)
