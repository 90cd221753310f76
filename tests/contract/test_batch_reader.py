"""Reads whole batches: limits, budgets, sessions that get lost, partitions that rest."""

import re
from dataclasses import replace
from typing import Final

import pytest
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.metadata import MetadataRequest

from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.ids import TopicPartition
from tests.contract.event_loop import PLENTY, WAIT_S, batch_of, on_loop, reading
from tests.contract.fetch_tap import FetchTap
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import append, create_topic, numbered
from tests.support.broker_requests import asking
from tests.support.connections import connection
from tests.support.waiting import await_value

TOPIC: Final = "contract.read"
PARTITIONS: Final = [TopicPartition(TOPIC, number) for number in range(4)]
RECORDS: Final = 300
BATCH_RECORDS: Final = 10
LARGE: Final = (b"large", b"x" * 50_000)


@pytest.fixture(scope="module")
def settings(cluster: AnyCluster) -> ConsumerSettings:
    """Every partition holds the same batches."""
    create_topic(cluster.bootstrap_servers, TOPIC, partitions=len(PARTITIONS))
    with asking(cluster) as asker:
        for at in range(0, RECORDS, BATCH_RECORDS):
            batch = batch_of(numbered(BATCH_RECORDS, at))
            told = asker.produce(dict.fromkeys(PARTITIONS, batch)).partitions
            assert [(produced.error, produced.base_offset) for produced in told] == [(0, at)] * len(
                PARTITIONS
            )
    return ConsumerSettings(connection(cluster))


def test_every_partition_is_read_from_its_offset_on(settings: ConsumerSettings) -> None:
    starts = dict(zip(PARTITIONS, (0, 7, 290, RECORDS), strict=True))
    with reading(settings, starts) as reader:
        for partition, start in starts.items():
            reader.await_records(partition, numbered(RECORDS - start, start))
    assert not reader.failures


def test_records_written_later_are_read_at_once(cluster: AnyCluster) -> None:
    partition = TopicPartition("contract.read-later", 0)
    create_topic(cluster.bootstrap_servers, partition.topic)
    with reading(ConsumerSettings(connection(cluster)), {partition: 0}) as reader:
        for first in range(0, 30, 10):
            append(cluster, partition.topic, numbered(10, first))
            reader.await_records(partition, numbered(first + 10))


@pytest.mark.parametrize("limit", ["budget", "fetch.max.bytes", "max.partition.fetch.bytes"])
def test_no_response_is_above_the_limit(settings: ConsumerSettings, limit: str) -> None:
    bytes_max = 5 * len(batch_of(numbered(BATCH_RECORDS)))
    changes = {"fetch.max.bytes": "fetch_bytes_max", "max.partition.fetch.bytes": "partition_fetch_bytes_max"}
    if limit in changes:
        settings = replace(settings, **{changes[limit]: bytes_max})  # type: ignore[arg-type]  # both are sizes
    with reading(
        settings, dict.fromkeys(PARTITIONS, 0), budget=bytes_max if limit == "budget" else PLENTY
    ) as reader:
        for partition in PARTITIONS:
            reader.await_records(partition, numbered(RECORDS))
    together = len(PARTITIONS) if limit == "max.partition.fetch.bytes" else 1
    assert bytes_max // 2 < max(reader.response_bytes) <= bytes_max * together


def test_a_batch_above_every_limit_arrives(cluster: AnyCluster) -> None:
    partition = TopicPartition("contract.read-large", 0)
    create_topic(cluster.bootstrap_servers, partition.topic)
    expected = [*numbered(3), LARGE, *numbered(3, 3)]
    for record in expected:
        append(cluster, partition.topic, [record])
    limited = ConsumerSettings(connection(cluster), fetch_bytes_max=500, partition_fetch_bytes_max=300)
    with reading(limited, {partition: 0}, budget=400) as reader:
        reader.await_records(partition, expected)


def tapped(settings: ConsumerSettings, **changes: float) -> tuple[FetchTap, ConsumerSettings]:
    """The settings with a network that shows the reader's requests; `changes` are those of the connection."""
    tap = FetchTap()
    connection = replace(settings.connection, network=tap, **changes)  # type: ignore[arg-type]  # its fields
    return tap, replace(settings, connection=connection)


def test_without_budget_nothing_is_fetched(settings: ConsumerSettings) -> None:
    tap, settings = tapped(settings)
    with reading(settings, {PARTITIONS[0]: 0}, budget=0) as reader:
        await_value(lambda: reader.asked > 0, WAIT_S, lambda: "the budget was never asked for")
        assert tap.requests[FetchRequest.API_KEY] == 0
        reader.budget = PLENTY
        on_loop(reader.loop, reader.reader.fetch_more)
        reader.await_records(PARTITIONS[0], numbered(RECORDS))


