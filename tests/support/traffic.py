"""Writes records at a steady rate while a test does something else."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

import confluent_kafka as confluent

from tests.support.any_cluster import AnyCluster
from tests.support.background import in_background

FLUSH_TIMEOUT_S: Final = 60.0
_TICK_S: Final = 0.02


@contextmanager
def flowing(
    cluster: AnyCluster,
    topic: str,
    *,
    rate: int = 2000,
    partitions: int = 1,
    alike: bool = False,
    timestamp_ms: int = 0,
    settings: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Write `rate` numbered records per second, to the partitions in turn, until the end of the block.

    At its end all of them are acknowledged. Records that could not be written for a while follow in
    a burst. A timestamp of 0 means now. `alike`, all records are the same.
    """
    undelivered: list[confluent.KafkaError] = []
    producer = confluent.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 5, "log_level": 0, **(settings or {})}
    )

    def note(error: confluent.KafkaError | None, _: confluent.Message) -> None:
        if error is not None:
            undelivered.append(error)

    begin_ms = int(time.time() * 1000)

    def write(number: int) -> None:
        producer.produce(
            topic,
            key=b"key" if alike else b"key-%d" % number,
            value=b"value" if alike else b"value-%d" % number,
            partition=number % partitions,
            timestamp=timestamp_ms or (begin_ms if alike else 0),
            on_delivery=note,
        )

    def produce(enough: threading.Event) -> None:
        number = 0
        began = time.monotonic()
        while not enough.wait(_TICK_S):
            with suppress(BufferError):  # the producer's queue is full: the rest waits for the next turn
                while number < (time.monotonic() - began) * rate and not enough.is_set():
                    write(number)
                    number += 1
            producer.poll(0)

    try:
        with in_background(produce):
            yield
    finally:
        left = producer.flush(FLUSH_TIMEOUT_S)
    assert not undelivered, f"{topic}: {len(undelivered)} records were refused: {undelivered[0]}"
    assert left == 0, f"{topic}: {left} records were not acknowledged"
