from dataclasses import replace
from typing import ClassVar

from sparkmirror.domain.ids import Alias, TopicPartition
from sparkmirror.domain.topics import ConfigEntry, ConfigSource
from sparkmirror.policies.filters import DefaultTopicFilter
from sparkmirror.policies.replication import IdentityReplicationPolicy
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.settings.source import CopySettings, MirrorSourceSettings, TopicDeletes
from sparkmirror.settings.topic_selection import Selection
from sparkmirror.setup.topic_plan import (
    CopyPlan,
    GrowTopic,
    NewTopic,
    SourceTopic,
    TopicNote,
    TopicPlan,
    copy_partitions,
    missing_topics,
    plan_topics,
    replicated_topics,
)
from sparkmirror.transforms.chain import Chain, Filter, Link


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
    plan = plan_topics(settings, source, {"source.less": 3, "source.more": 3, "source.same": 2})
    assert plan.grows == (GrowTopic("source.more", 5, "more", 3),)
    assert plan.creates == ()
    (note,) = plan.notes
    assert str(note).startswith(
        "source.less: it has 3 partitions, less at the source 1: nothing is copied to"
    )


def test_a_copy_whose_source_is_gone_is_noted(settings: MirrorSourceSettings) -> None:
    """Not what came from elsewhere, what is left out, and what is MM2's own."""
    target = dict.fromkeys(("source.gone", "source.there", "other.gone", "source.x.replica", "gone"), 1)
    target |= {"source.heartbeats": 1, "source.checkpoints.internal": 1, "mm2-progress.source.internal": 1}
    source = {name: SourceTopic(1) for name in ("there", "heartbeats")}
    gone = TopicNote("source.gone", "gone", "the source has no gone any more, or hides it; this copy stays")
    assert plan_topics(settings, source, target) == TopicPlan(notes=(gone,))
    dry_run = replace(settings, topic_deletes=TopicDeletes.DRY_RUN)
    assert plan_topics(dry_run, source, target) == TopicPlan()
    identity = replace(settings, policy=IdentityReplicationPolicy(source_alias="source"))
    assert plan_topics(identity, source, {"there": 1, "heartbeats": 1, "gone": 1}).notes == ()


def test_the_filter_is_asked_once_about_each_name(settings: MirrorSourceSettings) -> None:
    class Counting(DefaultTopicFilter):
        asked: ClassVar[list[str]] = []

        def should_replicate(self, topic: str) -> bool:
            self.asked.append(topic)
            return super().should_replicate(topic)

    selection = Selection(replace(settings, topic_filter=Counting(["a.*"])))
    assert selection.select({"b", "a2", "a1"}).pairs == [("a1", "source.a1"), ("a2", "source.a2")]
    assert selection.select(["a3", "a2", "b"]).pairs == [("a2", "source.a2"), ("a3", "source.a3")]
    assert selection.select({"a2", "b"}).pairs == [("a2", "source.a2")]
    assert sorted(Counting.asked) == ["a1", "a2", "a3", "b"]
    assert selection.select({"a1"}).pairs == [("a1", "source.a1")]


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


def test_a_topic_whose_copy_kafka_would_refuse_is_not_created(settings: MirrorSourceSettings) -> None:
    plan = plan_topics(settings, {"x" * 243: SourceTopic(1), "y" * 242: SourceTopic(1)}, {})
    assert [topic.source for topic in plan.creates] == ["y" * 242]


def test_an_alias_with_the_separator_in_it_still_grows(settings: MirrorSourceSettings) -> None:
    dotted = replace(settings, flow=settings.flow._replace(source=Alias("us.west")))
    plan = plan_topics(dotted, {"orders": SourceTopic(2)}, {"us.west.orders": 1})
    assert plan == TopicPlan(grows=(GrowTopic("us.west.orders", 2, "orders", 1),))


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


def test_heartbeats_are_not_transformed(settings: MirrorSourceSettings) -> None:
    source = {"heartbeats": SourceTopic(1), "orders": SourceTopic(1)}
    chain = Chain((Link(Filter()),))
    filtering = replace(settings, copying=CopySettings(transforms=chain))
    plan = copy_partitions(filtering, source, {"source.heartbeats": 1, "source.orders": 1})
    assert [partition.transforms for partition in plan.ready] == [None, chain]
    assert [partition.change is None for partition in plan.ready] == [True, False]
