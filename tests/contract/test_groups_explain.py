"""`sparkmirror groups explain` against clusters with offset syncs and groups as a mirror leaves them."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import confluent_kafka as confluent
import javaproperties
import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.cli.main import main
from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.errors import RetriableError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.kafka.groups.consumer_groups import Committed, Groups
from sparkmirror.offsets.wire_records import Checkpoint, OffsetSync
from sparkmirror.storage.offset_sync_topic import RunSync
from tests.contract.streams_member import streaming
from tests.support.batches import NOW_MS
from tests.support.broker_data import append, create_topic, numbered, topics
from tests.support.connections import connection
from tests.support.mirror import REPLICATION
from tests.support.waiting import await_value

TOPIC: Final = "contract.explained"
OTHER: Final = "contract.explained-not"
FOUND: Final = "contract.explained-found"
REMOTE: Final = f"ge.{TOPIC}"
CHECKPOINTS: Final = "ge.checkpoints.internal"
AHEAD: Final = 1000
WAIT_S: Final = 20.0


@pytest.fixture(scope="module")
def file(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    syncs = "mm2-offset-syncs.gt.internal"
    for topic in (TOPIC, OTHER, FOUND, syncs):
        create_topic(source_cluster.bootstrap_servers, topic)
    create_topic(target_cluster.bootstrap_servers, REMOTE)
    append(source_cluster, TOPIC, numbered(100))
    append(target_cluster, REMOTE, numbered(AHEAD + 95))
    create_topic(target_cluster.bootstrap_servers, f"ge.{FOUND}")
    append(target_cluster, f"ge.{FOUND}", numbered(7, first=1000))
    for cluster, topic in ((source_cluster, FOUND), (target_cluster, f"ge.{FOUND}")):
        append(cluster, topic, numbered(50), timestamp_ms=NOW_MS)
    partition, found = TopicPartition(TOPIC, 0), TopicPartition(FOUND, 0)
    offset_syncs = [
        RunSync(OffsetSync(partition, offset, AHEAD + offset), run) for offset, run in ((39, 20), (80, 1))
    ]
    offset_syncs += [RunSync(OffsetSync(found, offset, 7 + offset), 1) for offset in (0, 49)]
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
        TopicPartition(
            {"explained": TOPIC, "not": OTHER, "found": FOUND, "remote": REMOTE}[word], 0
        ): Committed(offset, "")
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
    code = main(["groups", "explain", str(file), group, "-o", "json"])
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
    assert main(["groups", "explain", str(file), "explain-well"]) == 0
    printed = capsys.readouterr().out
    assert f"✓ {TOPIC}-0: translated exactly" in printed


def test_partitions_without_exact_translation_are_explained(
    file: Path, source_cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(source_cluster, "explain-between", explained=60)
    code, flow = explained(file, "explain-between", capsys)
    (partition,) = flow["partitions"]
    assert (code, partition["translation"], partition["read_again_max"]) == (0, "approximate", 40)
    assert partition["why"] == (
        "between two offset syncs: at most 40 records are read again; not found in the records"
    )
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


def test_an_offset_that_the_mirror_has_yet_to_look_up_is_explained(
    file: Path, source_cluster: LocalCluster, target_cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    group = "explain-found"
    commit(source_cluster, group, found=20)
    code, flow = explained(file, group, capsys)
    (partition,) = flow["partitions"]
    assert (code, partition["translation"], partition["next_sync_writes"]) == (0, "exact", 27)
    assert partition["why"] == (
        "translated exactly; found in the records, where the mirror has yet to look within "
        "translation.resolve.bytes.max for each interval"
    )
    checkpoint(target_cluster, group, 20, 27)
    _, flow = explained(file, group, capsys)
    assert flow["partitions"][0]["why"] == "translated exactly; found in the records"


@pytest.mark.parametrize(
    ("choice", "why"),
    [("off", ""), ("active", "; translation.resolve=active looks up only groups that move")],
)
def test_an_offset_that_the_mirror_does_not_look_up_is_explained(
    choice: str,
    why: str,
    file: Path,
    source_cluster: LocalCluster,
    target_cluster: LocalCluster,
    capsys: pytest.CaptureFixture[str],
) -> None:
    group, other = f"explain-{choice}", file.with_name(f"{choice}.properties")
    other.write_text(f"{file.read_text(encoding='ascii')}\ntranslation.resolve={choice}\n", encoding="ascii")
    commit(source_cluster, group, found=21)
    checkpoint(target_cluster, group, 21, 8)
    _, flow = explained(other, group, capsys)
    assert flow["partitions"][0]["why"] == (
        f"between two offset syncs: at most 48 records are read again{why}"
    )


def checkpoint(cluster: LocalCluster, group: str, upstream: int, downstream: int) -> None:
    if CHECKPOINTS not in topics(cluster):
        create_topic(cluster.bootstrap_servers, CHECKPOINTS, config={"cleanup.policy": "compact"})
    written = Checkpoint(GroupId(group), TopicPartition(f"ge.{FOUND}", 0), upstream, downstream)
    with closing(TopicWriter(connection(cluster))) as writer:
        writer.write(CHECKPOINTS, [LogRecord(written.encode_key(), written.encode_value())])


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
    assert main(["groups", "explain", str(tmp_path / "none.properties"), "explain-well"]) == 2
    assert main(["groups", "explain", str(file), "explain-well", "--flow", "gt->ge"]) == 2
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
