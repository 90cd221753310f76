"""Lets both clusters' brokers validate the changes of a plan, in the way in which `run` makes them."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Final, Protocol, TypeVar

from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.findings import Severity
from sparkmirror.domain.ids import Alias
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.plan.flow_survey import FlowSurvey, Refusal
from sparkmirror.policies.admin_writes import Results
from sparkmirror.settings.configured import ConfiguredSource
from sparkmirror.setup.config_plan import ConfigPlan
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.setup.refused_configs import RefusedConfigs, TopicCreations, alter_configs
from sparkmirror.setup.topic_plan import TopicPlan

_T = TypeVar("_T")


class Part(Protocol):
    """Makes a part of a plan; `otherwise` where that fails, which becomes a finding."""

    def __call__(
        self, name: str, plan: Callable[[], _T], otherwise: _T, severity: Severity = Severity.BLOCKS
    ) -> _T: ...


_NO_RESULTS: Final[Results] = {}
_NO_ERRORS: Final[Mapping[str, KafkaError]] = {}
_NONE_REFUSED: Final[RefusedConfigs] = {}


def validated(
    surveyed: FlowSurvey, admins: FlowAdmins, connector: ConfiguredSource, part: Part
) -> FlowSurvey:
    """Add what brokers refuse, and leave out the configs that they do not accept.

    They can't validate the changes that a plug-in makes. Raises KafkaError.
    """
    if admins.writes is not admins.target:
        return surveyed
    source, target, checks = surveyed.source.alias, surveyed.target.alias, admins.checks
    own = {
        cluster: [topic.creation for topic in surveyed.missing if topic.cluster == cluster]
        for cluster in (source, target)
    }
    refused = list[Refusal]()
    creations = TopicCreations(checks.create_topics, checks.create_topics)
    results, without = part(
        Need.CREATE_TOPIC.requests,
        lambda: creations.create([new.creation for new in surveyed.topics.creates]),
        (_NO_RESULTS, _NONE_REFUSED),
    )
    refused += _refused(target, Need.CREATE_TOPIC, results)
    results = part(Need.CREATE_TOPIC.requests, lambda: checks.create_topics(own[target]), _NO_RESULTS)
    refused += _refused(target, Need.CREATE_TOPIC, results)
    grows = {topic.name: topic.partitions for topic in surveyed.topics.grows}
    results = part(Need.GROW_TOPIC.requests, partial(checks.grow_topics, grows), _NO_RESULTS)
    refused += _refused(target, Need.GROW_TOPIC, results)
    errors, unaltered = part(
        Need.ALTER_TOPIC_CONFIGS.requests,
        partial(alter_configs, checks.alter_configs, surveyed.configs.changes),
        (_NO_ERRORS, _NONE_REFUSED),
        Severity.WARNS,
    )
    refused += _refused(target, Need.ALTER_TOPIC_CONFIGS, errors)
    if own[source]:
        with closing(Admin(connector.offset_syncs_admin, checks_only=True)) as at_source:
            refused += _refused(source, Need.CREATE_TOPIC, at_source.create_topics(own[source]))
    return replace(
        surveyed,
        topics=_creating(surveyed.topics, without),
        configs=_altering(surveyed.configs, unaltered),
        refusals=refused,
        created_without=without,
        unaltered=unaltered,
    )


def _creating(plan: TopicPlan, without: RefusedConfigs) -> TopicPlan:
    return replace(plan, creates=tuple(new.without(without.get(new.name, ())) for new in plan.creates))


def _altering(plan: ConfigPlan, unaltered: RefusedConfigs) -> ConfigPlan:
    left = {
        topic: tuple(change for change in changes if change.name not in unaltered.get(topic, ()))
        for topic, changes in plan.changes.items()
    }
    return replace(plan, changes={topic: changes for topic, changes in left.items() if changes})


def _refused(cluster: Alias, need: Need, results: Mapping[str, KafkaError | None]) -> Iterable[Refusal]:
    for name, error in results.items():
        if error is not None:
            yield Refusal(cluster, need, name, error)
