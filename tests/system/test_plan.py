"""`sparkmirror plan` before, during and after a mirror: it lists changes and makes none."""

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import javaproperties
import pytest

from sparkmirror.cli.main import main
from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST, ReservedPort
from sparkmirror.domain.ids import Alias
from sparkmirror.plan.without_position import started_over, starts_over
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.settings.topic_selection import Selected
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.setup.topic_plan import SourceTopic, TopicPlan
from sparkmirror.setup.topic_sync import Topics
from tests.support.broker_data import append, config, configure, create_topic, grow, numbered, topics
from tests.support.mirror import REPLICATION, running_mirror
from tests.support.progress import await_caught_up
from tests.system.connect_node import SOURCE, connector_config, group_properties

TOPIC: Final = "planned.orders"
REMOTE: Final = "pl.planned.orders"
RECORDS: Final = 500
OWN: Final = {
    "mm2-offsets.pl.internal",
    "mm2-progress.pl.internal",
    "mm2-attempts.pl.internal",
    "mm2-events.pl.internal",
    "pl.checkpoints.internal",
}


@pytest.fixture(scope="module")
def properties(source_cluster: LocalCluster, target_cluster: LocalCluster) -> dict[str, str]:
    create_topic(source_cluster.bootstrap_servers, TOPIC, partitions=3, config={"retention.ms": "86400001"})
    create_topic(source_cluster.bootstrap_servers, "planned.secret")
    append(source_cluster, TOPIC, numbered(RECORDS), partition=1)
    return {
        "clusters": "pl, pt",
        "pl.bootstrap.servers": source_cluster.bootstrap_servers,
        "pt.bootstrap.servers": target_cluster.bootstrap_servers,
        "pl->pt.enabled": "true",
        "pl->pt.topics": "planned.*",
        "pl->pt.topics.exclude": r"planned\.secret.*",
        "heartbeats.replication.enabled": "false",
        "tasks.max": "2",
        **REPLICATION,
    }


@pytest.fixture
def plan(tmp_path: Path, properties: dict[str, str], capsys: pytest.CaptureFixture[str]) -> "Plan":
    return Plan(tmp_path / "mm2.properties", properties, capsys)


