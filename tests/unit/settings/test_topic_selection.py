"""Vectors of Kafka's MirrorSourceConnectorTest, and the rules beyond them (docs/decisions/0013)."""

import re
from dataclasses import replace
from typing import ClassVar

import pytest

from sparkmirror.domain.errors import PluginError
from sparkmirror.domain.ids import Alias
from sparkmirror.domain.state_topics import PRODUCER_IDS_TOPIC, StateTopic
from sparkmirror.policies.filters import DefaultTopicFilter
from sparkmirror.policies.replication import (
    CustomMM2ReplicationPolicy,
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
)
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.settings.topic_selection import (
    BlockKind,
    Selection,
    refusal,
    remote_topic,
    should_replicate,
    verdicts,
    why_not,
)

NO_TOPICS = DefaultTopicFilter([], [])
ALL_TOPICS = DefaultTopicFilter([".*"], [])


@pytest.mark.parametrize(
    "topic", ["topic1", "us-west.topic1", "orders.internal", "heartbeats", "us-west.heartbeats"]
)
def test_replicates(settings: MirrorSourceSettings, topic: str) -> None:
    assert should_replicate(settings, topic)
    assert why_not(settings, topic) is None


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("orders.replica", "topics.exclude"),
        ("__consumer_offsets", "topics.exclude"),
        (".hidden", "internal"),
        ("us-west.checkpoints.internal", "holds the state of a mirror"),
        ("target.topic1", "came from target"),
        ("us-west.target.topic1", "came from target"),
        ("target.heartbeats", "came from target"),
        ("source.topic1", "the name of a copy from source, on source itself"),
        ("source.source.topic1", "the name of a copy from source, on source itself"),
        ("us-west.source.topic1", "the name of a copy from source, on source itself"),
        ("source.heartbeats", "the name of a copy from source, on source itself"),
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


STATE = (
    *(kind.of(Alias("CL-2")) for kind in StateTopic),
    PRODUCER_IDS_TOPIC,
    "CL-2.checkpoints.internal",
    "mm2-offset-syncs_CL-2_internal",
    "mm2-offset-syncsCL-2internal",
    "connect-offsets",
)


@pytest.mark.parametrize("separator", [".", "_", "-", "__", ""])
@pytest.mark.parametrize(
    "policy", [DefaultReplicationPolicy, IdentityReplicationPolicy, CustomMM2ReplicationPolicy]
)
def test_the_state_of_mirrors_is_never_mirrored(
    settings: MirrorSourceSettings, policy: type[DefaultReplicationPolicy], separator: str
) -> None:
    """Whatever the separator, the policy and the filter are: an idle pair would write for ever."""
    named = DefaultTopicFilter([".*", *map(re.escape, STATE)], ["foo.*"])
    changed = replace(
        settings,
        policy=policy(separator=separator),
        topic_filter=named,
        state_topics=frozenset({"connect-offsets"}),
    )
    assert [topic for topic in STATE if should_replicate(changed, topic)] == []


@pytest.mark.parametrize("separator", [".", "_", "-"])
def test_copies_of_state_are_not_mirrored_either(settings: MirrorSourceSettings, separator: str) -> None:
    policy = DefaultReplicationPolicy(separator)
    changed = replace(settings, policy=policy, topic_filter=ALL_TOPICS)
    copies = [policy.format_remote_topic("eu", kind.of(Alias("us"))) for kind in StateTopic]
    assert [copy for copy in copies if should_replicate(changed, copy)] == []


@pytest.mark.parametrize(
    "topic",
    ["mm2xinternal", "mm2-orders.internal", "internal", "connect-offsets", "mm2-events", "checkpoints"],
)
def test_topics_of_users_with_similar_names_are_mirrored(settings: MirrorSourceSettings, topic: str) -> None:
    identity = IdentityReplicationPolicy("_", source_alias="source")
    assert should_replicate(replace(settings, policy=identity, topic_filter=ALL_TOPICS), topic)


@pytest.mark.parametrize("topic", ["source.orders", "target.orders", "a.source.orders"])
def test_names_show_no_origin_where_policies_keep_them(settings: MirrorSourceSettings, topic: str) -> None:
    for policy in (
        IdentityReplicationPolicy(source_alias="source"),
        CustomMM2ReplicationPolicy(source_alias="source"),
        DefaultReplicationPolicy("_"),
    ):
        assert should_replicate(replace(settings, policy=policy, topic_filter=ALL_TOPICS), topic)


NAMES = (
    "orders",
    "secret.orders",
    "__consumer_offsets",
    "mm2-offsets.source.internal",
    "target.orders",
    "other.target.orders",
    "heartbeats",
    "other.heartbeats",
    "target.heartbeats",
    "x.checkpoints.internal",
)


@pytest.mark.parametrize("heartbeats", [True, False])
def test_the_rules_are_those_that_the_mirror_follows(
    settings: MirrorSourceSettings, *, heartbeats: bool
) -> None:
    changed = replace(
        settings,
        heartbeats_replication=heartbeats,
        topic_filter=DefaultTopicFilter(["orders", ".*target.*", "__.*"], ["secret.*"]),
    )
    for name in NAMES:
        assert (refusal(changed, name) is None) == should_replicate(changed, name), name
        assert all(verdict.passes for verdict in verdicts(changed, name)) == should_replicate(
            changed, name
        ), name


