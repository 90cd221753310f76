"""Finds where groups of a flow's target are on its source: offset syncs turned round, and both logs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.groups.offset_resolver import OffsetResolver, Wanted
from sparkmirror.kafka.groups.consumer_groups import Committed, Groups
from sparkmirror.migrate.remake.remake_steps import GroupPlace
from sparkmirror.offsets.offset_runs import Run
from sparkmirror.offsets.translation import Place, SyncHistory
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.settings.topic_selection import remote_topic
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.storage.offset_sync_topic import OffsetSyncsReader, RunSync

_READ_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class BothSides:
    """A partition on both sides, where its source starts, and the last run of its position, if any."""

    source: TopicPartition
    target: TopicPartition
    source_start: int
    run: Run | None


class GroupsBack:
    """Translates groups' offsets back to the source. Methods block and raise KafkaError."""

    def __init__(self, access: FlowAccess) -> None:
        self._groups = Groups(access.target_admin)
        # All that both logs hold: a hole, aborted records too, would end a look-up.
        self._resolver = OffsetResolver(
            ConsumerSettings(access.target_admin),
            ConsumerSettings(access.consumer.connection),
            flow_log(__name__, access.flow),
        )
        self._syncs: OffsetSyncsReader | None = None
        if access.checkpoint is not None:
            reading = access.checkpoint
            self._syncs = OffsetSyncsReader(
                reading.offset_syncs_consumer,
                reading.settings.offset_syncs_topic,
                turned=lambda sync: _turned(access, sync),
            )
        self._known: dict[tuple[TopicPartition, int], Place | None] = {}

    def close(self) -> None:
        self._groups.close()
        self._resolver.close()
        if self._syncs is not None:
            self._syncs.close()

    def active(self, groups: Collection[GroupId]) -> list[GroupId]:
        """The groups that have members."""
        listed = self._groups.listed()
        return sorted(group for group in groups if group in listed and listed[group].is_active)

    def places(self, partitions: Collection[BothSides]) -> list[GroupPlace]:
        """Find the places of all groups that have committed an offset in one of these topics."""
        listed = self._groups.listed()
        wanted = {each.target: each for each in partitions}
        found = []
        for group, committed in self._groups.committed([*listed]).items():
            if isinstance(committed, KafkaError):
                if listed[group].commits_offsets:
                    raise committed
                continue
            found += [
                (group, wanted[target], committed[target])
                for target in sorted(committed.keys() & wanted.keys())
            ]
        if any((each.target, now.offset) not in self._known for _, each, now in found):
            self._catch_up()
        return [
            self._place(group, each, now, is_active=listed[group].is_active) for group, each, now in found
        ]

    def write(
        self, group: GroupId, offsets: Mapping[TopicPartition, Committed]
    ) -> Mapping[TopicPartition, KafkaError]:
        """Commit what is ahead of where the group is by now; what was refused."""
        now = self._groups.committed([group])[group]
        if isinstance(now, KafkaError):
            raise now
        ahead = {at: each for at, each in offsets.items() if at not in now or now[at].offset < each.offset}
        return self._groups.write(group, ahead) if ahead else {}

    def _catch_up(self) -> None:
        if self._syncs is not None:
            self._syncs.catch_up(_READ_TIMEOUT_S)

    def _place(self, group: GroupId, sides: BothSides, now: Committed, *, is_active: bool) -> GroupPlace:
        key = sides.target, now.offset
        if key not in self._known:
            self._known[key] = self._looked_up(sides, now.offset)
        known = self._known[key]
        place, again = (None, None) if known is None else known
        return GroupPlace(
            group,
            sides.source,
            sides.target,
            now.offset,
            None if place is None else max(place, sides.source_start),
            again,
            now.metadata,
            is_active,
        )

    def _looked_up(self, sides: BothSides, offset: int) -> Place | None:
        run = sides.run
        if run is not None and run.first_downstream <= offset <= run.last_downstream + 1:
            return Place(offset - run.shift, 0)
        history = self._history(sides.target)
        if history is None:
            return None
        self._resolver.look_up(Wanted(sides.target, offset, sides.source, history))
        return history.place(offset)

    def _history(self, target: TopicPartition) -> SyncHistory | None:
        return None if self._syncs is None else self._syncs.histories.get(target)


def _turned(access: FlowAccess, sync: RunSync) -> RunSync:
    return sync.reversed(remote_topic(access.source, sync.sync.topic_partition.topic))
