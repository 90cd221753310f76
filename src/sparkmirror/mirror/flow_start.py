"""Decides where the partitions begin that a source connector has no position of, before they are copied."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from sparkmirror.domain.client_settings import OffsetReset
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import OnNewerPosition
from sparkmirror.domain.quantities import some_of
from sparkmirror.domain.topics import TopicListing
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.periodic.flow_log import FlowLog, LogOnce
from sparkmirror.plan.backlog import left_out, stored_positions
from sparkmirror.plan.newer_positions import newer_positions, newer_texts, predecessor
from sparkmirror.plan.renamed_targets import RenamedTarget, renamed_targets, renamed_text
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.settings.copy_partition import CopyPartition, FormerTarget
from sparkmirror.settings.topic_selection import Pairs
from sparkmirror.setup.new_partitions import NewPartitions
from sparkmirror.storage.positions import Position, position_record


class FlowStart:
    """Decides where partitions without a position begin. Methods block."""

    def __init__(self, on: FlowWorker, connector: ConfiguredSource, log: FlowLog) -> None:
        self._on = on
        self._connector = connector
        self._log = log
        self._new = NewPartitions(on, connector)
        self._told: set[TopicPartition] = set()
        self._has_looked_back = False
        self._renamed: Mapping[str, RenamedTarget] = {}
        self.lost: Collection[str] = ()
        """The topics whose positions are lost, and which continue where the attempts before ended."""
        self._problems = LogOnce(log)

    def marked(
        self,
        partitions: Sequence[CopyPartition],
        listing: TopicListing,
        selected: Collection[str],
        *,
        can_remember: bool,
    ) -> tuple[CopyPartition, ...]:
        """Mark partitions that are new, or were in a topic of another name, and remember what else is there.

        Raises RetriableError where that can't be told now.
        """
        partitions = [self._with_former(each) for each in partitions]
        if not self._new.matter:
            return tuple(partitions)
        try:
            new = self._new.among([each.source for each in partitions], listing)
            self._tell_left_out(partitions, new)
            if can_remember:
                self._new.remember(listing, selected)
        except SparkmirrorError as error:
            if error.retriable:
                raise
            self._problems.log([f"auto.offset.reset decides where new partitions begin, too: {error}"])
            return tuple(partitions)
        return tuple(replace(each, is_new=True) if each.source in new else each for each in partitions)

    def look_back(self, pairs: Pairs, source: TopicListing, target: TopicListing) -> None:
        """Look where the flow has been, by other connectors or into topics of other names.

        Once, and before a copy job runs. Raises RetriableError where that can't be told now.
        """
        if self._has_looked_back:
            return
        try:
            self._take_newer(pairs, source, target)
            self._find_renamed(pairs, source, target)
        except SparkmirrorError as error:
            if error.retriable:
                raise
            self._log.warning("can't tell where the flow has been before: %s", error)
        self._has_looked_back = True

    def _take_newer(self, pairs: Pairs, source: TopicListing, target: TopicListing) -> None:
        """Store the positions that another connector of the flow has reached since, unless told otherwise.

        Where the own positions are lost, the task looks up where the attempt before ended.
        """
        reaction = self._connector.settings.copying.reactions.on_newer_position
        newer = newer_positions(self._on, self._connector, pairs, source, target)
        self._new.predecessor = predecessor(newer)
        for text in newer_texts(newer, reaction):
            self._log.warning("%s (%s)", text.why, text.remedy)
        if newer and reaction is OnNewerPosition.CONTINUE:
            self.lost = {at.topic for at, each in newer.items() if each.is_lost}
            self._store({at: each.position for at, each in newer.items() if not each.is_lost})

    def _find_renamed(self, pairs: Pairs, source: TopicListing, target: TopicListing) -> None:
        partitions = [
            TopicPartition(topic, number)
            for topic, _ in pairs
            for number in range(source.counts.get(topic, 0))
        ]
        positions = stored_positions(self._on, self._connector, partitions) if partitions else {}
        self._renamed = renamed_targets(positions, pairs, target)
        if self._renamed:
            reaction = self._connector.settings.copying.reactions.on_topic_recreated
            self._log.warning("%s (%s)", *renamed_text(self._renamed, reaction))

    @property
    def _starts_at_time(self) -> bool:
        return self._connector.consumer_of(0).offset_reset is OffsetReset.TIME

    def _with_former(self, partition: CopyPartition) -> CopyPartition:
        renamed = self._renamed.get(partition.source.topic)
        if renamed is None:
            return partition
        return replace(partition, former_target=FormerTarget(renamed.before, renamed.topic_id))

    def _store(self, positions: Mapping[TopicPartition, Position]) -> None:
        client, topic, name, source = self._on.positions_of(self._connector.name)
        if not positions:
            return
        with closing(TopicWriter(client)) as writer:
            records = [position_record(name, source, at, each) for at, each in positions.items()]
            writer.write(topic, records)

    def _tell_left_out(self, partitions: Sequence[CopyPartition], new: Collection[TopicPartition]) -> None:
        """Log what is not copied, once for each partition: some can be copied only at a later refresh."""
        untold = {each.source for each in partitions} - self._told - set(new)
        left = left_out(self._on, self._connector, untold)
        if left:
            self._log.warning(
                "%s leaves out %d records of %s, which this flow has not copied before",
                "start.at" if self._starts_at_time else "auto.offset.reset=latest",
                sum(left.values()),
                some_of(sorted({at.topic for at in left})),
            )
        self._told |= untold