def test_busy_partition_and_quiet_partitions_do_not_wait_for_each_other(
    cluster: AnyCluster,
) -> None:
    """That it is fetched alone is tested in tests/unit/kafka/data/test_batch_reader.py."""
    partitions = [TopicPartition("contract.read-busy", number) for number in range(150)]
    busy, quiet = partitions[3], partitions[77]
    create_topic(cluster.bootstrap_servers, busy.topic, partitions=len(partitions))
    append(cluster, busy.topic, numbered(3000), partition=3, settings={"batch.num.messages": "10"})
    little = ConsumerSettings(connection(cluster), partition_fetch_bytes_max=2000)
    with reading(little, dict.fromkeys(partitions, 0)) as reader:
        reader.await_records(busy, numbered(3000))
        append(cluster, busy.topic, numbered(10), partition=77)
        reader.await_records(quiet, numbered(10))
        append(cluster, busy.topic, numbered(10, 3000), partition=3)
        reader.await_records(busy, numbered(3010))
    # What the session is told afterwards is where the busy one has come to, not where it was.
    assert reader.keyed(busy) == numbered(3010)


def test_a_lost_session_and_a_lost_connection_cost_no_record(cluster: AnyCluster) -> None:
    partition = TopicPartition("contract.read-lost", 0)
    create_topic(cluster.bootstrap_servers, partition.topic)
    tap, settings = tapped(ConsumerSettings(connection(cluster)))
    with reading(settings, {partition: 0}) as reader:
        append(cluster, partition.topic, numbered(10))
        reader.await_records(partition, numbered(10))
        reader.failures.clear()  # a broker may not know yet that it leads a topic that has just been created
        session_before = await_value(lambda: tap.sessions[-1] or None, WAIT_S, lambda: "no session")
        on_loop(reader.loop, tap.lose_session)
        append(cluster, partition.topic, numbered(10, 10))
        reader.await_records(partition, numbered(20))
        await_value(lambda: tap.sessions[-1] not in (0, session_before), WAIT_S, lambda: "no new session")
        assert not reader.failures
        on_loop(reader.loop, lambda: tap.drop(DisconnectedError("dropped")))
        append(cluster, partition.topic, numbered(10, 20))
        reader.await_records(partition, numbered(30))
        (failure,) = reader.failures
        name = re.escape(settings.connection.cluster)
        assert re.fullmatch(rf"broker \d+ of {name}: dropped", str(failure.error))


def test_paused_partition_is_not_fetched_and_others_continue(cluster: AnyCluster) -> None:
    paused, other = (TopicPartition("contract.read-paused", number) for number in range(2))
    create_topic(cluster.bootstrap_servers, paused.topic, partitions=2)
    with reading(ConsumerSettings(connection(cluster)), {paused: 0, other: 0}) as reader:
        append(cluster, paused.topic, numbered(10))
        reader.await_records(paused, numbered(10))
        on_loop(reader.loop, lambda: reader.reader.pause(paused))
        for partition in (paused, other):
            append(cluster, paused.topic, numbered(10, 10), partition=partition.partition)
        reader.await_records(other, numbered(10, 10))
        assert reader.keyed(paused) == numbered(10)
        reader.go_to(paused, 10)
        reader.await_records(paused, numbered(20))


def test_offset_out_of_range_is_reported_once_and_not_fetched_again(settings: ConsumerSettings) -> None:
    lost, well = PARTITIONS[:2]
    tap, settings = tapped(replace(settings, fetch_wait_max_s=0.02), metadata_max_age_s=0.1)
    with reading(settings, {lost: RECORDS + 1, well: 0}) as reader:
        reader.await_records(well, numbered(RECORDS))
        await_value(lambda: len(reader.out_of_range) > 0, WAIT_S, lambda: str(reader.failures))
        looked = tap.requests[MetadataRequest.API_KEY]
        await_value(
            lambda: tap.requests[MetadataRequest.API_KEY] > looked + 1, WAIT_S, lambda: "no new metadata"
        )
        responses = len(reader.response_bytes) + 3
        await_value(lambda: len(reader.response_bytes) > responses, WAIT_S, lambda: "no more responses")
        assert reader.out_of_range == [lost]
        reader.go_to(lost, 295)
        reader.await_records(lost, numbered(5, 295))
        assert reader.out_of_range == [lost]
