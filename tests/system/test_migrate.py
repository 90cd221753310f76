"""`sparkmirror migrate` beside a running mirror moves a group to its next record on the target, and back.

The target's topic has records of another producer before the mirror's first one, so no offsets are equal.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.request import urlopen

import pytest

from sparkmirror.cli.main import main
from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import append, create_topic, keyed_of, numbered
from tests.support.mirror import COMMAND, Mirror, running_mirror
from tests.support.progress import await_caught_up
from tests.support.waiting import await_value
from tests.system.consumer_groups import commit, committed, consuming, read

ALIAS: Final = "mover"
TOPIC: Final = "moved.orders"
EMPTY: Final = "moved.quiet"
"""A topic to which nothing is ever written."""
KEPT: Final = "moved.kept"
"""A topic whose offsets are preserved."""
REMOTE: Final = f"{ALIAS}.{TOPIC}"
REMOTE_KEPT: Final = f"{ALIAS}.{KEPT}"
AHEAD: Final = 7
RECORDS: Final = 50
READ: Final = 33
WAIT_S: Final = 30.0


class MigratedMirror(NamedTuple):
    source: LocalCluster
    target: LocalCluster
    mirror: Mirror

    def command(self, action: str, *arguments: str) -> list[str]:
        return ["migrate", action, str(self.mirror.file), *arguments]

    def consumers(self, group: str, *arguments: str) -> list[str]:
        return self.command("consumers", "--group", group, *arguments)


@pytest.fixture(scope="module")
def migrated(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MigratedMirror]:
    create_topic(source_cluster.bootstrap_servers, TOPIC, partitions=2)
    create_topic(source_cluster.bootstrap_servers, KEPT, partitions=2)
    create_topic(source_cluster.bootstrap_servers, EMPTY)
    create_topic(target_cluster.bootstrap_servers, REMOTE, partitions=2)
    for partition in range(2):
        append(source_cluster, TOPIC, numbered(RECORDS, first=1000 * partition), partition=partition)
        append(source_cluster, KEPT, numbered(RECORDS, first=1000 * partition), partition=partition)
        append(target_cluster, REMOTE, numbered(AHEAD, first=-AHEAD), partition=partition)
    properties = {
        "clusters": f"{ALIAS}, B",
        f"{ALIAS}.bootstrap.servers": source_cluster.bootstrap_servers,
        "B.bootstrap.servers": target_cluster.bootstrap_servers,
        f"{ALIAS}->B.enabled": "true",
        f"{ALIAS}->B.topics": "moved\\..*",
        f"{ALIAS}->B.emit.heartbeats.enabled": "true",
        f"{ALIAS}->B.offsets.preserve": "true",
        f"{ALIAS}->B.offsets.preserve.topics": KEPT,
        "heartbeats.replication.enabled": "false",
        "tasks.max": "1",
    }
    folder = tmp_path_factory.mktemp("moved") / "mirror"
    with running_mirror(folder, properties, "--http", "127.0.0.1:0") as mirror:
        await_caught_up(source_cluster, target_cluster, ALIAS, [TOPIC, KEPT])
        yield MigratedMirror(source_cluster, target_cluster, mirror)


@contextmanager
def running(arguments: list[str], log: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the command in a process of its own, with stderr in a file."""
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def await_stderr(log: Path, text: str) -> None:
    await_value(lambda: text in log.read_text() or None, WAIT_S, log.read_text)


def ended(process: subprocess.Popen[str], log: Path) -> dict[str, Any]:
    """Wait for the end; returns the printed JSON."""
    out, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, log.read_text()
    printed: dict[str, Any] = json.loads(out)
    return printed


def steps(printed: dict[str, Any]) -> dict[str, str]:
    (migration,) = printed["migrations"]
    return {step["step"]: step["state"] for step in migration["steps"]}


