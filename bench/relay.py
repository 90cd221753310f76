"""A bare relay: librdkafka's consumer handing record after record to librdkafka's producer, and nothing else.

One process for each task, as the mirrors have, with the partitions assigned to them. It stores no
positions, maps no offsets, looks at no topic's settings and gives no guarantee: what its records take is what
this machine takes for reading from one broker and writing to another while the probe is watched. The settings
wait for nothing, as those of the probe: the brokers answer with the first byte and the producer sends each
record at once. `acks=all` and idempotence are what the mirrors' producers have by default.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import connection, get_context

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition

from bench.replay import Log
from bench.workloads import PARTITIONS

CONSUMER = {"fetch.min.bytes": 1, "fetch.error.backoff.ms": 5, "enable.auto.commit": False}
PRODUCER = {"linger.ms": 0, "acks": "all", "enable.idempotence": True}
_POLL_S = 0.1


def relay(source: Log, target: Log, partitions: Sequence[int]) -> None:
    """Until it is ended from outside. KafkaException as soon as a broker refuses anything."""
    consumer = Consumer({"bootstrap.servers": source.bootstrap, "group.id": "bench-relay", **CONSUMER})
    producer = Producer({"bootstrap.servers": target.bootstrap, **PRODUCER})
    consumer.assign([TopicPartition(source.topic, number, OFFSET_BEGINNING) for number in partitions])
    while True:
        message = consumer.poll(_POLL_S)
        producer.poll(0)
        if message is not None:
            _hand_on(message, producer, target.topic)


def _hand_on(message: Message, producer: Producer, topic: str) -> None:
    if error := message.error():
        raise KafkaException(error)
    producer.produce(
        topic,
        message.value(),
        message.key(),
        message.partition() or 0,
        on_delivery=_must_arrive,
        timestamp=message.timestamp()[1],
    )


def _must_arrive(error: object, _message: Message) -> None:
    if error is not None:
        raise KafkaException(error)


def shares(tasks: int) -> list[range]:
    """The partitions of each task."""
    return [range(task, PARTITIONS, tasks) for task in range(tasks)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Until SIGTERM; 1 when a task has failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="source", required=True)
    parser.add_argument("--to", dest="target", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--target-topic", required=True)
    parser.add_argument("--tasks", type=int, required=True)
    options = parser.parse_args(arguments)
    ends = Log(options.source, options.topic), Log(options.target, options.target_topic)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    spawn = get_context("spawn")
    tasks = [spawn.Process(target=relay, args=(*ends, share), daemon=True) for share in shares(options.tasks)]
    for task in tasks:
        task.start()
    with suppress(KeyboardInterrupt):
        connection.wait([task.sentinel for task in tasks])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
