"""Lets the old source of promoted topics follow the new original, by the opposite flow.

The step that is due follows from a survey (`failback_steps`). What the opposite flow continues with is a
record in its migrations topic, which its driver and its attempts read (`storage/failbacks.py`).
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import LogIdentity, TopicPartition
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST
from sparkmirror.kafka.net.metadata import Metadata
from sparkmirror.migrate.migrations_log import MigrationsLog
from sparkmirror.migrate.moves.topic_drain_steps import UnchangedEnds
from sparkmirror.migrate.promote.failback_steps import FailbackRollback, PartitionFailback, TopicsFailback
from sparkmirror.migrate.promote.log_comparison import Differences, Parted
from sparkmirror.migrate.promote.parted_logs import KeptAside, LogSpan, PartedLogs
from sparkmirror.migrate.promote.promotion import Refused, Wanted
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.settings.source import preserves_offsets
from sparkmirror.settings.topic_selection import remote_topic, why_not
from sparkmirror.setup.append_time import AppendTimeTopics
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.status.flow_offsets import existing_offsets
from sparkmirror.storage.failbacks import Failback, Failbacks, failback_record
from sparkmirror.storage.migrations import read_migrations
from sparkmirror.storage.promotions import (
    Promotion,
    Promotions,
    Stage,
    promotion_record,
)


@dataclass(frozen=True, slots=True)
class _Records:
    """The promotions and failbacks of the promoted flow, and those of the opposite one."""

    promoted: Promotions
    answered: Failbacks
    own: Promotions
    failbacks: Failbacks

    @classmethod
    def read(cls, promoted: FlowAccess, opposite: FlowAccess) -> "_Records":
        of, own = (
            read_migrations(each.positions, each.flow.source, each.owner) for each in (promoted, opposite)
        )
        return cls(of.promotions, of.failbacks, own.promotions, own.failbacks)


@dataclass(frozen=True, slots=True)
class _Topic:
    """A promoted topic by its names on both clusters: `original` is on the opposite flow's source."""

    name: str
    original: str
    promotion: Promotion
    failback: Failback | None
    own: Promotion | None
    ids: LogIdentity

    @property
    def follows(self) -> bool:
        """Whether the opposite flow continues with it."""
        found = self.failback
        if found is None or self.own is not None or found.answers != self.promotion.at_ms:
            return False
        return not found.deleted_id or found.deleted_id != self.ids.target_id

    def parted_at(self, partition: int) -> int:
        """0 for a partition that was added since."""
        parting = self.promotion.partings.get(partition)
        return 0 if parting is None else parting.offset


@dataclass(frozen=True, slots=True)
class Losses:
    """The treatment of records that only the old source has."""

    deletes: bool = False
    aside: str | None = None


