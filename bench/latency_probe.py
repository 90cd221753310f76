"""The two ends of a latency measurement: `send` produces at a steady rate, `receive` prints percentiles.

A value begins with the sender's CLOCK_MONOTONIC in nanoseconds, which both processes share. The receiver's
settings wait for nothing: the broker answers with the first byte, librdkafka hands it on at once.
"""

import argparse
import json
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from bench.measures import Percentiles

_STAMP = struct.Struct(">q")
_NS_PER_MS = 1e6
_NS_PER_S = 1e9


class Arrival(NamedTuple):
    """One record at the consumer; both times are CLOCK_MONOTONIC."""

    partition: int
    sent_ns: int
    received_ns: int


def send(bootstrap: str, topic: str, partitions: int, rate: int, record_bytes: int) -> None:
    """Until it is ended from outside."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    padding = bytes(record_bytes - _STAMP.size)
    began, number = time.monotonic(), 0
    while True:
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        producer.produce(topic, _STAMP.pack(time.monotonic_ns()) + padding, partition=number % partitions)
        producer.poll(0)
        number += 1


def receive(bootstrap: str, topic: str, partitions: int, warm_up_s: float, seconds: float) -> Percentiles:
    """Return the latencies of the records sent in the window."""
    arrivals = _arrivals(bootstrap, topic, partitions)
    return Percentiles.of(latencies_ms(arrivals, partitions, warm_up_s, seconds))


def _arrivals(bootstrap: str, topic: str, partitions: int) -> Iterator[Arrival]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "bench-latency", "enable.auto.commit": False}
    consumer = Consumer(settings | {"fetch.wait.max.ms": 100, "fetch.error.backoff.ms": 5})
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
    while True:
        message = consumer.poll(1.0)
        received_ns = time.monotonic_ns()
        if message is None:
            continue
        if error := message.error():
            raise KafkaException(error)
        (sent_ns,) = _STAMP.unpack_from(message.value() or b"")
        yield Arrival(message.partition() or 0, sent_ns, received_ns)


def latencies_ms(
    arrivals: Iterator[Arrival], partitions: int, warm_up_s: float, seconds: float
) -> Iterator[float]:
    """Yield latencies of records sent within the window, which begins `warm_up_s` after the first arrival.

    Ends when every partition has passed the window's end, so that a slow partition's tail is not cut off.
    """
    from_ns = next(arrivals).received_ns + int(warm_up_s * _NS_PER_S)
    until_ns = from_ns + int(seconds * _NS_PER_S)
    open_partitions = set(range(partitions))
    for arrival in arrivals:
        if from_ns <= arrival.sent_ns < until_ns:
            yield (arrival.received_ns - arrival.sent_ns) / _NS_PER_MS
        elif arrival.sent_ns >= until_ns:
            open_partitions.discard(arrival.partition)
        if not open_partitions:
            return


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("send", "receive"))
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--record-bytes", type=int, default=100)
    parser.add_argument("--warm-up", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args(arguments)
    log = (options.bootstrap, options.topic, options.partitions)
    if options.action == "send":
        send(*log, options.rate, options.record_bytes)
    else:
        print(json.dumps(asdict(receive(*log, options.warm_up, options.seconds))))


if __name__ == "__main__":
    main()
