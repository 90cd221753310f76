"""Writes transactions beside other records, every second one aborted: they leave gaps in the offsets."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import confluent_kafka as confluent

from sparkmirror.clusters import LocalCluster
from tests.support.background import in_background

_RECORDS: Final = 7
_TICK_S: Final = 0.05
_TIMEOUT_S: Final = 30.0


@contextmanager
def transacting(
    source: LocalCluster, topic: str, partitions: int, *, records: int = _RECORDS, tick_s: float = _TICK_S
) -> Iterator[None]:
    """Write a transaction of so many records at each tick, until the end of the block.

    What a broker's death interrupts is aborted by the next producer.
    """

    def write(enough: threading.Event) -> None:
        producer, number = _producer(source), 0
        while not enough.wait(tick_s):
            producer.begin_transaction()
            for each in range(records):
                producer.produce(
                    topic, b"%d" % number, b"transaction", partition=(number + each) % partitions
                )
            number += 1
            end = producer.commit_transaction if number % 2 else producer.abort_transaction
            end(_TIMEOUT_S)

    def produce(enough: threading.Event) -> None:
        while not enough.is_set():
            with suppress(confluent.KafkaException):
                write(enough)

    try:
        with in_background(produce):
            yield
    finally:
        with suppress(confluent.KafkaException):
            _producer(source)  # nothing stays open


def _producer(source: LocalCluster) -> confluent.Producer:
    producer = confluent.Producer(
        {
            "bootstrap.servers": source.bootstrap_servers,
            "transactional.id": "faults-transactions",
            "transaction.timeout.ms": "10000",
            "log_level": 0,
        }
    )
    producer.init_transactions(_TIMEOUT_S)
    return producer
