"""A Connect worker whose three connectors are created by PUT requests."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from kafka_connect import KafkaConnect  # type: ignore[import-untyped] # it says nothing about types

from sparkmirror.cli.main import main
from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import (
    append,
    create_topic,
    delete_records,
    keyed,
    latest,
    numbered,
    records,
    topics,
)
from tests.support.page_forms import Page
from tests.support.rest_requests import Request, ask
from tests.support.waiting import await_value
from tests.system.connect_node import (
    CHECKPOINT,
    HEARTBEAT,
    SOURCE,
    ConnectNode,
    connector_config,
    group_properties,
    running_nodes,
)

GROUP = "worker-test"
TOPIC = "worker.orders"
ALIASES = "wa", "wb"
COPY_TIMEOUT_S = 90.0
OFFSETS_SHOWN_S = 20.0


@pytest.fixture(scope="module")
def clusters(source_cluster: LocalCluster, target_cluster: LocalCluster) -> tuple[LocalCluster, LocalCluster]:
    create_topic(source_cluster.bootstrap_servers, TOPIC, partitions=2)
    append(source_cluster, TOPIC, numbered(50), partition=0)
    append(source_cluster, TOPIC, numbered(30), partition=1)
    return source_cluster, target_cluster


@pytest.fixture(scope="module")
def node(
    clusters: tuple[LocalCluster, LocalCluster], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectNode]:
    folder = tmp_path_factory.mktemp("worker")
    with running_nodes(folder, {**group_properties(clusters[1], GROUP), "ui.actions": "true"}, 1) as (only,):
        only.await_answers()
        yield only
        only.stop()


def config(kind: str, clusters: tuple[LocalCluster, LocalCluster], **more: str) -> dict[str, str]:
    source, target = zip(ALIASES, clusters, strict=True)
    return connector_config(kind, source, target, **more)


def msc(clusters: tuple[LocalCluster, LocalCluster], **more: str) -> dict[str, str]:
    # Otherwise other tests' heartbeats would be mirrored.
    options = {"heartbeats_replication_enabled": "false", "tasks_max": "2", **more}
    return config(SOURCE, clusters, topics=TOPIC, **options)


@pytest.fixture(scope="module")
def copying(node: ConnectNode, clusters: tuple[LocalCluster, LocalCluster]) -> ConnectNode:
    """The node with the three connectors, after all records have been copied."""
    node.put("mm2-msc", msc(clusters))
    node.put("mm2-cpc", config(CHECKPOINT, clusters, topics=TOPIC))
    node.put("mm2-hbc", config(HEARTBEAT, clusters))
    node.await_states("mm2-msc", "RUNNING", "RUNNING", "RUNNING")
    node.await_states("mm2-cpc", "RUNNING", "RUNNING")
    node.await_states("mm2-hbc", "RUNNING", "RUNNING")
    await_copied(node, clusters, 80)
    return node


def await_copied(node: ConnectNode, clusters: tuple[LocalCluster, LocalCluster], count: int) -> None:
    copied = f"{ALIASES[0]}.{TOPIC}"
    await_value(
        lambda: copied in topics(clusters[1]) and len(keyed(clusters[1], copied)) >= count,
        COPY_TIMEOUT_S,
        node.log_text,
    )
    assert len(keyed(clusters[1], copied)) == count


def test_connectors_are_listed_with_their_tasks(copying: ConnectNode) -> None:
    assert copying.ask("GET", "/connectors").body == ["mm2-cpc", "mm2-hbc", "mm2-msc"]
    tasks = copying.ask("GET", "/connectors/mm2-msc/tasks").body
    shares = [task["config"]["task.assigned.partitions"] for task in tasks]
    assert sorted(shares) == [f"{TOPIC}-0", f"{TOPIC}-1"]
    assert [task["id"] for task in tasks] == [{"connector": "mm2-msc", "task": task} for task in (0, 1)]


def test_a_status_has_the_nodes_worker_id(copying: ConnectNode) -> None:
    status = copying.ask("GET", "/connectors/mm2-msc/status").body
    workers = {status["connector"]["worker_id"], *(task["worker_id"] for task in status["tasks"])}
    assert workers == {copying.worker_id}


def test_topics_in_use_are_tracked(copying: ConnectNode) -> None:
    def tracked() -> list[str]:
        return [
            topic
            for name in ("mm2-msc", "mm2-hbc")
            for topic in copying.ask("GET", f"/connectors/{name}/topics").body[name]["topics"]
        ]

    await_value(
        lambda: tracked() == [f"{ALIASES[0]}.{TOPIC}", "heartbeats"],
        COPY_TIMEOUT_S,
        lambda: f"{tracked()}",
    )


def test_a_running_worker_serves_its_plan(copying: ConnectNode, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--url", copying.url, "-o", "json"]) == 0
    (plan,) = json.loads(capsys.readouterr().out)
    assert (plan["source"], plan["target"], plan["connector"]) == (*ALIASES, "mm2-msc")
    assert (plan["changes"], plan["copy"]["partitions"], plan["copy"]["records"]) == ([], 2, 0)
    assert copying.ask("GET", "/connectors/mm2-hbc/plan").status == 400
    assert main(["plan", "--url", copying.url, "nobody"]) == 2
    assert "nobody" in capsys.readouterr().err


@pytest.fixture
def page(copying: ConnectNode) -> Page:
    return Page(copying.url, flow="->".join(ALIASES))


def test_forms_of_the_page_pause_and_resume(copying: ConnectNode, page: Page) -> None:
    assert page.send({**page.fields("pause", "mm2-msc"), "typed": "mm2-cpc"}).status == 400
    assert page.send({**page.fields("pause", "mm2-msc"), "typed": "mm2-msc"}).status == 303
    copying.await_states("mm2-msc", "PAUSED", "PAUSED", "PAUSED")
    assert b"paused" in page.get("flow", flow=page.flow).body
    assert page.send({**page.fields("verify", "mm2-msc")}).status == 409, "it does not run"
    assert page.send({**page.fields("resume", "mm2-msc")}).status == 303
    copying.await_states("mm2-msc", "RUNNING", "RUNNING", "RUNNING")

    def asked() -> list[str]:
        """The newest first."""
        events = ask(page.url, Request("GET", f"/mirror?flow={quote(page.flow)}&events=true")).json()
        actions = [it["text"] for it in events["flows"][0]["events"]["items"] if it["kind"] == "action"]
        return [text.split(",")[0] for text in actions]

    await_value(
        lambda: asked()[:3] == ["resume", "verify", "pause"], COPY_TIMEOUT_S, lambda: f"only {asked()}"
    )


def test_a_form_of_the_page_verifies(copying: ConnectNode, page: Page) -> None:
    assert page.send({**page.fields("verify", "mm2-msc")}).status == 303

    def made() -> dict[str, Any]:
        found: dict[str, Any] = copying.ask("GET", "/connectors/mm2-msc/verify").body
        return found

    await_value(lambda: made()["state"] != "running", COPY_TIMEOUT_S, copying.log_text)
    assert (made()["state"], made()["error"], made()["result"]["equal"]) == ("ended", None, True)
    assert made()["progress"] == "80 records of 2 partitions are the same on both clusters"

    def junit() -> str:
        """A page instead, while the view is older than the result."""
        return page.get("verified", flow=page.flow, format="junit").body.decode()

    await_value(lambda: 'tests="2" failures="0" errors="0"' in junit(), COPY_TIMEOUT_S, junit)
    flow = f"/mirror?flow={quote(page.flow)}"

    def kept() -> dict[str, Any] | None:
        found: dict[str, Any] | None = ask(page.url, Request("GET", flow)).json()["flows"][0]["verification"]
        return found

    await_value(lambda: kept() is not None, COPY_TIMEOUT_S, copying.log_text)
    known = kept()
    assert known is not None
    assert (known["partition_count"], known["differences"]) == (2, 0)
    (seen,) = ask(page.url, Request("GET", f"{flow}&topic={TOPIC}")).json()["flows"]
    checks = {it["name"]: it["holds"] for it in seen["may_move"][0]["checks"]}
    assert (checks["drained"], checks["verified"]) == (True, True)
    metrics = ask(page.url, Request("GET", "/metrics")).body.decode()
    assert re.search(r"^sparkmirror_verify_differences\{.*\} 0\b", metrics, re.MULTILINE)
    offsets = re.findall(r"^sparkmirror_verify_offset\{.*\} (\d+)", metrics, re.MULTILINE)
    assert sorted(offsets) == ["30", "50"]


def test_a_page_has_the_plan(page: Page) -> None:
    answer = page.get("plan", flow=page.flow)
    assert (answer.status, b"Plan: nothing to change, nothing to copy." in answer.body) == (200, True)


def test_offsets_of_a_running_connector_follow_its_records(copying: ConnectNode) -> None:
    """Offsets follow within seconds; a Java worker's after `offset.flush.interval.ms`, 60 s by default."""

    def shown() -> set[tuple[int, int]]:
        entries = copying.ask("GET", "/connectors/mm2-msc/offsets").body["offsets"]
        return {(entry["partition"]["partition"], entry["offset"]["offset"]) for entry in entries}

    await_value(lambda: shown() == {(0, 49), (1, 29)}, OFFSETS_SHOWN_S, lambda: f"{shown()}")


