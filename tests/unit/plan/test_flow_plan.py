"""Sums, findings and JSON of a flow's plan."""

import json

import pytest

from sparkmirror.domain.accounts import QuotaChange, QuotaEntity, ScramCredential, ScramMechanism
from sparkmirror.domain.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from sparkmirror.domain.findings import Finding, Severity
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.domain.topics import AlterConfigOp, AlterConfigOpType, TopicCreation
from sparkmirror.plan.flow_plan import (
    Action,
    Change,
    FlowPlan,
    PlannedCopy,
    Rate,
    Skipped,
    account_changes,
    acl_changes,
    by_task,
    config_changes,
    joined,
    own_topic_changes,
    topic_changes,
)
from sparkmirror.plan.flow_plan_json import from_json, to_json
from sparkmirror.setup.accounts import AccountPlan
from sparkmirror.setup.acl_plan import AclPlan
from sparkmirror.setup.config_plan import ConfigPlan
from sparkmirror.setup.topic_plan import GrowTopic, NewTopic, TopicPlan

EU = Alias("eu")
READ = AclBinding(
    ResourceType.TOPIC,
    PatternType.LITERAL,
    "us.orders",
    "User:ann",
    "*",
    AclOperation.READ,
    AclPermission.ALLOW,
)
COPIES = (
    PlannedCopy(TopicPartition("orders", 0), "us.orders", 0, 10, 110, 1000),
    PlannedCopy(TopicPartition("orders", 1), "us.orders", 1, 5, 5, None),
    PlannedCopy(TopicPartition("pages", 0), "us.pages", 0, None, None, None),
)


def said(change: Change) -> tuple[str, str, str, str]:
    return change.action.value, change.kind, change.name, change.text


def test_every_part_becomes_changes() -> None:
    topics = TopicPlan(
        (NewTopic("us.orders", "orders", 3, 2, (("retention.ms", "5"),)),), (GrowTopic("us.a", 4, "a", 1),)
    )
    configs = ConfigPlan(
        {
            "us.b": (
                AlterConfigOp("retention.ms", AlterConfigOpType.SET, "5"),
                AlterConfigOp("segment.ms", AlterConfigOpType.DELETE),
            )
        }
    )
    accounts = AccountPlan(
        (QuotaChange(QuotaEntity((("user", None),)), (("producer_byte_rate", 1e6),)),),
        (ScramCredential("ann", ScramMechanism.SCRAM_SHA_512, 8192),),
    )
    changes = joined(
        [
            own_topic_changes([(EU, TopicCreation("mm2-offsets.us.internal", -1, 1, {}))]),
            topic_changes(EU, topics),
            config_changes(EU, configs),
            acl_changes(EU, AclPlan((READ,), (READ,))),
            account_changes(EU, accounts),
        ]
    )
    assert list(map(said, changes)) == [
        (
            "create",
            "internal topic",
            "mm2-offsets.us.internal",
            "the broker's number of partitions, 1 replica",
        ),
        ("create", "topic", "us.orders", "as orders, 3 partitions, 2 replicas, retention.ms=5"),
        ("alter", "partitions", "us.a", "1 -> 4 partitions"),
        ("alter", "configs", "us.b", "retention.ms=5, segment.ms reset"),
        ("create", "ACL", "us.orders", "ALLOW READ on TOPIC us.orders to User:ann"),
        ("delete", "ACL", "us.orders", "ALLOW READ on TOPIC us.orders to User:ann"),
        ("alter", "quotas", "user <default>", "producer_byte_rate=1e+06"),
        ("create", "user", "ann", "SCRAM-SHA-512, 8192 iterations"),
    ]
    assert changes[3].details == {"configs": {"retention.ms": "5", "segment.ms": None}}


GUESS = Rate(100.0, "a guess")


def plan(**more: object) -> FlowPlan:
    fields = {"copies": COPIES, "rate": GUESS, **more}
    return FlowPlan(Flow(Alias("us"), EU), ConnectorName("MirrorSourceConnector"), "id", **fields)  # type: ignore[arg-type]


def test_a_plan_adds_up() -> None:
    found = plan()
    assert (found.tasks, found.records, found.bytes, found.seconds) == (2, 100, 1000, 10.0)
    assert [[str(copy.source) for copy in task] for task in by_task(found.copies)] == [
        ["orders-0", "pages-0"],
        ["orders-1"],
    ]


def test_a_size_that_is_unknown_makes_the_time_unknown() -> None:
    unknown = PlannedCopy(TopicPartition("x", 0), "us.x", 0, 0, 7, None)
    found = plan(copies=(*COPIES, unknown))
    assert (found.records, found.bytes, found.seconds) == (107, None, None)
    assert plan(rate=None).seconds is None


@pytest.mark.parametrize("severity", Severity)
def test_only_what_blocks_blocks(severity: Severity) -> None:
    assert plan(findings=(Finding("x", severity, "y", "z"),)).is_blocked == (severity is Severity.BLOCKS)


def test_a_plan_travels_as_json() -> None:
    change = Change(Action.ALTER, "configs", EU, "us.b", "retention.ms=5", {"configs": {"retention.ms": "5"}})
    whole = plan(
        changes=(change,),
        skipped=(Skipped("secret", "filter", "topics.exclude (secret) leaves it out"),),
        findings=(Finding("missing right", Severity.BLOCKS, "orders", "no right", "kafka-acls.sh …"),),
    )
    for one in (whole, plan(rate=None), FlowPlan(Flow(Alias("us"), EU), None)):
        assert from_json(json.loads(json.dumps(to_json(one)))) == one
    assert to_json(whole)["counts"] == {"create": 0, "alter": 1, "delete": 0}
    assert to_json(whole)["copy"]["seconds"] == 10.0


@pytest.mark.parametrize("content", [{}, {"copy": None}, {"copy": {"rate": 1, "of": []}}])
def test_json_that_is_no_plan_is_refused(content: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        from_json(content)
