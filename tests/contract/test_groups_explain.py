"""`sparkmirror groups explain` against clusters with offset syncs and groups as a mirror leaves them."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import confluent_kafka as confluent
import javaproperties
import pytest

from sparkmirror.cli.main import main
from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.errors import RetriableError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.kafka.groups import Committed, Groups
from sparkmirror.kafka.topic_log import TopicWriter
from sparkmirror.offsets.wire_records import OffsetSync
from sparkmirror.storage.offset_sync_topic import RunSync
from tests.contract.streams_member import streaming
from tests.support.broker_data import append, create_topic, numbered
from tests.support.connections import connection
from tests.support.mirror import REPLICATION
from tests.support.waiting import await_value

TOPIC: Final = "contract.explained"
OTHER: Final = "contract.explained-not"
REMOTE: Final = f"ge.{TOPIC}"
AHEAD: Final = 1000
WAIT_S: Final = 20.0


@pytest.fixture(scope="module")
def file(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    syncs = "mm2-offset-syncs.gt.internal"
    for topic in (TOPIC, OTHER, syncs):
        create_topic(source_cluster.bootstrap_servers, topic)
    create_topic(target_cluster.bootstrap_servers, REMOTE)
    append(source_cluster, TOPIC, numbered(100))
    append(target_cluster, REMOTE, numbered(AHEAD + 95))
    partition = TopicPartition(TOPIC, 0)
    offset_syncs = [
        RunSync(OffsetSync(partition, offset, AHEAD + offset), run) for offset, run in ((39, 20), (80, 1))
    ]
    writer = TopicWriter(connection(source_cluster))
    writer.write(syncs, [sync.to_record() for sync in offset_syncs])
    writer.close()
    properties = {
        "clusters": "ge, gt",
        "ge.bootstrap.servers": source_cluster.bootstrap_servers,
        "gt.bootstrap.servers": target_cluster.bootstrap_servers,
        "ge->gt.enabled": "true",
        "topics.exclude": OTHER,
        "groups": "explain-.*",
        "groups.exclude": "explain-secret, .*-hidden",
        "sync.group.offsets.enabled": "true",
        **REPLICATION,
    }
    made = tmp_path_factory.mktemp("explain") / "mm2.properties"
    made.write_text(javaproperties.dumps(properties), encoding="ascii")
    return made


def commit(cluster: LocalCluster, group: str, **offsets: int) -> None:
    """Commit offsets; topics are given by the last part of their names."""
    wanted = {
        TopicPartition({"explained": TOPIC, "not": OTHER, "remote": REMOTE}[word], 0): Committed(offset, "")
        for word, offset in offsets.items()
    }
    with closing(Groups(connection(cluster, alias="here"))) as groups:

        def is_written() -> bool:
            try:
                return not groups.write(GroupId(group), wanted)
            except RetriableError:
                return False

        await_value(is_written, WAIT_S, lambda: f"{group} gets no offset")


def explained(file: Path, group: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main(["groups", "explain", group, str(file), "-o", "json"])
    (flow,) = json.loads(capsys.readouterr().out)
    assert (flow["flow"], flow["group"], flow["follows"]) == ("ge->gt", group, code == 0)
    return code, flow


def test_group_without_obstacles_is_explained(
    file: Path,
    source_cluster: LocalCluster,
    target_cluster: LocalCluster,
    capsys: pytest.CaptureFixture[str],
) -> None:
    commit(source_cluster, "explain-well", explained=30)
    commit(target_cluster, "explain-well", remote=1020)
    code, flow = explained(file, "explain-well", capsys)
    assert (code, flow["obstacles"]) == (0, [])
    assert flow["partitions"] == [
        {
            "source": f"{TOPIC}-0",
            "target": f"{REMOTE}-0",
            "translation": "exact",
            "why": "translated exactly",
            "source_offset": 30,
            "source_lag": 70,
            "translated_offset": 1030,
            "read_again_max": 0,
            "checkpoint_offset": None,
            "target_offset": 1020,
            "target_lag": 75,
            "next_sync_writes": 1030,
        }
    ]
    assert main(["groups", "explain", "explain-well", str(file)]) == 0
    printed = capsys.readouterr().out
    assert f"✓ {TOPIC}-0: translated exactly" in printed


def test_partitions_without_exact_translation_are_explained(
    file: Path, source_cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(source_cluster, "explain-between", explained=60)
    code, flow = explained(file, "explain-between", capsys)
    (partition,) = flow["partitions"]
    assert (code, partition["translation"], partition["read_again_max"]) == (0, "approximate", 40)
    commit(source_cluster, "explain-old", **{"explained": 5, "not": 0})
    code, flow = explained(file, "explain-old", capsys)
    old, left_out = flow["partitions"]
    assert code == 1
    assert old["why"] == (
        "before 20, the first offset that a sync covers: consumers begin by auto.offset.reset"
    )
    assert (left_out["translation"], left_out["why"]) == (
        "filtered",
        f"topics.exclude ({OTHER}) leaves the topic out",
    )


def test_active_filtered_and_unknown_groups_are_explained(
    file: Path,
    source_cluster: LocalCluster,
    target_cluster: LocalCluster,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for group in ("explain-active", "explain-hidden", "somebody"):
        commit(source_cluster, group, explained=30)
    with consuming(target_cluster, "explain-active"):
        code, flow = explained(file, "explain-active", capsys)
    ((obstacle,),) = (flow["obstacles"],)
    assert code == 1
    assert obstacle.startswith("active on gt, which takes offsets from its members only: till-7 at 127.0.0.1")
    assert flow["partitions"][0]["next_sync_writes"] is None
    for group, obstacle in (
        ("explain-hidden", "filtered: groups.exclude (.*-hidden) leaves the group out"),
        ("somebody", "filtered: groups leaves the group out"),
        ("explain-nobody", "ge knows no such group, or the principal may not DESCRIBE it"),
    ):
        code, flow = explained(file, group, capsys)
        assert (code, flow["obstacles"]) == (1, [obstacle])


def test_share_group_is_explained(
    file: Path, source_cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    group = "explain-share"
    settings = {"bootstrap.servers": source_cluster.bootstrap_servers, "group.id": group, "log_level": 0}
    with (
        confluent.ShareConsumer(settings) as member,
        closing(Groups(connection(source_cluster, alias="here"))) as groups,
    ):
        member.subscribe([TOPIC])
        member.poll(0.1)
        await_value(lambda: groups.listed().get(GroupId(group)), WAIT_S, lambda: "no share group")
        code, flow = explained(file, group, capsys)
    assert (code, flow["obstacles"]) == (1, ["is a share group on ge: such groups are left alone"])


def test_streams_group_on_either_side_is_explained(
    file: Path,
    source_cluster: LocalCluster,
    target_cluster: LocalCluster,
    capsys: pytest.CaptureFixture[str],
) -> None:
    here, there = "explain-streams", "explain-streams-there"
    with streaming(source_cluster, here, TOPIC) as member:
        member.commit(TOPIC, 30)
        code, flow = explained(file, here, capsys)
    assert (code, flow["obstacles"]) == (1, ["is a streams group on ge: such groups are left alone"])
    commit(source_cluster, there, explained=30)
    with streaming(target_cluster, there, REMOTE) as member:
        member.commit(REMOTE, 3)
    code, flow = explained(file, there, capsys)
    (partition,) = flow["partitions"]
    assert (code, flow["obstacles"]) == (1, ["is a streams group on gt: such groups are left alone"])
    assert (partition["target_offset"], partition["next_sync_writes"]) == (3, None)


def test_missing_file_or_unknown_flow_exits_with_2(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["groups", "explain", "explain-well", str(tmp_path / "none.properties")]) == 2
    assert main(["groups", "explain", "explain-well", str(file), "--flow", "gt->ge"]) == 2
    assert "has no flow gt->ge that mirrors topics (it has: ge->gt)" in capsys.readouterr().err


@contextmanager
def consuming(cluster: LocalCluster, group: str) -> Iterator[None]:
    consumer = confluent.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "client.id": "till-7",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    try:
        consumer.subscribe([REMOTE])
        await_value(lambda: bool(consumer.consume(1, 0.5)), WAIT_S, lambda: "the member gets no record")
        yield
    finally:
        consumer.close()
