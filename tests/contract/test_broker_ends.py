"""A broker is killed, stopped or frozen while it is written to and read from."""

import re
from collections.abc import Callable
from typing import Final

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.client_settings import ConsumerSettings, ProducerSettings
from sparkmirror.domain.ids import TopicPartition
from tests.contract.event_loop import reading, writing, written_continuously
from tests.support.broker_data import create_topic, keyed_of, numbered
from tests.support.connections import connection
from tests.support.freezing import frozen
from tests.support.waiting import await_value

WAIT_S: Final = 20.0

Failures = Callable[[], list[str]]
Interrupt = Callable[[LocalCluster, Failures], None]


def kill_and_start(cluster: LocalCluster, _: Failures) -> None:
    cluster.kill_broker(0)
    cluster.start_broker(0)


def stop_and_start(cluster: LocalCluster, _: Failures) -> None:
    cluster.stop_broker(0)
    cluster.start_broker(0)


def freeze(cluster: LocalCluster, failures: Failures) -> None:
    """Freeze the broker until Fetch and Produce have timed out. It still accepts connections."""
    (pid,) = cluster.pids
    with frozen(pid):
        await_value(lambda: timed_out(failures()) == {"Fetch", "Produce"}, WAIT_S, lambda: str(failures()))


def timed_out(failures: list[str]) -> set[str]:
    """Return the kinds of requests that timed out."""
    left = (
        re.search(r"127\.0\.0\.1:\d+ left a (\w+) unanswered for [\d.]+ s", failure) for failure in failures
    )
    return {match[1] for match in left if match}


@pytest.mark.parametrize(
    ("interrupt", "records_age_s"),
    [(kill_and_start, 0), (kill_and_start, 3 * 86400), (stop_and_start, 0), (freeze, 0)],
)
def test_every_record_is_there_once_after_a_broker_restart(
    frail_cluster: LocalCluster, interrupt: Interrupt, records_age_s: float
) -> None:
    """Old records too: a restarted broker has no state of their producer and would append duplicates."""
    topic = f"contract.{interrupt.__name__}-{records_age_s}"
    create_topic(frail_cluster.bootstrap_servers, topic, partitions=2)
    partitions = [TopicPartition(topic, number) for number in range(2)]
    connected = connection(frail_cluster, request_timeout_s=1.0)
    with (
        reading(ConsumerSettings(connected), dict.fromkeys(partitions, 0)) as reader,
        writing(ProducerSettings(connected), partitions, records_age_s=records_age_s) as writer,
    ):
        with written_continuously(writer, partitions) as appended:
            await_value(lambda: len(reader.keyed(partitions[1])) > 300, WAIT_S, lambda: str(writer.failures))
            interrupt(
                frail_cluster,
                lambda: [str(failure.error) for failure in (*reader.failures, *writer.failures)],
            )
        for partition in partitions:
            writer.await_acknowledged(partition, appended[partition])
            reader.await_records(partition, numbered(appended[partition]))
            assert keyed_of(frail_cluster, *partition) == numbered(appended[partition])
    assert not writer.refusals
    assert not reader.out_of_range
