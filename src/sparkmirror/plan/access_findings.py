"""Finds brokers that are too old for a mirror, rights that it lacks, and what it does without. Pure."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from sparkmirror.domain.acls import PatternType
from sparkmirror.domain.findings import Finding, Severity
from sparkmirror.domain.ids import Alias
from sparkmirror.domain.rights import Need, Right
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.admin.cluster_survey import ApiRange, ClusterSurvey
from sparkmirror.kafka.transactions.fencing import FENCING_IDS
from sparkmirror.kafka.wire import fetch, produce
from sparkmirror.plan.flow_survey import FlowSurvey
from sparkmirror.settings.source import preserves_offsets
from sparkmirror.storage.own_topics import OwnTopic

OLD_BROKER: Final = "old broker"
MISSING_RIGHT: Final = "missing right"
AT_LEAST_ONCE: Final = "at least once"
_AT_LEAST_ONCE: Final = ": without it the flow copies at least once, as Java MirrorMaker 2 does"


class _Api(NamedTuple):
    key: int
    name: str
    needed: ApiRange
    since: str
    """The first Kafka that has it."""


_ANY: Final = ApiRange(0, 99)
_OF_SOURCE: Final = (
    _Api(fetch.API_KEY, "Fetch", ApiRange(fetch.VERSION_LOW, fetch.VERSION_HIGH), "2.1"),
    _Api(32, "DescribeConfigs", _ANY, "0.11"),
)
_OF_TARGET: Final = (
    _Api(produce.API_KEY, "Produce", ApiRange(produce.VERSION_LOW, produce.VERSION_HIGH), "2.1"),
    _Api(22, "InitProducerId", _ANY, "0.11"),
    _Api(19, "CreateTopics", _ANY, "0.10.1"),
    _Api(37, "CreatePartitions", _ANY, "1.0"),
)
_INCREMENTAL_ALTER_CONFIGS: Final = _Api(44, "IncrementalAlterConfigs", _ANY, "2.3")


def old_brokers(survey: FlowSurvey) -> Iterator[Finding]:
    syncs_configs = survey.settings.sync_topic_configs_interval_s is not None
    of_target = (*_OF_TARGET, _INCREMENTAL_ALTER_CONFIGS) if syncs_configs else _OF_TARGET
    for side, apis in ((survey.source, _OF_SOURCE), (survey.target, of_target)):
        for broker in side.brokers:
            for api in apis if broker.versions else ():
                offered = broker.versions.get(api.key)
                if offered is None or offered.high < api.needed.low or offered.low > api.needed.high:
                    yield _old_broker(side.alias, broker.address, api, offered)


def _old_broker(cluster: Alias, address: str, api: _Api, offered: ApiRange | None) -> Finding:
    speaks = "does not know it" if offered is None else f"speaks v{offered.low} to v{offered.high}"
    needs = "" if api.needed == _ANY else f" v{api.needed.low} to v{api.needed.high}"
    remedy = f"upgrade the brokers of {cluster} to Kafka {api.since} or newer"
    if api is _INCREMENTAL_ALTER_CONFIGS:
        remedy += ", or set sync.topic.configs.enabled=false"
    return Finding(
        OLD_BROKER,
        Severity.BLOCKS,
        f"{address} of {cluster}",
        f"the mirror needs {api.name}{needs}, and the broker {speaks}",
        remedy,
    )


def missing_rights(survey: FlowSurvey) -> Iterator[Finding]:
    wanted = dict.fromkeys(_wanted_rights(survey))
    fencing = {FENCING_IDS, StateTopic.ATTEMPTS.of(survey.settings.flow.source)}
    optional = {FENCING_IDS, *(own.creation.name for own in survey.own if not own.is_needed)}
    for cluster, right in wanted:
        side = survey.side(cluster)
        if side.lacks(right):
            severity = Severity.WARNS if right.name in optional else Severity.BLOCKS
            yield missing_right(side, right, severity, _AT_LEAST_ONCE if right.name in fencing else "")


def missing_right(
    side: ClusterSurvey, right: Right, severity: Severity = Severity.BLOCKS, effect: str = ""
) -> Finding:
    return Finding(
        MISSING_RIGHT,
        severity,
        right.name,
        f"{side.principal} has no right to {right} on {side.alias}{effect}",
        side.grant(right),
    )


def at_least_once(survey: FlowSurvey) -> Iterator[Finding]:
    if not survey.is_idempotent:
        yield Finding(
            AT_LEAST_ONCE,
            Severity.WARNS,
            "enable.idempotence",
            "it is false, so the flow copies at least once, as Java MirrorMaker 2 does: records may come "
            "twice after lost responses and crashes",
            "remove it from the target's producer settings",
        )


def _wanted_rights(survey: FlowSurvey) -> Iterator[tuple[Alias, Right]]:
    here, there = survey.source.alias, survey.target.alias
    for topic in (name for name in sorted(survey.named) if name not in survey.source_topics):
        yield here, Need.DESCRIBE_TOPIC.of(topic)
    for topic, remote in survey.mirrored:
        for need in _at_source(survey, remote):
            yield here, need.of(topic)
        for need in _at_target(survey, remote):
            yield there, need.of(remote)
    for grown in survey.topics.grows:
        yield there, Need.GROW_TOPIC.of(grown.name)
    for gone in survey.topics.deletes:
        yield there, Need.DELETE_TOPIC.of(gone.name)
    for own in survey.own:
        for need in _of_own(survey, own):
            yield own.cluster, need.of(own.creation.name)
    for cluster, need in _on_clusters(survey):
        yield cluster, need.of()
    yield there, Need.TRANSACT.of(survey.id_prefix, PatternType.PREFIXED)
    yield from _of_preserved(survey)


def _of_preserved(survey: FlowSurvey) -> Iterator[tuple[Alias, Right]]:
    """List the rights for preserved topics: filler is deleted; promoted topics are not written."""
    preserves = preserves_offsets(survey.settings)
    preserved = [remote for topic, remote in survey.mirrored if preserves(topic)]
    for remote in preserved:
        yield survey.target.alias, Need.DELETE_RECORDS.of(remote)
    if preserved:
        yield survey.target.alias, Need.READ_TOPIC.of(StateTopic.MIGRATIONS.of(survey.settings.flow.source))


def _of_own(survey: FlowSurvey, own: OwnTopic) -> Iterator[Need]:
    if own in survey.missing:
        yield Need.CREATE_TOPIC
    yield Need.WRITE_TOPIC
    if own.is_read:
        yield Need.READ_TOPIC


def _on_clusters(survey: FlowSurvey) -> Iterator[tuple[Alias, Need]]:
    """List the rights on clusters: describe on the source; alter, which includes it, on the target."""
    settings = survey.settings
    syncs_accounts = settings.sync_accounts_interval_s is not None
    for is_synced, describe, alter in (
        (
            settings.sync_topic_acls_interval_s is not None and survey.acls.unavailable is None,
            Need.DESCRIBE_ACLS,
            Need.ALTER_ACLS,
        ),
        (syncs_accounts and settings.sync_quotas, Need.DESCRIBE_QUOTAS, Need.ALTER_QUOTAS),
        (syncs_accounts and settings.sync_users is not None, Need.DESCRIBE_USERS, Need.ALTER_USERS),
    ):
        if is_synced:
            yield survey.source.alias, describe
            yield survey.target.alias, alter


def _at_source(survey: FlowSurvey, remote: str) -> Iterator[Need]:
    yield Need.READ_TOPIC
    if remote not in survey.target_topics or survey.settings.sync_topic_configs_interval_s is not None:
        yield Need.DESCRIBE_TOPIC_CONFIGS


def _at_target(survey: FlowSurvey, remote: str) -> Iterator[Need]:
    if remote not in survey.target_topics:
        yield Need.CREATE_TOPIC
    yield Need.WRITE_TOPIC
    yield Need.READ_TOPIC  # after a crash, to continue behind what is there
    yield Need.DESCRIBE_TOPIC_CONFIGS
    if survey.settings.sync_topic_configs_interval_s is not None:
        yield Need.ALTER_TOPIC_CONFIGS
