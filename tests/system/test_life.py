"""A mirror's process under signals, killed workers, a killed JVM and a killed driver."""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import psutil
import pytest

from sparkmirror.domain.ids import TopicPartition
from tests.support.broker_data import append, create_topic, end_offsets, keyed, latest, numbered
from tests.support.mirror import START_TIMEOUT_S, Mirror, running_mirror
from tests.support.progress import await_caught_up
from tests.support.waiting import await_value, patience
from tests.system.dual_run import Sides, position_key

COPYING: Final = {"stopped": (), "orphaned": (), "jvmless": ("--log-format", "json")}
IDLE: Final = ("hurried", "hungup")
"""Mirrors by source alias, which says how they end. All are started together, because that takes long. Idle
ones have no topic and no worker."""
GONE_WITHIN_S: Final = 10


def topic(alias: str) -> str:
    return f"life.{alias}"


def properties(sides: Sides, alias: str) -> dict[str, str]:
    return {
        "clusters": f"{alias}, B",
        f"{alias}.bootstrap.servers": sides.source.bootstrap_servers,
        "B.bootstrap.servers": sides.target.bootstrap_servers,
        f"{alias}->B.enabled": "true",
        f"{alias}->B.topics": topic(alias) if alias in COPYING else "",
        "heartbeats.replication.enabled": "false",
        "tasks.max": "2",
    }


@pytest.fixture(scope="module")
def mirrors(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Mirror]]:
    folder = tmp_path_factory.mktemp("life")
    with ExitStack() as stack:
        started = {}
        for alias in (*COPYING, *IDLE):
            create_topic(sides.source.bootstrap_servers, topic(alias), partitions=2)
            arguments = COPYING.get(alias, ())
            running = running_mirror(folder / alias, properties(sides, alias), *arguments)
            started[alias] = stack.enter_context(running)
        for mirror in started.values():
            mirror.await_log("started in")
        for alias in COPYING:
            await_workers(started[alias])
        yield started


def await_workers(mirror: Mirror) -> list[psutil.Process]:
    def two_workers() -> list[psutil.Process] | None:
        workers = [worker for worker in mirror.workers() if worker.is_running()]
        return workers if len(workers) == 2 else None

    return await_value(two_workers, START_TIMEOUT_S, lambda: f"there are not two workers: {mirror.workers()}")


def test_second_signal_ends_the_mirror_at_once(mirrors: dict[str, Mirror]) -> None:
    mirror = mirrors["hurried"]
    began = time.monotonic()
    # Both are sent before the first is handled; Python handles pending signals by number.
    mirror.send(signal.SIGTERM)
    mirror.send(signal.SIGINT)
    assert mirror.wait(timeout_s=5 * patience()) in {128 + signal.SIGTERM, 128 + signal.SIGINT}
    assert time.monotonic() - began < patience()
    mirror.assert_nothing_left(GONE_WITHIN_S)


def test_sighup_stops_the_mirror_in_order(mirrors: dict[str, Mirror]) -> None:
    mirror = mirrors["hungup"]
    mirror.send(signal.SIGHUP)
    mirror.assert_stopped()
    assert "SIGHUP: stopping in order" in mirror.log_text()
    mirror.assert_nothing_left(GONE_WITHIN_S)


def test_signal_during_the_start_leaves_no_process(sides: Sides, tmp_path: Path) -> None:
    with running_mirror(tmp_path / "mirror", properties(sides, "hurried")) as mirror:
        mirror.await_log("flows: ")
        await_value(lambda: mirror.jvms() or None, START_TIMEOUT_S, lambda: "no JVM")
        mirror.send(signal.SIGTERM)
        assert mirror.wait(timeout_s=10) != 0
        mirror.assert_nothing_left(GONE_WITHIN_S)


def test_killed_driver_leaves_no_process(mirrors: dict[str, Mirror]) -> None:
    mirror = mirrors["orphaned"]
    mirror.send(signal.SIGKILL)
    assert mirror.wait(timeout_s=5 * patience()) == -signal.SIGKILL
    mirror.assert_nothing_left(GONE_WITHIN_S)


