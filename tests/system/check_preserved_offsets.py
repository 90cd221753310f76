"""Offsets are preserved by the command as users run it, killed under load, between two clusters.

Not part of `make test`: `python -m pytest tests/system/check_preserved_offsets.py` takes four minutes.
"""

import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import confluent_kafka as confluent
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import TopicPartition
from tests.support.broker_data import append, create_topic, end_offsets, move_log_starts, numbered
from tests.support.mirror import Mirror, running_mirror
from tests.support.topic_reader import TopicReader
from tests.support.waiting import await_value
from tests.system.dual_run import Sides

PARTITIONS: Final = 2
KILLS: Final = 3
LOAD_S: Final = 6.0
WAIT_S: Final = 180.0
"""The mirror starts in 10 s, and on a busy machine in a minute."""

STARTS: Final = (90_000, 40)
"""Of the plain topic's partitions."""


class Topics(NamedTuple):
    """Those of a flow, whose source is called as it says."""

    alias: str
    plain: str
    transactional: str

    @classmethod
    def of(cls, alias: str) -> "Topics":
        return cls(alias, f"{alias}-plain", f"{alias}-transactional")

    def remote(self, topic: str) -> str:
        return f"{self.alias}.{topic}"


class Load(threading.Thread):
    """Writes to both topics until `end`; every second transaction is aborted."""

    def __init__(self, bootstrap_servers: str, topics: Topics) -> None:
        super().__init__(daemon=True)
        self._topics = topics
        common = {"bootstrap.servers": bootstrap_servers, "log_level": 0, "linger.ms": 2}
        self._plain = confluent.Producer(common)
        self._transactional = confluent.Producer({**common, "transactional.id": f"load-{topics.alias}"})
        self._transactional.init_transactions(30)
        self._ended = threading.Event()
        self.count = 0

    def run(self) -> None:
        while not self._ended.wait(0.02):
            self._transactional.begin_transaction()
            for _ in range(random.randint(1, 40)):
                self.count += 1
                value = b"%d" % self.count
                self._plain.produce(self._topics.plain, value, b"key", partition=self.count % PARTITIONS)
                self._transactional.produce(
                    self._topics.transactional, value, partition=self.count % PARTITIONS
                )
            if self.count % 2:
                self._transactional.commit_transaction(30)
            else:
                self._transactional.abort_transaction(30)
            self._plain.poll(0)

    def end(self) -> None:
        self._ended.set()
        self.join()
        self._plain.flush(30)


@contextmanager
def load(cluster: LocalCluster, topics: Topics) -> Iterator[Load]:
    made = Load(cluster.bootstrap_servers, topics)
    made.start()
    try:
        yield made
    finally:
        made.end()


def placed(cluster: LocalCluster, topic: str, *, read_committed: bool) -> list[tuple[object, ...]]:
    with TopicReader(cluster.bootstrap_servers, topic, read_committed=read_committed) as reader:
        return [
            (record.partition(), record.offset(), record.key(), record.value(), record.timestamp())
            for partition in range(PARTITIONS)
            for record in reader.read(partition)
        ]


def bounds(cluster: LocalCluster, topic: str) -> list[tuple[int, int]]:
    with TopicReader(cluster.bootstrap_servers, topic) as reader:
        return [reader.offsets(partition) for partition in range(PARTITIONS)]


def kill(mirror: Mirror) -> None:
    """As an outage of the machine, with all that it has started."""
    for process in mirror.processes():
        process.send_signal(signal.SIGKILL)
    mirror.wait(timeout_s=10)
    mirror.assert_nothing_left(10)


@pytest.mark.parametrize("exactly_once", ["disabled", "enabled"])
@pytest.mark.timeout(1200)
def test_every_record_is_at_its_offset_after_kills_under_load(
    sides: Sides, tmp_path: Path, exactly_once: str
) -> None:
    source, target = sides
    topics = Topics.of(f"keep-{exactly_once}")
    for topic in (topics.plain, topics.transactional):
        create_topic(source.bootstrap_servers, topic, partitions=PARTITIONS)
    for partition, start in enumerate(STARTS):
        append(source, topics.plain, numbered(start + 20), partition=partition)
    move_log_starts(source, {TopicPartition(topics.plain, at): start for at, start in enumerate(STARTS)})
    flow = f"{topics.alias}->there"
    properties = {
        "clusters": f"{topics.alias}, there",
        f"{topics.alias}.bootstrap.servers": source.bootstrap_servers,
        "there.bootstrap.servers": target.bootstrap_servers,
        f"{flow}.enabled": "true",
        f"{flow}.topics": rf"{topics.alias}-.*",
        f"{flow}.offsets.preserve": "true",
        "there.exactly.once.source.support": exactly_once,
        f"{topics.alias}.consumer.isolation.level": "read_committed",
        "refresh.topics.interval.seconds": "1",
        "tasks.max": "2",
    }
    written_to = topics.remote(topics.transactional)
    with running_mirror(tmp_path / "mirror", properties) as mirror:
        with load(source, topics) as written:
            for _ in range(KILLS):
                before = end_offsets(target, [written_to]) if written.count else {}
                await_value(
                    lambda before=before: end_offsets(target, [written_to]) != before,  # type: ignore[misc]  # a default binds the loop's value
                    WAIT_S,
                    lambda: f"nothing is copied: {mirror.log_text()[-2000:]}",
                )
                written.join(LOAD_S * random.random())
                kill(mirror)
                mirror.start()
        for topic in (topics.plain, topics.transactional):
            await_value(
                lambda topic=topic: bounds(source, topic) == bounds(target, topics.remote(topic)),  # type: ignore[misc]  # likewise
                WAIT_S,
                lambda topic=topic: f"{bounds(source, topic)}, {bounds(target, topics.remote(topic))}",  # type: ignore[misc]  # likewise
            )
            wanted = placed(source, topic, read_committed=True)
            assert len(wanted) > 1000
            for read_committed in (True, False):
                assert placed(target, topics.remote(topic), read_committed=read_committed) == wanted
        mirror.stop()
