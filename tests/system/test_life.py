"""How a mirror ends, and what it survives: signals, killed workers, a killed JVM, a killed driver."""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import psutil
import pytest

from sparkmirror.domain.ids import TopicPartition
from tests.system.broker_data import append, end_offsets, keyed, latest, numbered
from tests.system.dual_run import Sides, position_key
from tests.system.mirror import Mirror, await_value, running_mirror
from tests.system.mixed_data import create_topic
from tests.system.progress import await_caught_up

ENDINGS: Final = {
    "stopped": (),
    "hurried": (),
    "orphaned": (),
    "beheaded": ("--log-format", "json"),
}
"""One mirror for each, also its source's alias; started together, because starting is what takes long."""
GONE_WITHIN_S: Final = 8


def topic(alias: str) -> str:
    return f"life.{alias}"


def properties(sides: Sides, alias: str) -> dict[str, str]:
    return {
        "clusters": f"{alias}, B",
        f"{alias}.bootstrap.servers": sides.source.bootstrap_servers,
        "B.bootstrap.servers": sides.target.bootstrap_servers,
        f"{alias}->B.enabled": "true",
        f"{alias}->B.topics": topic(alias),
        "heartbeats.replication.enabled": "false",
        "tasks.max": "2",
    }


@pytest.fixture(scope="module")
def mirrors(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Mirror]]:
    folder = tmp_path_factory.mktemp("life")
    with ExitStack() as stack:
        started = {}
        for alias, arguments in ENDINGS.items():
            create_topic(sides.source.bootstrap_servers, topic(alias), partitions=2)
            running = running_mirror(folder / alias, properties(sides, alias), *arguments)
            started[alias] = stack.enter_context(running)
        for mirror in started.values():
            mirror.await_log("generation 1 copies 2 partitions in 2 tasks")
        for mirror in started.values():
            await_workers(mirror)
        yield started


def await_workers(mirror: Mirror) -> list[psutil.Process]:
    def both() -> list[psutil.Process] | None:
        workers = [worker for worker in mirror.workers() if worker.is_running()]
        return workers if len(workers) == 2 else None

    return await_value(both, 30, lambda: f"there are not two workers: {mirror.workers()}")


def test_a_second_signal_ends_it_at_once(mirrors: dict[str, Mirror]) -> None:
    mirror = mirrors["hurried"]
    mirror.send(signal.SIGTERM)
    mirror.await_log("stopping in order")
    began = time.monotonic()
    mirror.send(signal.SIGTERM)
    assert mirror.wait(timeout_s=5) == 128 + signal.SIGTERM
    assert time.monotonic() - began < 1
    mirror.assert_nothing_left(GONE_WITHIN_S)


def test_a_killed_driver_leaves_nothing_behind(mirrors: dict[str, Mirror]) -> None:
    mirror = mirrors["orphaned"]
    mirror.send(signal.SIGKILL)
    assert mirror.wait(timeout_s=5) == -signal.SIGKILL
    mirror.assert_nothing_left(GONE_WITHIN_S)


def test_without_its_jvm_the_driver_ends_with_an_error(mirrors: dict[str, Mirror]) -> None:
    mirror = mirrors["beheaded"]
    mirror.jvm().kill()
    assert mirror.wait(timeout_s=20) == 2
    mirror.assert_nothing_left(GONE_WITHIN_S)
    assert "Spark's JVM ended unexpectedly" in mirror.log_text()
    assert "Traceback" not in mirror.log_text()


def test_killed_workers_are_replaced_and_nothing_is_lost(mirrors: dict[str, Mirror], sides: Sides) -> None:
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
    # Whatever a worker had not stored comes twice: at least once, and no record may be missing.
    assert set(keyed(sides.target, f"stopped.{name}")) == set(numbered(2000))


def test_ctrl_c_stops_it_in_order_and_stores_the_last_positions(
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


@pytest.mark.parametrize("alias", [alias for alias, arguments in ENDINGS.items() if not arguments])
def test_the_terminal_shows_our_lines_only(mirrors: dict[str, Mirror], alias: str) -> None:
    ours = mirrors[alias].log_text().splitlines()
    assert ours
    for line in ours:
        clock, level, *_ = line.split()
        assert clock.count(":") == 2, line
        assert level in {"INFO", "WARNING", "ERROR"}, line
    assert "WARN" in mirrors[alias].spark_log.read_text(), "Spark's noise has gone elsewhere"


def test_json_lines_say_who_speaks(mirrors: dict[str, Mirror]) -> None:
    lines = [json.loads(line) for line in mirrors["beheaded"].log_text().splitlines()]
    assert all(line["logger"].startswith("sparkmirror.") for line in lines)
    assert all({"time", "level", "message"} <= line.keys() for line in lines)
    created = [line for line in lines if line["message"] == "created beheaded.life.beheaded"]
    assert [(line["flow"], line["connector"]) for line in created] == [
        ("beheaded->B", "MirrorSourceConnector")
    ]
