"""Looking up offsets in the logs of real brokers: transactions, limits, unresolvable offsets."""

import logging
from collections.abc import Iterator
from contextlib import closing
from typing import Final

import confluent_kafka as confluent
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.groups.offset_resolver import Budget, OffsetResolver, Round, Wanted
from sparkmirror.kafka.data.partition_reader import SpanReader
from sparkmirror.kafka.wire import fetch
from sparkmirror.offsets.translation import Place, SyncHistory
from sparkmirror.offsets.wire_records import OffsetSync
from sparkmirror.periodic.flow_log import flow_log
from tests.support.batches import NOW_MS
from tests.support.broker_data import append, create_topic, numbered
from tests.support.connections import connection
from tests.support.proxy import proxied

SOURCE: Final = TopicPartition("contract.resolved", 0)
TARGET: Final = TopicPartition("rs.contract.resolved", 0)
FOREIGN: Final = 5
PARTS: Final = ((0, True), (10, False), (20, True))
"""The first record of each transaction of ten records, and whether it is committed."""
WAIT_S: Final = 20.0
AMPLE: Final = Budget(64 << 20, WAIT_S)


@pytest.fixture(scope="module")
def sides(source_cluster: LocalCluster, target_cluster: LocalCluster) -> tuple[LocalCluster, LocalCluster]:
    """Three transactions at the source, one aborted; foreign and the committed records at the target."""
    create_topic(source_cluster.bootstrap_servers, SOURCE.topic)
    create_topic(target_cluster.bootstrap_servers, TARGET.topic)
    producer = confluent.Producer(
        {
            "bootstrap.servers": source_cluster.bootstrap_servers,
            "transactional.id": SOURCE.topic,
            "linger.ms": "1000",  # each transaction is one batch; a flush waits for nothing
            "log_level": 0,
        }
    )
    producer.init_transactions(WAIT_S)
    for first, is_committed in PARTS:
        producer.begin_transaction()
        for key, value in numbered(10, first):
            producer.produce(SOURCE.topic, partition=0, key=key, value=value, timestamp=NOW_MS)
        producer.flush(WAIT_S)
        if is_committed:
            producer.commit_transaction(WAIT_S)
        else:
            producer.abort_transaction(WAIT_S)
    append(target_cluster, TARGET.topic, numbered(FOREIGN, 1000), timestamp_ms=NOW_MS)
    for first, is_committed in PARTS:
        if is_committed:
            append(target_cluster, TARGET.topic, numbered(10, first), timestamp_ms=NOW_MS)
    return source_cluster, target_cluster


@pytest.fixture
def resolver(sides: tuple[LocalCluster, LocalCluster]) -> Iterator[OffsetResolver]:
    """One that has looked up nothing."""
    source, target = sides
    records = ConsumerSettings(connection(source), read_committed=True)
    log = flow_log(__name__, Flow(Alias("rs"), Alias("rt")))
    copies = ConsumerSettings(connection(target, request_timeout_s=1.0))
    with closing(OffsetResolver(records, copies, log)) as made:
        yield made


def history(last_downstream: int) -> SyncHistory:
    """Offset syncs of the first and the last record, 0 and 31; markers are at 10, 21 and 32."""
    made = SyncHistory(OffsetSync(SOURCE, 0, FOREIGN))
    made.add(OffsetSync(SOURCE, 31, last_downstream))
    return made


@pytest.mark.parametrize(
    ("upstream", "place"),
    [(4, FOREIGN + 4), (10, FOREIGN + 10), (11, FOREIGN + 10), (15, FOREIGN + 10), (27, FOREIGN + 15)],
)
def test_markers_and_aborted_records_are_left_out(
    resolver: OffsetResolver, upstream: int, place: int
) -> None:
    known = history(FOREIGN + 19)
    wanted = Wanted(SOURCE, upstream, TARGET, known)
    assert resolver.resolve([wanted], AMPLE).settled == {wanted}
    assert known.place(upstream) == Place(place, 0)


