"""Fills a beginning while all brokers are killed at random moments, and checks what is there then."""

import random
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Final

from confluent_kafka.admin import NewTopic

from sparkmirror.batches.producer import ProducerId
from sparkmirror.clusters import LocalCluster
from sparkmirror.copy.preserve.log_start_watch import LogStartWatch
from sparkmirror.copy.preserve.preserved_start import Beginning, PreservedStarts
from sparkmirror.copy.preserve.preserved_tail import Bounds
from sparkmirror.domain.client_settings import ConsumerSettings, ProducerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.kafka.transactions.fencing import Fencing
from tests.support.broker_data import admin, append, keyed_of, numbered
from tests.support.connections import connection
from tests.support.waiting import await_value

WAIT_S: Final = 120.0


_TOPICS_MAX: Final = 5


def fill_under_kills(cluster: LocalCluster, topic: str, start: int, *, replicas: int, kills: int) -> None:
    """Begin another topic if a kill comes too late on a busy machine."""
    topics = (f"{topic}-{number}" for number in range(_TOPICS_MAX))
    assert any(_is_filled_under_kills(cluster, name, start, replicas, kills) for name in topics)


def _is_filled_under_kills(cluster: LocalCluster, topic: str, start: int, replicas: int, kills: int) -> bool:
    """False if a kill came when everything was filled."""
    partition = TopicPartition(topic, 0)
    made = NewTopic(topic, 1, replicas, config={"min.insync.replicas": str(min(replicas, 2))})
    client = admin(cluster)  # a closed client would cancel the request
    client.create_topics([made])[topic].result(WAIT_S)
    settings = ProducerSettings(connection(cluster))
    starts = PreservedStarts(settings, fill_timeout_s=600.0)
    producer = _claimed(settings, f"fill-{topic}")
    with ThreadPoolExecutor(1) as pool:
        for _ in range(kills):
            began = _bounds(cluster, partition).end
            filling = pool.submit(_filled, starts, partition, Beginning(producer.id, began, start))
            part = (start - began) * random.uniform(0.1, 0.6)
            _await_end(cluster, partition, began + int(part))
            _kill_all(cluster)
            filling.result(WAIT_S)
            _start_all(cluster)
            if _bounds(cluster, partition).end >= start:
                return False
    _fill_to_the_end(cluster, starts, partition, Beginning(producer.id, 0, start))
    assert _bounds(cluster, partition) == Bounds(start, start)
    append(cluster, topic, numbered(5))
    _kill_all(cluster)
    _start_all(cluster)
    watch = LogStartWatch(settings.connection)
    watch.begin(partition, start)

    def stands() -> bool:
        watch.check()
        return _bounds(cluster, partition) == Bounds(start, start + 5)

    await_value(stands, WAIT_S, lambda: f"{_bounds(cluster, partition)}")
    assert keyed_of(cluster, topic) == numbered(5)
    return True


def _claimed(settings: ProducerSettings, transactional_id: str) -> ProducerId:
    with closing(Fencing(settings.connection)) as fencing:

        def claimed() -> ProducerId | None:
            found = fencing.claim([transactional_id])[transactional_id]
            return found if isinstance(found, ProducerId) else None

        return await_value(claimed, WAIT_S, lambda: "no producer id")


def _filled(
    starts: PreservedStarts, partition: TopicPartition, beginning: Beginning
) -> Mapping[TopicPartition, SparkmirrorError | None] | SparkmirrorError:
    try:
        return starts.fill({partition: beginning})
    except SparkmirrorError as error:
        return error


def _fill_to_the_end(
    cluster: LocalCluster, starts: PreservedStarts, partition: TopicPartition, beginning: Beginning
) -> None:
    """Do as a task does: find the log's end and continue there, until the beginning is filled."""
    outcomes: list[object] = []

    def is_done() -> bool:
        at = _bounds(cluster, partition).end
        outcomes[:] = [_filled(starts, partition, beginning._replace(at=at))]
        return outcomes == [{partition: None}]

    await_value(is_done, WAIT_S, lambda: f"{outcomes}")


def _kill_all(cluster: LocalCluster) -> None:
    for broker in range(len(cluster.brokers)):
        cluster.kill_broker(broker)


def _start_all(cluster: LocalCluster) -> None:
    with ThreadPoolExecutor(len(cluster.brokers)) as pool:  # each waits for a majority
        for started in [pool.submit(cluster.start_broker, at) for at in range(len(cluster.brokers))]:
            started.result(WAIT_S)


def _await_end(cluster: LocalCluster, partition: TopicPartition, end: int) -> None:
    await_value(lambda: _bounds(cluster, partition).end >= end, WAIT_S, lambda: "it is not filled")


def _bounds(cluster: LocalCluster, partition: TopicPartition) -> Bounds:
    settings = ConsumerSettings(connection(cluster))

    def found() -> Bounds | None:
        try:
            ends = [list_offsets(settings, [partition], which)[partition] for which in (EARLIEST, LATEST)]
        except SparkmirrorError:
            return None
        begin, end = ends
        return Bounds(begin, end) if isinstance(begin, int) and isinstance(end, int) else None

    return await_value(found, WAIT_S, lambda: f"{partition} has no offsets")
