"""A plan with something of everything."""

from typing import Final

from sparkmirror.domain.findings import Finding, Severity
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.plan.flow_plan import Action, Change, FlowPlan, PlannedCopy, Rate, Skipped

EU: Final = Alias("eu")


def created(name: str) -> Change:
    return Change(Action.CREATE, "topic", EU, f"us.{name}", f"as {name}, 1 partition, 1 replica", {})


PLAN: Final = FlowPlan(
    Flow(Alias("us"), EU),
    ConnectorName("MirrorSourceConnector"),
    "id",
    (
        created("orders"),
        created("pages"),
        Change(Action.ALTER, "configs", EU, "us.old", "retention.ms=5", {}),
        Change(Action.DELETE, "ACL", EU, "us.old", "ALLOW READ on TOPIC us.old to User:ann", {}),
    ),
    (
        PlannedCopy(TopicPartition("orders", 0), "us.orders", 0, 0, 1_200_000, 3_000_000_000),
        PlannedCopy(TopicPartition("pages", 0), "us.pages", 0, 7, 7),
    ),
    Rate(50_000_000, "--rate"),
    (
        Skipped("secret", "filter", "topics.exclude (secret.*) leaves it out"),
        Skipped("__x", "internal", "it is internal"),
        Skipped("secret.too", "filter", "topics.exclude (secret.*) leaves it out"),
    ),
    (
        Finding("missing right", Severity.BLOCKS, "orders", "no right to READ", "kafka-acls.sh --add"),
        Finding("topic", Severity.NOTE, "us.old", "fine"),
    ),
)
