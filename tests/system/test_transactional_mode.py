"""The command in transactional mode: who reads what is committed sees nothing of what dies."""

import random
from pathlib import Path
from typing import Final

from sparkmirror.domain.ids import Alias, ConnectorName, TopicPartition
from sparkmirror.storage.positions import read_positions
from tests.contract.test_transactional_copy import committed
from tests.flowing import flowing
from tests.system.broker_data import Keyed, records
from tests.system.dual_run import Sides
from tests.system.mirror import await_value, running_mirror
from tests.system.mixed_data import create_topic
from tests.system.progress import await_caught_up, connection
from tests.system.test_exactly_once import TASKS, Drill, workers

ALIAS: Final = "eos"
TOPIC: Final = "eos.orders"
PARTITIONS: Final = 4
RATE: Final = 2000
CONNECTOR: Final = ConnectorName("MirrorSourceConnector")
POSITIONS: Final = f"mm2-offsets.{ALIAS}.internal"


def properties(sides: Sides) -> dict[str, str]:
    return {
        "clusters": f"{ALIAS}, B",
        f"{ALIAS}.bootstrap.servers": sides.source.bootstrap_servers,
        "B.bootstrap.servers": sides.target.bootstrap_servers,
        f"{ALIAS}->B.enabled": "true",
        f"{ALIAS}->B.topics": TOPIC,
        "B.exactly.once.source.support": "enabled",
        f"{ALIAS}->B.exactly.once.support": "required",
        f"{ALIAS}.consumer.isolation.level": "read_committed",
        "tasks.max": str(TASKS),
    }


def test_a_consumer_of_committed_records_sees_each_once(sides: Sides, tmp_path: Path) -> None:
    create_topic(sides.source.bootstrap_servers, TOPIC, partitions=PARTITIONS)
    with running_mirror(tmp_path / "mirror", properties(sides)) as mirror:
        mirror.await_log("generation 1 copies")
        drill = Drill(mirror, random.Random(1))
        with flowing(sides.source, TOPIC, rate=RATE, partitions=PARTITIONS):
            await_value(lambda: len(committed_positions(sides)) == PARTITIONS, 60, lambda: "no positions")
            drill.kill_a_worker()
            workers(mirror)
            drill.leave_a_zombie()
        await_caught_up(sides.source, sides.target, ALIAS, [TOPIC])
        mirror.stop()
    positions = committed_positions(sides)
    for partition in range(PARTITIONS):
        written = source_records(sides, partition)
        assert committed(sides.target, f"{ALIAS}.{TOPIC}", partition) == written
        assert positions[partition] == len(written) - 1


def source_records(sides: Sides, partition: int) -> list[Keyed]:
    return [
        (record.key(), record.value())
        for record in records(sides.source, TOPIC)
        if record.partition() == partition
    ]


def committed_positions(sides: Sides) -> dict[int, int]:
    """The last replicated offset by partition."""
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    found = read_positions(connection(sides.target), POSITIONS, CONNECTOR, Alias(ALIAS), partitions)
    assert all(position.producer is None for position in found.values()), "not written in transactions"
    return {partition.partition: position.offset for partition, position in found.items()}
