"""A mirror leaves nothing after signals, a killed driver, a killed JVM, and a start that is refused."""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.support.broker_data import create_topic
from tests.support.mirror import START_TIMEOUT_S, Mirror, running_mirror
from tests.support.waiting import await_value, patience
from tests.system.dual_run import Sides
from tests.system.small_mirror import await_workers, properties, topic

COPYING: Final = {"orphaned": (), "jvmless": ("--log-format", "json")}
IDLE: Final = ("hurried", "hungup")
"""Mirrors by source alias, which says how they end. All are started together, because that takes long. Idle
ones have no topic and no worker."""
GONE_WITHIN_S: Final = 10


@pytest.fixture(scope="module")
def mirrors(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Mirror]]:
    folder = tmp_path_factory.mktemp("life")
    with ExitStack() as stack:
        started = {}
        for alias in (*COPYING, *IDLE):
            create_topic(sides.source.bootstrap_servers, topic(alias), partitions=2)
            arguments = COPYING.get(alias, ())
            topics = topic(alias) if alias in COPYING else ""
            running = running_mirror(folder / alias, properties(sides, alias, topics), *arguments)
            started[alias] = stack.enter_context(running)
        for mirror in started.values():
            mirror.await_log("started in")
        for alias in COPYING:
            await_workers(started[alias])
        yield started


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


@pytest.mark.parametrize("moment", ["loading", "connecting", "starting Spark"])
def test_a_signal_during_the_start_stops_the_mirror_in_order_and_leaves_no_process(
    sides: Sides, tmp_path: Path, moment: str
) -> None:
    with running_mirror(tmp_path / "mirror", properties(sides, "hurried", "")) as mirror:
        if moment == "loading":
            time.sleep(0.3 * patience())
        else:
            mirror.await_log("flows: ")
        if moment == "starting Spark":
            await_value(lambda: mirror.jvms() or None, START_TIMEOUT_S, lambda: "no JVM")
        mirror.send(signal.SIGTERM)
        assert mirror.wait(timeout_s=10 * patience()) == 0
        mirror.assert_nothing_left(GONE_WITHIN_S)
        assert "stopped" in mirror.log_text()
        assert "started in" not in mirror.log_text()


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
    with running_mirror(tmp_path / alias, properties(sides, alias, "")) as mirror:
        assert mirror.wait(START_TIMEOUT_S) == 2
        refused = mirror.await_log("is required to have 'cleanup.policy=compact'")
    assert f"Topic '{offsets}'" in refused
    assert "'cleanup.policy=delete' on B" in refused
    assert f"--entity-name {offsets} --add-config cleanup.policy=compact" in refused


def test_json_lines_name_flow_and_connector(mirrors: dict[str, Mirror]) -> None:
    lines = [json.loads(line) for line in mirrors["jvmless"].log_text().splitlines()]
    assert all(line["logger"].startswith("sparkmirror.") for line in lines)
    assert all({"time", "level", "message"} <= line.keys() for line in lines)
    created = [line for line in lines if line["message"] == "created jvmless.life.jvmless on B"]
    assert [(line["flow"], line["connector"]) for line in created] == [
        ("jvmless->B", "MirrorSourceConnector")
    ]
