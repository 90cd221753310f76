"""Java MM2 takes over a flow whose offsets are preserved, and gives it back.

It copies one transaction meanwhile: there is no gap before its records, so they have their offsets, too.

Not part of `make test`: `python -m pytest tests/system/check_preserved_hand_over.py` takes two minutes.
"""

from pathlib import Path
from typing import Final

import confluent_kafka as confluent
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.offsets.wire_records import Checkpoint
from tests.support.broker_data import append, create_topic, end_offsets, keyed, numbered, records
from tests.support.mirror import REPLICATION, Mirror, running_mirror
from tests.support.topic_reader import TopicReader
from tests.support.waiting import await_value
from tests.system.dual_run import Sides
from tests.system.java_mm2 import dedicated

WAIT_S: Final = 180.0
PLAIN: Final = "taken.plain"
TRANSACTIONAL: Final = "taken.transactional"
GROUP: Final = "taken-group"
HERE, THERE = "tk", "tt"


def properties(sides: Sides) -> dict[str, str]:
    flow = f"{HERE}->{THERE}"
    return {
        **REPLICATION,
        "config.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "clusters": f"{HERE}, {THERE}",
        f"{HERE}.bootstrap.servers": sides.source.bootstrap_servers,
        f"{THERE}.bootstrap.servers": sides.target.bootstrap_servers,
        f"{HERE}.consumer.isolation.level": "read_committed",
        f"{THERE}.offset.flush.interval.ms": "1000",
        f"{flow}.enabled": "true",
        f"{flow}.topics": r"taken\..*",
        f"{flow}.groups": GROUP,
        f"{flow}.offsets.preserve": "true",
        "offset.lag.max": "0",
        "emit.checkpoints.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        "sync.topic.acls.enabled": "false",
        "heartbeats.replication.enabled": "false",
    }


class Written:
    """Numbered records in both topics; each second transaction of the other topic is aborted."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self.count = self.committed = 0
        self._producer = confluent.Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "taken", "log_level": 0}
        )
        self._producer.init_transactions(30)

    def more_plain(self, count: int) -> None:
        append(self._cluster, PLAIN, numbered(count, self.count))
        self.count += count

    def more(self, count: int) -> None:
        """Write plain records, and the records of two transactions."""
        self.more_plain(count)
        for commits in (True, False):
            self._producer.begin_transaction()
            for key, value in numbered(7, self.committed if commits else 1000):
                self._producer.produce(TRANSACTIONAL, value, key, partition=0)
            self._producer.flush(30)
            (self._producer.commit_transaction if commits else self._producer.abort_transaction)(30)
        self.committed += 7

    def commit(self, offset: int) -> None:
        consumer = confluent.Consumer(
            {"bootstrap.servers": self._cluster.bootstrap_servers, "group.id": GROUP, "log_level": 0}
        )

        def is_done() -> bool:
            """The coordinator of a new group may not know for a moment that it is one."""
            try:
                consumer.commit(offsets=[confluent.TopicPartition(PLAIN, 0, offset)], asynchronous=False)
            except confluent.KafkaException as error:
                if error.args[0].code() != confluent.KafkaError.NOT_COORDINATOR:
                    raise
                return False
            return True

        await_value(is_done, WAIT_S, lambda: "the group has no coordinator")
        consumer.close()


def placed(cluster: LocalCluster, topic: str) -> list[tuple[object, ...]]:
    with TopicReader(cluster.bootstrap_servers, topic, read_committed=True) as reader:
        return [
            (record.offset(), record.key(), record.value(), record.timestamp()) for record in reader.read(0)
        ]


def remote(topic: str) -> str:
    return f"{HERE}.{topic}"


def checkpoint(sides: Sides) -> tuple[int, int]:
    """The group's newest upstream and downstream offset."""
    found = (
        Checkpoint.decode(record.key() or b"", record.value() or b"")
        for record in records(sides.target, f"{HERE}.checkpoints.internal")
    )
    mine = [each for each in found if each.topic_partition == TopicPartition(remote(PLAIN), 0)]
    return (mine[-1].upstream_offset, mine[-1].downstream_offset) if mine else (-1, -1)


def await_all(sides: Sides, written: Written, mirror: Mirror) -> None:
    """Everything is there, the plain topic at the same offsets."""
    wanted = placed(sides.source, PLAIN)
    assert len(wanted) == written.count

    def there() -> bool:
        ends = end_offsets(sides.target, [remote(PLAIN), remote(TRANSACTIONAL)])
        at = TopicPartition(remote(PLAIN), 0), TopicPartition(remote(TRANSACTIONAL), 0)
        return (
            ends.get(at[0], -1) >= written.count
            and ends.get(at[1], -1) > 0
            and len(keyed(sides.target, at[1].topic)) >= written.committed
        )

    await_value(there, WAIT_S, mirror.log_text)
    assert placed(sides.target, remote(PLAIN)) == wanted
    assert keyed(sides.target, remote(TRANSACTIONAL)) == numbered(written.committed)


def await_checkpoint(sides: Sides, offset: int, mirror: Mirror, *, is_exact: bool = True) -> None:
    """Java's own translation may be some records early, never late."""

    def there() -> bool:
        upstream, downstream = checkpoint(sides)
        return upstream == offset and (downstream == offset or (not is_exact and 50 < downstream < offset))

    await_value(there, WAIT_S, lambda: f"{checkpoint(sides)}, {offset}: {mirror.log_text()[-2000:]}")


@pytest.mark.timeout(900)
def test_java_takes_a_preserved_flow_over_and_gives_it_back(sides: Sides, tmp_path: Path) -> None:
    for topic in (PLAIN, TRANSACTIONAL):
        create_topic(sides.source.bootstrap_servers, topic)
    written = Written(sides.source)
    written.more(50)
    written.commit(20)
    with running_mirror(tmp_path / "mirror", properties(sides)) as mirror:
        await_all(sides, written, mirror)
        await_checkpoint(sides, 20, mirror)
        assert placed(sides.target, remote(TRANSACTIONAL)) == placed(sides.source, TRANSACTIONAL)
        mirror.stop()
        with dedicated(mirror.file, tmp_path / "java.log", "--clusters", THERE) as java:
            written.more(20)
            written.commit(70)
            await_all(sides, written, mirror)
            await_checkpoint(sides, 70, mirror, is_exact=False)
            # Later records come after the checkpoint: Java forgets most of the syncs before its newest one.
            written.more_plain(10)
            await_all(sides, written, mirror)
            java.stop()
        written.more(20)
        written.commit(95)
        mirror.start()
        await_all(sides, written, mirror)
        await_checkpoint(sides, 95, mirror)
        assert placed(sides.target, remote(TRANSACTIONAL)) == placed(sides.source, TRANSACTIONAL)
        mirror.stop()
