"""`sparkmirror failback` is killed at each stage, beside a mirror that is killed too, under load.

Not part of `make test`: `python -m pytest tests/system/check_failback.py` takes three minutes.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import Alias, ConnectorName, TopicPartition
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.migrations import read_migrations
from tests.support.broker_data import append, create_topic, end_offsets, numbered, topics
from tests.support.connections import connection
from tests.support.mirror import COMMAND, Mirror, running_mirror
from tests.support.topic_reader import TopicReader
from tests.support.traffic import flowing
from tests.support.waiting import await_value
from tests.system.dual_run import Sides

TOPIC: Final = "failed.orders"
ASIDE: Final = "aside.orders"
PARTITIONS: Final = 4
OWN: Final = 10_000
"""The records that the old source has alone, in each partition."""
WAIT_S: Final = 180.0
OWNER: Final = owner_of("mm2-offsets.new.internal", ConnectorName("MirrorSourceConnector"))
Placed = list[tuple[int | None, object]]


def placed(cluster: LocalCluster, partition: int, topic: str = TOPIC) -> Placed:
    with TopicReader(cluster.bootstrap_servers, topic) as reader:
        return [(record.offset(), record.value()) for record in reader.read(partition)]


def await_same(sides: Sides, mirror: Mirror) -> None:
    def are_same() -> bool:
        if any(TOPIC not in topics(side) for side in sides):
            return False
        return all(placed(sides[0], at) == placed(sides[1], at) for at in range(PARTITIONS))

    await_value(are_same, WAIT_S, lambda: mirror.log_text()[-3000:])


def killed_when(is_time: Callable[[], object], command: list[str]) -> None:
    """Kill the command as soon as that holds, or it has ended."""
    with subprocess.Popen(command) as process:
        try:
            await_value(
                lambda: is_time() or process.poll() is not None, WAIT_S, lambda: "its time did not come"
            )
        finally:
            process.kill()


def kept(cluster: LocalCluster) -> int:
    return sum(end_offsets(cluster, [ASIDE]).values()) if ASIDE in topics(cluster) else 0


@pytest.mark.timeout(1200)
def test_a_failback_that_is_killed_at_each_stage_ends_with_equal_logs(sides: Sides, tmp_path: Path) -> None:
    old, new = sides
    create_topic(old.bootstrap_servers, TOPIC, partitions=PARTITIONS)
    for partition in range(PARTITIONS):
        append(old, TOPIC, numbered(1000), partition=partition)
    properties = {
        "clusters": "old, new",
        "old.bootstrap.servers": old.bootstrap_servers,
        "new.bootstrap.servers": new.bootstrap_servers,
        "old->new.enabled": "true",
        "new->old.enabled": "true",
        "topics": r"failed\..*",
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "offsets.preserve": "true",
        "refresh.topics.interval.seconds": "1",
        "tasks.max": "2",
    }
    with running_mirror(tmp_path / "mirror", properties) as mirror:
        await_same(sides, mirror)
        flow = [str(mirror.file), "--flow", "old->new", "--execute", "--still-for", "1", "--timeout", "100"]
        subprocess.run([COMMAND, "promote", *flow], check=True, timeout=WAIT_S)
        with flowing(new, TOPIC, rate=100, partitions=PARTITIONS):
            for partition in range(PARTITIONS):
                append(old, TOPIC, numbered(OWN, first=100_000 * (partition + 1)), partition=partition)
            command = [COMMAND, "failback", *flow, "--delete", "--keep-aside", ASIDE]
            killed_when(lambda: kept(old) > 0, command)
            killed_when(lambda: kept(old) > OWN, command)
            killed_when(
                lambda: TOPIC in read_migrations(connection(old), Alias("new"), OWNER).failbacks, command
            )
            mirror.kill()
            mirror.start()
            subprocess.run(command, check=True, timeout=WAIT_S)
            subprocess.run([COMMAND, "failback", *flow, "--roll-back"], check=True, timeout=WAIT_S)
            subprocess.run([COMMAND, "failback", *flow], check=True, timeout=WAIT_S)
        await_same(sides, mirror)
        first = [100_000 * (partition + 1) for partition in range(PARTITIONS)]
        own = sorted(str(value) for at in first for _, value in numbered(OWN, at))
        seen = sorted(str(value) for _, value in placed(old, 0, ASIDE))
        assert seen == own
        assert end_offsets(old, [TOPIC])[TopicPartition(TOPIC, 0)] > 1000