def printed_by(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*arguments, "-o", "json"]) == code
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def test_group_moves_continues_exactly_and_moves_back(
    migrated: MigratedMirror, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target, _ = migrated
    group, log = "moved-billing", tmp_path / "comments"
    commit(source, group, TOPIC, {0: 0, 1: 0})
    commit(target, group, REMOTE, {1: 3})
    with consuming(source, group) as consumer:
        consumer.subscribe([TOPIC])
        before = read(consumer, READ)
        plan = printed_by(migrated.consumers(group), capsys)
        expected = {"check": "done", "wait": "waiting", "mirror": "done", "sync": "to do", "verify": "to do"}
        assert steps(plan) == expected
        assert committed(target, group, REMOTE, 2) == {1: 3}, "a plan writes nothing"
        with running(migrated.consumers(group, "--execute", "-o", "json"), log) as process:
            await_stderr(
                log,
                f"it has members on {ALIAS} (rdkafka at 127.0.0.1): stop its consumers there",
            )
            before += read(consumer, 5)
            consumer.close()
            printed = ended(process, log)
    assert printed["done"]
    assert set(steps(printed).values()) == {"done"}
    on_source = committed(source, group, TOPIC, 2)
    on_target = {partition: offset + AHEAD for partition, offset in on_source.items()}
    assert sum(on_source.values()) == READ + 5
    assert committed(target, group, REMOTE, 2) == on_target
    (migration,) = printed["migrations"]
    for row in migration["partitions"]:
        assert (row["target_offset"], row["target_lag"]) == (row["source_offset"] + AHEAD, row["source_lag"])
    with consuming(target, group, "consumer") as consumer:
        consumer.subscribe([REMOTE])
        after = read(consumer, 2 * RECORDS - READ - 5)
        assert sorted(before + after) == sorted(numbered(RECORDS) + numbered(RECORDS, first=1000))
        again = printed_by(migrated.consumers(group), capsys)
        assert set(steps(again).values()) == {"done"}, "nobody is asked when there is nothing to do"
        assert main(migrated.consumers(group, "--roll-back", "--execute", "--timeout", "1")) == 1
        assert "it has members on B" in capsys.readouterr().err
    assert main(migrated.consumers(group, "--roll-back", "--execute")) == 0
    assert committed(target, group, REMOTE, 2) == {1: 3}
    assert main(migrated.consumers(group, "--roll-back")) == 0
    assert "no offset that a migration wrote on B is left" in capsys.readouterr().out
    assert committed(source, group, TOPIC, 2) == on_source


def test_second_migration_keeps_the_state_before_the_first(migrated: MigratedMirror) -> None:
    source, target, _ = migrated
    group = "moved-twice"
    commit(target, group, REMOTE, {0: 2})
    for offset in (10, 20):
        commit(source, group, TOPIC, {0: offset})
        assert main(migrated.consumers(group, "--execute")) == 0
        assert committed(target, group, REMOTE, 2) == {0: offset + AHEAD}
    assert main(migrated.consumers(group, "--roll-back", "--execute")) == 0
    assert committed(target, group, REMOTE, 2) == {0: 2}


def test_offset_of_an_empty_partition_is_migrated(migrated: MigratedMirror) -> None:
    commit(migrated.source, "moved-quiet", EMPTY, {0: 0})
    assert main(migrated.consumers("moved-quiet", "--execute")) == 0
    assert committed(migrated.target, "moved-quiet", f"{ALIAS}.{EMPTY}", 1) == {0: 0}


def test_impossible_migration_ends_with_1_and_the_reason(
    migrated: MigratedMirror, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(migrated.consumers("moved-nobody", "--execute")) == 1
    assert f"there is no group moved-nobody on {ALIAS}" in capsys.readouterr().err
    assert main(migrated.command("producers", "--topic", "moved-nothing", "--execute")) == 1
    assert f"no topic that {ALIAS}->B mirrors" in capsys.readouterr().err
    with consuming(migrated.source, "moved-busy", "consumer") as consumer:
        consumer.subscribe([TOPIC])
        read(consumer, 1)
        assert main(migrated.consumers("moved-busy", "--execute", "--timeout", "1")) == 1
        assert f"not within 1 s: it has members on {ALIAS} (" in capsys.readouterr().err
        assert main(migrated.consumers("moved-busy")) == 0
        assert "Nothing was changed: --execute carries it out." in capsys.readouterr().err
    assert committed(migrated.target, "moved-busy", REMOTE, 2) == {}


def test_producers_can_move_once_all_their_records_are_mirrored(
    migrated: MigratedMirror, tmp_path: Path
) -> None:
    log, wanted = tmp_path / "comments", ["--topic", TOPIC, "--still-for", "2", "--execute", "-o", "json"]
    with running(migrated.command("producers", *wanted), log) as process:
        await_stderr(log, f"stop the producers of {TOPIC} on {ALIAS}")
        written = 0
        while f"records are still written to {TOPIC}-1" not in log.read_text():
            assert process.poll() is None, log.read_text()
            append(migrated.source, TOPIC, numbered(1, first=5000 + written), partition=1)
            written += 1
        printed = ended(process, log)
    (migration,) = printed["migrations"]
    assert set(steps(printed).values()) == {"done"}
    assert [row["source_end"] for row in migration["partitions"]] == [RECORDS, RECORDS + written]
    for row in migration["partitions"]:
        assert row["mirrored_to"] == row["source_end"]
        assert row["target_end"] == row["target_next"] == row["source_end"] + AHEAD
    (heartbeat,) = (step for step in migration["steps"] if step["step"] == "heartbeat")
    assert "the last one on B was emitted" in heartbeat["text"]


def test_promoted_copies_get_nothing_of_the_flow_any_more(
    migrated: MigratedMirror, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target, mirror = migrated
    group, log = "moved-reader", tmp_path / "comments"
    commit(source, group, KEPT, {0: 10, 1: RECORDS})
    command = ["promote", str(mirror.file), "--flow", f"{ALIAS}->B", "--topic", KEPT]
    plan = printed_by(command, capsys)
    expected = {"check": "done", "start": "done", "stop": "waiting", "drain": "done"}
    assert steps(plan) == expected | dict.fromkeys(("switch", "groups", "verify"), "to do")
    assert committed(target, group, REMOTE_KEPT, 2) == {}, "a plan writes nothing"
    with running([*command, "--execute", "--still-for", "2", "-o", "json"], log) as process:
        await_stderr(log, f"stop the producers of {KEPT} on {ALIAS}")
        append(source, KEPT, numbered(3, first=RECORDS), partition=0)
        printed = ended(process, log)
    assert set(steps(printed).values()) == {"done"}
    (migration,) = printed["migrations"]
    assert [row["parted_at"] for row in migration["partitions"]] == [RECORDS + 3, RECORDS]
    assert [row["target_end"] for row in migration["partitions"]] == [RECORDS + 4, RECORDS + 1]
    assert committed(target, group, REMOTE_KEPT, 2) == {0: 10, 1: RECORDS}
    mirror.await_log(f"{KEPT} is promoted: it is copied no more")
    append(source, KEPT, numbered(2, first=7000), partition=0)
    append(target, REMOTE_KEPT, numbered(2, first=8000), partition=0)
    append(source, TOPIC, numbered(2, first=7000), partition=1)
    await_caught_up(source, target, ALIAS, [TOPIC])
    assert keyed_of(target, REMOTE_KEPT, 0) == [*numbered(RECORDS + 3), *numbered(2, first=8000)]
    again = printed_by([*command, "--execute"], capsys)
    assert f"more on {ALIAS}, which is not on B: {KEPT}-0 (2 offsets)" in str(again)
    assert main([*command, "--roll-back", "--execute"]) == 1
    assert f"{KEPT} can't be copied again: the flow is fenced there" in capsys.readouterr().err


def test_pages_and_view_show_what_was_migrated(migrated: MigratedMirror) -> None:
    """The topic that the test before has promoted, and a group that moves while the page is open."""
    group = "moved-and-seen"
    commit(migrated.source, group, TOPIC, {0: 20})
    commit(migrated.target, group, REMOTE, {0: 3})
    assert main(migrated.consumers(group, "--execute")) == 0
    url = migrated.mirror.await_log("pages are at http://").rpartition(" ")[2].removesuffix("ui/")

    def get(path: str) -> str:
        with urlopen(url + path, timeout=10) as response:
            text: str = response.read().decode()
            return text

    def seen() -> dict[str, Any]:
        (flow,) = json.loads(get(f"mirror?flow={ALIAS}-%3EB&migrations=true"))["flows"]
        return {it["name"]: it for it in flow["migrations"]["items"]}

    found = await_value(lambda: found if group in (found := seen()) else None, WAIT_S, lambda: str(seen()))
    assert found[group]["partitions"] == [
        {"topic": REMOTE, "partition": 0, "offset": 20 + AHEAD, "earlier_offset": 3}
    ]
    assert (found[KEPT]["kind"], found[KEPT]["stage"]) == ("promotion", "promoted")
    partings = [(it["parting"], it["source_end"]) for it in found[KEPT]["partitions"]]
    assert partings == [(RECORDS + 3, RECORDS + 3), (RECORDS, RECORDS)]
    page = get(f"ui/migrations?flow={ALIAS}-%3EB")
    assert f"at {20 + AHEAD}, 3 before" in page
    assert f"partition 1 from {RECORDS} on, where the source ended at {RECORDS}" in page


def test_topics_without_preserved_offsets_are_not_promoted(
    migrated: MigratedMirror, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["promote", str(migrated.mirror.file), "--topic", TOPIC, "--execute"]) == 1
    assert f"no topic like {TOPIC} has preserved offsets in {ALIAS}->B" in capsys.readouterr().err


def test_migration_fails_without_a_running_mirror(
    migrated: MigratedMirror, capsys: pytest.CaptureFixture[str]
) -> None:
    """This test is the last one, because it stops the mirror."""
    migrated.mirror.stop()
    append(migrated.source, TOPIC, numbered(5, first=9000))
    commit(migrated.source, "moved-late", TOPIC, {0: RECORDS + 5})
    assert main(migrated.consumers("moved-late", "--execute", "--timeout", "1")) == 1
    assert f"the mirror has not copied, or written an offset sync for: {TOPIC}-0" in capsys.readouterr().err
    assert committed(migrated.target, "moved-late", REMOTE, 2) == {}
    producers = migrated.command("producers", "--topic", TOPIC, "--still-for", "1", "--timeout", "2")
    assert main([*producers, "--execute"]) == 1
    assert "the mirror has to copy 5 more records" in capsys.readouterr().err
