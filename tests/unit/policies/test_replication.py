"""Vectors of Kafka's ReplicationPolicyTest, MirrorClientTest, MirrorSourceConnectorTest, and KIP-1074."""

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.policies.replication import (
    CustomMM2ReplicationPolicy,
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    hops,
    is_cycle,
    sources,
)

DEFAULT = DefaultReplicationPolicy()
IDENTITY = IdentityReplicationPolicy(source_alias="source")
CUSTOM = CustomMM2ReplicationPolicy(source_alias="source")


@pytest.mark.parametrize(
    ("topic", "source", "upstream", "original"),
    [
        ("topic", None, None, "topic"),
        ("a.topic", "a", "topic", "topic"),
        ("b.a.topic", "b", "a.topic", "topic"),
        ("orders.v1", "orders", "v1", "v1"),
        ("b.", None, None, "b."),
        ("b..", None, None, "b.."),
        (".b", "", "b", "b"),
        ("..b", "", ".b", "b"),
        (".", None, None, "."),
        ("..", None, None, ".."),
        ("", None, None, ""),
        ("a.b.", "a", "b.", "b."),
    ],
)
def test_default_policy_reads_names_as_javas_split(
    topic: str, source: str | None, upstream: str | None, original: str
) -> None:
    assert DEFAULT.topic_source(topic) == source
    assert DEFAULT.upstream_topic(topic) == upstream
    assert DEFAULT.original_topic(topic) == original


def test_default_policy_uses_the_configured_separator() -> None:
    policy = DefaultReplicationPolicy("__")
    assert policy.format_remote_topic("us", "a.b") == "us__a.b"
    assert policy.topic_source("us__a.b") == "us"
    assert policy.upstream_topic("us__a__b") == "a__b"
    assert policy.topic_source("a.b") is None
    assert policy.topic_source("a___") == "a"


def test_an_empty_separator_splits_after_each_character_as_java_does() -> None:
    policy = DefaultReplicationPolicy("")
    assert (policy.topic_source("abc"), policy.upstream_topic("abc")) == ("a", "bc")
    assert policy.topic_source("a") is None


@given(
    st.text("ab", min_size=1, max_size=4),
    st.text("ab.", min_size=1, max_size=8).filter(lambda t: t.strip(".")),
)
def test_default_policy_reads_back_what_it_formats(alias: str, topic: str) -> None:
    remote = DEFAULT.format_remote_topic(alias, topic)
    assert (DEFAULT.topic_source(remote), DEFAULT.upstream_topic(remote)) == (alias, topic)


def test_internal_topics_are_named_with_the_separator() -> None:
    dots = DefaultReplicationPolicy()
    assert dots.heartbeats_topic() == "heartbeats"
    assert dots.offset_syncs_topic("B") == "mm2-offset-syncs.B.internal"
    assert dots.checkpoints_topic("A") == "A.checkpoints.internal"
    custom = DefaultReplicationPolicy("__")
    assert custom.heartbeats_topic() == "heartbeats"
    assert custom.offset_syncs_topic("B") == "mm2-offset-syncs__B__internal"
    assert custom.checkpoints_topic("A") == "A__checkpoints__internal"
    mixed = DefaultReplicationPolicy("__", internal_topic_separator_enabled=False)
    assert mixed.offset_syncs_topic("B") == "mm2-offset-syncs.B.internal"
    assert mixed.checkpoints_topic("A") == "A.checkpoints.internal"
    assert mixed.format_remote_topic("A", "t") == "A__t"


@pytest.mark.parametrize(
    "topic",
    [
        "__consumer_offsets",
        ".hidden",
        "mm2-offset-syncs.B.internal",
        "mm2-offsets.A.internal",
        "mm2.internal",
        "source1.checkpoints.internal",
    ],
)
def test_internal_topics_are_recognized(topic: str) -> None:
    assert DEFAULT.is_internal_topic(topic)


@pytest.mark.parametrize(
    "topic",
    [
        *["orders", "orders.internal", "orders-internal", "mm2-offsets-A-internal"],
        *["mm2-offsets_A_internal", "_schemas", "checkpoints.internal", "heartbeats"],
    ],
)
def test_user_topics_are_not_internal_since_kip_1074(topic: str) -> None:
    assert not DEFAULT.is_internal_topic(topic)


def test_internal_suffixes_follow_the_separator() -> None:
    policy = DefaultReplicationPolicy("_")
    assert policy.is_mm2_internal_topic("mm2-offset-syncs_B_internal")
    assert not policy.is_mm2_internal_topic("mm2-offset-syncs.B.internal")
    assert policy.is_checkpoints_topic("A_checkpoints_internal")
    assert not policy.is_checkpoints_topic("A.checkpoints.internal")


def test_checkpoints_topics_are_recognized() -> None:
    assert DEFAULT.is_checkpoints_topic("source1.checkpoints.internal")
    assert not DEFAULT.is_checkpoints_topic("checkpoints.internal")
    assert not DEFAULT.is_checkpoints_topic("checkpoints-internal")


