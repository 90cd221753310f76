"""Asks both clusters for the state of a flow, and for what it needs there."""

from collections.abc import Iterable, Sequence

from sparkmirror.config.transaction_settings import transactional_id
from sparkmirror.domain.ids import Alias, TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.admin.cluster_survey import survey
from sparkmirror.kafka.transactions.fencing import FENCING_IDS
from sparkmirror.plan.flow_survey import FlowSurvey
from sparkmirror.policies.filters import DefaultTopicFilter
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.settings.internal_topics import own_topics
from sparkmirror.setup.topic_sync import Topics
from sparkmirror.storage.attempts import fencing_id, owner_of
from sparkmirror.storage.own_topics import OwnTopic


def survey_flow(
    on: FlowWorker,
    connector: ConfiguredSource,
    topics: Topics,
    more_own: Sequence[OwnTopic] = (),
    asked_max: int | None = None,
) -> FlowSurvey:
    """Ask both clusters for their state, and for what a flow needs there. Raises KafkaError.

    `asked_max` bounds the topics whose rights are asked for: thousands take seconds.
    """
    settings, flow = connector.settings, on.flow
    mirrored = topics.pairs
    own = [*own_topics(on, connector), *more_own]
    chosen = settings.topic_filter if isinstance(settings.topic_filter, DefaultTopicFilter) else None
    named = () if chosen is None else chosen.named
    asked = mirrored[:asked_max]
    at_source = {topic for topic, _ in asked} | set(named) | _names(own, flow.source)
    at_target = {remote for _, remote in asked} | _names(own, flow.target)
    if settings.preserved_topics is not None:
        at_target.add(StateTopic.MIGRATIONS.of(flow.source))
    prefix, ids = _transactional_ids(on, connector, topics)
    return FlowSurvey(
        settings,
        survey(connector.source_admin, flow.source, at_source),
        survey(connector.target_admin, flow.target, at_target, ids),
        {topic: found.partitions for topic, found in topics.source.items()},
        topics.target,
        mirrored,
        topics.selected.blocked,
        named,
        () if chosen is None else chosen.matching_none(topics.source),
        topics.plan,
        topics.untold,
        own=own,
        id_prefix=prefix,
        is_idempotent=connector.writes_producer_ids,
    )


def _transactional_ids(on: FlowWorker, connector: ConfiguredSource, topics: Topics) -> tuple[str, list[str]]:
    """Return the prefix of the flow's transactional ids, to which rights are granted, and one of them."""
    if connector.transactions is not None:
        first = transactional_id(on.worker.group_id, connector.name, 0)
        return first.removesuffix("0"), [first]
    owner = owner_of(on.worker.offset_topic.name, connector.name)
    return FENCING_IDS, [
        fencing_id(owner, on.flow.source, TopicPartition(topic, 0)) for topic, _ in topics.pairs[:1]
    ]


def _names(own: Iterable[OwnTopic], cluster: Alias) -> set[str]:
    return {topic.creation.name for topic in own if topic.cluster == cluster}
