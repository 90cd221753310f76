"""Copies the offsets that consumer groups have in some topics to a flow's target."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.groups.consumer_groups import Groups
from sparkmirror.migrate.moves.consumers import ConsumerMigration
from sparkmirror.migrate.moves.group_move_steps import GroupMove
from sparkmirror.policies.filters import TopicFilter
from sparkmirror.settings.configured import ConfiguredCheckpoint
from sparkmirror.status.flow_access import FlowAccess


@dataclass(frozen=True, slots=True)
class OnlyTopics:
    """A topic filter that selects some of those that are wanted."""

    wanted: TopicFilter
    topics: Collection[str]

    def should_replicate(self, topic: str) -> bool:
        return topic in self.topics and self.wanted.should_replicate(topic)

    def refused_by(self, topic: str) -> str | None:
        return self.wanted.refused_by(topic) or (None if topic in self.topics else "it was not asked for")


@dataclass(frozen=True, slots=True)
class PromotedGroups:
    """Copies the offsets of groups that the flow's group filter selects. Blocks. Raises KafkaError."""

    access: FlowAccess
    checkpoint: ConfiguredCheckpoint
    topics: Collection[str]

    def moves(self) -> list[GroupMove]:
        """Return the moves of the groups that have committed offsets in these topics."""
        wanted = self.checkpoint.settings.group_filter
        with closing(Groups(self.checkpoint.source_admin)) as groups:
            listed = [
                group
                for group, found in groups.listed().items()
                if found.commits_offsets and wanted.should_replicate(group)
            ]
        with closing(self._migration()) as migration:
            return [move for move in migration.survey(listed) if move.partitions or move.obstacle]

    def write(self, moves: Sequence[GroupMove]) -> Mapping[TopicPartition, KafkaError]:
        refused: dict[TopicPartition, KafkaError] = {}
        with closing(self._migration()) as migration:
            for move in moves:
                refused.update(migration.write(move))
        return refused

    def _migration(self) -> ConsumerMigration:
        only = OnlyTopics(self.access.source.topic_filter, self.topics)
        access = replace(self.access, source=replace(self.access.source, topic_filter=only))
        return ConsumerMigration(access, self.checkpoint, leave_untranslated=True)
