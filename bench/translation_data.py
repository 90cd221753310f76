"""The topics in which groups fail over, and the records that keep coming into them."""

import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from confluent_kafka import Producer

from bench import compaction
from bench.bed import Bed

PARTITIONS = 2
SEED_RECORDS = 60_000
"""Records of each topic; about half of the compacted one's are left."""
RECORDS_PER_S = 500
"""To each topic, while data flows."""
SEED_IN_TRANSACTION = 500
IN_TRANSACTION = 50
"""Records; while data flows."""
PLAIN, COMPACTED, TRANSACTIONS = TOPICS = ("bench-tr-plain", "bench-tr-compacted", "bench-tr-transactions")
KINDS = {PLAIN: "plain", COMPACTED: "compacted", TRANSACTIONS: "in transactions"}
_SEGMENT_BYTES = 1 << 20
_TICK_S = 0.01


def write(bed: Bed) -> None:
    """The data that is there before any mirror starts; the same for all."""
    source = bed.source
    compaction.create(source.topics, COMPACTED, PARTITIONS, _SEGMENT_BYTES)
    for topic in (PLAIN, TRANSACTIONS):
        source.topics.create(topic, PARTITIONS)
    values = [_value(number) for number in range(SEED_RECORDS)]
    producer = _producer(source.bootstrap)
    for number, (key, value) in enumerate(compaction.keyed(values, SEED_RECORDS)):
        _produce(producer, PLAIN, number)
        producer.produce(COMPACTED, value, key, number % PARTITIONS)
    producer.flush()
    paying = _paying(source.bootstrap)
    for first in range(0, SEED_RECORDS, SEED_IN_TRANSACTION):
        _pay(paying, first, SEED_IN_TRANSACTION)
    compaction.finish(source.topics, source.data, COMPACTED, PARTITIONS)


class Flow:
    """RECORDS_PER_S new records a second for each topic, from `start` to `stop`."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._enough = threading.Event()
        self._threads = [
            threading.Thread(target=run, daemon=True) for run in (self._plain, self._in_transactions)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._enough.set()

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """All that was sent is written then."""
        self._enough.set()
        for thread in self._threads:
            thread.join()

    def _plain(self) -> None:
        producer = _producer(self._bootstrap)
        for number in self._due(1):
            _produce(producer, PLAIN, number)
            _produce(producer, COMPACTED, number)
        producer.flush()

    def _in_transactions(self) -> None:
        producer = _paying(self._bootstrap)
        for first in self._due(IN_TRANSACTION):
            _pay(producer, first, IN_TRANSACTION)

    def _due(self, step: int) -> Iterator[int]:
        """Every `step`th number, when it is due."""
        began, number = time.monotonic(), 0
        while not self._enough.wait(_TICK_S):
            while number < (time.monotonic() - began) * RECORDS_PER_S:
                yield SEED_RECORDS + number
                number += step


def _producer(bootstrap: str, **settings: str) -> Producer:
    basic = {"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 2, **settings}
    return Producer({**basic, "queue.buffering.max.messages": 4 * SEED_RECORDS})


def _paying(bootstrap: str) -> Producer:
    producer = _producer(bootstrap, **{"transactional.id": TRANSACTIONS})
    producer.init_transactions()
    return producer


def _pay(producer: Producer, first: int, count: int) -> None:
    producer.begin_transaction()
    for number in range(first, first + count):
        _produce(producer, TRANSACTIONS, number)
    producer.commit_transaction()


def _produce(producer: Producer, topic: str, number: int) -> None:
    """The key is a new one, so that no cleaner finds anything to do."""
    producer.produce(topic, _value(number), b"%d" % number, number % PARTITIONS)
    producer.poll(0)


def _value(number: int) -> bytes:
    return (
        b"%d, and what else a record of a hundred bytes has to say, which is the same for all of them"
        % number
    )
