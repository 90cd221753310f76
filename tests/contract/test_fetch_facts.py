"""Facts about Fetch responses of brokers that the batch reader relies on."""

from collections.abc import Callable, Iterator
from typing import Final

import confluent_kafka as confluent
import pytest

from sparkmirror.batches.aborted_transactions import AbortedTransactions
from sparkmirror.batches.record_batch import CONTROL, TRANSACTIONAL, FetchedBatch, iterate_batches
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.kafka.wire import error_codes, fetch
from sparkmirror.kafka.wire.fetch import FetchedPartition, FetchPosition, FetchSession
from tests.contract.event_loop import batch_of
from tests.support.any_cluster import AnyCluster
from tests.support.batches import decode
from tests.support.broker_data import admin, create_topic, delete_records, numbered
from tests.support.broker_requests import BYTES_MAX, NO_EPOCH, Asker, asking
from tests.support.connections import connection

TOPIC: Final = "contract.fetched"
BATCHES: Final = 5
RECORDS: Final = 10
"""Records in each batch."""


@pytest.fixture(scope="module")
def asker(cluster: AnyCluster) -> Iterator[Asker]:
    """Partitions 0 and 1 have the same batches, 2 is empty."""
    create_topic(cluster.bootstrap_servers, TOPIC, partitions=3)
    with asking(cluster) as made:
        for at in range(0, BATCHES * RECORDS, RECORDS):
            batch = batch_of(numbered(RECORDS, at))
            assert not any(produced.error for produced in made.produce({FULL: batch, SAME: batch}).partitions)
        yield made


FULL, SAME, EMPTY = (TopicPartition(TOPIC, number) for number in range(3))


def batches(fetched: FetchedPartition) -> list[FetchedBatch]:
    return list(iterate_batches(fetched.records))


def bases(fetched: FetchedPartition) -> list[int]:
    return [batch.header.base_offset for batch in batches(fetched)]


def session_of(*positions: tuple[TopicPartition, int], bytes_max: int = BYTES_MAX) -> FetchSession:
    session = FetchSession()
    for partition, offset in positions:
        session.want(partition, FetchPosition(offset, NO_EPOCH, bytes_max))
    return session


@pytest.mark.parametrize("version", range(fetch.VERSION_LOW, fetch.VERSION_HIGH_BY_NAME + 1))
def test_every_supported_fetch_version_is_answered(asker: Asker, version: int) -> None:
    session = session_of((FULL, 0), (EMPTY, 0))
    # Partitions come in no certain order.
    answers = {fetched.partition: fetched for fetched in asker.fetch(session, version=version).partitions}
    full, empty = answers[FULL], answers[EMPTY]
    assert bases(full) == list(range(0, 50, 10))
    assert (full.error, full.high_watermark, full.last_stable_offset, full.log_start_offset) == (0, 50, 50, 0)
    assert (empty.error, empty.high_watermark, len(empty.records)) == (0, 0, 0)


def test_a_fetch_inside_a_batch_gives_the_whole_batch(asker: Asker) -> None:
    assert bases(asker.fetch_one(FULL, 25)) == [20, 30, 40]


