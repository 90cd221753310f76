"""Writes small transactions at a rate.

`python -m bench.transactional_source SERVERS TOPIC PARTITIONS RATE SECONDS`.
"""

import sys
import threading
import time
from typing import Final, NamedTuple

import confluent_kafka as confluent

_WRITERS: Final = 20
_RECORDS: Final = 2
_TIMEOUT_S: Final = 60.0


class _Start(NamedTuple):
    """All write from the moment on when each is ready."""

    ready: threading.Barrier
    seconds: int


def _write(servers: str, topic: str, partitions: range, per_second: float, start: _Start) -> None:
    """Write at that rate, or as fast as it can."""
    settings = {"bootstrap.servers": servers, "transactional.id": f"bench-{partitions.start}", "log_level": 0}
    producer = confluent.Producer(settings)
    producer.init_transactions(_TIMEOUT_S)
    start.ready.wait()
    began, number = time.monotonic(), 0
    while time.monotonic() < began + start.seconds:
        producer.begin_transaction()
        for _ in range(_RECORDS):
            producer.produce(topic, b"v" * 100, partition=partitions[number % len(partitions)])
        producer.commit_transaction(_TIMEOUT_S)
        number += 1
        time.sleep(max(began + number / per_second - time.monotonic(), 0.0))


def main(servers: str, topic: str, partitions: int, rate: int, seconds: int) -> None:
    count = min(_WRITERS, partitions)
    start = _Start(threading.Barrier(count), seconds)
    writers = [
        threading.Thread(
            target=_write,
            args=(servers, topic, range(first, partitions, count), rate / count, start),
        )
        for first in range(count)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


if __name__ == "__main__":
    servers_, topic_, *numbers = sys.argv[1:]
    main(servers_, topic_, *map(int, numbers))
