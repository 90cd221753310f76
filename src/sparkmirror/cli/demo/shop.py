"""Keeps writing to the source as a busy shop does, from a thread of its own, and counts what arrived."""

import random
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import confluent_kafka as confluent
from confluent_kafka.admin import AdminClient, NewTopic

from sparkmirror.cli.demo.assortment import ASSORTMENT, ShopTopic
from sparkmirror.cli.demo.topic_reader import await_leaders
from sparkmirror.domain.errors import KafkaError

_TICK_S: Final = 0.01
_TIMEOUT_S: Final = 30.0
_FLUSH_TIMEOUT_S: Final = 10.0
_BACKLOG_MAX_S: Final = 1.0


class Shop:
    """Writes `rate` records/s, spread over its topics, between `open()` and `close()`."""

    def __init__(self, bootstrap_servers: str, rate: int, topics: Sequence[ShopTopic] = ASSORTMENT) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._rate = rate
        self._topics = topics
        self._written: Counter[str] = Counter()
        self._closing = threading.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="shop")
        self._writing: Future[None] | None = None

    @property
    def written(self) -> Mapping[str, int]:
        """Records per topic that the source acknowledged; complete once the shop is closed."""
        return self._written

    def create_topics(self, partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": self._bootstrap_servers, "log_level": 0})
        new_topics = [
            NewTopic(topic.name, partitions, 1, config=dict(topic.config)) for topic in self._topics
        ]
        for created in admin.create_topics(new_topics).values():
            created.result(_TIMEOUT_S)
        await_leaders(self._bootstrap_servers, {topic.name: partitions for topic in self._topics})

    def open(self) -> None:
        self._writing = self._thread.submit(self._write_until_closing)

    def check(self) -> None:
        """Raise what made the shop stop writing, if anything did."""
        if self._writing is not None and self._writing.done():
            self._writing.result()

    def close(self) -> None:
        """Write what is due, wait for the last acknowledgement, and raise what went wrong meanwhile."""
        self._closing.set()
        self._thread.shutdown()
        self.check()

    def _write_until_closing(self) -> None:
        producers = [self._producer(topic) for topic in self._topics]
        pace = Throttle(self._rate, time.monotonic())
        rng = random.Random(self._rate)
        shares = [topic.share for topic in self._topics]
        number = 0
        while not self._closing.wait(_TICK_S):
            due = pace.due(time.monotonic())
            for at in rng.choices(range(len(producers)), shares, k=due):
                self._write(producers[at], self._topics[at], rng, number)
                number += 1
            for producer in producers:
                producer.poll(0)
        self._flush(producers)

    def _write(self, producer: confluent.Producer, topic: ShopTopic, rng: random.Random, number: int) -> None:
        record = topic.make_record(rng, number)
        while True:
            try:
                producer.produce(
                    topic.name, record.value, record.key, headers=record.headers, on_delivery=self._count
                )
            except BufferError:
                producer.poll(_TICK_S)
                continue
            return

    def _count(self, error: confluent.KafkaError | None, message: confluent.Message) -> None:
        if error is not None:
            raise KafkaError(f"{message.topic()} at {self._bootstrap_servers}: {error}")
        self._written[message.topic() or ""] += 1

    def _flush(self, producers: Sequence[confluent.Producer]) -> None:
        deadline = time.monotonic() + _FLUSH_TIMEOUT_S
        if left := sum(producer.flush(max(0.0, deadline - time.monotonic())) for producer in producers):
            raise KafkaError(f"{self._bootstrap_servers} did not acknowledge {left} records in time")

    def _producer(self, topic: ShopTopic) -> confluent.Producer:
        return confluent.Producer(
            {
                "bootstrap.servers": self._bootstrap_servers,
                "enable.idempotence": True,
                "compression.type": topic.codec,
                "linger.ms": 2,
                "log_level": 0,
            }
        )


class Throttle:
    """How many records are due. A writer that falls behind by over a second is forgiven the rest."""

    def __init__(self, rate: int, started: float) -> None:
        self._rate = rate
        self._paid_until = started

    def due(self, now: float) -> int:
        due = int((now - self._paid_until) * self._rate)
        payable = max(1, int(self._rate * _BACKLOG_MAX_S))
        if due > payable:
            self._paid_until = now
            return payable
        self._paid_until += due / self._rate
        return due
