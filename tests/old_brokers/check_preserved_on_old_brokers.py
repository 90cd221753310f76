"""Offsets are preserved to and from brokers of older Kafkas.

No part of `make test`: each release is 60 MB from Maven Central, once, and a minute.
`OLD_BROKERS=1 python -m pytest tests/old_brokers/check_preserved_on_old_brokers.py`, with `-k 2.5.1` for one.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

import confluent_kafka as confluent
import pytest

from sparkmirror.clusters import ClusterSpec, LocalCluster
from tests.old_brokers.old_cluster import NEEDS_JARS, RELEASES, Release, old_cluster
from tests.support.broker_data import append, create_topic, delete_records, numbered, topics
from tests.support.mirror import REPLICATION, Mirror, running_mirror
from tests.support.topic_reader import TopicReader
from tests.support.waiting import await_value

pytestmark = NEEDS_JARS

Way = tuple[LocalCluster, str, LocalCluster, str]
"""A topic and its copy."""

WAIT_S: Final = 180.0
TOPIC: Final = "orders"
BACK: Final = "back.orders"
START: Final = 3000
LONG_GAP: Final = 2500
NEWEST: Final = "now"
TRIED: Final = (Release("2.5.1"), *(release for release in RELEASES if release.version > "2.5"))
"""2.5 is the oldest that the documents name."""


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster.start(ClusterSpec("new", heap_mb=256), tmp_path_factory.mktemp("new")) as cluster:
        yield cluster


def write(cluster: LocalCluster, topic: str) -> None:
    """A log that starts late, with a long gap and short ones."""
    create_topic(cluster.bootstrap_servers, topic)
    append(cluster, topic, numbered(START + 10))
    delete_records(cluster, topic, START)
    transact(cluster, topic, LONG_GAP, commits=False)
    more(cluster, topic)


def more(cluster: LocalCluster, topic: str) -> None:
    for number in range(4):
        transact(cluster, topic, 3, commits=number != 2)
        append(cluster, topic, numbered(2))


def transact(cluster: LocalCluster, topic: str, count: int, *, commits: bool) -> None:
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": topic, "log_level": 0}
    producer = confluent.Producer(settings)
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    for key, value in numbered(count):
        producer.produce(topic, value, key, partition=0)
    producer.flush(WAIT_S)
    (producer.commit_transaction if commits else producer.abort_transaction)(WAIT_S)


def placed(cluster: LocalCluster, topic: str, *, read_committed: bool = True) -> list[tuple[object, ...]]:
    with TopicReader(cluster.bootstrap_servers, topic, read_committed=read_committed) as reader:
        return [
            (record.offset(), record.key(), record.value(), record.timestamp()) for record in reader.read(0)
        ]


def bounds(cluster: LocalCluster, topic: str) -> tuple[int, int]:
    if topic not in topics(cluster):
        return -1, -1
    with TopicReader(cluster.bootstrap_servers, topic) as reader:
        return reader.offsets(0)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("release", TRIED, ids=lambda release: release.version)
def test_offsets_are_the_same_both_ways(release: Release, new: LocalCluster, tmp_path: Path) -> None:
    alias = f"old{release.version.replace('.', '')}"
    with old_cluster(release, tmp_path / "old") as started:
        old = cast("LocalCluster", started)  # its users need its address only
        topic = f"for-{alias}.{TOPIC}"
        ways = ((new, topic, old, f"{NEWEST}.{topic}"), (old, BACK, new, f"{alias}.{BACK}"))
        for source, name, _, _ in ways:
            write(source, name)
        with running_mirror(tmp_path / "mirror", properties(old, new, alias)) as mirror:
            await_same(mirror, ways)
            mirror.stop()
            for source, name, _, _ in ways:
                more(source, name)
            mirror.start()
            await_same(mirror, ways)
            mirror.stop()


def await_same(mirror: Mirror, ways: tuple[Way, ...]) -> None:
    for source, name, target, copy in ways:
        await_value(
            lambda source=source, name=name, target=target, copy=copy: (  # type: ignore[misc]  # defaults bind the loop's values
                bounds(source, name) == bounds(target, copy)
            ),
            WAIT_S,
            lambda source=source, name=name, target=target, copy=copy: (  # type: ignore[misc]  # likewise
                f"{bounds(source, name)} {bounds(target, copy)} {mirror.log_text()[-3000:]}"
            ),
        )
        wanted = placed(source, name)
        assert len(wanted) > 20
        for read_committed in (True, False):
            assert placed(target, copy, read_committed=read_committed) == wanted


def properties(old: LocalCluster, new: LocalCluster, alias: str) -> dict[str, str]:
    found = {
        **REPLICATION,
        "clusters": f"{alias}, {NEWEST}",
        f"{alias}.bootstrap.servers": old.bootstrap_servers,
        f"{NEWEST}.bootstrap.servers": new.bootstrap_servers,
        f"{alias}->{NEWEST}.topics": r"back\..*",
        f"{NEWEST}->{alias}.topics": rf"for-{alias}\..*",
    }
    for source, target in ((alias, NEWEST), (NEWEST, alias)):
        found |= {
            f"{source}->{target}.enabled": "true",
            f"{source}->{target}.offsets.preserve": "true",
            f"{source}.consumer.isolation.level": "read_committed",
        }
    return found
