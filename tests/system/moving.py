"""Consumer groups as applications have them, by a client that the mirror does not use."""

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
    """A consumer that begins with the first record where its group has no offset, and commits when told.

    The other protocol is `consumer` (KIP-848).
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
    """So many records, not one more, committed one after the other."""
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
    """As a consumer that has read so far and is gone."""
    with consuming(cluster, group) as consumer:
        positions = [
            confluent.TopicPartition(topic, partition, offset) for partition, offset in offsets.items()
        ]
        await_value(lambda: _commits(consumer, positions), _WAIT_S, lambda: f"{group} commits nothing")


def _commits(consumer: confluent.Consumer, positions: list[confluent.TopicPartition]) -> bool:
    """Not while a coordinator that nobody has asked before looks what it has."""
    try:
        consumer.commit(offsets=positions, asynchronous=False)
    except confluent.KafkaException as error:
        if error.args[0].code() != confluent.KafkaError.COORDINATOR_LOAD_IN_PROGRESS:
            raise
        return False
    return True


def committed(cluster: LocalCluster, group: str, topic: str, partitions: int) -> Mapping[int, int]:
    """The group's offsets, without partitions that have none."""
    with consuming(cluster, group) as consumer:
        asked = [confluent.TopicPartition(topic, partition) for partition in range(partitions)]
        found = consumer.committed(asked, timeout=_WAIT_S)
        return {position.partition: position.offset for position in found if position.offset >= 0}
