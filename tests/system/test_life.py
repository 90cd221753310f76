"""A mirror whose workers are killed, and that is stopped in order."""

from collections.abc import Iterator
from typing import Final

import pytest

from sparkmirror.domain.ids import TopicPartition
from tests.support.broker_data import append, create_topic, end_offsets, keyed, latest, numbered
from tests.support.mirror import Mirror, running_mirror
from tests.support.progress import await_caught_up
from tests.support.waiting import await_value
from tests.system.dual_run import Sides, position_key
from tests.system.small_mirror import await_workers, properties, topic

ALIAS: Final = "stopped"
TOPIC: Final = topic(ALIAS)
COPY: Final = f"{ALIAS}.{TOPIC}"


@pytest.fixture(scope="module")
def mirror(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    create_topic(sides.source.bootstrap_servers, TOPIC, partitions=2)
    folder = tmp_path_factory.mktemp("life") / "mirror"
    with running_mirror(folder, properties(sides, ALIAS, TOPIC)) as started:
        started.await_log("started in")
        await_workers(started)
        yield started


def test_killed_workers_are_replaced_and_every_record_is_copied_once(mirror: Mirror, sides: Sides) -> None:
    killed = await_workers(mirror)
    for number, worker in enumerate(killed):
        for partition in range(2):
            append(sides.source, TOPIC, numbered(500, first=1000 * number), partition=partition)
        worker.kill()
        for partition in range(2):
            append(sides.source, TOPIC, numbered(500, first=1000 * number + 500), partition=partition)
    await_caught_up(sides.source, sides.target, ALIAS, [TOPIC])
    replaced = {worker.pid for worker in await_workers(mirror)}
    assert replaced.isdisjoint(worker.pid for worker in killed)
    assert sorted(keyed(sides.target, COPY)) == sorted(2 * numbered(2000))


def test_ctrl_c_stops_the_mirror_in_order_and_stores_the_last_positions(mirror: Mirror, sides: Sides) -> None:
    before = sum(end_offsets(sides.target, [COPY]).values())
    for partition in range(2):
        append(sides.source, TOPIC, numbered(10, first=2000), partition=partition)
    await_value(
        lambda: sum(end_offsets(sides.target, [COPY]).values()) == before + 20, 10, lambda: "not copied"
    )
    mirror.press_ctrl_c()
    mirror.assert_stopped()
    stored = latest(sides.target, "mm2-offsets.stopped.internal")
    assert stored == {
        position_key(TopicPartition(TOPIC, partition), ALIAS): b'{"offset":2009}' for partition in range(2)
    }
    assert "stopped; the last positions are written" in mirror.log_text()


def test_terminal_shows_sparkmirrors_log_lines_only(mirror: Mirror) -> None:
    ours = mirror.log_text().splitlines()
    assert ours
    for line in ours:
        date, clock, level, *_ = line.split()
        assert (date.count("-"), clock.count(":")) == (2, 2), line
        assert level in {"INFO", "WARNING", "ERROR"}, line
    assert "WARN" in mirror.spark_log.read_text(), "Spark's noise has gone elsewhere"
