"""The plans of source connectors against what Java MirrorMaker 2 4.3.1 made of the same source.

`tests.support.recorded_setup` says how that was captured.
"""

from collections.abc import Mapping
from typing import Final

from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import parse_properties
from sparkmirror.domain.acls import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from sparkmirror.domain.topics import AlterConfigOpType, ConfigEntry, ConfigSource
from sparkmirror.settings.parsing import mirror_source_settings
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.setup.acl_plan import AclPlan, SourceAcls, plan_acls
from sparkmirror.setup.config_plan import ConfigPlan, MirroredConfigs, plan_configs
from sparkmirror.setup.topic_plan import SourceTopic, plan_topics, replicated_topics
from tests.support.recorded_setup import DEPARTURES, FLOWS, GOLDEN, SET, TARGET, Acl, Setup, Topic, recorded

SOURCE: Final = recorded("source")
JAVA: Final = recorded("java")
CONFIGS: Final = {
    name: tuple(ConfigEntry(key, value, ConfigSource[where]) for key, (value, where) in topic.configs.items())
    for name, topic in SOURCE.topics.items()
}
UNTOLD: Final = {
    entry.name: ConfigEntry(entry.name, "", ConfigSource.DEFAULT_CONFIG) for entry in CONFIGS["orders"]
}
"""A topic of the target that nobody has configured. Which defaults its brokers have decides nothing."""


def settings_of(alias: str) -> MirrorSourceSettings:
    text = (GOLDEN / "flows.properties").read_text(encoding="ascii")
    addresses = "".join(f"{each}.bootstrap.servers = {each}:9092\n" for each in (*FLOWS, TARGET))
    flows = MirrorMakerConfig(parse_properties(text + addresses, "flows.properties"), {}).flows()
    (source,) = (each.source for each in flows if each.flow.source == alias)
    return mirror_source_settings(source)


def made_by(alias: str) -> Setup:
    """Return what is on an empty target after one flow's plans; the next ones must find nothing to do."""
    settings = settings_of(alias)
    source = {name: SourceTopic(topic.partitions, CONFIGS[name]) for name, topic in SOURCE.topics.items()}
    plan = plan_topics(settings, source, {})
    topics = {
        new.name: Topic(
            new.partitions, new.replication_factor, {name: (value, SET) for name, value in new.configs}
        )
        for new in plan.creates
    }
    changed = altered(topics, planned_configs(settings, topics))
    assert planned_configs(settings, changed) == ConfigPlan()
    assert (
        plan_topics(settings, source, {name: topic.partitions for name, topic in changed.items()}).creates
        == ()
    )
    return Setup(changed, acls_of(settings))


def planned_configs(settings: MirrorSourceSettings, topics: Mapping[str, Topic]) -> ConfigPlan:
    mirrored = [
        MirroredConfigs(remote, CONFIGS[name], described(topics[remote]))
        for name, remote in replicated_topics(settings, SOURCE.topics, topics)
    ]
    return plan_configs(settings.config_filter, mirrored)


def described(topic: Topic) -> tuple[ConfigEntry, ...]:
    """Describe a topic as the target's broker does a topic on which these configs were set."""
    own = {name: ConfigEntry(name, value) for name, (value, _) in topic.configs.items()}
    return tuple({**UNTOLD, **own}.values())


def altered(topics: Mapping[str, Topic], plan: ConfigPlan) -> Mapping[str, Topic]:
    changed = dict(topics)
    for name, operations in plan.changes.items():
        configs = dict(topics[name].configs)
        for each in operations:
            if each.op is AlterConfigOpType.SET:
                configs[each.name] = (each.value, SET)
            else:
                del configs[each.name]
        changed[name] = Topic(topics[name].partitions, topics[name].replicas, configs)
    return changed


def acls_of(settings: MirrorSourceSettings) -> frozenset[Acl]:
    source = SourceAcls(tuple(map(binding, SOURCE.acls)), SOURCE.topics)
    creates = plan_acls(settings, source, ()).creates
    assert plan_acls(settings, source, creates) == AclPlan()
    return frozenset(map(acl_fields, creates))


def binding(acl: Acl) -> AclBinding:
    resource, pattern, name, principal, host, operation, permission = acl
    return AclBinding(
        # librdkafka's word.
        ResourceType.CLUSTER if resource == "BROKER" else ResourceType[resource],
        PatternType[pattern],
        name,
        principal,
        host,
        AclOperation[operation],
        AclPermission[permission],
    )


def acl_fields(acl: AclBinding) -> Acl:
    return (
        acl.resource_type.name,
        acl.pattern_type.name,
        acl.resource_name,
        acl.principal,
        acl.host,
        acl.operation.name,
        acl.permission.name,
    )


def is_own(topic: str) -> bool:
    """Whether a mirror makes it for itself."""
    policies = [settings_of(alias).policy for alias in FLOWS]
    syncs = [policy.offset_syncs_topic(alias) for policy, alias in zip(policies, FLOWS, strict=True)]
    checkpoints = [policy.checkpoints_topic(alias) for policy, alias in zip(policies, FLOWS, strict=True)]
    return topic in {"heartbeats", *syncs, *checkpoints}


def test_all_flows_together_make_what_java_made() -> None:
    made = [made_by(alias) for alias in FLOWS]
    topics = {name: topic for each in made for name, topic in each.topics.items()}
    assert sum(len(each.topics) for each in made) == len(topics)
    acls = frozenset(acl for each in made for acl in each.acls)
    mirrored = {name: topic for name, topic in JAVA.topics.items() if not is_own(name)}
    assert mirrored.keys() >= DEPARTURES
    assert Setup(mirrored, JAVA.acls).without(DEPARTURES).difference(Setup(topics, acls)) == ""
