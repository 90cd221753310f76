"""Recreates mirrored topics with their source's offsets: surveys both clusters, deletes, creates, restores.

The step that is due follows from a survey (`remake_steps`). What brokers forget with the old topic is a
record in the migrations topic (`storage/remakes.py`). The copying is the flow's.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby

from sparkmirror.batches.record_batch import CONTROL
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import KafkaError, TopicExistsError
from sparkmirror.domain.ids import TopicPartition, is_another
from sparkmirror.domain.preserving import REFUSED
from sparkmirror.domain.topics import ConfigSource, TopicCreation
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST, log_sizes
from sparkmirror.kafka.data.partition_reader import SpanReader
from sparkmirror.kafka.groups.consumer_groups import Committed
from sparkmirror.kafka.net.metadata import Metadata
from sparkmirror.kafka.wire.error_codes import UNKNOWN_TOPIC_ID
from sparkmirror.migrate.migrations_log import MigrationsLog
from sparkmirror.migrate.promote.parted_logs import LogSpan
from sparkmirror.migrate.promote.promotion import Refused, Wanted
from sparkmirror.migrate.remake.groups_back import BothSides, GroupsBack
from sparkmirror.migrate.remake.remake_steps import GroupPlace, PartitionRemake, TopicRemake
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.settings.source import preserves_offsets
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.status.flow_offsets import FlowOffsets, existing_offsets
from sparkmirror.status.mirrored_partitions import mirrored_partitions
from sparkmirror.storage.migrations import Migrations, read_migrations
from sparkmirror.storage.positions import Position
from sparkmirror.storage.producer_id_topic import WriterDirectory
from sparkmirror.storage.promotions import Promotions
from sparkmirror.storage.remakes import Remake, Remembered, remake_record


@dataclass(frozen=True, slots=True)
class Accepted:
    """Losses that the user accepts: of records, and of groups' places.

    `recreates`: rather than to fill gaps before the sources' starts.
    """

    deletes: bool = False
    leave_untranslated: bool = False
    recreates: bool = False


@dataclass(frozen=True, slots=True)
class _Ends:
    """The starts and ends of logs, named as on their own cluster; None where they don't exist."""

    source: tuple[Mapping[TopicPartition, int | None], Mapping[TopicPartition, int | None]]
    target: tuple[Mapping[TopicPartition, int | None], Mapping[TopicPartition, int | None]]


@dataclass(slots=True)
class _ForeignRecords:
    """Counts the records that others have written to the target; later calls read what was added since."""

    target: ConnectionSettings
    _read_to: dict[TopicPartition, int] = field(default_factory=dict)
    _found: dict[TopicPartition, int] = field(default_factory=dict)

    def count(self, log: LogSpan, own: Collection[int]) -> int:
        """Count them, blocking. Raises KafkaError."""
        at, (_, start, end) = log.partition, log
        begin = max(start, self._read_to.get(at, 0))
        if begin < end:
            with closing(SpanReader(ConsumerSettings(self.target))) as reader:
                for batch in reader.read(at, begin, end):
                    header = batch.header
                    if header.producer_id not in own and not header.attributes & CONTROL:
                        self._found[at] = self._found.get(at, 0) + header.record_count
            self._read_to[at] = end
        return self._found.get(at, 0)


