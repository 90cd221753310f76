"""`sparkmirror plan` reports missing ACLs, each with the kafka-acls.sh command that adds it."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import javaproperties
import pytest

from sparkmirror.cli.main import main
from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import CLUSTER_NAME
from sparkmirror.kafka.admin.admin import Admin
from tests.contract.copying import Bench, ProgressReports, running
from tests.support.broker_data import create_topic
from tests.support.connections import connection
from tests.support.mirror import REPLICATION
from tests.support.waiting import await_value

SEEN: Final = "rights.seen"
HIDDEN: Final = "rights.hidden"
REMOTE: Final = "rs.rights.seen"
ANYBODY: Final = "User:ANONYMOUS"
WAIT_S: Final = 20.0
SEEN_IDS: Final = AclBinding(
    ResourceType.TRANSACTIONAL_ID,
    PatternType.PREFIXED,
    "sparkmirror-",
    ANYBODY,
    "*",
    AclOperation.DESCRIBE,
    AclPermission.ALLOW,
)
"""Lets anybody see the transactional ids that fence attempts, and nobody use them."""


def allow(
    name: str,
    operation: AclOperation,
    principal: str = ANYBODY,
    kind: ResourceType = ResourceType.TOPIC,
) -> AclBinding:
    """Make an ACL. Once a resource has one, every other operation and principal is denied."""
    return AclBinding(kind, PatternType.LITERAL, name, principal, "*", operation, AclPermission.ALLOW)


@contextmanager
def granted(cluster: LocalCluster, bindings: Sequence[AclBinding]) -> Iterator[None]:
    with closing(Admin(connection(cluster, alias="guarded"))) as admin:

        def there() -> set[AclBinding]:
            return set(bindings) & set(admin.acls())

        try:
            assert set(admin.create_acls(bindings).values()) == {None}
            await_value(lambda: there() == set(bindings), WAIT_S, lambda: f"only {there()}")
            yield
        finally:
            admin.delete_acls(bindings)
            await_value(lambda: not there(), WAIT_S, lambda: f"still {there()}")


@pytest.fixture(scope="module")
def file(guarded_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A flow within one cluster, so that source and target ACLs differ by topic name."""
    for topic in (SEEN, HIDDEN):
        create_topic(guarded_cluster.bootstrap_servers, topic)
    properties = {
        "clusters": "rs, rt",
        "rs.bootstrap.servers": guarded_cluster.bootstrap_servers,
        "rt.bootstrap.servers": guarded_cluster.bootstrap_servers,
        "rs->rt.enabled": "true",
        "topics": f"{SEEN}, {HIDDEN}",
        "heartbeats.replication.enabled": "false",
        **REPLICATION,
    }
    made = tmp_path_factory.mktemp("rights") / "mm2.properties"
    made.write_text(javaproperties.dumps(properties), encoding="ascii")
    return made


def planned(file: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, Any]]]:
    code = main(["plan", str(file), "-o", "json"])
    (flow,) = json.loads(capsys.readouterr().out)
    return code, [finding for finding in flow["findings"] if finding["severity"] == "blocks"]


