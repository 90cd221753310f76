"""A rate limit of a flow holds, and is changed in the file without a restart and without a lost record."""

import time
from typing import Final

from tests.support.broker_data import append, end_offsets
from tests.support.mirror import REPLICATION
from tests.support.progress import await_caught_up
from tests.support.topic_comparison import compare_topic
from tests.support.waiting import await_value
from tests.system import dual_run
from tests.system.dual_run import SLOW, SLOW_FETCH_BYTES, SLOW_LIMIT, SLOW_PARTITIONS, Mirrored

REMOTE: Final = f"slow.{SLOW}"
RECORD_BYTES: Final = 10_000
RECORDS: Final = 2000
"""The number of records, 20 MB, which take 100 s at the first limit."""


def test_limit_holds_until_the_file_changes(mirrored: Mirrored) -> None:
    (source, target), mirror = mirrored.sides, mirrored.mirror
    # Allowed above the rate: a burst of one second, and one fetch of each partition.
    ahead = SLOW_LIMIT + 2 * SLOW_PARTITIONS * SLOW_FETCH_BYTES
    began = time.monotonic()
    for partition in range(SLOW_PARTITIONS):
        records = [(b"key", b"v" * RECORD_BYTES)] * (RECORDS // SLOW_PARTITIONS)
        append(source, SLOW, records, partition=partition, settings={"batch.size": str(SLOW_FETCH_BYTES)})

    def copied() -> int:
        return RECORD_BYTES * sum(end_offsets(target, [REMOTE]).values())

    def copied_several_seconds() -> bool:
        found = copied()
        assert found <= SLOW_LIMIT * (time.monotonic() - began) + ahead
        return found > 4 * SLOW_LIMIT

    await_value(copied_several_seconds, 60, lambda: f"{copied()} bytes: {mirror.log_text()}")
    mirror.configure({**REPLICATION, **dual_run.properties(mirrored.sides, 100 * SLOW_LIMIT)})
    mirror.await_log("now copies at most 20 MB/s")
    await_caught_up(source, target, "slow", [SLOW], timeout_s=30)
    compared = compare_topic(source.bootstrap_servers, target.bootstrap_servers, SLOW, REMOTE)
    assert compared.first_difference is None, str(compared.first_difference)