def test_driver_exits_with_an_error_when_its_jvm_is_killed(mirrors: dict[str, Mirror]) -> None:
    mirror = mirrors["jvmless"]
    mirror.jvm().kill()
    assert mirror.wait(timeout_s=20) == 2
    mirror.assert_nothing_left(GONE_WITHIN_S)
    assert "Spark's JVM ended unexpectedly" in mirror.log_text()
    assert "Traceback" not in mirror.log_text()


def test_offsets_topic_that_is_not_compacted_is_refused_as_by_java(sides: Sides, tmp_path: Path) -> None:
    alias, offsets = "expiring", "mm2-offsets.expiring.internal"
    expiring = {"cleanup.policy": "delete"}
    create_topic(sides.target.bootstrap_servers, offsets, partitions=25, config=expiring)
    with running_mirror(tmp_path / alias, properties(sides, alias)) as mirror:
        assert mirror.wait(START_TIMEOUT_S) == 2
        refused = mirror.await_log("is required to have 'cleanup.policy=compact'")
    assert f"Topic '{offsets}'" in refused
    assert "'cleanup.policy=delete' on B" in refused
    assert f"--entity-name {offsets} --add-config cleanup.policy=compact" in refused


def test_killed_workers_are_replaced_and_every_record_is_copied_once(
    mirrors: dict[str, Mirror], sides: Sides
) -> None:
    mirror, name = mirrors["stopped"], topic("stopped")
    killed = await_workers(mirror)
    for number, worker in enumerate(killed):
        for partition in range(2):
            append(sides.source, name, numbered(500, first=1000 * number), partition=partition)
        worker.kill()
        for partition in range(2):
            append(sides.source, name, numbered(500, first=1000 * number + 500), partition=partition)
    await_caught_up(sides.source, sides.target, "stopped", [name])
    replaced = {worker.pid for worker in await_workers(mirror)}
    assert replaced.isdisjoint(worker.pid for worker in killed)
    assert sorted(keyed(sides.target, f"stopped.{name}")) == sorted(2 * numbered(2000))


def test_ctrl_c_stops_the_mirror_in_order_and_stores_the_last_positions(
    mirrors: dict[str, Mirror], sides: Sides
) -> None:
    mirror, name, remote = mirrors["stopped"], topic("stopped"), f"stopped.{topic('stopped')}"
    before = sum(end_offsets(sides.target, [remote]).values())
    for partition in range(2):
        append(sides.source, name, numbered(10, first=2000), partition=partition)
    await_value(
        lambda: sum(end_offsets(sides.target, [remote]).values()) == before + 20, 10, lambda: "not copied"
    )
    mirror.press_ctrl_c()
    mirror.assert_stopped()
    stored = latest(sides.target, "mm2-offsets.stopped.internal")
    assert stored == {
        position_key(TopicPartition(name, partition), "stopped"): b'{"offset":2009}' for partition in range(2)
    }
    assert "stopped; the last positions are written" in mirror.log_text()


@pytest.mark.parametrize("alias", ["stopped", "hurried", "hungup", "orphaned"])
def test_terminal_shows_sparkmirrors_log_lines_only(mirrors: dict[str, Mirror], alias: str) -> None:
    ours = mirrors[alias].log_text().splitlines()
    assert ours
    for line in ours:
        date, clock, level, *_ = line.split()
        assert (date.count("-"), clock.count(":")) == (2, 2), line
        assert level in {"INFO", "WARNING", "ERROR"}, line
    assert "WARN" in mirrors[alias].spark_log.read_text(), "Spark's noise has gone elsewhere"


def test_json_lines_name_flow_and_connector(mirrors: dict[str, Mirror]) -> None:
    lines = [json.loads(line) for line in mirrors["jvmless"].log_text().splitlines()]
    assert all(line["logger"].startswith("sparkmirror.") for line in lines)
    assert all({"time", "level", "message"} <= line.keys() for line in lines)
    created = [line for line in lines if line["message"] == "created jvmless.life.jvmless on B"]
    assert [(line["flow"], line["connector"]) for line in created] == [
        ("jvmless->B", "MirrorSourceConnector")
    ]
