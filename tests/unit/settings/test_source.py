"""Vectors of Kafka's MirrorSourceConnectorTest."""

from dataclasses import replace

import pytest

from sparkmirror.policies.filters import DefaultTopicFilter
from sparkmirror.policies.replication import DefaultReplicationPolicy, IdentityReplicationPolicy
from sparkmirror.settings.source import MirrorSourceSettings, remote_topic, should_replicate, why_not

NO_TOPICS = DefaultTopicFilter([], [])
ALL_TOPICS = DefaultTopicFilter([".*"], [])


@pytest.mark.parametrize(
    "topic", ["topic1", "source.topic1", "orders.internal", "heartbeats", "us-west.heartbeats"]
)
def test_replicates(settings: MirrorSourceSettings, topic: str) -> None:
    assert should_replicate(settings, topic)
    assert why_not(settings, topic) is None


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("orders.replica", "filter"),
        ("__consumer_offsets", "filter"),
        (".hidden", "internal"),
        ("source.checkpoints.internal", "internal"),
        ("target.topic1", "target"),
        ("source.target.topic1", "target"),
        ("target.heartbeats", "target"),
    ],
)
def test_the_reason_for_a_topic_not_replicated_is_given(
    settings: MirrorSourceSettings, topic: str, reason: str
) -> None:
    assert not should_replicate(settings, topic)
    assert reason in (why_not(settings, topic) or "")


def test_internal_topics_are_left_out_whatever_the_filter_selects(settings: MirrorSourceSettings) -> None:
    everything = replace(settings, topic_filter=ALL_TOPICS)
    internal = ["__consumer_offsets", "mm2-offset-syncs.target.internal", "b.checkpoints.internal"]
    assert not any(should_replicate(everything, topic) for topic in internal)


def test_heartbeats_need_no_consent_of_the_filter(settings: MirrorSourceSettings) -> None:
    nothing = replace(settings, topic_filter=NO_TOPICS)
    assert should_replicate(nothing, "heartbeats")
    assert should_replicate(nothing, "us-west.heartbeats")
    assert not should_replicate(nothing, "orders")
    underscores = replace(nothing, policy=DefaultReplicationPolicy("_"))
    assert should_replicate(underscores, "heartbeats")
    assert not should_replicate(underscores, "us-west.heartbeats")


def test_heartbeats_need_consent_when_their_replication_is_disabled(settings: MirrorSourceSettings) -> None:
    disabled = replace(settings, heartbeats_replication=False)
    assert should_replicate(replace(disabled, topic_filter=ALL_TOPICS), "us-west.heartbeats")
    assert not should_replicate(replace(disabled, topic_filter=NO_TOPICS), "heartbeats")


def test_identity_policy_sees_cycles_of_heartbeats_only(settings: MirrorSourceSettings) -> None:
    identity = replace(settings, policy=IdentityReplicationPolicy(source_alias="source"))
    assert should_replicate(identity, "target.topic1")
    assert not should_replicate(identity, "source.target.heartbeats")
    assert should_replicate(identity, "othersource.heartbeats")
    assert remote_topic(identity, "target.topic1") == "target.topic1"


def test_remote_topics_carry_the_source(settings: MirrorSourceSettings) -> None:
    assert remote_topic(settings, "orders") == "source.orders"
