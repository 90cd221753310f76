"""The rights that docs/rights.md lists are those of the code's own topics."""

import json
import re

from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.settings.configured import configured_flow
from sparkmirror.settings.internal_topics import checkpoints_topic, heartbeats_topic, own_topics
from tests.support.rights_page import PAGE, Mode, Side, grants, with_section

SETTINGS = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a:9092",
    "B.bootstrap.servers": "b:9092",
    "A->B.enabled": "true",
    "A->B.topics": "orders",
}
MORE = {
    Mode.SYNCED_ACLS: {"sync.acls.delete": "true"},
    Mode.BAD_BATCHES: {"on.bad.batch": "skip"},
}


def own(**settings: str) -> set[tuple[str, str]]:
    """The topics that a flow A->B makes for itself, each with its cluster."""
    flows = MirrorMakerConfig(Properties(SETTINGS | settings)).flows()
    made = configured_flow(next(flow for flow in flows if flow.flow.source == "A"))
    assert made.source is not None
    assert made.checkpoint is not None
    heartbeats = heartbeats_topic(made.flow, made.heartbeat)
    assert heartbeats is not None
    every = [
        *own_topics(made, made.source),
        checkpoints_topic(made.flow, made.checkpoint),
        heartbeats,
    ]
    return {(each.cluster, each.creation.name) for each in every}


def listed(*modes: Mode) -> set[tuple[str, str]]:
    """The topics in which the page lets a mirror of these modes write, but the remote ones."""
    return {
        (grant.side.value, grant.resource.name)
        for grant in grants()
        if grant.mode in modes and grant.resource.name != "A.orders"
        if any(need.name == "WRITE_TOPIC" for need in grant.needs)
    }


def test_the_page_is_as_the_script_writes_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_section(text) == text, "run python -m tests.support.rights_page"


def test_all_topics_that_a_mirror_makes_are_listed_and_no_others() -> None:
    assert listed(Mode.DEFAULT) == own()
    for mode, settings in MORE.items():
        assert listed(Mode.DEFAULT, mode) == own(**settings)


def test_topics_of_other_names_are_listed() -> None:
    policy = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    made = own(**{"replication.policy.class": policy}) - own()
    assert ("B", "mm2-producer-ids.internal") in made
    assert ("B", "mm2-producer-ids.internal") in listed(Mode.OTHER_NAMES)


def test_policies_of_iam_are_json_and_connect_first() -> None:
    policies = re.findall(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(policies) == len(Side)
    for policy in map(json.loads, policies):
        assert policy["Statement"][0]["Action"] == ["kafka-cluster:Connect"]
