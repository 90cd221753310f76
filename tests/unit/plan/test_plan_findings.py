"""Findings of a plan, made from facts about two clusters."""

from dataclasses import replace

import pytest

from sparkmirror.domain.acls import AclOperation
from sparkmirror.domain.errors import AuthorizationError, KafkaError
from sparkmirror.domain.findings import Finding, Severity
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.groups.group_explanation import LATER_GROUPS
from sparkmirror.kafka.admin.cluster_survey import ApiRange, ClusterSurvey, SurveyedBroker
from sparkmirror.plan.flow_plan import FlowPlan, PlannedCopy
from sparkmirror.plan.flow_survey import FlowSurvey, Refusal
from sparkmirror.plan.plan_findings import NEVER_AGAIN, findings, findings_between, joined
from sparkmirror.policies.filters import DefaultTopicFilter
from sparkmirror.policies.replication import RoutedPolicy
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.settings.topic_selection import Blocked, BlockKind
from sparkmirror.setup.acl_plan import AclPlan
from sparkmirror.setup.config_plan import ConfigPlan
from sparkmirror.setup.topic_explanation import LATER_TOPICS
from sparkmirror.setup.topic_plan import GrowTopic, NewTopic, TopicNote, TopicPlan
from sparkmirror.storage.own_topics import OwnTopic, Unfit
from sparkmirror.transforms.chain import (
    Chain,
    DropHeaders,
    Filter,
    Function,
    HasHeaderKey,
    Link,
    RegexRouter,
    TopicNameMatches,
)

MODERN = {key: ApiRange(0, 20) for key in range(80)}
ALL_RIGHTS = frozenset(AclOperation)
SYNCS = OwnTopic(
    Alias("source"),
    TopicCreation("mm2-offset-syncs.target.internal", 1, 3, {}),
    "offset-syncs.topic.replication.factor",
    is_read=False,
)


def cluster(alias: str, *, brokers: int = 3, versions: dict[int, ApiRange] | None = None) -> ClusterSurvey:
    each = tuple(SurveyedBroker(f"{alias}-{number}:9092", versions or MODERN) for number in range(brokers))
    return ClusterSurvey(Alias(alias), f"id of {alias}", "User:mm", f"{alias}:9092", each, ALL_RIGHTS, {}, {})


@pytest.fixture
def survey(settings: MirrorSourceSettings) -> FlowSurvey:
    """One new topic, and nothing in the way."""
    new = NewTopic("source.orders", "orders", 3, 2, ())
    return FlowSurvey(
        settings,
        cluster("source"),
        cluster("target"),
        {"orders": 3},
        {},
        [("orders", "source.orders")],
        topics=TopicPlan((new,)),
    )


def only(found: tuple[Finding, ...]) -> Finding:
    assert len(found) == 1, found
    return found[0]


def summary(finding: Finding) -> tuple[str, Severity, str]:
    return finding.kind, finding.severity, finding.subject


def test_a_flow_that_is_to_write_without_idempotence_is_told_what_that_means(survey: FlowSurvey) -> None:
    found = [it for it in findings(replace(survey, is_idempotent=False)) if it not in findings(survey)]
    assert [(it.severity, it.subject) for it in found] == [(Severity.WARNS, "enable.idempotence")]
    assert "copies at least once" in found[0].text


def test_nothing_is_found_where_nothing_is_in_the_way(survey: FlowSurvey) -> None:
    assert findings(survey) == ()
    assert findings(replace(survey, own=[SYNCS])) == ()


def test_more_replicas_than_brokers(survey: FlowSurvey) -> None:
    one_broker = replace(survey, target=cluster("target", brokers=1), own=[SYNCS])
    found = only(findings(one_broker))
    assert summary(found) == ("too many replicas", Severity.BLOCKS, "replication.factor")
    assert found.text == "source.orders can't have 2 replicas on target, which has 1 broker"
    assert found.remedy == "set replication.factor to 1, or to -1 for the broker's default"


def test_findings_about_own_topics_name_their_setting(survey: FlowSurvey) -> None:
    two_brokers = replace(survey, source=cluster("source", brokers=2), own=[SYNCS])
    found = only(findings(two_brokers))
    assert found.subject == "offset-syncs.topic.replication.factor"
    assert found.severity is Severity.WARNS  # data flows without offset syncs
    needed = replace(two_brokers, own=[SYNCS._replace(is_needed=True)])
    assert only(findings(needed)).severity is Severity.BLOCKS
    assert only(
        findings(replace(needed, own=[SYNCS._replace(is_needed=True, takes_default=True)]))
    ).severity is (Severity.WARNS)
    there = replace(two_brokers, source_topics={"orders": 3, SYNCS.creation.name: 1})
    assert findings(there) == ()