def test_a_stopped_connector_resumes_at_altered_offsets(
    copying: ConnectNode, clusters: tuple[LocalCluster, LocalCluster]
) -> None:
    refused = copying.ask("PATCH", "/connectors/mm2-msc/offsets", {"offsets": altered(9)})
    assert refused.status == 400
    assert "must be in the STOPPED state" in refused.body["message"]
    assert copying.ask("PUT", "/connectors/mm2-msc/stop").status == 204
    copying.await_states("mm2-msc", "STOPPED")
    known = copying.ask("GET", "/connectors/mm2-msc/offsets").body["offsets"]
    assert {(entry["partition"]["partition"], entry["offset"]["offset"]) for entry in known} == {
        (0, 49),
        (1, 29),
    }
    assert copying.ask("PATCH", "/connectors/mm2-msc/offsets", {"offsets": altered(9)}).status == 200
    assert copying.ask("PUT", "/connectors/mm2-msc/resume").status == 202
    # The records after offset 9 are copied again.
    await_copied(copying, clusters, 80 + 40)


def altered(offset: int) -> list[dict[str, object]]:
    partition = {"cluster": ALIASES[0], "topic": TOPIC, "partition": 0}
    return [{"partition": partition, "offset": {"offset": offset}}]


def test_a_paused_connector_copies_nothing(
    copying: ConnectNode, clusters: tuple[LocalCluster, LocalCluster]
) -> None:
    assert copying.ask("PUT", "/connectors/mm2-msc/pause").status == 202
    copying.await_states("mm2-msc", "PAUSED", "PAUSED", "PAUSED")
    append(clusters[0], TOPIC, numbered(10, 30), partition=1)
    before = len(keyed(clusters[1], f"{ALIASES[0]}.{TOPIC}"))
    beats = len(keyed(clusters[1], "heartbeats"))
    # Other connectors continue.
    await_value(lambda: len(keyed(clusters[1], "heartbeats")) > beats + 1, COPY_TIMEOUT_S, copying.log_text)
    assert len(keyed(clusters[1], f"{ALIASES[0]}.{TOPIC}")) == before
    assert copying.ask("PUT", "/connectors/mm2-msc/resume").status == 202
    await_copied(copying, clusters, before + 10)


