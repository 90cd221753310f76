"""Writes to the source as a busy shop does, from a thread of its own, and counts what was acknowledged."""

import random
import threading
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Final

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.cli.commands.demo.shop_topics import SHOP_TOPICS
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import TopicExistsError
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.data.topic_log import TopicWriter

_TICK_S: Final = 0.01
_BACKLOG_MAX_S: Final = 1.0


class Shop:
    """Writes `rate` records/s, spread over its topics, between `open()` and `close()`."""

    def __init__(self, source: ConnectionSettings, rate: int) -> None:
        self._source = source
        self._rate = rate
        self._written: Counter[str] = Counter()
        self._closing = threading.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="shop")
        self._writing: Future[None] | None = None

    @property
    def written(self) -> Mapping[str, int]:
        """Records per topic that the source acknowledged; complete once the shop is closed."""
        return self._written

    def create_topics(self, partitions: int) -> None:
        """Create those that are not there. Raises SparkmirrorError."""
        creations = [TopicCreation(topic.name, partitions, 1, topic.config) for topic in SHOP_TOPICS]
        with closing(Admin(self._source)) as admin:
            for error in admin.create_topics(creations).values():
                if error is not None and not isinstance(error, TopicExistsError):
                    raise error

    def open(self) -> None:
        self._writing = self._thread.submit(self._write_until_closing)

    def check(self) -> None:
        """Raise the error that made the shop stop writing, if there is one."""
        if self._writing is not None and self._writing.done():
            self._writing.result()

    def close(self) -> None:
        """Wait for the last acknowledgement, and raise the error that writing ended with."""
        self._closing.set()
        self._thread.shutdown()
        self.check()

    def _write_until_closing(self) -> None:
        throttle = Throttle(self._rate, time.monotonic())
        rng = random.Random(self._rate)
        shares = [topic.share for topic in SHOP_TOPICS]
        number = 0
        with closing(TopicWriter(self._source)) as writer:
            while not self._closing.wait(_TICK_S):
                records: dict[str, list[LogRecord]] = {}
                for topic in rng.choices(SHOP_TOPICS, shares, k=throttle.due(time.monotonic())):
                    records.setdefault(topic.name, []).append(topic.make_record(rng, number))
                    number += 1
                for name, some in records.items():
                    self._written[name] += len(writer.write(name, some))


class Throttle:
    """Computes how many records are due; of a backlog of more than a second, the rest is dropped."""

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