@pytest.mark.parametrize("other", ["source_orders", "source.or.ders"])
def test_names_that_metrics_would_confuse(survey: FlowSurvey, other: str) -> None:
    found = findings(replace(survey, target_topics={other: 1}))
    collides = other.replace(".", "_") == "source_orders"
    assert [summary(each) for each in found] == [
        ("colliding names", Severity.BLOCKS, "source.orders")
    ] * collides


def test_two_new_topics_may_collide_with_each_other(survey: FlowSurvey) -> None:
    new = tuple(NewTopic(f"source.{name}", name, 1, 1, ()) for name in ("a.b", "a_b"))
    both = replace(survey, topics=TopicPlan(new), mirrored=[(each.source, each.name) for each in new])
    assert summary(only(findings(both))) == ("colliding names", Severity.BLOCKS, "source.a_b")


def test_topics_that_are_blocked_by_one_cause_are_named_together(survey: FlowSurvey) -> None:
    cause = Blocked(BlockKind.MERGED, "the replication policy gives a and b one name, all", "exclude one")
    blocked = replace(survey, blocked={"a": cause, "b": cause}, mirrored=(), topics=TopicPlan())
    found = only(findings(blocked))
    assert summary(found) == ("merged topics", Severity.BLOCKS, "a, b")
    assert found.text == "can't be mirrored: the replication policy gives a and b one name, all"
    assert found.remedy == "exclude one"


@pytest.mark.parametrize(
    ("is_needed", "can_be_written", "severity"),
    [(True, False, Severity.BLOCKS), (False, False, Severity.WARNS), (True, True, Severity.WARNS)],
)
def test_own_topics_that_are_otherwise_than_needed(
    survey: FlowSurvey, is_needed: bool, can_be_written: bool, severity: Severity
) -> None:
    topic = SYNCS._replace(is_needed=is_needed)
    bad = Unfit(topic, "it has cleanup.policy=delete", "kafka-configs.sh", can_be_written)
    found = only(findings(replace(survey, unfit=[bad])))
    assert summary(found) == ("unfit topic", severity, topic.name)
    assert (found.text, found.remedy) == ("it has cleanup.policy=delete", "kafka-configs.sh")


def test_a_topic_that_others_have_filled(survey: FlowSurvey) -> None:
    filled = replace(survey, target_topics={"source.orders": 3}, topics=TopicPlan(), filled={"source.orders"})
    assert summary(only(findings(filled))) == ("topic of others", Severity.WARNS, "source.orders")
    assert findings(replace(filled, begun={"orders"})) == ()


def test_old_brokers_are_named_with_what_they_speak(survey: FlowSurvey) -> None:
    old = cluster("source", brokers=1, versions={**MODERN, 1: ApiRange(0, 9)})
    found = only(findings(replace(survey, source=old)))
    assert summary(found) == ("old broker", Severity.BLOCKS, "source-0:9092 of source")
    assert found.text == "the mirror needs Fetch v10 to v13, and the broker speaks v0 to v9"
    assert found.remedy == "upgrade the brokers of source to Kafka 2.1 or newer"


def test_incremental_configs_are_needed_where_configs_are_synced(survey: FlowSurvey) -> None:
    versions = {key: offered for key, offered in MODERN.items() if key != 44}
    old = replace(survey, target=cluster("target", versions=versions))
    assert {finding.text for finding in findings(old)} == {
        "the mirror needs IncrementalAlterConfigs, and the broker does not know it"
    }
    quiet = replace(survey.settings, sync_topic_configs_interval_s=None)
    assert findings(replace(old, settings=quiet)) == ()


def test_a_broker_that_could_not_be_asked_is_none_that_is_old(survey: FlowSurvey) -> None:
    silent = SurveyedBroker("target-9:9092", {})
    assert findings(replace(survey, target=replace(survey.target, brokers=(silent, silent)))) == ()


