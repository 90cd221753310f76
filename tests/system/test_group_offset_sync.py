"""`sparkmirror group-offset-sync` moves a group by the checkpoints of a mirror that does not sync offsets."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.cli.main import main
from sparkmirror.clusters import LocalCluster
from sparkmirror.offsets.wire_records import Checkpoint
from tests.support.broker_data import Keyed, append, create_topic, latest, numbered
from tests.support.mirror import COMMAND, running_mirror
from tests.support.waiting import await_value, patience
from tests.system.consumer_groups import commit, committed, consuming, read

ALIAS: Final = "tools"
TOPIC: Final = "tool.orders"
REMOTE: Final = f"{ALIAS}.{TOPIC}"
GROUP: Final = "tool-billing"
HALF: Final = "tool-half"
RECORDS: Final = 60
WAIT_S: Final = 30.0


@pytest.fixture(scope="module")
def target(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    """A target with checkpoints of two groups that have read 20 records of each source partition."""
    create_topic(source_cluster.bootstrap_servers, TOPIC, partitions=2)
    for partition in range(2):
        append(source_cluster, TOPIC, numbered(RECORDS, first=1000 * partition), partition=partition)
    for group in (GROUP, HALF):
        commit(source_cluster, group, TOPIC, {0: 20, 1: 20})
    properties = {
        "clusters": f"{ALIAS}, B",
        f"{ALIAS}.bootstrap.servers": source_cluster.bootstrap_servers,
        "B.bootstrap.servers": target_cluster.bootstrap_servers,
        f"{ALIAS}->B.enabled": "true",
        f"{ALIAS}->B.topics": TOPIC,
        f"{ALIAS}->B.groups": "tool-.*",
        "emit.checkpoints.interval.seconds": "1",
        "heartbeats.replication.enabled": "false",
    }
    with running_mirror(tmp_path_factory.mktemp("tool") / "mirror", properties) as mirror:
        mirror.await_log("writes checkpoints of [0-9]+ of")
        # The first ones may be of offset syncs before the newest.
        there = {(group, partition): 20 for group in (GROUP, HALF) for partition in range(2)}
        await_value(lambda: checkpointed(target_cluster) == there, WAIT_S, mirror.log_text)
        yield target_cluster
        mirror.stop()


def checkpointed(cluster: LocalCluster) -> dict[tuple[str, int], int]:
    decoded = [
        Checkpoint.decode(key or b"", value or b"")
        for key, value in latest(cluster, f"{ALIAS}.checkpoints.internal").items()
    ]
    return {(each.group, each.topic_partition.partition): each.downstream_offset for each in decoded}


@pytest.fixture
def file(target: LocalCluster, tmp_path: Path) -> Path:
    path = tmp_path / "consumer.properties_sync_dest"
    path.write_text(f"BOOTSTRAP_SERVERS_CONFIG={target.bootstrap_servers}\nGROUP_ID_CONFIG=mm2OffsetSync\n")
    return path


def tool(file: Path, group: str, *arguments: str) -> list[str]:
    return ["group-offset-sync", "-cgi", group, "-src", ALIAS, "-pfp", str(file), *arguments]


def test_group_continues_at_its_next_record(
    target: LocalCluster, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(tool(file, GROUP, "--dry-run")) == 0
    assert f"group {GROUP} would continue at {REMOTE}-0 offset 20 (tools: 20)" in capsys.readouterr().err
    assert committed(target, GROUP, REMOTE, 2) == {}
    assert main(tool(file, GROUP, "--once")) == 0
    assert committed(target, GROUP, REMOTE, 2) == {0: 20, 1: 20}
    with consuming(target, GROUP) as consumer:
        consumer.subscribe([REMOTE])
        rest: list[Keyed] = read(consumer, 2 * (RECORDS - 20))
        assert sorted(rest) == sorted(numbered(40, first=20) + numbered(40, first=1020))
        capsys.readouterr()
        assert main(tool(file, GROUP, "--once")) == 1, "it has members now"
        assert "has members on the target cluster: its offsets are not changed" in capsys.readouterr().err
    ahead = {0: RECORDS, 1: RECORDS}
    assert committed(target, GROUP, REMOTE, 2) == ahead
    assert main(tool(file, GROUP, "-int", "1", "-rf", "1")) == 0
    assert committed(target, GROUP, REMOTE, 2) == ahead, "no group is set back"
    assert f"group {GROUP} is at its 2 checkpoints, or ahead of them" in capsys.readouterr().err


def test_partition_without_a_committed_offset_gets_one(target: LocalCluster, file: Path) -> None:
    """The Java tool fails in this case with a NullPointerException and does not sync again."""
    commit(target, HALF, REMOTE, {0: 30})
    assert main(tool(file, HALF, "--once")) == 0
    assert committed(target, HALF, REMOTE, 2) == {0: 30, 1: 20}


@pytest.mark.parametrize("asked", ["--once", "--dry-run"])
def test_missing_checkpoints_exit_with_1(
    target: LocalCluster, file: Path, asked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(tool(file, "tool-nobody", asked)) == 1
    assert "group tool-nobody has no checkpoint from tools: " in capsys.readouterr().err
    with_other_policy = tool(file, GROUP, asked, "-rps", "-")
    assert main(with_other_policy) == 1
    assert "tools-checkpoints-internal" in capsys.readouterr().err


def test_sigterm_while_waiting_exits_with_0(target: LocalCluster, file: Path) -> None:
    command = [COMMAND, *tool(file, HALF, "-int", "600", "--log-format", "json")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            assert "tool-half" in process.stderr.readline()
            os.kill(process.pid, signal.SIGTERM)
            assert process.wait(WAIT_S * patience()) == 0
        finally:
            process.kill()


def test_unreachable_cluster_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "dest.properties"
    file.write_text("BOOTSTRAP_SERVERS_CONFIG=127.0.0.1:1\n")
    assert main(tool(file, GROUP, "--once")) == 1
    assert f"group {GROUP}: " in capsys.readouterr().err
