"""Reads what to compare of a flow: its partitions, by the plan that `run` makes, and their positions."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self

from sparkmirror.batches.provenance_header import ProvenanceHeader
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import AuthorizationError, KafkaError
from sparkmirror.domain.ids import Flow, TopicPartition
from sparkmirror.domain.incidents import OnLoop
from sparkmirror.domain.topics import TopicListing, topics_with
from sparkmirror.domain.troubles import NEVER_RUN
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from sparkmirror.policies.java_regex import JavaPattern
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.settings.topic_selection import Selection
from sparkmirror.setup.new_partitions import NewPartitions, left_out_of
from sparkmirror.setup.topic_plan import CopyPlan, SourceTopic, copy_partitions
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.migrations import Migrations, read_migrations
from sparkmirror.storage.positions import Position, read_positions, topics_with_positions
from sparkmirror.storage.producer_id_topic import WriterDirectory
from sparkmirror.storage.promotions import Promotions
from sparkmirror.verify.range_comparison import Sides
from sparkmirror.verify.range_planning import MirroredPartition


class NotCompared(NamedTuple):
    """A partition of the plan whose records can't be compared, and the reason."""

    plan: CopyPartition
    why: str
    left_out: int = 0
    """Records that are there and are not to be copied (`auto.offset.reset`, `start.at`)."""


@dataclass(frozen=True, slots=True)
class FlowPartitions:
    sides: Sides
    mirrored: Sequence[MirroredPartition]
    gone: Sequence[NotCompared]
    """Partitions that have a position, and none on the target: what was mirrored is missing there."""
    not_begun: Sequence[NotCompared]
    """The flow has not copied anything of them."""
    empty: Sequence[CopyPartition]
    """Partitions that lack a position or their copy on the target, and have no record to compare."""
    promoted: Sequence[NotCompared] = ()
    """Applications write them on the target."""


def flow_partitions(
    settings: FlowWorker, connector: ConfiguredSource, topics: JavaPattern | None
) -> FlowPartitions:
    """Read both clusters. `topics` selects by whole names on the source. Raises KafkaError."""
    with (
        closing(Admin(connector.source_admin)) as at_source,
        closing(Admin(connector.target_admin)) as at_target,
    ):
        listing = at_source.listing()
        whole = _copy_plan(settings, connector, at_source, at_target, topics)
        migrations = _migrations(settings, connector)
        promotions = migrations.promotions
        plan = CopyPlan(*(_copied(part, promotions) for part in (whole.ready, whole.waiting)))
        facts = _TopicFacts.read(plan, at_source, at_target)
    positions = _positions(settings, connector, [*plan.ready, *plan.waiting])
    gone, not_begun, empty = _left(settings.flow, plan, positions, connector.consumer_of(0))
    late = _late(settings, connector, listing, [left.plan.source for left in not_begun])
    return FlowPartitions(
        # Made after the positions were read: the producers of all records before them are recorded.
        _sides(settings.flow, connector, plan.ready),
        [
            _mirrored(connector.settings, ready, positions[ready.source], migrations, facts)
            for ready in plan.ready
            if ready.source in positions
        ],
        gone,
        [left._replace(left_out=late.get(left.plan.source, 0)) for left in not_begun],
        empty,
        [
            NotCompared(each, found.of(each.source.partition))
            for each in (*whole.ready, *whole.waiting)
            if (found := promotions.get(each.source.topic)) is not None
        ],
    )


class _TopicFacts(NamedTuple):
    """The names of topics with settings that change what the target must hold."""

    stamping: Collection[str]
    compacted_at_source: Collection[str]
    compacted_at_target: Collection[str]

    @classmethod
    def read(cls, plan: CopyPlan, at_source: Admin, at_target: Admin) -> Self:
        source = at_source.topic_configs(sorted({ready.source.topic for ready in plan.ready}))
        target = at_target.topic_configs(sorted({ready.target_topic for ready in plan.ready}))
        compacted = "cleanup.policy", "compact"
        return cls(
            topics_with(target, "message.timestamp.type", "LogAppendTime"),
            topics_with(source, *compacted),
            topics_with(target, *compacted),
        )


def _sides(flow: Flow, connector: ConfiguredSource, ready: Sequence[CopyPartition]) -> Sides:
    consumer, copying = connector.consumer_of(0), connector.settings.copying
    return Sides(
        flow,
        consumer,
        ConsumerSettings(connector.target_admin, read_committed=consumer.read_committed),
        left_out=_left_out(connector),
        others=_others(connector),
        provenance=ProvenanceHeader(*flow) if copying.provenance_header else None,
        decompressed_bytes_max=copying.decompressed_bytes_max,
        transforms={each.source: each.transforms for each in ready if each.transforms is not None},
    )


