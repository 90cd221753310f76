"""Two processes with one file that do not share its flows: one copies, the other stands by and takes over."""

import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from sparkmirror.clusters import LocalCluster
from sparkmirror.machine import machine_name
from tests.support.broker_data import create_topic, keyed
from tests.support.mirror import Mirror, running_mirror
from tests.support.progress import await_caught_up
from tests.support.traffic import flowing

WAIT_S: Final = 60.0


@contextmanager
def two_processes(
    source: LocalCluster, target: LocalCluster, alias: str, folder: Path
) -> Iterator[list[Mirror]]:
    """Both run; the second was started when the first copied."""
    topic = topic_of(alias)
    create_topic(source.bootstrap_servers, topic, partitions=2)
    properties = {
        "clusters": f"{alias}, B",
        f"{alias}.bootstrap.servers": source.bootstrap_servers,
        "B.bootstrap.servers": target.bootstrap_servers,
        f"{alias}->B.enabled": "true",
        f"{alias}->B.topics": topic,
        "tasks.max": "1",
        "B.session.timeout.ms": "6000",
        "B.heartbeat.interval.ms": "1000",
        "heartbeats.replication.enabled": "false",  # of other tests
    }
    with ExitStack() as stack, flowing(source, topic, rate=100, partitions=2):
        first = stack.enter_context(running_mirror(folder / "first", properties))
        first.await_log("copy job 1 copies 2 partitions")
        await_caught_up(source, target, alias, [topic])
        second = stack.enter_context(running_mirror(folder / "second", properties))
        line = second.await_log(rf"stands by: process \d+ on {re.escape(machine_name())} runs this flow")
        assert any(f"process {process.pid} on" in line for process in first.processes())
        yield [first, second]


def topic_of(alias: str) -> str:
    return f"orders.{alias}"


def runs(alias: str) -> str:
    return rf"{alias}->B\] runs on this node"


def test_the_second_process_stands_by_and_takes_over_from_a_killed_one(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path
) -> None:
    with two_processes(source_cluster, target_cluster, "killed", tmp_path) as (first, second):
        for process in first.processes():
            process.kill()
        second.await_log(runs("killed"), WAIT_S)
        await_copied(second, source_cluster, target_cluster, "killed")
        assert len(re.findall(runs("killed"), second.log_text())) == 1


def test_the_second_process_takes_over_from_one_that_hangs_and_keeps_the_flow(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path
) -> None:
    with two_processes(source_cluster, target_cluster, "frozen", tmp_path) as (first, second):
        first.send(signal.SIGSTOP)
        try:
            second.await_log(runs("frozen"), WAIT_S)
            await_caught_up(source_cluster, target_cluster, "frozen", [topic_of("frozen")])
        finally:
            first.send(signal.SIGCONT)
        first.await_log("does not run on this node any more", WAIT_S)
        first.await_log("stands by: process", WAIT_S)
        await_copied(second, source_cluster, target_cluster, "frozen")
        assert len(re.findall(runs("frozen"), second.log_text())) == 1


def await_copied(mirror: Mirror, source: LocalCluster, target: LocalCluster, alias: str) -> None:
    topic = topic_of(alias)
    await_caught_up(source, target, alias, [topic])
    mirror.stop()
    copied = keyed(target, f"{alias}.{topic}")
    assert len(copied) == len(set(copied))
    assert set(copied) <= set(keyed(source, topic))
