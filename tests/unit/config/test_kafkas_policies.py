"""Replication policies return the results of those of Kafka 4.3.1, recorded in `tests/golden/policies`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.config.plugin_points import REPLICATION_POLICY
from sparkmirror.policies.replication import ReplicationPolicy

GOLDEN = Path(__file__).parents[2] / "golden" / "policies" / "policies.json"
SAID = json.loads(GOLDEN.read_text(encoding="utf-8"))


def answers(policy: ReplicationPolicy, name: str) -> list[str | int | None]:
    judged = (
        policy.is_heartbeats_topic(name),
        policy.is_checkpoints_topic(name),
        policy.is_mm2_internal_topic(name),
        policy.is_internal_topic(name),
    )
    return [
        policy.format_remote_topic("us", name),
        policy.topic_source(name),
        policy.upstream_topic(name),
        policy.original_topic(name),
        int("".join(str(int(one)) for one in judged), 2),
    ]


@pytest.mark.parametrize("said", SAID, ids=lambda said: f"{said['class'][32:40]} {said['properties']}")
def test_kafkas_policies(said: Mapping[str, Any]) -> None:
    policy = REPLICATION_POLICY.make({"replication.policy.class": said["class"], **said["properties"]})
    own = [policy.heartbeats_topic(), policy.offset_syncs_topic("eu"), policy.checkpoints_topic("us")]
    assert own == said["own"]
    assert {name: answers(policy, name) for name in said["names"]} == said["names"]
