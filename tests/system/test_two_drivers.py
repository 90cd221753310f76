"""Two processes with one file that do not share its flows: the newer one copies, and the other says so."""

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import Alias, ConnectorName
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.storage.progress import JobEpoch, ProgressReader
from tests.support.broker_data import create_topic, keyed
from tests.support.connections import connection
from tests.support.mirror import Mirror, running_mirror
from tests.support.progress import await_caught_up
from tests.support.traffic import flowing

ALIAS: Final = "doubled"
TOPIC: Final = "twice.orders"
FAILED: Final = 2
WAIT_S: Final = 60.0


@pytest.fixture
def drivers(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path
) -> Iterator[tuple[Mirror, Mirror]]:
    """Both run; the second was started when the first copied."""
    create_topic(source_cluster.bootstrap_servers, TOPIC, partitions=2)
    properties = {
        "clusters": f"{ALIAS}, B",
        f"{ALIAS}.bootstrap.servers": source_cluster.bootstrap_servers,
        "B.bootstrap.servers": target_cluster.bootstrap_servers,
        f"{ALIAS}->B.enabled": "true",
        f"{ALIAS}->B.topics": TOPIC,
        "tasks.max": "1",
        "heartbeats.replication.enabled": "false",  # of other tests
    }
    with ExitStack() as stack, flowing(source_cluster, TOPIC, rate=100, partitions=2):
        first = stack.enter_context(running_mirror(tmp_path / "first", properties))
        first.await_log("copy job 1 copies 2 partitions")
        await_caught_up(source_cluster, target_cluster, ALIAS, [TOPIC])
        second = stack.enter_context(running_mirror(tmp_path / "second", properties))
        second.await_log("copy job 2 copies 2 partitions")
        yield first, second


def newest_job(target: LocalCluster) -> JobEpoch:
    with closing(ProgressReader(connection(target), StateTopic.PROGRESS.of(Alias(ALIAS)))) as reader:
        reader.catch_up()
        return reader.job_epochs[ConnectorName("MirrorSourceConnector")]


def test_the_process_that_was_started_first_stops_and_names_the_one_that_copies(
    drivers: tuple[Mirror, Mirror], source_cluster: LocalCluster, target_cluster: LocalCluster
) -> None:
    first, second = drivers
    assert first.wait(WAIT_S) == FAILED, first.log_text()
    said = re.search(
        r"process (\d+) on (\S+), running since \S+ \S+, copies this flow now, with copy job 2\b",
        first.log_text(),
    )
    assert said is not None, first.log_text()
    assert int(said[1]) in {process.pid for process in second.processes()}
    assert said[2] == socket.gethostname()
    assert "dedicated.mode.enable.internal.rest" in first.log_text()
    assert re.search(r"copies instead of process \d+ on \S+, running since", second.log_text())
    first.assert_nothing_left(WAIT_S)

    await_caught_up(source_cluster, target_cluster, ALIAS, [TOPIC])
    second.stop()
    assert newest_job(target_cluster).number == 2, "the process that stops announces no copy job"
    copied = keyed(target_cluster, f"{ALIAS}.{TOPIC}")
    assert len(copied) == len(set(copied))
    assert set(copied) <= set(keyed(source_cluster, TOPIC))