def test_every_missing_acl_is_reported_with_its_command(
    file: Path, guarded_cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert planned(file, capsys) == (0, [])
    poor = [
        allow(SEEN, AclOperation.DESCRIBE),
        allow(SEEN, AclOperation.DESCRIBE_CONFIGS),
        allow(HIDDEN, AclOperation.READ, "User:other"),
        allow(REMOTE, AclOperation.READ),
        allow(REMOTE, AclOperation.DESCRIBE_CONFIGS),
        allow(REMOTE, AclOperation.ALTER_CONFIGS),
    ]
    with granted(guarded_cluster, poor):
        code, blocking = planned(file, capsys)
        lines = {finding["subject"]: finding["remedy"] for finding in blocking}
        tool = f"kafka-acls.sh --bootstrap-server {guarded_cluster.bootstrap_servers} --add"
        assert (code, lines) == (
            1,
            {
                SEEN: f"{tool} --allow-principal {ANYBODY} --operation Read --topic {SEEN}",
                HIDDEN: f"{tool} --allow-principal {ANYBODY} --operation Describe --topic {HIDDEN}",
                REMOTE: f"{tool} --allow-principal {ANYBODY} --operation Write --topic {REMOTE}",
            },
        )
        with granted(
            guarded_cluster,
            [
                allow(SEEN, AclOperation.READ),
                allow(HIDDEN, AclOperation.ALL),
                allow(REMOTE, AclOperation.WRITE),
            ],
        ):
            assert planned(file, capsys) == (0, [])


def test_part_that_cannot_be_planned_does_not_hide_the_others(
    file: Path, guarded_cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with granted(guarded_cluster, [allow(SEEN, AclOperation.READ)]):
        code = main(["plan", str(file), "-o", "json"])
        (flow,) = json.loads(capsys.readouterr().out)
    assert (code, flow["copy"]["partitions"]) == (1, 2)
    remedies = [finding["remedy"] for finding in flow["findings"] if finding["kind"] == "missing right"]
    assert [remedy.partition(" --operation ")[2] for remedy in remedies] == [
        f"DescribeConfigs --topic {SEEN}"
    ]


def test_forbidden_topic_creation_is_found_by_the_plan(
    file: Path, guarded_cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The broker has the same principal as the mirror, so it needs its own ACLs on the cluster."""
    on_cluster = [
        AclBinding(
            ResourceType.CLUSTER,
            PatternType.LITERAL,
            CLUSTER_NAME,
            ANYBODY,
            "*",
            operation,
            AclPermission.ALLOW,
        )
        for operation in (AclOperation.ALTER, AclOperation.CLUSTER_ACTION)
    ]
    on_topic = [
        allow(REMOTE, operation)
        for operation in (
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        )
    ]
    with granted(guarded_cluster, [*on_cluster, *on_topic]):
        code, blocking = planned(file, capsys)
    assert code == 1
    assert [finding["remedy"].partition(" --operation ")[2] for finding in blocking] == [
        f"Create --topic {REMOTE}"
    ]


def test_plan_warns_of_groups_that_a_flow_may_not_follow(
    file: Path, guarded_cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also if nobody lists them, as without DESCRIBE on the cluster."""
    named = tmp_path / "mm2.properties"
    more = {"groups": "hidden, seen, open", "sync.group.offsets.enabled": "true"}
    named.write_text(file.read_text() + javaproperties.dumps(more), encoding="ascii")
    poor = [
        allow("hidden", AclOperation.READ, "User:other", ResourceType.GROUP),
        allow("seen", AclOperation.DESCRIBE, kind=ResourceType.GROUP),
        allow("open", AclOperation.READ, kind=ResourceType.GROUP),
    ]
    with granted(guarded_cluster, poor):
        code = main(["plan", str(named), "-o", "json"])
        (flow,) = json.loads(capsys.readouterr().out)
    found = [each for each in flow["findings"] if " on group " in each["text"]]
    assert (code, {each["severity"] for each in found}) == (0, {"warns"})
    assert [each["remedy"].partition(" --operation ")[2] for each in found] == [
        "Describe --group hidden",
        "Read --group hidden",
        "Read --group seen",
    ]


def test_plan_warns_of_transactional_ids_that_a_flow_may_not_use(
    file: Path, guarded_cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also if it may see them."""
    with granted(guarded_cluster, [SEEN_IDS]):
        code = main(["plan", str(file), "-o", "json"])
        (flow,) = json.loads(capsys.readouterr().out)
    found = [each for each in flow["findings"] if "transactional id" in each["text"]]
    assert (code, [each["severity"] for each in found]) == (0, ["warns"])
    options = "--operation Write --transactional-id sparkmirror- --resource-pattern-type prefixed"
    assert found[0]["remedy"].endswith(options)
    assert "copies at least once" in found[0]["text"]


def test_a_task_that_may_not_use_transactional_ids_copies_at_least_once_and_names_the_right(
    guarded_cluster: LocalCluster,
) -> None:
    made = Bench(guarded_cluster, guarded_cluster)
    made.create_state_topics()
    topic = "rights.unfenced"
    made.create(topic)
    watch = ProgressReports(made)
    with granted(guarded_cluster, [SEEN_IDS]), running(made.plan(TopicPartition(topic, 0))):
        made.await_copied(topic, made.source_has(topic, 3))
        report = watch.await_progress(topic, lambda report: report.position == 2)
    watch.close()
    assert report.incidents == {"unfenced": 1}
    assert report.notice is not None
    assert "needs WRITE on transactional ids that begin with sparkmirror-: kafka-acls.sh" in report.notice
