"""Facts about replication: acknowledgements wait for followers, and a new leader has the producer state."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka.admin import NewTopic

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_offsets import LATEST, list_offsets
from sparkmirror.kafka.net.metadata import request_metadata
from sparkmirror.kafka.wire.error_codes import (
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    REQUEST_TIMED_OUT,
)
from tests.contract.event_loop import batch_of
from tests.support.broker_data import admin, numbered
from tests.support.broker_requests import Asker, asking
from tests.support.connections import connection
from tests.support.freezing import frozen
from tests.support.replica_moves import reassign
from tests.support.waiting import await_value

WAIT_S = 20.0
PRODUCER = 4712
PATIENCE_S = 0.7
"""Shorter than the session timeout, after which the leader would no longer wait for the follower."""


def create_assigned(cluster: LocalCluster, topic: str, replicas: list[int]) -> TopicPartition:
    client = admin(cluster)  # a closed client would cancel the request
    new_topic = NewTopic(topic, num_partitions=1, replica_assignment=[replicas])
    client.create_topics([new_topic])[topic].result(WAIT_S)
    partition = TopicPartition(topic, 0)
    with asking(cluster, replicas[0]) as asker:
        await_value(lambda: leader_of(asker, partition) == replicas[0], WAIT_S, lambda: f"no {topic}")
        await_value(lambda: asker.fetch_one(partition, 0).error == NONE, WAIT_S, lambda: f"no {topic}")
    return partition


def leader_of(asker: Asker, partition: TopicPartition) -> int | None:
    leader = request_metadata(asker.connection, [partition.topic], WAIT_S).leaders.get(partition)
    return None if leader is None else leader.node_id


def leads(asker: Asker, partition: TopicPartition, batch: bytearray) -> bool:
    """Whether the broker accepts the batch as its leader; it may have the batch already."""
    return asker.produce_one(partition, batch).error != NOT_LEADER_OR_FOLLOWER


def test_a_new_leader_knows_the_last_five_batches(trio: LocalCluster) -> None:
    partition = create_assigned(trio, "contract.window", [0, 1])
    batches = [
        batch_of(numbered(2), producer_id=PRODUCER, producer_epoch=0, base_sequence=at)
        for at in range(0, 12, 2)
    ]
    with asking(trio, 0) as first:
        assert [first.produce_one(partition, batch).base_offset for batch in batches] == [0, 2, 4, 6, 8, 10]
        reassign(trio, partition, [1])
        await_value(lambda: leader_of(first, partition) == 1, WAIT_S, lambda: "0 leads still")
    with asking(trio, 1) as second:
        # Followers answer Fetch too (KIP-392); only a leader accepts Produce.
        await_value(lambda: leads(second, partition, batches[-1]), WAIT_S, lambda: "1 does not lead")
        again = [second.produce_one(partition, batch) for batch in reversed(batches)]
        assert [(produced.error, produced.base_offset) for produced in again[:5]] == [
            (0, at) for at in (10, 8, 6, 4, 2)
        ]
        assert again[5].error == OUT_OF_ORDER_SEQUENCE_NUMBER
        assert second.fetch_one(partition, 0).high_watermark == 12


@pytest.fixture(scope="module")
def alone(trio: LocalCluster) -> TopicPartition:
    return create_assigned(trio, "contract.alone", [0])


@pytest.fixture
def waiting(
    trio: LocalCluster, alone: TopicPartition, request: pytest.FixtureRequest
) -> Iterator[TopicPartition]:
    """A partition whose follower is frozen, so that no batch is acknowledged."""
    assert alone
    partition = create_assigned(trio, f"contract.{request.node.name}", [0, 2])
    with frozen(trio.pids[2]):
        yield partition


def test_request_that_waits_for_a_follower_delays_only_its_connection(
    trio: LocalCluster, waiting: TopicPartition, alone: TopicPartition
) -> None:
    with asking(trio, 0) as held_up, asking(trio, 0) as other:
        began = time.monotonic()
        waits = held_up.begin_produce(waiting, batch_of(numbered(2)), PATIENCE_S)
        behind = held_up.begin_produce(alone, batch_of(numbered(2)), PATIENCE_S)
        assert other.produce_one(alone, batch_of(numbered(2))).error == NONE
        assert time.monotonic() - began < PATIENCE_S, "another connection was held up as well"
        timed_out = waits()
        assert time.monotonic() - began >= PATIENCE_S
        assert behind().error == NONE
        # The response has an offset, but the record is above the high watermark.
        assert (timed_out.error, timed_out.base_offset) == (REQUEST_TIMED_OUT, 0)
        assert other.fetch_one(waiting, 0).high_watermark == 0


def test_a_follower_is_told_where_the_log_ends_and_a_client_how_far_it_is_replicated(
    trio: LocalCluster, waiting: TopicPartition
) -> None:
    leader = replace(connection(trio), bootstrap_servers=(("127.0.0.1", trio.brokers[0].port),))
    with asking(trio, 0) as asker:
        assert asker.begin_produce(waiting, batch_of(numbered(2)), PATIENCE_S)().error == REQUEST_TIMED_OUT
    told = [
        list_offsets(ConsumerSettings(leader), [waiting], LATEST, unreplicated=unreplicated)[waiting]
        for unreplicated in (False, True)
    ]
    assert told == [0, 2]