@pytest.mark.parametrize(
    ("policy", "heartbeats", "others"),
    [
        (
            DEFAULT,
            ["heartbeats", "source1.heartbeats", "source2.source1.heartbeats"],
            ["heartbeats!", "!heartbeats", "source1heartbeats", "source1-heartbeats"],
        ),
        (IDENTITY, ["heartbeats", "source1.heartbeats"], ["my-heartbeats", "orders"]),
        (CUSTOM, ["heartbeats"], ["source1.heartbeats"]),
    ],
)
def test_heartbeats_topics_are_recognized(
    policy: ReplicationPolicy, heartbeats: list[str], others: list[str]
) -> None:
    assert all(map(policy.is_heartbeats_topic, heartbeats))
    assert not any(map(policy.is_heartbeats_topic, others))


def test_identity_policy_keeps_names_except_of_heartbeats() -> None:
    assert IDENTITY.format_remote_topic("source", "a.orders") == "a.orders"
    assert IDENTITY.topic_source("a.orders") == "source"
    assert IDENTITY.upstream_topic("a.orders") == "a.orders"
    assert IDENTITY.original_topic("a.orders") == "a.orders"
    assert IDENTITY.format_remote_topic("source", "heartbeats") == "source.heartbeats"
    assert IDENTITY.topic_source("other.heartbeats") == "other"
    assert IDENTITY.original_topic("b.a.heartbeats") == "heartbeats"
    assert IDENTITY.format_remote_topic("A", "my-heartbeats") == "A.my-heartbeats"
    assert IDENTITY.topic_source("my-heartbeats") is None
    assert IdentityReplicationPolicy().topic_source("orders") is None
    assert IDENTITY.offset_syncs_topic("B") == "mm2-offset-syncs.B.internal"


def test_aws_custom_policy_keeps_every_name() -> None:
    assert CUSTOM.format_remote_topic("source", "heartbeats") == "heartbeats"
    assert CUSTOM.topic_source("anything") == "source"
    assert CUSTOM.upstream_topic("a.b") is None
    assert CUSTOM.original_topic("a.b") == "a.b"


@pytest.mark.parametrize(
    ("policy", "cycles", "others"),
    [
        (
            DEFAULT,
            ["target.topic1", "target.source.topic1", "source.target.topic1", "a.target.b.topic1"],
            ["topic1", "source.topic1", "target", "targets.topic1", "target."],
        ),
        (
            IDENTITY,
            ["target.heartbeats", "source.target.heartbeats", "target.source.target.heartbeats"],
            ["target.topic1", "source.target.topic1", "heartbeats", "othersource.heartbeats"],
        ),
        (CUSTOM, [], ["target.topic1", "heartbeats"]),
        (CustomMM2ReplicationPolicy(source_alias="target"), ["topic1"], []),
    ],
)
def test_cycles_are_recognized_by_name(
    policy: ReplicationPolicy, cycles: list[str], others: list[str]
) -> None:
    assert all(is_cycle(policy, topic, "target") for topic in cycles)
    assert not any(is_cycle(policy, topic, "target") for topic in others)


class _CircularUpstreams:
    """A policy in which two topics are each other's upstream topic."""

    def topic_source(self, topic: str) -> str:  # noqa: ARG002
        return "elsewhere"

    def upstream_topic(self, topic: str) -> str:
        return {"a": "b", "b": "a"}[topic]


def test_cycle_search_ends_with_circular_upstream_topics() -> None:
    assert not is_cycle(cast("ReplicationPolicy", _CircularUpstreams()), "a", "target")
    assert is_cycle(cast("ReplicationPolicy", _CircularUpstreams()), "a", "elsewhere")


class _Renamed(DefaultReplicationPolicy):
    """Inherited methods, as in Java, call the overridden one."""

    def topic_source(self, topic: str) -> str | None:
        return "us" if topic.startswith("us.") else None


def test_inherited_methods_use_an_overridden_topic_source() -> None:
    assert _Renamed().upstream_topic("us.orders") == "orders"
    assert _Renamed().original_topic("eu.orders") == "eu.orders"
    assert not _Renamed().is_heartbeats_topic("eu.heartbeats")


@pytest.mark.parametrize(
    ("topic", "alias", "expected"),
    [
        ("topic", "source", -1),
        ("source", "source", -1),
        ("sourcetopic", "source", -1),
        ("source1.topic", "source2", -1),
        ("source1.topic", "source1", 1),
        ("source2.source1.topic", "source1", 2),
        ("source2.source1.topic", "source2", 1),
        ("source3.source2.source1.topic", "source4", -1),
    ],
)
def test_hops_are_counted_from_the_topic_name(topic: str, alias: str, expected: int) -> None:
    assert hops(DEFAULT, topic, alias) == expected


def test_sources_of_a_topic_end_at_a_repeated_cluster() -> None:
    assert sources(DEFAULT, "a.b.a.orders") == ["a", "b"]
    assert sources(IdentityReplicationPolicy(source_alias="us"), "orders") == ["us"]
    assert sources(DEFAULT, "orders") == []
