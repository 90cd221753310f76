"""A user limits a flow, and changes the limit while it runs: no restart, no record lost or there twice."""

import time
from pathlib import Path
from typing import Final

from sparkmirror.cli.demo.compare import compare_topic
from tests.system.broker_data import append, end_offsets
from tests.system.dual_run import Sides
from tests.system.mirror import REPLICATION, await_value, running_mirror
from tests.system.mixed_data import create_topic
from tests.system.progress import await_caught_up

ALIAS: Final = "slow"
TOPIC: Final = "slow.orders"
PARTITIONS: Final = 2
RECORD_BYTES: Final = 10_000
RECORDS: Final = 2000
"""20 MB: at the first limit they take 100 s."""
LIMIT: Final = 200_000
FETCH_BYTES: Final = 50_000


def properties(sides: Sides, limit: int) -> dict[str, str]:
    return {
        **REPLICATION,
        "clusters": f"{ALIAS}, B",
        f"{ALIAS}.bootstrap.servers": sides.source.bootstrap_servers,
        "B.bootstrap.servers": sides.target.bootstrap_servers,
        f"{ALIAS}->B.enabled": "true",
        f"{ALIAS}->B.topics": TOPIC,
        f"{ALIAS}->B.max.bytes.per.second": str(limit),
        f"{ALIAS}.consumer.max.partition.fetch.bytes": str(FETCH_BYTES),
        "tasks.max": "1",
    }


def test_a_limit_holds_until_its_file_says_otherwise(sides: Sides, tmp_path: Path) -> None:
    source, target = sides
    create_topic(source.bootstrap_servers, TOPIC, partitions=PARTITIONS)
    for partition in range(PARTITIONS):
        records = [(b"key", b"v" * RECORD_BYTES)] * (RECORDS // PARTITIONS)
        append(source, TOPIC, records, partition=partition, settings={"batch.size": str(FETCH_BYTES)})

    def copied() -> int:
        return RECORD_BYTES * sum(end_offsets(target, [f"{ALIAS}.{TOPIC}"]).values())

    with running_mirror(tmp_path / "mirror", properties(sides, LIMIT)) as mirror:
        mirror.await_log("generation 1 copies")
        began = time.monotonic()  # nothing is copied before
        # A second's worth at once, and a fetch of each partition too much.
        ahead = LIMIT + 2 * PARTITIONS * FETCH_BYTES

        def some_seconds_worth() -> bool:
            found = copied()
            assert found <= LIMIT * (time.monotonic() - began) + ahead
            return found > 4 * LIMIT

        await_value(some_seconds_worth, 60, lambda: f"{copied()} bytes: {mirror.log_text()}")
        mirror.configure(properties(sides, 100 * LIMIT))
        mirror.await_log("now copies at most 20 MB/s")
        await_caught_up(source, target, ALIAS, [TOPIC], timeout_s=30)
        mirror.stop()
    compared = compare_topic(source.bootstrap_servers, target.bootstrap_servers, TOPIC, f"{ALIAS}.{TOPIC}")
    assert compared.first_difference is None, str(compared.first_difference)
