"""How a mirror ends, and what it survives: signals, killed workers, a killed JVM, a killed driver."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack

import psutil
import pytest

from tests.system.broker_data import append, keyed, numbered
from tests.system.dual_run import Sides
from tests.system.mirror import Mirror, await_value, running_mirror
from tests.system.mixed_data import create_topic
from tests.system.progress import await_caught_up

ENDINGS = ("stopped", "hurried", "orphaned", "beheaded")
"""One mirror for each, also its source's alias; started together, because starting is what takes long."""


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
    started = {}
    with ExitStack() as stack:
        for alias in ENDINGS:
            create_topic(sides.source.bootstrap_servers, topic(alias), partitions=2)
            for partition in range(2):
                append(sides.source, topic(alias), numbered(500), partition=partition)
            started[alias] = stack.enter_context(running_mirror(folder / alias, properties(sides, alias)))
        for alias, mirror in started.items():
            mirror.await_log("started in")
            await_caught_up(sides.source, sides.target, alias, [topic(alias)])
        yield started


def test_a_second_signal_ends_it_at_once(mirrors: dict[str, Mirror]) -> None:
    mirror = mirrors["hurried"]
    mirror.send(signal.SIGTERM)
    mirror.await_log("stopping in order")
    began = time.monotonic()
    mirror.send(signal.SIGTERM)
    assert mirror.wait(timeout_s=5) == 128 + signal.SIGTERM
    assert time.monotonic() - began < 1
    mirror.assert_nothing_left(within_s=8)


def test_a_killed_driver_leaves_nothing_behind(mirrors: dict[str, Mirror]) -> None:
    mirror = mirrors["orphaned"]
    assert len(mirror.workers()) == 2
    mirror.send(signal.SIGKILL)
    mirror.wait(timeout_s=5)
    mirror.assert_nothing_left(within_s=8)


def test_without_its_jvm_the_driver_ends_with_an_error(mirrors: dict[str, Mirror]) -> None:
    mirror = mirrors["beheaded"]
    mirror.jvm().kill()
    assert mirror.wait(timeout_s=20) == 2
    mirror.assert_nothing_left(within_s=8)
    log = mirror.log_text()
    assert "Spark's JVM ended unexpectedly" in log
    assert "Traceback" not in log


def test_killed_workers_are_replaced_and_nothing_is_lost(mirrors: dict[str, Mirror], sides: Sides) -> None:
    mirror = mirrors["stopped"]
    killed = mirror.workers()
    for worker in killed:
        append(sides.source, topic("stopped"), numbered(500, first=500))
        worker.kill()
        append(sides.source, topic("stopped"), numbered(500, first=1000))
    await_caught_up(sides.source, sides.target, "stopped", [topic("stopped")])
    replaced = await_value(lambda: alive(mirror, 2), 10, lambda: "no new workers")
    assert not {worker.pid for worker in replaced} & {worker.pid for worker in killed}
    expected = set(keyed(sides.source, topic("stopped")))
    assert set(keyed(sides.target, f"stopped.{topic('stopped')}")) == expected


def alive(mirror: Mirror, count: int) -> list[psutil.Process] | None:
    workers = [worker for worker in mirror.workers() if worker.is_running()]
    return workers if len(workers) == count else None


def test_sigint_stops_it_in_order(mirrors: dict[str, Mirror]) -> None:
    mirrors["stopped"].stop(signal.SIGINT)


@pytest.mark.parametrize("alias", ENDINGS)
def test_the_terminal_shows_our_lines_only(mirrors: dict[str, Mirror], alias: str) -> None:
    ours = mirrors[alias].log_text().splitlines()
    assert ours
    for line in ours:
        clock, level, *_ = line.split()
        assert clock.count(":") == 2, line
        assert level in {"INFO", "WARNING", "ERROR"}, line
    assert "WARN" in mirrors[alias].spark_log.read_text(), "Spark's noise has gone elsewhere"