class Plan:
    def __init__(self, file: Path, properties: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
        self.file = file
        self._properties = properties
        self._capsys = capsys

    def run(self, *options: str, **changed: str) -> tuple[int, str, str]:
        properties = {**self._properties, **{key.replace("_", "."): value for key, value in changed.items()}}
        self.file.write_text(javaproperties.dumps(properties), encoding="ascii")
        self._capsys.readouterr()
        code = main(["plan", str(self.file), *options])
        return code, *self._capsys.readouterr()

    def flow(self, **changed: str) -> tuple[int, dict[str, Any]]:
        code, out, err = self.run("-o", "json", **changed)
        assert out, err
        (flow,) = json.loads(out)
        return code, flow


def changes(flow: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    return {change["name"]: change for change in flow["changes"] if change["kind"] == kind}


def own_topics(cluster: LocalCluster) -> dict[str, int]:
    """List the topics that this file's flow could make: other tests make theirs meanwhile."""
    return {name: count for name, count in topics(cluster).items() if re.search(r"planned|\b(pl|pt)\b", name)}


def test_plan_lists_every_change_and_makes_none(
    plan: Plan, source_cluster: LocalCluster, target_cluster: LocalCluster
) -> None:
    existing = topics(target_cluster)
    before = own_topics(source_cluster), own_topics(target_cluster)
    code, flow = plan.flow()
    assert (own_topics(source_cluster), own_topics(target_cluster)) == before
    assert (code, flow["blocked"]) == (0, False), flow["findings"]
    assert changes(flow, "topic")[REMOTE]["details"] == {
        "source": TOPIC,
        "partitions": 3,
        "replication_factor": 1,
        "configs": {"retention.ms": "86400001"},
    }
    assert changes(flow, "internal topic").keys() == {"mm2-offset-syncs.pt.internal", *OWN} - existing.keys()
    copy = flow["copy"]
    assert (copy["tasks"], copy["partitions"], copy["records"]) == (2, 3, RECORDS)
    assert 0 < copy["bytes"] < 1000 * RECORDS
    skipped = {each["topic"]: each["why"] for each in flow["skipped"]}
    assert skipped["planned.secret"] == r"topics.exclude (planned\.secret.*) leaves it out"
    assert TOPIC not in skipped


def test_plan_prints_topics_copies_and_a_summary(plan: Plan) -> None:
    code, out, _ = plan.run()
    assert code == 0
    assert f"      {REMOTE}: as {TOPIC}, 3 partitions, 1 replica, retention.ms=86400001" in out.splitlines()
    assert "  copy 3 partitions of 1 topic in 2 tasks, if Spark has slots for them" in out.splitlines()
    assert out.splitlines()[-1].startswith("Plan: ")
    assert f"at most {RECORDS} records to copy" in out.splitlines()[-1]


def test_connector_is_planned_before_its_deployment(
    sides: tuple[LocalCluster, LocalCluster], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = sides
    options = {"topics": "planned.orders", "heartbeats_replication_enabled": "false"}
    connector = connector_config(SOURCE, ("pl", source), ("pt", target), **options)
    body = tmp_path / "mm2-msc.json"
    body.write_text(json.dumps({"name": "mm2-msc", "config": connector}))
    worker = tmp_path / "connect-distributed.properties"
    worker.write_text(javaproperties.dumps(group_properties(target, "planned-worker")), encoding="ascii")
    assert main(["plan", str(body), "--worker", str(worker), "-o", "json"]) == 0
    (flow,) = json.loads(capsys.readouterr().out)
    assert flow["connector"] == "mm2-msc"
    assert "planned-worker-offsets" in changes(flow, "internal topic")
    assert flow["copy"]["records"] == RECORDS


def test_blocking_findings_decide_the_exit_code(plan: Plan) -> None:
    code, flow = plan.flow(replication_factor="3")
    (finding,) = (finding for finding in flow["findings"] if finding["severity"] == "blocks")
    assert (code, finding["kind"], finding["subject"]) == (1, "too many replicas", "replication.factor")
    assert f"{REMOTE} can't have 3 replicas on pt, which has 1 broker" in finding["text"]
    code, _, err = plan.run(replication_factor="many")
    assert (code, "replication.factor" in err) == (2, True)


def test_unreachable_cluster_has_another_exit_code(plan: Plan) -> None:
    port = ReservedPort()
    address = f"{HOST}:{port.number}"
    code, _, err = plan.run(pt_bootstrap_servers=address)
    port.release()
    assert (code, address in err) == (2, True), err


def test_plan_after_a_mirror_lists_only_changes_made_by_hand(
    plan: Plan,
    properties: dict[str, str],
    sides: tuple[LocalCluster, LocalCluster],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, target = sides
    create_topic(source.bootstrap_servers, "collides.x")
    create_topic(target.bootstrap_servers, "pl.collides_x")
    with running_mirror(
        tmp_path / "mirror", {**properties, "pl->pt.topics": "planned.*, collides.x"}
    ) as mirror:
        await_caught_up(source, target, "pl", [TOPIC])
        mirror.await_log("pl.collides.x: on pt it differs from pl.collides_x by '.' and '_' only")
        mirror.stop()
    assert config(target, REMOTE)["retention.ms"] == "86400001"
    code, out, _ = plan.run()
    assert (code, out.splitlines()[-1]) == (0, "Plan: nothing to change, nothing to copy.")
    assert plan.run("--detailed-exitcode")[0] == 0
    assert_another_name_starts_over(plan, tmp_path)
    code, topic = explained(properties, tmp_path, capsys)
    assert (code, topic["mirrored"], topic["target_topic"], topic["configs"]) == (0, True, REMOTE, [])
    copied = topic["partitions"][1]
    assert (copied["mirrored_to"], copied["lag"], copied["target_end_offset"]) == (RECORDS, 0, RECORDS)
    configure(target, REMOTE, {"retention.ms": "1234567"})
    grow(source, TOPIC, 4)
    append(source, TOPIC, numbered(7), partition=2)
    code, flow = plan.flow()
    assert code == 0, flow["findings"]
    assert {(change["action"], change["kind"]) for change in flow["changes"]} == {
        ("alter", "partitions"),
        ("alter", "configs"),
    }, flow["findings"]
    assert changes(flow, "configs")[REMOTE]["details"] == {"configs": {"retention.ms": "86400001"}}
    assert changes(flow, "partitions")[REMOTE]["text"] == "3 -> 4 partitions"
    assert flow["copy"]["records"] == 7
    _, topic = explained(properties, tmp_path, capsys)
    (config_,) = topic["configs"]
    assert config_ == {
        "name": "retention.ms",
        "source": "86400001",
        "target": "1234567",
        "why": "the next sync sets it",
    }
    code, topic = explained(properties, tmp_path, capsys, "planned.secret")
    assert (code, topic["mirrored"], topic["partitions"]) == (1, False, [])
    assert [rule["passes"] for rule in topic["rules"]] == [False, True, True]


def assert_another_name_starts_over(plan: Plan, folder: Path) -> None:
    """Both `plan` and a mirror that starts find it; unless told otherwise it continues instead."""
    code, flow = plan.flow(**{"pl->pt.name": "another"})
    (newer,) = [finding for finding in flow["findings"] if finding["kind"] == "newer position"]
    assert (code, newer["severity"], newer["subject"]) == (0, "warns", TOPIC)
    assert newer["text"].startswith(f"MirrorSourceConnector has copied {TOPIC} since")
    assert flow["copy"]["records"] == plan.flow()[1]["copy"]["records"]
    repeats = {"pl->pt.name": "another", "on.newer.position": "repeat"}
    code, flow = plan.flow(**repeats)
    (planned,) = [finding for finding in flow["findings"] if finding["kind"] == "topic of others"]
    assert (code, planned["severity"], planned["subject"]) == (0, "warns", REMOTE)
    assert "continue where the connector MirrorSourceConnector has stopped" in planned["remedy"]
    (settings,) = (each for each in read_mirror_maker_file(plan.file).flows if each.source is not None)
    assert settings.source is not None
    with closing(FlowAdmins(settings.flow, settings.source)) as admins:
        counts = admins.source.partition_counts()
        topics = Topics(
            {TOPIC: SourceTopic(counts[TOPIC])},
            admins.target.partition_counts(),
            TopicPlan(),
            Selected([(TOPIC, REMOTE)]),
        )
    (found,) = started_over(settings, settings.source, topics)
    assert (found.subject, found.remedy) == (REMOTE, planned["remedy"])
    assert starts_over([found], Alias("pt")).startswith("starts over: no position of this mirror is stored")


def explained(
    properties: dict[str, str], folder: Path, capsys: pytest.CaptureFixture[str], topic: str = TOPIC
) -> tuple[int, dict[str, Any]]:
    file = folder / "explained.properties"
    file.write_text(javaproperties.dumps(properties), encoding="ascii")
    capsys.readouterr()
    code = main(["topics", "explain", str(file), topic, "--flow", "pl->pt", "-o", "json"])
    (found,) = json.loads(capsys.readouterr().out)
    return code, found
