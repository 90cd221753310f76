"""Offsets are preserved by the command as users run it, killed under load, between two clusters.

Not part of `make test`: `python -m pytest tests/system/check_preserved_offsets.py` takes four minutes.
"""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import TopicPartition
from tests.support.broker_data import append, create_topic, end_offsets, move_log_starts, numbered
from tests.support.mirror import running_mirror
from tests.support.topic_reader import TopicReader
from tests.support.traffic import flowing
from tests.support.transacting import transacting
from tests.support.waiting import await_value
from tests.system.dual_run import Sides

PARTITIONS: Final = 2
KILLS: Final = 3
LOAD_S: Final = 6.0
WAIT_S: Final = 180.0
"""The mirror starts in 10 s, and on a busy machine in a minute."""

STARTS: Final = (90_000, 40)
"""Log starts of the plain topic's partitions."""


class Topics(NamedTuple):
    """The topics of a flow, whose source is called as it says."""

    alias: str
    plain: str
    transactional: str

    @classmethod
    def of(cls, alias: str) -> "Topics":
        return cls(alias, f"{alias}-plain", f"{alias}-transactional")

    def remote(self, topic: str) -> str:
        return f"{self.alias}.{topic}"


@contextmanager
def load(cluster: LocalCluster, topics: Topics) -> Iterator[None]:
    """Write to both topics until the end of the block; every second transaction is aborted."""
    transactions = transacting(cluster, topics.transactional, PARTITIONS, records=20, tick_s=0.02)
    with flowing(cluster, topics.plain, rate=1000, partitions=PARTITIONS), transactions:
        yield


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
        with load(source, topics):
            for kill in range(KILLS):
                before = end_offsets(target, [written_to]) if kill else {}
                await_value(
                    lambda before=before: end_offsets(target, [written_to]) != before,  # type: ignore[misc]  # a default binds the loop's value
                    WAIT_S,
                    lambda: f"nothing is copied: {mirror.log_text()[-2000:]}",
                )
                time.sleep(LOAD_S * random.random())
                mirror.kill()
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