def test_batch_cut_by_the_byte_limit_is_ignored(asker: Asker) -> None:
    size = len(batches(asker.fetch_one(FULL, 0))[0].data)
    fetched = asker.fetch_one(FULL, 0, bytes_max=size * 5 // 2)
    assert len(fetched.records) <= size * 5 // 2
    assert bases(fetched) == [0, 10]


def test_a_batch_above_every_limit_arrives_whole_and_alone(asker: Asker) -> None:
    """KIP-74: otherwise a consumer could not make progress."""
    session = session_of((FULL, 0), (SAME, 0), bytes_max=10)
    asked = asker.fetch(session, bytes_max=10).partitions
    arrived = {fetched.partition: bases(fetched) for fetched in asked}
    assert sorted(arrived.values()) == [[], [0]]


@pytest.mark.parametrize("offset", [51, 1 << 40])
def test_an_offset_beyond_the_end_is_out_of_range_and_the_end_is_not(asker: Asker, offset: int) -> None:
    assert asker.fetch_one(FULL, offset).error == error_codes.OFFSET_OUT_OF_RANGE
    assert asker.fetch_one(FULL, 50).error == 0


def test_offsets_before_the_logs_start_are_out_of_range(cluster: AnyCluster, asker: Asker) -> None:
    partition = TopicPartition("contract.fetched-trimmed", 0)
    create_topic(cluster.bootstrap_servers, partition.topic)
    for at in range(2):
        asker.produce_one(partition, batch_of(numbered(RECORDS, at)))
    delete_records(cluster, partition.topic, 14)
    fetched = asker.fetch_one(partition, 13)
    assert (fetched.error, len(fetched.records)) == (error_codes.OFFSET_OUT_OF_RANGE, 0)
    assert bases(asker.fetch_one(partition, 14)) == [10]
    settings = ConsumerSettings(connection(cluster))
    assert list_offsets(settings, [partition], EARLIEST) == {partition: 14}
    assert list_offsets(settings, [partition], LATEST) == {partition: 20}


@pytest.mark.parametrize(("epoch", "error"), [(-1, 0), (0, 0), (7, error_codes.UNKNOWN_LEADER_EPOCH)])
def test_leader_epoch_above_the_leaders_is_unknown(asker: Asker, epoch: int, error: int) -> None:
    session = FetchSession()
    session.want(FULL, FetchPosition(0, epoch, BYTES_MAX))
    (fetched,) = asker.fetch(session).partitions
    assert fetched.error == error


def advance(session: FetchSession, partition: TopicPartition, offset: int) -> None:
    session.want(partition, FetchPosition(offset, NO_EPOCH, BYTES_MAX))


def test_fetch_session_returns_changes_only(asker: Asker) -> None:
    """See KIP-227."""
    session = session_of((FULL, 40), (SAME, 40), (EMPTY, 0))
    first = asker.fetch(session)
    assert {fetched.partition for fetched in first.partitions} == {FULL, SAME, EMPTY}
    assert first.session_id != 0
    session.accept(first.session_id)
    advance(session, FULL, 50)
    advance(session, SAME, 30)
    second = asker.fetch(session)
    session.accept(second.session_id)
    assert second.session_id == first.session_id
    assert {fetched.partition: bases(fetched) for fetched in second.partitions} == {SAME: [30, 40]}
    session.drop(SAME)
    assert asker.fetch(session).partitions == []


@pytest.mark.parametrize(
    ("session_id", "epochs_ahead", "error"),
    [(0, 1, "INVALID_FETCH_SESSION_EPOCH"), (1, 0, "FETCH_SESSION_ID_NOT_FOUND")],
)
def test_lost_session_is_an_error_and_a_new_one_starts(
    asker: Asker, session_id: int, epochs_ahead: int, error: str
) -> None:
    session = session_of((FULL, 40))
    known = asker.fetch(session).session_id
    for _ in range(1 + epochs_ahead):
        session.accept(known + session_id)
    refused = asker.fetch(session)
    assert error_codes.name_of(refused.error) == error
    assert refused.error in error_codes.FETCH_SESSION_LOST
    assert refused.partitions == []
    session.reset()
    assert [bases(fetched) for fetched in asker.fetch(session).partitions] == [[40]]


@pytest.fixture
def transacted(cluster: AnyCluster) -> Iterator[tuple[TopicPartition, confluent.Producer]]:
    partition = TopicPartition("contract.fetched-transacted", 0)
    create_topic(cluster.bootstrap_servers, partition.topic)
    producer = confluent.Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "transactional.id": "contract.fetched",
            "log_level": 0,
        }
    )
    producer.init_transactions(30)
    yield partition, producer
    producer.flush(30)


def in_transaction(
    producer: confluent.Producer, topic: str, values: list[bytes], end: Callable[[float], None] | None
) -> None:
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
        producer.flush(30)
    if end is not None:
        end(30)