@pytest.mark.parametrize(
    ("side", "topic", "lacks", "words"),
    [
        ("source", "orders", AclOperation.READ, "--operation Read --topic orders"),
        ("source", "orders", AclOperation.DESCRIBE_CONFIGS, "--operation DescribeConfigs --topic orders"),
        ("target", "source.orders", AclOperation.WRITE, "--operation Write --topic source.orders"),
        ("target", "source.orders", AclOperation.ALTER_CONFIGS, "--operation AlterConfigs --topic source.or"),
    ],
)
def test_a_missing_right_on_a_topic_comes_with_its_command(
    survey: FlowSurvey, side: str, topic: str, lacks: AclOperation, words: str
) -> None:
    asked = survey.source if side == "source" else survey.target
    poor = replace(asked, topic_operations={topic: ALL_RIGHTS - {lacks}})
    found = only(findings(replace(survey, source=poor) if side == "source" else replace(survey, target=poor)))
    assert summary(found) == ("missing right", Severity.BLOCKS, topic)
    assert found.text == f"User:mm has no right to {lacks.name} on topic {topic} on {side}"
    assert found.remedy.startswith(
        f"kafka-acls.sh --bootstrap-server {side}:9092 --add --allow-principal User:mm"
    )
    assert words in found.remedy


def test_create_on_the_cluster_replaces_create_on_each_topic(survey: FlowSurvey) -> None:
    operations = {"source.orders": ALL_RIGHTS - {AclOperation.CREATE}}
    named = replace(survey.target, topic_operations=operations)
    assert findings(replace(survey, target=named)) == ()
    poor = replace(named, operations=ALL_RIGHTS - {AclOperation.CREATE})
    assert "--operation Create --topic source.orders" in only(findings(replace(survey, target=poor))).remedy
    assert findings(replace(survey, target=replace(named, operations=None))) == ()


def test_rights_on_the_cluster_are_for_acls(survey: FlowSurvey) -> None:
    """The right to alter, on the target, includes the one to describe."""
    without = frozenset({AclOperation.CREATE})
    poor = replace(
        survey,
        source=replace(survey.source, operations=without),
        target=replace(survey.target, operations=without),
    )
    assert [finding.text for finding in findings(poor)] == [
        "User:mm has no right to DESCRIBE on the cluster on source",
        "User:mm has no right to ALTER on the cluster on target",
    ]
    assert all(
        finding.severity is Severity.NOTE
        for finding in findings(replace(poor, acls=AclPlan(unavailable="off")))
    )


def test_growth_needs_a_right_of_its_own(survey: FlowSurvey) -> None:
    operations = {"source.orders": ALL_RIGHTS - {AclOperation.ALTER}}
    poor = replace(survey.target, topic_operations=operations)
    grows = replace(
        survey,
        target=poor,
        target_topics={"source.orders": 1},
        topics=TopicPlan(grows=(GrowTopic("source.orders", 3),)),
    )
    assert "--operation Alter --topic source.orders" in only(findings(grows)).remedy


def test_a_topic_that_is_named_and_hidden_lacks_a_right_and_one_that_is_missing_is_said(
    survey: FlowSurvey,
) -> None:
    hidden = replace(survey.source, topic_operations={"secret": frozenset()}, errors={"secret": 29})
    found = only(findings(replace(survey, source=hidden, named={"orders", "secret"})))
    assert "--operation Describe --topic secret" in found.remedy
    missing = replace(survey.source, errors={"payments": 3})
    found = only(findings(replace(survey, source=missing, named={"payments"})))
    assert summary(found) == ("missing topic", Severity.WARNS, "payments")


def test_refusals_of_brokers_are_reported_once(survey: FlowSurvey) -> None:
    target = Alias("target")
    policy = Refusal(target, Need.CREATE_TOPIC, "source.orders", KafkaError("POLICY_VIOLATION (no!)", 44))
    assert only(findings(replace(survey, refusals=[policy]))).text == "POLICY_VIOLATION (no!)"
    replicas = Refusal(
        target, Need.CREATE_TOPIC, "source.orders", KafkaError("INVALID_REPLICATION_FACTOR", 38)
    )
    known = replace(survey, target=cluster("target", brokers=1), refusals=[replicas])
    assert only(findings(known)).kind == "too many replicas"
    right = Refusal(target, Need.CREATE_TOPIC, "source.orders", AuthorizationError("no", 29))
    assert (
        "--operation Create --topic source.orders" in only(findings(replace(survey, refusals=[right]))).remedy
    )


def test_a_quota_that_delays_the_creation_of_topics_blocks_nothing(survey: FlowSurvey) -> None:
    refusals = [
        Refusal(Alias("target"), Need.CREATE_TOPIC, f"t{at}", KafkaError("THROTTLING_QUOTA_EXCEEDED", 89))
        for at in range(194)
    ]
    found = only(findings(replace(survey, refusals=refusals)))
    assert summary(found) == ("throttled", Severity.NOTE, "t0, t1, t2, t3, t4 and 189 more")
    assert "controller_mutation_rate" in found.text


