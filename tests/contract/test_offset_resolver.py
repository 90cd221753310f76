"""Looking up offsets in the logs of real brokers: transactions, limits, unresolvable offsets."""

import logging
from collections.abc import Iterator
from contextlib import closing
from typing import Final

import confluent_kafka as confluent
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.connectors.flow_log import flow_log
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.groups.offset_resolver import OffsetResolver, Wanted
from sparkmirror.kafka.partition_reader import SpanReader
from sparkmirror.offsets.translation import Place, SyncHistory
from sparkmirror.offsets.wire_records import OffsetSync
from tests.support.batches import NOW_MS
from tests.support.broker_data import append, create_topic, numbered
from tests.support.connections import connection

SOURCE: Final = TopicPartition("contract.resolved", 0)
TARGET: Final = TopicPartition("rs.contract.resolved", 0)
FOREIGN: Final = 5
PARTS: Final = ((0, True), (10, False), (20, True))
"""The first record of each transaction of ten records, and whether it is committed."""
WAIT_S: Final = 20.0


@pytest.fixture(scope="module")
def resolver(source_cluster: LocalCluster, target_cluster: LocalCluster) -> Iterator[OffsetResolver]:
    """Three transactions at the source, one aborted; foreign and the committed records at the target."""
    create_topic(source_cluster.bootstrap_servers, SOURCE.topic)
    create_topic(target_cluster.bootstrap_servers, TARGET.topic)
    producer = confluent.Producer(
        {
            "bootstrap.servers": source_cluster.bootstrap_servers,
            "transactional.id": SOURCE.topic,
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
    source = ConsumerSettings(connection(source_cluster), read_committed=True)
    log = flow_log(__name__, Flow(Alias("rs"), Alias("rt")))
    with closing(
        OffsetResolver(source, ConsumerSettings(connection(target_cluster, request_timeout_s=1.0)), log)
    ) as made:
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
    assert resolver.resolve([wanted], WAIT_S) == {wanted}
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
        assert resolver.resolve([wanted], WAIT_S) == {wanted}
        read.append(resolver.bytes_read)
    assert read[0] < read[1] == read[2]
    assert known.place(27) == Place(FOREIGN + 10, 20)


def test_nothing_is_looked_up_after_the_deadline(resolver: OffsetResolver) -> None:
    wanted = Wanted(SOURCE, 28, TARGET, history(FOREIGN + 19))
    read = resolver.bytes_read
    assert resolver.resolve([wanted], -1.0) == set()
    assert resolver.bytes_read == read


def test_a_missing_topic_is_logged_and_retried(
    resolver: OffsetResolver, caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = TopicPartition("contract.resolved-nowhere", 0)
    known = history(FOREIGN + 19)
    wanted = Wanted(SOURCE, 27, nowhere, known)
    with caplog.at_level(logging.INFO, __name__):
        assert resolver.resolve([wanted], WAIT_S) == set()
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
