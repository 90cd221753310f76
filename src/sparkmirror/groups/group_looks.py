"""Keeps what an interval of a checkpoint connector has found out about groups, for those who look at it.

One thread notes, any thread looks. Nothing is read or asked for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple

from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.groups.group_explanation import Translation
from sparkmirror.kafka.groups.consumer_groups import Offsets
from sparkmirror.metrics.looks import GroupPartitionLook, GroupsLook
from sparkmirror.offsets.checkpoints import CheckpointBook
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.settings.checkpoint import MirrorCheckpointSettings, counterpart, is_followed

_PARTITIONS_MAX: Final = 10_000
"""Partitions of groups that are kept; a large cluster has a hundred thousand."""

_NO_ERRORS: Final[Mapping[GroupId, KafkaError]] = MappingProxyType({})

OnTarget = Mapping[GroupId, Mapping[TopicPartition, int]]


class _Translated(NamedTuple):
    at: float
    partitions: tuple[GroupPartitionLook, ...]
    left_out: int
    errors: Mapping[GroupId, str]


class _Target(NamedTuple):
    at: float
    committed: OnTarget
    active: frozenset[GroupId]
    errors: Mapping[GroupId, str]


class GroupLooks:
    """Times are of any one clock, in seconds."""

    def __init__(self, settings: MirrorCheckpointSettings, partitions_max: int = _PARTITIONS_MAX) -> None:
        self._settings = settings
        self._partitions_max = partitions_max
        self._translated: _Translated | None = None
        self._target: _Target | None = None
        self._written: tuple[tuple[_Translated, _Target] | None, Sequence[GroupPartitionLook]] = None, ()

    def note_translation(
        self,
        found: Mapping[GroupId, Offsets],
        histories: Mapping[TopicPartition, SyncHistory],
        book: CheckpointBook,
        now: float,
        errors: Mapping[GroupId, KafkaError] = _NO_ERRORS,
    ) -> None:
        """Note what the groups have committed on the source, and where that is on the target."""
        looks = self._looks(found, histories, book)
        kept = tuple(islice(looks, self._partitions_max))
        self._translated = _Translated(now, kept, sum(1 for _ in looks), _texts(errors))

    def note_target(
        self,
        committed: OnTarget,
        active: frozenset[GroupId],
        now: float,
        errors: Mapping[GroupId, KafkaError] = _NO_ERRORS,
    ) -> None:
        """Note what groups without members have committed on the target, and the groups that have members."""
        self._target = _Target(now, committed, active, _texts(errors))

    def look(self, of: GroupsLook, now: float) -> GroupsLook:
        """`of` with what was noted."""
        translated, target = self._translated, self._target
        look = replace(
            of,
            interval_s=self._settings.emit_checkpoints_interval_s,
            reads_target=self._settings.sync_group_offsets_interval_s is not None,
        )
        if translated is not None:
            look = replace(
                look,
                partitions=translated.partitions,
                left_out=translated.left_out,
                errors=translated.errors,
                age_s=now - translated.at,
            )
        if target is None:
            return look
        return replace(
            look,
            partitions=None if translated is None else self._joined(translated, target),
            active=target.active,
            errors={**look.errors, **target.errors},
            target_age_s=now - target.at,
        )

    def _joined(self, translated: _Translated, target: _Target) -> Sequence[GroupPartitionLook]:
        """The same list until something is noted: what is found in it serves from look to look."""
        of, written = self._written
        if of is None or of[0] is not translated or of[1] is not target:
            written = [
                each._replace(written=target.committed.get(each.group, {}).get(each.target))
                for each in translated.partitions
            ]
            self._written = (translated, target), written
        return written

    def _looks(
        self,
        found: Mapping[GroupId, Offsets],
        histories: Mapping[TopicPartition, SyncHistory],
        book: CheckpointBook,
    ) -> Iterator[GroupPartitionLook]:
        for group, offsets in found.items():
            checkpoints = book.of_group(group)
            for source, (committed, _) in sorted(offsets.items()):
                if is_followed(self._settings, source.topic):
                    target = counterpart(self._settings, source)
                    last = checkpoints.get(target)
                    place, why = _place(histories.get(source), committed)
                    yield GroupPartitionLook(
                        group,
                        source,
                        target,
                        committed,
                        translated=None if place is None else place[0],
                        behind_max=None if place is None else place[1],
                        why=why.value,
                        checkpoint=None if last is None else last.downstream_offset,
                    )


def _texts(errors: Mapping[GroupId, KafkaError]) -> Mapping[GroupId, str]:
    return {group: str(error) for group, error in errors.items()}


def _place(history: SyncHistory | None, committed: int) -> tuple[tuple[int, int | None] | None, Translation]:
    if history is None:
        return None, Translation.NO_SYNC
    place = history.place(committed)
    if place is None:
        return None, Translation.OLDER
    return place, Translation.EXACT if place.behind_max == 0 else Translation.APPROXIMATE
