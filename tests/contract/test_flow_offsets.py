"""Offset ranges at a partition's end have records to copy, or only markers and aborted records."""

from typing import Final

import confluent_kafka as confluent
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.status.flow_offsets import with_records
from tests.support.broker_data import create_topic
from tests.support.connections import connection

TOPIC: Final = "contract.left-records"
PLACE: Final = TopicPartition(TOPIC, 0)
WAIT_S: Final = 30.0


@pytest.fixture(scope="module")
def cluster(source_cluster: LocalCluster) -> LocalCluster:
    """Offsets 0 to 2 are committed, 3 is the marker; 4 and 5 are aborted, 6 is the marker."""
    create_topic(source_cluster.bootstrap_servers, TOPIC)
    producer = confluent.Producer(
        {"bootstrap.servers": source_cluster.bootstrap_servers, "transactional.id": TOPIC, "log_level": 0}
    )
    producer.init_transactions(WAIT_S)
    for count, finish in ((3, producer.commit_transaction), (2, producer.abort_transaction)):
        producer.begin_transaction()
        for number in range(count):
            producer.produce(TOPIC, b"value-%d" % number, partition=0)
        assert producer.flush(WAIT_S) == 0
        finish(WAIT_S)
    return source_cluster


@pytest.mark.parametrize(
    ("begin", "end", "uncommitted", "committed"),
    [
        (0, 3, True, True),
        (2, 4, True, True),
        (3, 4, False, False),
        (3, 7, True, False),
        (6, 7, False, False),
        (4, 5, True, False),
        (6, 8, True, True),
        (9, 12, True, True),
    ],
    ids=str,
)
def test_markers_and_aborted_records_are_not_to_be_copied(
    cluster: LocalCluster, begin: int, end: int, uncommitted: bool, committed: bool
) -> None:
    """A range beyond the log end offset can't be read and counts as having records."""
    for read_committed, expected in ((False, uncommitted), (True, committed)):
        settings = ConsumerSettings(connection(cluster), read_committed=read_committed)
        assert (PLACE in with_records(settings, {PLACE: (begin, end)})) is expected


def test_empty_request_is_not_sent(cluster: LocalCluster) -> None:
    assert not with_records(ConsumerSettings(connection(cluster)), {})