def test_positions_that_lead_nowhere(survey: FlowSurvey) -> None:
    partition = TopicPartition("orders", 2)
    lost = only(findings(replace(survey, lost={partition: 1200})))
    assert summary(lost) == ("lost records", Severity.WARNS, "orders-2")
    assert "1,200 records" in lost.text
    assert "on.data.loss=" in lost.text
    homeless = only(findings(replace(survey, homeless=[partition])))
    assert summary(homeless) == ("no position", Severity.BLOCKS, "orders-2")


def test_configs_that_the_target_does_not_know(survey: FlowSurvey) -> None:
    unknown = ConfigPlan(unknown={f"source.{name}": ("new.thing",) for name in "abcdefg"})
    found = only(findings(replace(survey, configs=unknown)))
    assert summary(found) == ("unknown config", Severity.WARNS, "new.thing")
    assert "source.e and 2 more" in found.text


def test_configs_that_the_target_refuses_block_nothing(survey: FlowSurvey) -> None:
    error = KafkaError("create topic source.orders on target: INVALID_CONFIG (no)", 40)
    names = ("source.a", "source.b")
    found = findings(
        replace(
            survey,
            created_without={"source.orders": {"remote.storage.enable": error}},
            unaltered={name: {"segment.bytes": KafkaError(f"alter {name}: no", 40)} for name in names},
        )
    )
    assert [summary(each) for each in found] == [
        ("refused config", Severity.WARNS, "remote.storage.enable"),
        ("refused config", Severity.WARNS, "segment.bytes"),
    ]
    assert found[0].text == f"source.orders is created without the config remote.storage.enable: {error}"
    assert found[1].text == "source.a, source.b can't follow the source in segment.bytes: alter source.a: no"
    assert "config.properties.exclude" in found[0].remedy


def test_a_target_that_takes_smaller_batches(survey: FlowSurvey) -> None:
    sizes = (10485760, 1048588)
    found = only(findings(replace(survey, smaller_limits={"source.a": sizes, "source.b": sizes})))
    assert summary(found) == ("smaller limit", Severity.WARNS, "source.a, source.b")
    assert "1,048,588 bytes" in found.text
    assert found.remedy == "set max.message.bytes to 10485760 on target"


def test_what_a_late_start_leaves_out_is_a_number(survey: FlowSurvey) -> None:
    left = {TopicPartition("orders", 0): 1000, TopicPartition("orders", 2): 234}
    found = only(findings(replace(survey, left_out=left)))
    assert summary(found) == ("left out", Severity.WARNS, "orders")
    assert found.text.startswith("1,234 records of orders are left out")
    assert found.remedy == "set start.at to earliest to copy them too"


def test_a_pattern_that_selects_nothing_is_named(survey: FlowSurvey) -> None:
    found = only(findings(replace(survey, idle_patterns=[r"ordrs\..*"])))
    assert summary(found) == ("missing topic", Severity.WARNS, r"ordrs\..*")


def test_what_blocks_comes_first(survey: FlowSurvey) -> None:
    several = replace(
        survey,
        acls=AclPlan(unavailable="off"),
        named={"payments"},
        source=replace(survey.source, errors={"payments": 3}),
        target=cluster("target", brokers=1),
    )
    assert [finding.severity for finding in findings(several)] == list(Severity)


def test_two_aliases_of_one_cluster(survey: FlowSurvey) -> None:
    one = replace(survey, target=replace(survey.target, cluster_id=survey.source.cluster_id))
    found = only(findings(one))
    assert summary(found) == ("same cluster", Severity.BLOCKS, "target.bootstrap.servers")
    assert "source and target are one cluster (its id is id of source)" in found.text
    unknown = replace(
        one, source=replace(one.source, cluster_id=""), target=replace(one.target, cluster_id="")
    )
    assert findings(unknown) == ()
    named = DefaultTopicFilter([topic for topic, _ in one.mirrored], [])
    assert findings(replace(one, settings=replace(one.settings, topic_filter=named))) == ()


def test_a_mirror_with_another_name_is_told_whose_position_there_is(survey: FlowSurvey) -> None:
    filled = replace(survey, filled={"source.orders"}, topics=TopicPlan())
    assert "a second time" in only(findings(filled)).text
    preserved = replace(filled, settings=replace(filled.settings, preserved_topics=(".*",)))
    assert "its offsets can't be preserved" in only(findings(preserved)).text, "so that nothing is copied"
    assert "set name" not in only(findings(filled)).remedy
    renamed = replace(filled, predecessors={"MirrorSourceConnector"})
    assert only(findings(renamed)).remedy.startswith(
        "to continue where the connector MirrorSourceConnector has stopped, set name to that; else "
    )


