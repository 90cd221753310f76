"""`sparkmirror offsets preserve` beside a real mirror: a topic with transactions is recreated.

Not part of `make test`: `python -m pytest tests/system/check_offsets_preserve.py` takes three minutes.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import confluent_kafka as confluent
import pytest

from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import append, create_topic, numbered, topics
from tests.support.mirror import COMMAND, REPLICATION, running_mirror
from tests.support.topic_reader import TopicReader
from tests.support.waiting import await_value
from tests.system.dual_run import Sides

TOPIC: Final = "remade.orders"
REMOTE: Final = f"former.{TOPIC}"
PARTITIONS: Final = 3
GROUP: Final = "billing"
READ: Final = 25
"""Records that the group has read in each partition."""
WAIT_S: Final = 180.0

Placed = list[tuple[int | None, object]]


def transact(cluster: LocalCluster, some: range) -> None:
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "remade", "log_level": 0}
    producer = confluent.Producer(settings)
    producer.init_transactions(30)
    for number in some:
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            for key, value in numbered(3, 3 * number):
                producer.produce(TOPIC, value, key, partition=partition)
        producer.commit_transaction(30)


def placed(cluster: LocalCluster, topic: str) -> list[Placed]:
    with TopicReader(cluster.bootstrap_servers, topic, read_committed=True) as reader:
        return [
            [(record.offset(), record.value()) for record in reader.read(partition)]
            for partition in range(PARTITIONS)
        ]


def counts(cluster: LocalCluster, topic: str) -> list[int]:
    return [len(each) for each in placed(cluster, topic)] if topic in topics(cluster) else []


def consume(cluster: LocalCluster, count: int) -> Mapping[int, list[object]]:
    """The next records of each partition, which the group has read then."""
    settings = {"group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    found: dict[int, list[object]] = {}
    consumer = confluent.Consumer({"bootstrap.servers": cluster.bootstrap_servers, **settings})
    for partition in range(PARTITIONS):
        place = confluent.TopicPartition(REMOTE, partition)
        (at,) = consumer.committed([place], timeout=30)
        place.offset = at.offset if at.offset >= 0 else confluent.OFFSET_BEGINNING
        consumer.assign([place])
        records: list[confluent.Message] = []
        while len(records) < count:
            records += consumer.consume(count - len(records), timeout=1)
        assert not [record.error() for record in records if record.error()]
        found[partition] = [record.value() for record in records]
        consumer.commit(
            offsets=[confluent.TopicPartition(REMOTE, partition, (records[-1].offset() or 0) + 1)],
            asynchronous=False,
        )
    consumer.close()
    return found


@pytest.mark.timeout(1200)
def test_a_topic_is_recreated_beside_a_running_mirror(sides: Sides, tmp_path: Path) -> None:
    source, target = sides
    create_topic(source.bootstrap_servers, TOPIC, partitions=PARTITIONS)
    transact(source, range(20))
    properties = {
        "clusters": "former, later",
        "former.bootstrap.servers": source.bootstrap_servers,
        "later.bootstrap.servers": target.bootstrap_servers,
        "former->later.enabled": "true",
        "former->later.topics": r"remade\..*",
        "former->later.consumer.isolation.level": "read_committed",
        "former->later.sync.group.offsets.enabled": "true",
        "refresh.topics.interval.seconds": "1",
    }
    with running_mirror(tmp_path / "mirror", properties) as mirror:
        await_value(
            lambda: counts(target, REMOTE) == [60] * PARTITIONS, WAIT_S, lambda: mirror.log_text()[-2000:]
        )
        before = consume(target, READ)
        mirror.stop()
        mirror.configure({**REPLICATION, **properties, "former->later.offsets.preserve": "true"})
        mirror.start()
        command = [COMMAND, "offsets", "preserve", str(mirror.file), TOPIC, "--execute", "--timeout", "180"]
        subprocess.run(command, check=True, timeout=2 * WAIT_S)
        for partition in range(PARTITIONS):
            append(source, TOPIC, numbered(3, 60), partition=partition)
        await_value(
            lambda: counts(target, REMOTE) == [63] * PARTITIONS, WAIT_S, lambda: mirror.log_text()[-2000:]
        )
        assert placed(target, REMOTE) == placed(source, TOPIC)
    after = consume(target, 63 - READ)
    wanted = [value for _, value in numbered(63)]
    assert {at: before[at] + after[at] for at in before} == dict.fromkeys(range(PARTITIONS), wanted)
