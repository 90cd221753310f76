"""Topics whose records are numbered, each number once: it can be told which are missing, and which extra.

They are in the soak beside the topic that `verify` compares. One loses records in unclean elections, one is
compacted all the time, and one has records so old that brokers forget within seconds who wrote them.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import confluent_kafka as confluent

from sparkmirror.clusters import LocalCluster
from tests.support.background import in_background
from tests.support.traffic import FLUSH_TIMEOUT_S

FRAIL: Final = "faults.frail"
"""Each partition has two replicas, so that one of three brokers can be left as controller alone."""
COMPACTED: Final = "faults.compacted"
OLD: Final = "faults.old"
NUMBERED: Final = (FRAIL, COMPACTED, OLD)
FRAIL_REPLICAS: Final = ((0, 1), (1, 2))
NUMBERED_PARTITIONS: Final = len(FRAIL_REPLICAS)
CONFIGS: Final[Mapping[str, dict[str, str]]] = {
    FRAIL: {"min.insync.replicas": "1"},
    COMPACTED: {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "5000"},
    OLD: {"retention.ms": "-1"},
}

_KEYS: Final = 20
"""The number of keys of the compacted topic."""
_AGE_S: Final = 2 * 86_400.0
"""The age of the old records: brokers forget a producer after a day."""
_RATE: Final = 150
_TICK_S: Final = 0.05
_PRODUCER: Final[Mapping[str, str | int | bool]] = {
    "acks": "all",
    "linger.ms": 50,
    "request.timeout.ms": 5000,
    "message.timeout.ms": 10_000,
    "log_level": 0,
    # What was not acknowledged is not written again, so that no number is there twice.
    "enable.idempotence": False,
    "message.send.max.retries": 0,
    "max.in.flight": 1,
}


@contextmanager
def numbering(source: LocalCluster) -> Iterator[None]:
    """Write records to all these topics until the end of the block; some may fail, none comes twice."""
    producer = confluent.Producer({"bootstrap.servers": source.bootstrap_servers, **_PRODUCER})

    def produce(enough: threading.Event) -> None:
        number, began = 0, time.monotonic()
        while not enough.wait(_TICK_S):
            while number < (time.monotonic() - began) * _RATE and not enough.is_set():
                _write(producer, number)
                number += 1
            producer.poll(0)

    try:
        with in_background(produce):
            yield
    finally:
        producer.flush(FLUSH_TIMEOUT_S)


def _write(producer: confluent.Producer, number: int) -> None:
    turn, at = divmod(number, len(NUMBERED))
    topic = NUMBERED[at]
    age_s = _AGE_S if topic == OLD else 0.0
    producer.produce(
        topic,
        key=b"%d" % key_of(number),
        value=b"%d" % number,
        partition=turn % NUMBERED_PARTITIONS,
        timestamp=int((time.time() - age_s) * 1000),
    )


def key_of(number: int) -> int:
    return number // len(NUMBERED) // NUMBERED_PARTITIONS % _KEYS
