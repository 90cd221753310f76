from dataclasses import replace

import pytest

from sparkmirror.policies.filters import DefaultTopicFilter
from sparkmirror.settings.source import MirrorSourceSettings, should_replicate
from sparkmirror.setup.topic_rules import first_refusal, verdicts

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
        assert (first_refusal(changed, name) is None) == should_replicate(changed, name), name
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
def test_the_first_refusal_names_its_setting(
    settings: MirrorSourceSettings, topic: str, rule: str, why: str
) -> None:
    changed = replace(settings, topic_filter=DefaultTopicFilter([".*orders.*"], ["secret.*"]))
    found = first_refusal(changed, topic)
    assert found is not None
    assert (found.rule, found.why) == (rule, why)


def test_verdicts_on_heartbeats_name_their_setting(settings: MirrorSourceSettings) -> None:
    changed = replace(settings, topic_filter=DefaultTopicFilter(["orders"]), heartbeats_replication=False)
    found = first_refusal(changed, "heartbeats")
    assert found is not None
    assert found.why == "topics doesn't select it; heartbeats.replication.enabled is false"
    assert first_refusal(replace(changed, heartbeats_replication=True), "heartbeats") is None
