"""All records of one partition, read with confluent-kafka: committed or not, up to the present end."""

import time
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from bench.errors import BenchError

_TIMEOUT_S = 60.0


def read(bootstrap: str, topic: str, partition: int) -> Iterator[Message]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
            "log_level": 2,
        }
    )
    deadline = time.monotonic() + _TIMEOUT_S
    try:
        # From 0, not from the beginning: see `bench.topics` on librdkafka's ListOffsets.
        consumer.assign([TopicPartition(topic, partition, 0)])
        while time.monotonic() < deadline:
            for message in consumer.consume(1_000, timeout=0.1):
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its only name
                    return
    finally:
        consumer.close()
    raise BenchError(f"{topic}-{partition} could not be read within {_TIMEOUT_S:.0f} s")