@pytest.mark.parametrize("before", ["reconfigured", "restarted", "resumed"])
def test_records_written_once_a_connector_is_paused_wait_until_it_is_resumed(
    copying: ConnectNode, clusters: tuple[LocalCluster, LocalCluster], before: str
) -> None:
    """The connector is paused while the worker is busy, then restarted and reconfigured."""
    copied = f"{ALIASES[0]}.{TOPIC}"
    count = len(keyed(clusters[1], copied))
    if before == "reconfigured":
        copying.put("mm2-msc", msc(clusters, refresh_topics_interval_seconds="601"))
    elif before == "restarted":
        assert copying.ask("POST", "/connectors/mm2-msc/restart?includeTasks=true").status == 202
    else:
        assert copying.ask("PUT", "/connectors/mm2-msc/pause").status == 202
        assert copying.ask("PUT", "/connectors/mm2-msc/resume").status == 202
    assert copying.ask("PUT", "/connectors/mm2-msc/pause").status == 202
    copying.await_states("mm2-msc", "PAUSED", "PAUSED", "PAUSED")
    append(clusters[0], TOPIC, numbered(10, 100), partition=1)
    assert copying.ask("POST", "/connectors/mm2-msc/restart?includeTasks=true").status in {202, 204}
    copying.put("mm2-msc", msc(clusters))
    beats = len(keyed(clusters[1], "heartbeats"))
    await_value(lambda: len(keyed(clusters[1], "heartbeats")) > beats + 2, COPY_TIMEOUT_S, copying.log_text)
    assert len(keyed(clusters[1], copied)) == count
    assert copying.states("mm2-msc") == ("PAUSED", ["PAUSED", "PAUSED"])
    assert copying.ask("PUT", "/connectors/mm2-msc/resume").status == 202
    await_copied(copying, clusters, count + 10)