def _mirrored(
    settings: MirrorSourceSettings,
    ready: CopyPartition,
    position: Position,
    migrations: Migrations,
    facts: _TopicFacts,
) -> MirroredPartition:
    topic = ready.source.topic
    return MirroredPartition(
        replace(
            ready,
            target_stamps_append_time=ready.target_topic in facts.stamping,
            preserves_offsets=ready.preserves_offsets and not position.is_translated,
        ),
        position,
        source_is_compacted=topic in facts.compacted_at_source,
        target_is_compacted=ready.target_topic in facts.compacted_at_target,
        keeps_all=settings.preserved_topics is not None and migrations.keeps_all(topic, position.logs),
    )


def _left(
    flow: Flow, plan: CopyPlan, positions: Mapping[TopicPartition, Position], consumer: ConsumerSettings
) -> tuple[Sequence[NotCompared], Sequence[NotCompared], Sequence[CopyPartition]]:
    """Return partitions without a position or a target: those that are gone, not begun, and empty ones."""
    without = [ready for ready in plan.ready if ready.source not in positions]
    empty = _empty(consumer, [left.source for left in (*without, *plan.waiting)])
    gone, not_begun = [], [NotCompared(left, "it has no stored position") for left in without]
    for left in plan.waiting:
        absent, last = f"{left.target} does not exist on {flow.target}", positions.get(left.source)
        if last is None:
            not_begun.append(NotCompared(left, absent))
        else:
            why = f"{absent}, but source offsets up to {last.offset} were mirrored"
            gone.append(NotCompared(left, why))
    return (
        [left for left in gone if left.plan.source not in empty],
        [left for left in not_begun if left.plan.source not in empty],
        [left.plan for left in (*gone, *not_begun) if left.plan.source in empty],
    )


def _copied(partitions: Sequence[CopyPartition], promotions: Promotions) -> tuple[CopyPartition, ...]:
    return tuple(each for each in partitions if each.source.topic not in promotions)


def _copy_plan(
    on: FlowWorker,
    connector: ConfiguredSource,
    at_source: Admin,
    at_target: Admin,
    topics: JavaPattern | None,
) -> CopyPlan:
    source = {topic: SourceTopic(count) for topic, count in at_source.partition_counts().items()}
    begun = partial(topics_with_positions, *on.positions_of(connector.name))
    pairs = [
        pair
        for pair in Selection(connector.settings, begun).select(source).pairs
        if topics is None or topics.fullmatch(pair[0])
    ]
    return copy_partitions(connector.settings, source, at_target.partition_counts(), pairs)


def _positions(
    settings: FlowWorker, connector: ConfiguredSource, partitions: Collection[CopyPartition]
) -> Mapping[TopicPartition, Position]:
    wanted = [partition.source for partition in partitions]
    try:
        return read_positions(*settings.positions_of(connector.name), wanted)
    except KafkaError as error:
        flow = settings.flow
        if error.code == UNKNOWN_TOPIC_OR_PARTITION:
            text = f"{flow}: nothing to compare: {NEVER_RUN}"
            raise KafkaError(text, error.code) from error
        text = f"the positions of {flow} can't be read on {flow.target}: {error}"
        raise KafkaError(text, error.code) from error


def _migrations(settings: FlowWorker, connector: ConfiguredSource) -> Migrations:
    """Read the flow's migrations. Where offsets are not preserved, the right to read them is not needed."""
    owner = owner_of(settings.worker.offset_topic.name, connector.name)
    try:
        return read_migrations(settings.worker_client, settings.flow.source, owner)
    except AuthorizationError:
        if connector.settings.preserved_topics is None:
            return Migrations()
        raise


def _late(
    on: FlowWorker, connector: ConfiguredSource, listing: TopicListing, partitions: Sequence[TopicPartition]
) -> Mapping[TopicPartition, int]:
    """Count what was there at the flow's first start and is left out, of partitions without a position."""
    new = NewPartitions(on, connector).among(partitions, listing)
    return left_out_of(
        connector.consumer_of(0), [partition for partition in partitions if partition not in new]
    )


def _left_out(connector: ConfiguredSource) -> frozenset[int]:
    """The producer ids whose batches the flow does not copy, because they came from the target."""
    settings = connector.settings
    if settings.names_show_origin or settings.copying.reactions.on_loop is OnLoop.COPY:
        return frozenset()
    directory = WriterDirectory(connector.consumer_of(0).connection, connector.target_admin)
    try:
        return directory.from_target()
    except AuthorizationError:  # which keeps the flow from leaving anything out, too
        return frozenset()


def _others(connector: ConfiguredSource) -> frozenset[int]:
    """The producer ids of flows from other sources, which may write the same topics where names are kept."""
    if connector.settings.names_show_origin:
        return frozenset()
    try:
        return WriterDirectory(connector.target_admin, connector.consumer_of(0).connection).from_elsewhere()
    except AuthorizationError:
        return frozenset()


def _empty(consumer: ConsumerSettings, partitions: Collection[TopicPartition]) -> Collection[TopicPartition]:
    if not partitions:
        return ()
    begins = list_offsets(consumer, partitions, EARLIEST)
    ends = list_offsets(consumer, partitions, LATEST)
    return {partition for partition in partitions if begins[partition] == ends[partition]}