class TopicRemaking:
    """Recreates selected topics of one flow. Not thread-safe. Every method blocks and raises KafkaError."""

    def __init__(self, access: FlowAccess, wanted: Wanted, accepted: Accepted) -> None:
        self._access = access
        self._wanted = wanted
        self._accepted = accepted
        self._owner = access.owner
        self._offsets = FlowOffsets(access)
        self._groups = GroupsBack(access)
        self._foreign = _ForeignRecords(access.target_admin)
        self._own_ids = WriterDirectory(access.target_admin, access.source_admin)
        self._log = MigrationsLog.of(access)
        self._remade: set[str] = set()
        """Topics whose tasks have perhaps not reported yet that they continue."""

    def close(self) -> None:
        self._offsets.close()
        self._groups.close()

    # the survey

    def survey(self) -> list[TopicRemake]:
        access = self._access
        known = read_migrations(access.positions, access.flow.source, self._owner)
        partitions = mirrored_partitions(access, self._wanted.matches)
        if not partitions:
            names = " or ".join(self._wanted.patterns)
            why = f"no topic that {access.flow} mirrors has a name like {names} on {access.flow.source}"
            return [TopicRemake(access.flow, names, obstacle=why)]
        metadata = read_metadata(access.target_admin, {each.target_topic for each in partitions})
        self._offsets.read([each.source for each in partitions])
        ends = self._ends(partitions)
        self._remade |= known.remakes.keys()
        stopped = self._stopped({each.source.topic for each in partitions} - self._remade)
        by_topic = groupby(sorted(partitions, key=lambda it: it.source), key=lambda it: it.source.topic)
        return [self._topic(topic, list(some), metadata, ends, known, stopped) for topic, some in by_topic]

    def _stopped(self, topics: Collection[str]) -> Collection[TopicPartition]:
        """The partitions whose logs can have their source's offsets no more, as their tasks have reported."""
        errors = self._offsets.errors() if topics else {}
        return {at for at, error in errors.items() if at.topic in topics and error.startswith(REFUSED)}

    def _ends(self, partitions: Sequence[CopyPartition]) -> _Ends:
        source = ConsumerSettings(self._access.consumer.connection)
        target = ConsumerSettings(self._access.target_admin)
        asked = [each.source for each in partitions], [each.target for each in partitions]
        return _Ends(
            (existing_offsets(source, asked[0], EARLIEST), existing_offsets(source, asked[0], LATEST)),
            (existing_offsets(target, asked[1], EARLIEST), existing_offsets(target, asked[1], LATEST)),
        )

    def _topic(
        self,
        topic: str,
        partitions: Sequence[CopyPartition],
        metadata: Metadata,
        ends: _Ends,
        known: Migrations,
        stopped: Collection[TopicPartition],
    ) -> TopicRemake:
        access, begun = self._access, known.remakes.get(topic)
        target_id = metadata.topic_ids.get(partitions[0].target_topic, b"")
        is_there = partitions[0].target_topic in metadata.partitions
        found = TopicRemake(
            access.flow,
            topic,
            [
                self._partition(each, ends, target_id, is_stopped=each.source in stopped)
                for each in partitions
            ],
            target_id,
            None if begun is None else begun.remake,
            deletes=self._accepted.deletes,
            leave_untranslated=self._accepted.leave_untranslated,
            recreates=self._accepted.recreates,
            obstacle=self._obstacle(topic, known.promotions, has_id=bool(target_id) or not is_there),
        )
        return found if found.obstacle is not None else self._with_details(found)

    def _obstacle(self, topic: str, promotions: Promotions, *, has_id: bool) -> str | None:
        flow = self._access.flow
        if topic in promotions:
            return f"it is promoted: applications write it on {flow.target} (sparkmirror promote)"
        if not preserves_offsets(self._access.source)(topic):
            return (
                f"{flow} does not preserve its offsets: set {flow}.offsets.preserve=true (and "
                "offsets.preserve.topics, if that leaves it out), and restart the mirror"
            )
        if not has_id:
            return f"{flow.target} has no topic ids (Kafka 2.8 has): delete it there by hand"
        return None

    def _partition(
        self, each: CopyPartition, ends: _Ends, target_id: bytes, *, is_stopped: bool
    ) -> PartitionRemake:
        start, end = (offsets[each.target] for offsets in ends.target)
        position = self._position(each.source, target_id)
        return PartitionRemake(
            each.source,
            each.target,
            ends.source[0][each.source] or 0,
            ends.source[1][each.source] or 0,
            start,
            end,
            is_same=position is not None and not is_stopped and _is_same(position, end or 0),
            is_begun=position is not None,
            was_begun=position is None and self._offsets.position(each.source) is not None,
        )

    def _position(self, source: TopicPartition, target_id: bytes) -> Position | None:
        """Return the position of the topic that exists now, not of one that was deleted."""
        position = self._offsets.position(source)
        is_old = position is not None and is_another(position.logs.target_id, target_id)
        return None if is_old or not target_id else position

    def _with_details(self, found: TopicRemake) -> TopicRemake:
        """Add the conditions of the deletion, and who must be stopped until groups are written."""
        if not found.is_due:
            groups = {each.group for each in found.remake.groups} if found.remake is not None else set()
            return replace(found, active=self._groups.active(groups) if groups else ())
        partitions = [self._with_losses(each) for each in found.partitions]
        places = self._places(found)
        sources = [each.source for each in partitions]
        sizes = log_sizes(self._access.consumer.connection, sources)
        return replace(
            found,
            partitions=partitions,
            groups=places,
            active=sorted({each.group for each in places if each.is_active}),
            size_bytes=sum(sizes.values()) if sizes.keys() == set(sources) else None,
        )

    def _with_losses(self, each: PartitionRemake) -> PartitionRemake:
        """Add the records that would be lost.

        Under a policy that renames topics, all records count as the flow's.
        """
        start, end = each.target_start or 0, each.target_end or 0
        foreign = 0
        if not self._access.source.names_show_origin:
            position = self._offsets.position(each.source)
            known = None if position is None else position.producer
            own = {*self._own_ids.from_target(), *(() if known is None else [known.producer.id])}
            foreign = self._foreign.count(LogSpan(each.target, start, end), own)
        older: int | None = end - start if each.is_outrun else 0
        if each.source_start and start < end and not each.is_outrun:
            first = self._offsets.place(each.source, each.source_start)
            older = None
            if first is not None and first.behind_max is not None:
                older = max(0, first.offset + first.behind_max - start)
        return replace(each, foreign=foreign, older=older)

    def _places(self, found: TopicRemake) -> Sequence[GroupPlace]:
        sides = []
        for each in found.partitions:
            position = self._position(each.source, found.target_id)
            run = None if position is None else position.run
            sides.append(BothSides(each.source, each.target, each.source_start, run))
        return self._groups.places(sides)

    # what is done

    def apply(self, found: TopicRemake) -> Refused:
        """Do what is due; return what was refused."""
        if found.is_due:
            return self._delete(found)
        if found.is_missing:
            return self._create(found)
        return self._restore(found)

    def _delete(self, found: TopicRemake) -> Refused:
        """The record exists before: a later run knows what to create, and where groups were."""
        name, at = found.partitions[0].target.topic, found.partitions[0].target
        places = self._places(found)  # again: groups may have moved meanwhile
        if moved := [each for each in places if each.is_active]:
            return {
                at: KafkaError(f"{moved[0].group} has members by now: stop its consumers, and run this again")
            }
        with closing(Admin(self._access.target_admin)) as admin:
            entries = admin.topic_configs([name]).get(name, ())
            remake = Remake(
                found.target_id,
                max(len(found.partitions), admin.partition_counts().get(name, 0)),
                {
                    entry.name: entry.value
                    for entry in entries
                    if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG and entry.value is not None
                },
                {each.source.partition: each.source_end for each in found.partitions},
                _remembered(places, found.remake),
            )
            self._log.ensure()
            self._log.write([remake_record(self._owner, found.topic, remake)])
            writes = self._access.admin_plugins.over(admin, self._access.flow.target)
            results = writes.delete_topics({name: found.target_id})
        # Metadata may show a topic for a moment that is gone.
        return {
            TopicPartition(name, 0): error
            for name, error in results.items()
            if error is not None and error.code != UNKNOWN_TOPIC_ID
        }

    def _create(self, found: TopicRemake) -> Refused:
        """Create the topic at once, with its previous configs; the flow's driver would use its source's."""
        assert found.remake is not None
        topic, replicas = found.partitions[0].target.topic, self._access.source.replication_factor
        creation = TopicCreation(topic, found.remake.partitions, replicas, found.remake.configs)
        with closing(Admin(self._access.target_admin)) as admin:
            writes = self._access.admin_plugins.over(admin, self._access.flow.target)
            results = writes.create_topics([creation])
        # It may be there by now, or be there still: brokers delete a topic a while after they have said so.
        return {
            TopicPartition(name, 0): error
            for name, error in results.items()
            if error is not None and not isinstance(error, TopicExistsError)
        }

    def _restore(self, found: TopicRemake) -> Refused:
        assert found.remake is not None
        targets = {each.source.partition: each.target for each in found.partitions}
        refused: dict[TopicPartition, KafkaError] = {}
        by_group = groupby(sorted(found.remake.groups), key=lambda each: each.group)
        for group, some in by_group:
            offsets = {targets[each.partition]: Committed(each.offset, each.metadata) for each in some}
            refused.update(self._groups.write(group, offsets))
        if not refused:
            self._log.write([remake_record(self._owner, found.topic, None)])
        return refused


def _remembered(places: Sequence[GroupPlace], before: Remake | None) -> tuple[Remembered, ...]:
    """Add what an interrupted run has stored, since brokers may have forgotten it by now."""
    now = [
        Remembered(each.group, each.source.partition, each.place, each.metadata)
        for each in places
        if each.place is not None
    ]
    known = {(each.group, each.partition) for each in now}
    earlier = () if before is None else before.groups
    return (*now, *(each for each in earlier if (each.group, each.partition) not in known))


def _is_same(position: Position, target_end: int) -> bool:
    """Whether the target has the source's offsets: once it has fewer, they never meet again.

    If there is no run, as behind a gap or before the first record, the next offsets of both sides tell. Java
    stores none of the target: its last record is the target's last one then.
    """
    if position.is_translated:
        return False
    if position.run is not None:
        return position.run.shift == 0
    return position.offset + 1 == (target_end if position.producer is None else position.producer.next_offset)