def test_an_unusable_config_is_refused(
    copying: ConnectNode, clusters: tuple[LocalCluster, LocalCluster]
) -> None:
    answer = copying.ask("PUT", "/connectors/mm2-bad/config", msc(clusters, offset_lag_max="many"))
    assert answer.status == 400
    assert "offset.lag.max" in answer.body["message"]
    assert "mm2-bad" not in copying.ask("GET", "/connectors").body


def test_a_restarted_node_knows_its_connectors(
    copying: ConnectNode, clusters: tuple[LocalCluster, LocalCluster]
) -> None:
    before = len(keyed(clusters[1], f"{ALIASES[0]}.{TOPIC}"))
    copying.stop()
    append(clusters[0], TOPIC, numbered(5, 50), partition=0)
    copying.start()
    copying.await_answers()
    copying.await_states("mm2-msc", "RUNNING", "RUNNING", "RUNNING")
    await_copied(copying, clusters, before + 5)


def test_a_third_party_client_works(
    copying: ConnectNode, clusters: tuple[LocalCluster, LocalCluster]
) -> None:
    """Some of kafka-connect-py; `tests/rest/test_clients.py` has all of it, without connectors."""
    client = KafkaConnect(copying.url)
    one, two, both = "foreign-one", "foreign-two", "foreign-.*"
    beats = config(HEARTBEAT, clusters)
    assert client.create_connector({"name": one, "config": beats})["name"] == one
    assert client.update_connector(two, beats)["config"] == {**beats, "name": two}
    assert client.list_connectors(pattern=both) == [one, two]
    for name in (one, two):
        copying.await_states(name, "RUNNING", "RUNNING")
    client.pause_all_connectors(pattern=both)
    for name in (one, two):
        copying.await_states(name, "PAUSED", "PAUSED")
    assert list(client.list_connectors(expand="status", pattern=both, state="PAUSED")) == [one, two]
    client.resume_connector(one)
    copying.await_states(one, "RUNNING", "RUNNING")
    client.restart_connector_task(one, 0)
    client.restart_connector(one, include_tasks=True)
    copying.await_states(one, "RUNNING", "RUNNING")
    await_value(
        lambda: client.list_connector_topics(one) == {one: {"topics": ["heartbeats"]}},
        COPY_TIMEOUT_S,
        copying.log_text,
    )
    validated = client.validate_connector_config(beats["connector.class"], {**beats, "name": one})
    assert validated["error_count"] == 0
    client.delete_all_connectors(pattern=both)
    assert client.list_connectors(pattern=both) == []


def placed(cluster: LocalCluster, topic: str) -> list[tuple[int | None, object]]:
    return [(record.offset(), record.value()) for record in records(cluster, topic)]


def test_a_connector_preserves_offsets(
    copying: ConnectNode, clusters: tuple[LocalCluster, LocalCluster]
) -> None:
    source, target = clusters
    topic, copied = "worker.kept", f"{ALIASES[0]}.worker.kept"
    create_topic(source.bootstrap_servers, topic)
    append(source, topic, numbered(50))
    delete_records(source, topic, 40)
    preserving = {"offsets_preserve": "true", "heartbeats_replication_enabled": "false"}
    copying.put("mm2-kept", config(SOURCE, clusters, topics=topic, **preserving))
    await_value(
        lambda: copied in topics(target) and placed(target, copied) == placed(source, topic),
        COPY_TIMEOUT_S,
        copying.log_text,
    )
    assert [offset for offset, _ in placed(target, copied)] == list(range(40, 50))
    assert copying.ask("DELETE", "/connectors/mm2-kept").status == 204


def test_a_deleted_connector_leaves_nothing_in_the_topics(
    copying: ConnectNode, clusters: tuple[LocalCluster, LocalCluster]
) -> None:
    copying.put("mm2-gone", config(HEARTBEAT, clusters))
    copying.await_states("mm2-gone", "RUNNING", "RUNNING")
    assert copying.ask("DELETE", "/connectors/mm2-gone").status == 204
    await_value(
        lambda: copying.ask("GET", "/connectors/mm2-gone/status").status == 404,
        COPY_TIMEOUT_S,
        copying.log_text,
    )
    left = {
        json.loads(value)["state"] if value else None
        for key, value in latest(clusters[1], f"{GROUP}-status").items()
        if key and b"mm2-gone" in key
    }
    assert left == {None}
