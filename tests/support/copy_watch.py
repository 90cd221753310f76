"""Reads a topic and its copy as they grow, with a client that shares no code with the mirror."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import confluent_kafka as confluent

from tests.support.any_cluster import AnyCluster
from tests.support.background import in_background
from tests.support.broker_data import Keyed, end_offsets

_POLL_S: Final = 0.2
_MESSAGES_MAX: Final = 1000


class Difference(NamedTuple):
    records: int
    lost: int
    twice: int
    is_in_order: bool


class CopyWatch:
    """`longest_s` is the longest time from a record's creation to its arrival in the copy."""

    def __init__(self, topic: str, copy: str) -> None:
        self.longest_s = 0.0
        self._topic = topic
        self._copy = copy
        self._read: dict[tuple[str, int], list[Keyed]] = defaultdict(list)

    @contextmanager
    def reading(self, cluster: AnyCluster, partitions: int) -> Iterator[None]:
        """Both topics exist, on one cluster."""
        consumer = confluent.Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": "sparkmirror-watch",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
                "log_level": 0,
            }
        )
        consumer.assign(
            [
                confluent.TopicPartition(topic, number, confluent.OFFSET_BEGINNING)
                for topic in (self._topic, self._copy)
                for number in range(partitions)
            ]
        )

        def read(enough: threading.Event) -> None:
            while not enough.is_set():
                for message in consumer.consume(_MESSAGES_MAX, _POLL_S):
                    self._take(message)

        try:
            with in_background(read):
                yield
        finally:
            consumer.close()

    def is_complete(self, cluster: AnyCluster) -> bool:
        """Whether all records of the topic were read, and as many of the copy."""
        ends = end_offsets(cluster, [self._topic])
        return all(
            len(self._read[self._topic, number]) == len(self._read[self._copy, number]) == end
            for (_, number), end in ends.items()
        )

    def difference(self) -> Difference:
        """Return how the contents of all partitions differ."""
        records, lost, twice, is_in_order = 0, 0, 0, True
        for number, original in self._originals():
            copy = self._read[self._copy, number]
            there, here = Counter(original), Counter(copy)
            records += len(original)
            lost += (there - here).total()
            twice += (here - there).total()
            is_in_order = is_in_order and copy == original
        return Difference(records, lost, twice, is_in_order)

    def _originals(self) -> list[tuple[int, list[Keyed]]]:
        return [(number, read) for (topic, number), read in list(self._read.items()) if topic == self._topic]

    def _take(self, message: confluent.Message) -> None:
        assert message.error() is None, message.error()
        topic, partition = message.topic(), message.partition()
        assert topic is not None
        assert partition is not None
        self._read[topic, partition].append((message.key(), message.value()))
        if topic == self._copy:
            self.longest_s = max(self.longest_s, time.time() - message.timestamp()[1] / 1000)