@dataclass(slots=True)
class TopicFailback:
    """Plans and applies a failback for topics, named as on the promoted flow's source. Not thread-safe.

    Every method blocks and raises KafkaError.
    """

    promoted: FlowAccess
    opposite: FlowAccess
    wanted: Wanted
    still_for_s: float
    losses: Losses = Losses()
    _ends: UnchangedEnds = field(default_factory=UnchangedEnds)
    _compared: dict[tuple[TopicPartition, Parted], Differences] = field(default_factory=dict)
    _topics: Mapping[str, _Topic] = field(default_factory=dict)
    """The topics of the last survey, named as on the opposite flow's target."""
    _spans: Mapping[TopicPartition, tuple[LogSpan, LogSpan]] = field(default_factory=dict)
    """Both logs' spans, the original's first, by the partition on the opposite flow's target."""

    def survey(self) -> TopicsFailback:
        flow, losses = self.opposite.flow, self.losses
        records = _Records.read(self.promoted, self.opposite)
        found = self._found(records)
        names = {each.original for each in found}, {each.name for each in found}
        metadata = (
            read_metadata(self.opposite.source_admin, names[0]),
            read_metadata(self.opposite.target_admin, names[1]),
        )
        found = [replace(each, ids=_ids(each, *metadata)) for each in found]
        self._topics = {each.name: each for each in found}
        obstacle = self._obstacle(found, *metadata) if found else self._nothing_is_promoted(records)
        if obstacle is not None:
            return TopicsFailback(flow, (), 0.0, self.still_for_s, obstacle=obstacle)
        partitions = self._partitions(found, metadata[0])
        left = {each.target: each.target_end or 0 for each in partitions if not each.follows}
        still_s = self._ends.observe(left, time.monotonic())
        failback = TopicsFailback(
            flow, partitions, still_s, self.still_for_s, self._ends.changed, losses.deletes, losses.aside
        )
        return replace(failback, kept=self._count_kept(failback))

    # what is there

    def _found(self, records: _Records) -> list[_Topic]:
        found = []
        for name, promotion in records.promoted.items():
            if not self.wanted.matches(name):
                continue
            original = remote_topic(self.promoted.source, name)
            answer, own = records.answered.get(name), records.own.get(original)
            if own is not None and answer is not None and answer.answers == own.at_ms:
                own = own._replace(stage=Stage.STOPPING)  # of an earlier turn: this flow has gone on since
            found.append(
                _Topic(name, original, promotion, records.failbacks.get(original), own, LogIdentity())
            )
        return found

    def _nothing_is_promoted(self, records: _Records) -> str:
        names = " or ".join(self.wanted.patterns)
        what = f"{self.promoted.flow} has promoted no topic like {names}"
        if any(self.wanted.matches(topic) for topic in records.own):
            return f"{what}, but {self.opposite.flow} has: name that flow"
        return f"{what}, so that nobody knows where both logs part: sparkmirror promote first"

    def _obstacle(self, topics: Sequence[_Topic], source: Metadata, target: Metadata) -> str | None:
        for each in topics:
            why = self._why_not_due(each) or self._why_not_copied(each)
            why = why or self._why_not_there(each, source, target)
            if why is not None:
                return why
        return None

    def _why_not_due(self, topic: _Topic) -> str | None:
        flow, promoted = self.opposite.flow, self.promoted.flow
        if topic.promotion.stage is not Stage.PROMOTED:
            return f"the promotion of {topic.name} by {promoted} is not done: sparkmirror promote ends it"
        if topic.own is not None and topic.own.stage is not Stage.STOPPING:
            return (
                f"{topic.original} is promoted by {flow} since: its original is on {flow.target} again. "
                f"sparkmirror failback FILE --flow '{flow}' lets {promoted} continue"
            )
        return None

    def _why_not_there(self, topic: _Topic, source: Metadata, target: Metadata) -> str | None:
        flow = self.opposite.flow
        if topic.original not in source.partitions:
            return f"{topic.original} does not exist on {flow.source}"
        counts = source.partitions[topic.original], target.partitions.get(topic.name, 0)
        if counts[0] < counts[1]:
            return (
                f"{topic.name} has {counts[1]} partitions on {flow.target} and {counts[0]} on {flow.source}: "
                "add the missing ones there"
            )
        if self.losses.deletes and topic.name in target.partitions and not topic.ids.target_id:
            return f"{flow.target} has no topic ids (Kafka 2.8 has): delete {topic.name} there by hand"
        return None

    def _why_not_copied(self, topic: _Topic) -> str | None:
        flow, settings = self.opposite.flow, self.opposite.source
        if (copy := remote_topic(settings, topic.original)) != topic.name:
            return (
                f"{flow} would copy {topic.original} to {copy}, not to {topic.name}: a way back needs "
                "a policy that keeps names (replication.policy.class=…IdentityReplicationPolicy)"
            )
        if (why := why_not(settings, topic.original)) is not None:
            return f"{flow} does not copy {topic.original}: {why} ({flow}.topics)"
        if not preserves_offsets(settings)(topic.original):
            return f"{flow} does not preserve the offsets of {topic.original} ({flow}.offsets.preserve)"
        return None

    def _partitions(self, topics: Sequence[_Topic], source: Metadata) -> list[PartitionFailback]:
        pairs = [
            (each, TopicPartition(each.original, number), TopicPartition(each.name, number))
            for each in topics
            for number in range(source.partitions[each.original])
        ]
        originals, targets = [pair[1] for pair in pairs], [pair[2] for pair in pairs]
        followers = self._bounds(ConsumerSettings(self.opposite.target_admin), targets)
        # Read later: where the flow continues, it is never behind.
        leading = self._bounds(ConsumerSettings(self.opposite.source_admin), originals)
        self._spans = {
            target: (leading[original] or LogSpan(original, 0, 0), followers[target] or LogSpan(target, 0, 0))
            for _, original, target in pairs
        }
        stamped = self._stamped([each for each, _, target in pairs if followers[target] is not None])
        made = []
        for each, original, target in pairs:
            spans = self._spans[target]
            parted = Parted(each.parted_at(original.partition), spans[1].end)
            compared = None if each.follows else self._compare(target, parted, stamps=each.name in stamped)
            end = None if followers[target] is None else spans[1].end
            made.append(
                PartitionFailback(original, target, spans[0].end, end, parted, compared, follows=each.follows)
            )
        return made

    @staticmethod
    def _bounds(
        settings: ConsumerSettings, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, LogSpan | None]:
        starts = existing_offsets(settings, partitions, EARLIEST)
        ends = existing_offsets(settings, partitions, LATEST)
        found: dict[TopicPartition, LogSpan | None] = {}
        for each in partitions:
            start, end = starts[each], ends[each]
            found[each] = None if start is None or end is None else LogSpan(each, start, end)
        return found

    def _stamped(self, topics: Sequence[_Topic]) -> set[str]:
        """Return the topics with LogAppendTime, whose copies have other timestamps than the original."""
        asked = [CopyPartition(TopicPartition(each.original, 0), each.name) for each in topics]
        with closing(Admin(self.opposite.target_admin)) as admin:
            noted = AppendTimeTopics(admin).noted(asked)
        return {each.target_topic for each in noted if each.target_stamps_append_time}

    def _compare(self, target: TopicPartition, parted: Parted, *, stamps: bool) -> Differences:
        """Compare once for each end: records below it do not change while nothing is written there."""
        known = self._compared.get((target, parted))
        if known is None:
            leading, follower = self._spans[target]
            found = self._logs.differences(leading, follower, parted, compares_times=not stamps)
            known = self._compared[target, parted] = Differences.of(found)
        return known

    @property
    def _logs(self) -> PartedLogs:
        return PartedLogs(self.opposite.source_admin, self.opposite.target_admin)

    # what is kept

    @property
    def _aside(self) -> KeptAside | None:
        back = self.opposite
        if self.losses.aside is None:
            return None
        return KeptAside(
            flow=back.flow,
            target=back.target_admin,
            plugins=back.admin_plugins,
            topic=self.losses.aside,
            replication_factor=back.source.replication_factor,
            ids={name: each.ids.target_id for name, each in self._topics.items()},
        )

    def _count_kept(self, failback: TopicsFailback) -> int:
        aside, wanted = self._aside, {each.target for each in failback.left if each.own}
        if aside is None or not wanted:
            return 0
        return sum(len(offsets) for at, offsets in aside.offsets().items() if at in wanted)

    def _keep(self, failback: TopicsFailback) -> Refused:
        aside = self._aside
        assert aside is not None
        aside.ensure()
        known = aside.offsets()
        for each in failback.left:
            if each.own:
                found = self._logs.differences(*self._spans[each.target], each.parted, compares_times=True)
                aside.keep(each.target, found, known.get(each.target, ()))
        return {}

    # the switch

    def apply(self, failback: TopicsFailback) -> Refused:
        """Do what is due; return what was refused."""
        return self._keep(failback) if failback.must_keep else self._switch(failback)

    def _switch(self, failback: TopicsFailback) -> Refused:
        left, deleted = {each.target.topic for each in failback.left}, set(failback.to_delete)
        written = self._written_since(failback)
        if written:
            return written
        owner, now_ms = self.opposite.owner, int(time.time() * 1000)
        log = self._log
        log.ensure()
        records = []
        for topic in (self._topics[name] for name in sorted(left)):
            made = _failback(topic, failback, now_ms, is_deleted=topic.name in deleted)
            records.append(failback_record(owner, topic.original, made))
            if topic.own is not None:
                records.append(promotion_record(owner, topic.original, None))
        log.write(records)
        return self._delete({name: self._topics[name].ids.target_id for name in sorted(deleted)})

    def _written_since(self, failback: TopicsFailback) -> Refused:
        known = {each.target: each.target_end or 0 for each in failback.left}
        ends = existing_offsets(ConsumerSettings(self.opposite.target_admin), list(known), LATEST)
        text = "records were written to it meanwhile. Stop the producers, and run this again"
        return {at: KafkaError(f"{at}: {text}") for at, end in ends.items() if (end or 0) != known[at]}

    def _delete(self, topics: Mapping[str, bytes]) -> Refused:
        """The record exists already: the flow copies every producer's records to the topics' successors."""
        if not topics:
            return {}
        with closing(Admin(self.opposite.target_admin)) as admin:
            writes = self.opposite.admin_plugins.over(admin, self.opposite.flow.target)
            results = writes.delete_topics(topics)
        return {TopicPartition(name, 0): error for name, error in results.items() if error is not None}

    @property
    def _log(self) -> MigrationsLog:
        return MigrationsLog.of(self.opposite)

    # the roll-back

    def survey_rollback(self) -> FailbackRollback:
        found = self._found(_Records.read(self.promoted, self.opposite))
        self._topics = {each.original: each for each in found}
        failbacks = {
            each.original: each.failback
            for each in found
            if each.failback is not None and each.failback.answers == each.promotion.at_ms
        }
        ended = [
            name
            for name in failbacks
            if (own := self._topics[name].own) is not None and own.stage is not Stage.STOPPING
        ]
        return FailbackRollback(self.opposite.flow, failbacks, ended)

    def undo(self, rollback: FailbackRollback) -> Refused:
        """The flow's earlier promotion counts again, or a stop that can be undone."""
        now_ms = int(time.time() * 1000)
        records = []
        for topic, failback in rollback.failbacks.items():
            stopped = Promotion(Stage.STOPPING, now_ms, failback.logs.target_id, {})
            records.append(promotion_record(self.opposite.owner, topic, failback.ended or stopped))
        # Nothing is copied from here on.
        records += [failback_record(self.opposite.owner, topic, None) for topic in rollback.failbacks]
        self._log.write(records)
        return {}


def _ids(topic: _Topic, source: Metadata, target: Metadata) -> LogIdentity:
    return LogIdentity(
        source_id=source.topic_ids.get(topic.original, b""), target_id=target.topic_ids.get(topic.name, b"")
    )


def _failback(topic: _Topic, failback: TopicsFailback, now_ms: int, *, is_deleted: bool) -> Failback:
    ended = None if topic.own is None or not topic.own.partings else topic.own._replace(stage=Stage.PROMOTED)
    made = Failback(topic.promotion.at_ms, now_ms, topic.ids, {}, ended)
    if is_deleted:
        new = LogIdentity(source_id=topic.ids.source_id)
        return made._replace(logs=new, deleted_id=topic.ids.target_id)
    ends = {
        each.target.partition: each.target_end or 0
        for each in failback.left
        if each.target.topic == topic.name
    }
    return made._replace(beginnings=ends)