def test_read_committed_fetch_lists_aborted_transactions(
    asker: Asker, transacted: tuple[TopicPartition, confluent.Producer]
) -> None:
    partition, producer = transacted
    in_transaction(producer, partition.topic, [b"a", b"b"], producer.commit_transaction)  # 0, 1, marker 2
    in_transaction(producer, partition.topic, [b"c", b"d"], producer.abort_transaction)  # 3, 4, marker 5
    in_transaction(producer, partition.topic, [b"e"], None)  # 6
    fetched = asker.fetch_one(partition, 0, read_committed=True)
    assert (fetched.high_watermark, fetched.last_stable_offset) == (7, 6)
    assert bases(fetched) == [0, 1, 2, 3, 4, 5]
    writer = batches(fetched)[0].header.producer_id
    assert fetched.aborted == [(writer, 3)]
    assert [batch.header.attributes & CONTROL != 0 for batch in batches(fetched)] == [False, False, True] * 2
    assert all(batch.header.attributes & TRANSACTIONAL for batch in batches(fetched))
    # Dropping batches by producer id alone would lose the committed ones before.
    assert survivors(fetched) == [b"a", b"b"]
    # A fetch inside the transaction lists the transaction's first offset.
    inside = asker.fetch_one(partition, 4, read_committed=True)
    assert (bases(inside), inside.aborted, survivors(inside)) == ([4, 5], [(writer, 3)], [])
    uncommitted = asker.fetch_one(partition, 0)
    assert (bases(uncommitted)[-1], uncommitted.aborted) == (6, [])
    producer.abort_transaction(30)


def survivors(fetched: FetchedPartition) -> list[bytes | None]:
    aborted = AbortedTransactions(fetched.aborted)
    return [
        record.value
        for batch in batches(fetched)
        if not aborted.drops(batch) and not batch.header.attributes & CONTROL
        for record in decode(batch.data)
    ]


def test_recreated_topic_is_read_and_written_by_name_without_an_error(
    cluster: AnyCluster, asker: Asker
) -> None:
    """Only the topic id (KIP-516) shows that these are other records."""
    partition = TopicPartition("contract.fetched-recreated", 0)
    for value in (b"first life", b"second life"):
        create_topic(cluster.bootstrap_servers, partition.topic)
        assert asker.produce_one(partition, batch_of([(None, value), (None, value)])).base_offset == 0
        session = FetchSession()
        session.want(partition, FetchPosition(1, 0, BYTES_MAX))  # a reader that has read offset 0 in epoch 0
        (fetched,) = asker.fetch(session).partitions
        assert fetched.error == 0
        (batch,) = batches(fetched)
        assert {record.value for record in decode(batch.data)} == {value}
        client = admin(cluster)  # a closed client would cancel the request
        client.delete_topics([partition.topic])[partition.topic].result(20)


def test_recreated_topic_is_neither_read_nor_written_by_its_old_id(cluster: AnyCluster, asker: Asker) -> None:
    partition = TopicPartition("contract.fetched-by-id", 0)
    ids = []
    for _ in range(2):
        create_topic(cluster.bootstrap_servers, partition.topic)
        ids.append(asker.topic_id(partition.topic))
        assert asker.produce_by_id(partition, ids[-1], batch_of(numbered(2))).error == 0
        assert fetched_by_id(asker, partition, ids[-1]).error == 0
        if len(ids) == 1:
            client = admin(cluster)  # a closed client would cancel the request
            client.delete_topics([partition.topic])[partition.topic].result(20)
    assert ids[0] != ids[1]
    assert fetched_by_id(asker, partition, ids[0]).error == error_codes.UNKNOWN_TOPIC_ID
    refused = asker.produce_by_id(partition, ids[0], batch_of(numbered(2)))
    assert refused.error == error_codes.UNKNOWN_TOPIC_ID
    assert bases(fetched_by_id(asker, partition, ids[1])) == [0]


def fetched_by_id(asker: Asker, partition: TopicPartition, topic_id: bytes) -> FetchedPartition:
    session = FetchSession()
    session.want(partition, FetchPosition(0, NO_EPOCH, BYTES_MAX, topic_id=topic_id))
    (fetched,) = asker.fetch(session, version=fetch.VERSION_HIGH).partitions
    return fetched


@pytest.mark.parametrize(("epoch", "error"), [(-1, 0), (0, 0), (7, error_codes.OFFSET_OUT_OF_RANGE)])
def test_last_fetched_epoch_above_the_leaders_is_out_of_range(asker: Asker, epoch: int, error: int) -> None:
    """See KIP-595, and `test_truncated_source` for older epochs."""
    fetched = asker.fetch_one(FULL, 50, read_epoch=epoch)
    assert (fetched.error, fetched.diverged_at) == (error, None)