def plan(source: str, topic: str, remote: str, *, target: str = "t", target_id: str = "id") -> FlowPlan:
    copy = PlannedCopy(TopicPartition(topic, 0), remote, 0)
    flow = Flow(Alias(source), Alias(target))
    return FlowPlan(flow, ConnectorName("MirrorSourceConnector"), target_id, copies=(copy,))


def test_two_flows_into_one_topic() -> None:
    plans = [plan("a", "orders", "orders"), plan("b", "orders", "orders"), plan("c", "orders", "c.orders")]
    first, second, third = findings_between(plans)
    assert (first, third) == (second, ())
    assert summary(only(first)) == ("shared topic", Severity.WARNS, "orders")
    assert "orders of a and orders of b" in first[0].text


def test_a_topic_that_another_flow_fills_is_no_strangers() -> None:
    plans = [plan("a", "orders", "orders"), plan("b", "orders", "orders")]
    others = [Finding("topic of others", Severity.WARNS, name, "filled") for name in ("orders", "bills")]
    found = joined([plans[0], replace(plans[1], findings=tuple(others))])[1].findings
    assert [(each.kind, each.subject) for each in found] == [
        ("shared topic", "orders"),
        ("topic of others", "bills"),
    ]
    assert not any(each.is_blocked for each in joined(plans))


def test_one_cluster_may_have_two_aliases_and_heartbeats_may_meet() -> None:
    one_cluster = [plan("a", "x", "x"), plan("b", "x", "x", target="also-t")]
    assert all(findings_between(one_cluster))
    assert not any(findings_between([plan("a", "x", "x"), plan("b", "x", "x", target_id="other")]))
    assert not any(findings_between([plan(source, "heartbeats", "heartbeats") for source in "ab"]))


def test_what_becomes_of_copies_whose_source_is_gone(survey: FlowSurvey) -> None:
    gone = TopicNote("source.gone", "gone", "why it stays")
    more = TopicNote("source.orders", "orders", "it has more partitions")
    plan = replace(survey.topics, notes=(gone, more), held="most are missing")
    assert [summary(finding) for finding in findings(replace(survey, topics=plan))] == [
        ("no deletes", Severity.WARNS, "deletes"),
        ("topic", Severity.NOTE, "source.gone"),
        ("topic", Severity.NOTE, "source.orders"),
    ]


def test_what_is_looked_for_once_only_is_said(survey: FlowSurvey) -> None:
    once = replace(survey.settings, refresh_topics_interval_s=None)
    found = findings(replace(survey, settings=once, refreshes_groups=False))
    assert {it.subject: (it.severity, it.text) for it in found if it.kind == NEVER_AGAIN} == {
        "refresh.topics.enabled": (Severity.NOTE, LATER_TOPICS),
        "refresh.groups.enabled": (Severity.NOTE, LATER_GROUPS),
    }
    assert not [it for it in findings(survey) if it.kind == NEVER_AGAIN]


def with_chain(survey: FlowSurvey, *links: Link) -> FlowSurvey:
    settings, chain = survey.settings, Chain(links)
    policy = RoutedPolicy(settings.policy, chain.route) if chain.routes else settings.policy
    copying = replace(settings.copying, transforms=chain)
    topics = ("orders", "audit")
    return replace(
        survey,
        settings=replace(settings, policy=policy, copying=copying),
        mirrored=[(topic, policy.format_remote_topic("source", topic)) for topic in topics],
    )


def test_transforms_are_noted_in_a_line(survey: FlowSurvey) -> None:
    audit = TopicNameMatches(".*audit", "k")
    chained = with_chain(
        survey,
        Link(RegexRouter(r"source\.(orders)", "eu-$1", "k")),
        Link(Filter(), HasHeaderKey("eu"), negates=True),
        Link(DropHeaders(frozenset({"b", "a"})), audit),
    )
    found = only(findings(chained))
    assert summary(found) == ("transforms", Severity.NOTE, "transforms")
    assert found.text == (
        "RegexRouter source\\.(orders) to eu-$1; Filter unless HasHeaderKey eu; DropHeaders a, b if "
        "TopicNameMatches .*audit. They apply to 2 topics; keys and values are not decoded. "
        "They rename orders to eu-orders"
    )
    function = Link(Function("shop.mirror:keep_eu"), audit)
    assert only(findings(with_chain(survey, function))).text == (
        "Function shop.mirror:keep_eu if TopicNameMatches .*audit. They apply to 1 topic; keys and values "
        "are decoded"
    )
