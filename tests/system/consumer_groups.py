"""Consumer groups of applications, run with confluent-kafka, which the mirror does not use."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import confluent_kafka as confluent

from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import Keyed
from tests.support.waiting import await_value

_WAIT_S: Final = 30.0


@contextmanager
def consuming(cluster: LocalCluster, group: str, protocol: str = "classic") -> Iterator[confluent.Consumer]:
    """Open a consumer without auto-commit that starts at the first record where its group has no offset.

    `protocol` is `classic` or `consumer` (KIP-848).
    """
    consumer = confluent.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def read(consumer: confluent.Consumer, count: int) -> list[Keyed]:
    """Read exactly `count` records, each committed before the next one."""
    found: list[Keyed] = []
    while len(found) < count:
        messages = consumer.consume(1, _WAIT_S)
        assert messages, f"{len(found)} of {count} records came"
        (message,) = messages
        assert message.error() is None, message.error()
        found.append((message.key(), message.value()))
        consumer.commit(message=message, asynchronous=False)
    return found


def commit(cluster: LocalCluster, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Commit offsets as a consumer that has left the group since."""
    with consuming(cluster, group) as consumer:
        positions = [
            confluent.TopicPartition(topic, partition, offset) for partition, offset in offsets.items()
        ]
        await_value(lambda: _commits(consumer, positions), _WAIT_S, lambda: f"{group} commits nothing")


def _commits(consumer: confluent.Consumer, positions: list[confluent.TopicPartition]) -> bool:
    """Commit; returns False while a new coordinator still loads its offsets."""
    try:
        consumer.commit(offsets=positions, asynchronous=False)
    except confluent.KafkaException as error:
        if error.args[0].code() != confluent.KafkaError.COORDINATOR_LOAD_IN_PROGRESS:
            raise
        return False
    return True


def committed(cluster: LocalCluster, group: str, topic: str, partitions: int) -> Mapping[int, int]:
    """Read the group's committed offsets, without partitions that have none."""
    with consuming(cluster, group) as consumer:
        asked = [confluent.TopicPartition(topic, partition) for partition in range(partitions)]
        found = consumer.committed(asked, timeout=_WAIT_S)
        return {position.partition: position.offset for position in found if position.offset >= 0}
