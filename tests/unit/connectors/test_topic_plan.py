from dataclasses import replace

from sparkmirror.connectors.source import MirrorSourceSettings
from sparkmirror.connectors.topic_plan import (
    CopyPlan,
    GrowTopic,
    NewTopic,
    SourceTopic,
    TopicPlan,
    copy_partitions,
    missing_topics,
    plan_topics,
    replicated_topics,
)
from sparkmirror.domain.config_filter import ConfigEntry, ConfigSource
from sparkmirror.domain.copy_plan import CopyPartition
from sparkmirror.domain.ids import Alias, TopicPartition
from sparkmirror.domain.policies import IdentityReplicationPolicy


def test_a_missing_topic_is_created_like_its_source(settings: MirrorSourceSettings) -> None:
    configs = (
        ConfigEntry("retention.ms", "1000"),
        ConfigEntry("min.insync.replicas", "2"),
        ConfigEntry("segment.bytes", "5", ConfigSource.DEFAULT_CONFIG),
    )
    plan = plan_topics(settings, {"orders": SourceTopic(3, configs)}, {"orders": 1})
    created = NewTopic("source.orders", "orders", 3, 2, (("retention.ms", "1000"),))
    assert plan == TopicPlan(creates=(created,))


def test_a_topic_grows_and_never_shrinks(settings: MirrorSourceSettings) -> None:
    source = {"less": SourceTopic(1), "more": SourceTopic(5), "same": SourceTopic(2)}
    target = {"source.less": 3, "source.more": 3, "source.same": 2, "source.deleted": 1}
    assert plan_topics(settings, source, target) == TopicPlan(grows=(GrowTopic("source.more", 5),))


def test_topics_that_are_not_mirrored_are_left_out(settings: MirrorSourceSettings) -> None:
    source = {name: SourceTopic(1) for name in ("target.orders", "__consumer_offsets", "x.replica")}
    assert plan_topics(settings, source, {}) == TopicPlan()
    assert copy_partitions(settings, source, {"source.x.replica": 1}) == CopyPlan()
    assert missing_topics(settings, source, {}) == ()


def test_plans_are_sorted(settings: MirrorSourceSettings) -> None:
    source = {name: SourceTopic(1) for name in ("b", "c", "a")}
    assert [topic.source for topic in plan_topics(settings, source, {}).creates] == ["a", "b", "c"]
    assert missing_topics(settings, source, {"source.b"}) == ("a", "c")
    assert replicated_topics(settings, source, {"source.b", "source.a", "source.x", "c"}) == (
        ("a", "source.a"),
        ("b", "source.b"),
    )


def test_a_name_that_kafka_would_refuse_is_a_warning(settings: MirrorSourceSettings) -> None:
    plan = plan_topics(settings, {"x" * 243: SourceTopic(1), "y" * 242: SourceTopic(1)}, {})
    assert [topic.source for topic in plan.creates] == ["y" * 242]
    assert len(plan.warnings) == 1
    assert "250" in plan.warnings[0]


def test_an_alias_with_the_separator_in_it_still_grows(settings: MirrorSourceSettings) -> None:
    dotted = replace(settings, flow=settings.flow._replace(source=Alias("us.west")))
    plan = plan_topics(dotted, {"orders": SourceTopic(2)}, {"us.west.orders": 1})
    assert plan == TopicPlan(grows=(GrowTopic("us.west.orders", 2),))


def test_partitions_are_copied_once_the_target_has_them(settings: MirrorSourceSettings) -> None:
    source = {"new": SourceTopic(1), "b": SourceTopic(3), "a": SourceTopic(1)}
    plan = copy_partitions(settings, source, {"source.b": 2, "source.a": 4})
    assert [(str(p.source), p.target_topic) for p in plan.ready] == [
        ("a-0", "source.a"),
        ("b-0", "source.b"),
        ("b-1", "source.b"),
    ]
    assert [str(p.source) for p in plan.waiting] == ["b-2", "new-0"]


def test_identity_copies_between_equal_names(settings: MirrorSourceSettings) -> None:
    identity = replace(settings, policy=IdentityReplicationPolicy(source_alias="source"))
    plan = copy_partitions(identity, {"orders": SourceTopic(1)}, {"orders": 1})
    assert plan.ready == (CopyPartition(TopicPartition("orders", 0), "orders"),)