@pytest.mark.parametrize(
    ("topic", "rule", "why"),
    [
        ("secret.orders", "filter", "topics.exclude (secret.*) leaves it out"),
        ("payments", "filter", "topics doesn't select it"),
        ("__orders", "internal", "by its name it is an internal topic, of Kafka or of MirrorMaker"),
        ("target.orders", "cycle", "by its name it came from target, the target"),
    ],
)
def test_the_refusal_names_its_setting(
    settings: MirrorSourceSettings, topic: str, rule: str, why: str
) -> None:
    changed = replace(settings, topic_filter=DefaultTopicFilter([".*orders.*"], ["secret.*"]))
    found = refusal(changed, topic)
    assert found is not None
    assert (found.rule, found.why) == (rule, why)


def test_verdicts_on_heartbeats_name_their_setting(settings: MirrorSourceSettings) -> None:
    changed = replace(settings, topic_filter=DefaultTopicFilter(["orders"]), heartbeats_replication=False)
    found = refusal(changed, "heartbeats")
    assert found is not None
    assert found.why == "topics doesn't select it; heartbeats.replication.enabled is false"
    assert refusal(replace(changed, heartbeats_replication=True), "heartbeats") is None


class Merging(DefaultReplicationPolicy):
    """Calls topics of two regions the same, refuses one topic, and gives others bad names."""

    NAMES: ClassVar = {
        "orders-eu": "orders",
        "orders-us": "orders",
        "odd": "bad name!",
        "void": "",
        "dot": ".",
    }

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        if topic == "broken":
            raise PluginError(
                "replication.policy.class a.Merging: format_remote_topic raised KeyError: 'broken'"
            )
        return self.NAMES.get(topic, super().format_remote_topic(source_alias, topic))


def merging(settings: MirrorSourceSettings) -> MirrorSourceSettings:
    return replace(settings, policy=Merging(), topic_filter=ALL_TOPICS)


def test_names_of_copies_from_the_source_itself_are_told(settings: MirrorSourceSettings) -> None:
    """A second file may have such flows, which uses the aliases the other way round."""
    every = replace(settings, topic_filter=ALL_TOPICS)
    selected = Selection(every).select(["orders", "source.orders", "eu.source.orders", "target.orders"])
    assert [topic for topic, _ in selected.pairs] == ["orders"]
    assert list(selected.own_copies) == ["eu.source.orders", "source.orders"]
    none = replace(settings, topic_filter=NO_TOPICS)
    assert Selection(none).select(["source.orders"]).own_copies == [], "which the filter leaves out"


def test_a_plug_in_or_a_bad_name_spoils_its_topic_only(settings: MirrorSourceSettings) -> None:
    selected = Selection(merging(settings)).select(["solo", "broken", "odd", "void", "dot", "x" * 243])
    assert selected.pairs == [("solo", "source.solo")]
    assert {topic: (it.kind, it.why) for topic, it in selected.blocked.items()} == {
        "broken": (
            BlockKind.PLUGIN,
            "replication.policy.class a.Merging: format_remote_topic raised KeyError: 'broken'",
        ),
        "odd": (
            BlockKind.NAME,
            "its name on the target, bad name!, has characters other than letters, digits, '.', '_' and '-'",
        ),
        "void": (BlockKind.NAME, "its name on the target, , is no name of a topic"),
        "dot": (BlockKind.NAME, "its name on the target, ., is no name of a topic"),
        "x" * 243: (
            BlockKind.NAME,
            f"its name on the target, source.{'x' * 243}, has 250 characters and Kafka allows 249",
        ),
    }


@pytest.mark.parametrize(
    ("begun", "mirrored"),
    [
        ((), []),
        (("orders-us",), ["orders-us"]),
        (("orders-eu",), ["orders-eu"]),
        (("orders-eu", "orders-us"), []),
    ],
)
def test_of_topics_with_one_remote_name_the_one_that_was_there_first_continues(
    settings: MirrorSourceSettings, begun: tuple[str, ...], mirrored: list[str]
) -> None:
    selection = Selection(merging(settings), lambda among: set(begun) & set(among))
    for _ in range(2):
        selected = selection.select(["orders-us", "solo", "orders-eu"])
        assert [topic for topic, _ in selected.pairs] == [*mirrored, "solo"]
        for topic in {"orders-eu", "orders-us"} - set(mirrored):
            why = "the replication policy gives orders-eu and orders-us one name, orders"
            assert selected.blocked[topic][:2] == (BlockKind.MERGED, why)


def test_a_topic_that_appears_later_does_not_take_the_name_of_one_that_is_mirrored(
    settings: MirrorSourceSettings,
) -> None:
    selection = Selection(merging(settings), lambda _: {"orders-us"})
    assert selection.select(["orders-us"]).pairs == [("orders-us", "orders")]
    assert selection.select(["orders-us", "orders-eu"]).pairs == [("orders-us", "orders")]


def test_an_explanation_shows_the_error_of_a_plug_in_as_a_verdict(settings: MirrorSourceSettings) -> None:
    class Raising(DefaultReplicationPolicy):
        def topic_source(self, topic: str) -> str | None:
            raise PluginError(f"topic_source raised for {topic}")

    judged = verdicts(replace(settings, policy=Raising(), topic_filter=ALL_TOPICS), "orders")
    assert [(it.rule, it.passes) for it in judged if not it.passes] == [("plug-in", False)] * 3
