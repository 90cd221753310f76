"""Asks both clusters of a flow what they are and what we may do there; says what is in the flow's way."""

from collections.abc import Iterable, Sequence
from typing import Final

from sparkmirror.connectors.flow_settings import FlowWorker, SourceConfig
from sparkmirror.connectors.own_topics import OwnTopic, own_topics
from sparkmirror.domain.ids import Alias
from sparkmirror.kafka.cluster_survey import survey
from sparkmirror.policies.topic_filter import DefaultTopicFilter
from sparkmirror.setup.plan.flow_plan import Finding, Severity
from sparkmirror.setup.plan.plan_findings import findings
from sparkmirror.setup.plan.survey import FlowSurvey
from sparkmirror.setup.topic_sync import Topics

_ASKED_MAX: Final = 500
"""Topics about which a mirror that begins asks for its rights: who lacks them lacks most of them."""


def obstacles(on: FlowWorker, connector: SourceConfig, topics: Topics) -> Sequence[Finding]:
    """What is in the way of a flow that begins, by a request to each broker. Raises KafkaError."""
    surveyed = survey_flow(on, connector, topics, asked_max=_ASKED_MAX)
    return [finding for finding in findings(surveyed) if finding.severity is Severity.BLOCKS]


def survey_flow(
    on: FlowWorker,
    connector: SourceConfig,
    topics: Topics,
    more_own: Sequence[OwnTopic] = (),
    asked_max: int | None = None,
) -> FlowSurvey:
    """What both clusters say of themselves, and of what a flow needs there. Raises KafkaError.

    `asked_max` is for whoever wants rights on so many topics at most: thousands take seconds.
    """
    told, flow = connector.settings, on.flow
    mirrored = topics.pairs
    own = [*own_topics(on, connector), *more_own]
    named = told.topic_filter.named if isinstance(told.topic_filter, DefaultTopicFilter) else ()
    asked = mirrored[:asked_max]
    at_source = {topic for topic, _ in asked} | set(named) | _names(own, flow.source)
    at_target = {remote for _, remote in asked} | _names(own, flow.target)
    return FlowSurvey(
        told,
        survey(connector.source_admin, flow.source, at_source),
        survey(connector.target_admin, flow.target, at_target),
        {topic: found.partitions for topic, found in topics.source.items()},
        topics.target,
        mirrored,
        named,
        topics.plan,
        own=own,
    )


def _names(own: Iterable[OwnTopic], cluster: Alias) -> set[str]:
    return {topic.creation.name for topic in own if topic.cluster == cluster}