def test_an_unresolvable_offset_is_looked_up_once(
    resolver: OffsetResolver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tests")
    known = SyncHistory(OffsetSync(SOURCE, 2, FOREIGN + 9))  # does not fit this log
    known.add(OffsetSync(SOURCE, 31, FOREIGN + 30))
    wanted = Wanted(SOURCE, 27, TARGET, known)
    read = [resolver.bytes_read]
    for _ in range(2):
        assert resolver.resolve([wanted], AMPLE).settled == {wanted}
        read.append(resolver.bytes_read)
    assert read[0] < read[1] == read[2]
    assert known.place(27) == Place(FOREIGN + 10, 20)


def test_nothing_is_looked_up_after_the_deadline(resolver: OffsetResolver) -> None:
    wanted = Wanted(SOURCE, 28, TARGET, history(FOREIGN + 19))
    read = resolver.bytes_read
    assert resolver.resolve([wanted], Budget(64 << 20, -1.0)) == Round(left_over={wanted})
    assert resolver.bytes_read == read


def test_nothing_more_is_looked_up_once_the_bytes_are_used_up(resolver: OffsetResolver) -> None:
    far, near = (Wanted(SOURCE, upstream, TARGET, history(FOREIGN + 19)) for upstream in (28, 4))
    assert resolver.resolve([far, near], Budget(2, WAIT_S)).left_over == {near}


def test_an_offset_is_not_looked_up_again_when_its_history_has_forgotten(resolver: OffsetResolver) -> None:
    first = Wanted(SOURCE, 26, TARGET, history(FOREIGN + 19))
    assert resolver.resolve([first], AMPLE).looked_up == {first}
    forgotten = first._replace(history=history(FOREIGN + 19))
    assert resolver.resolve([forgotten], AMPLE) == Round(settled={forgotten})


def test_an_offset_is_looked_up_again_when_the_target_has_lost_its_log(resolver: OffsetResolver) -> None:
    first = Wanted(SOURCE, 29, TARGET, history(FOREIGN + 19))
    resolver.resolve([first], AMPLE)
    other = SyncHistory(OffsetSync(SOURCE, 0, 0))
    other.add(OffsetSync(SOURCE, 31, FOREIGN + 2))
    again = first._replace(history=other)
    assert resolver.resolve([again], AMPLE).looked_up == {again}


def test_offsets_of_one_partition_are_looked_up_in_records_that_are_read_once(
    resolver: OffsetResolver,
) -> None:
    known, alone = history(FOREIGN + 19), history(FOREIGN + 19)
    read = [resolver.bytes_read]
    resolver.resolve([Wanted(SOURCE, 24, TARGET, alone)], AMPLE)
    read.append(resolver.bytes_read)
    wanted = [Wanted(SOURCE, upstream, TARGET, known) for upstream in (3, 7, 9, 22, 23)]
    assert resolver.resolve(wanted, AMPLE).settled == set(wanted)
    read.append(resolver.bytes_read)
    assert read[2] - read[1] == read[1] - read[0] > 0


def test_a_missing_topic_is_logged_and_retried(
    resolver: OffsetResolver, caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = TopicPartition("contract.resolved-nowhere", 0)
    known = history(FOREIGN + 19)
    wanted = Wanted(SOURCE, 27, nowhere, known)
    with caplog.at_level(logging.INFO, __name__):
        assert resolver.resolve([wanted], AMPLE).settled == set()
    assert any("can't be read" in message for message in caplog.messages)
    assert known.place(27) == Place(FOREIGN + 1, 18)


def test_reading_stops_at_the_byte_limit(source_cluster: LocalCluster) -> None:
    topic = TopicPartition("contract.resolved-wide", 0)
    create_topic(source_cluster.bootstrap_servers, topic.topic)
    for _ in range(4):
        append(source_cluster, topic.topic, [(None, bytes(200_000))])
    with closing(SpanReader(ConsumerSettings(connection(source_cluster)))) as reader:
        offsets = [batch.header.base_offset for batch in reader.read(topic, 1, 4, 300_000)]
        assert offsets == [1, 2]
        assert 400_000 < reader.bytes_read < 800_000
        assert [batch.header.base_offset for batch in reader.read(topic, 2, 3, 1 << 20)] == [2]
        assert list(reader.read(topic, 9, 12, 1 << 20)) == []


def test_expected_partitions_are_fetched_together(source_cluster: LocalCluster) -> None:
    topics = [TopicPartition(f"contract.expected-{number}", 0) for number in range(3)]
    for topic in topics:
        create_topic(source_cluster.bootstrap_servers, topic.topic)
        append(source_cluster, topic.topic, [(None, b"first")])
        append(source_cluster, topic.topic, [(None, b"second")])
    host, _, port = source_cluster.bootstrap_servers.rpartition(":")
    with (
        proxied((host, int(port))) as (proxy,),
        closing(SpanReader(ConsumerSettings(ConnectionSettings((proxy.address,))))) as reader,
    ):
        reader.expect({topics[0]: 1, topics[1]: 1, topics[2]: 5})
        for topic in topics:
            assert [batch.header.base_offset for batch in reader.read(topic, 1, 2, 1 << 20)] == [1]
        assert proxy.figures.requests[fetch.API_KEY] == 2, "the third was not expected to be read there"
        assert [batch.header.base_offset for batch in reader.read(topics[0], 0, 2, 1 << 20)] == [0, 1]
