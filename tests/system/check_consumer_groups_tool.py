"""Reads the group of `lag.group.id` with Kafka's own kafka-consumer-groups.sh: its lag is the mirror's.

No part of `make test`: the tool's jars come from Maven Central, once.
`python -m pytest tests/system/check_consumer_groups_tool.py`.
"""

from pathlib import Path
from typing import Final

from tests.support.broker_data import append, create_topic, numbered
from tests.support.mirror import REPLICATION, running_mirror
from tests.support.waiting import await_value
from tests.system.dual_run import Sides
from tests.system.kafka_tools import printed

WAIT_S: Final = 120.0
GROUP: Final = "tool-lag"
QUICK, SLOW = "tools.quick", "tools.slow"
RECORD_BYTES: Final = 10_000
MAIN: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def described(sides: Sides) -> dict[tuple[str, int], dict[str, str]]:
    """The rows of `--describe`, by topic and partition."""
    servers = sides.source.bootstrap_servers
    text = printed(MAIN, "--describe", "--group", GROUP, "--bootstrap-server", servers).decode()
    lines = [line.split() for line in text.splitlines() if line.strip()]
    heads = next((at for at, words in enumerate(lines) if words[0] == "GROUP"), None)
    if heads is None:  # no such group yet
        return {}
    rows = [dict(zip(lines[heads], words, strict=False)) for words in lines[heads + 1 :]]
    return {(row["TOPIC"], int(row["PARTITION"])): row for row in rows}


def test_the_tool_shows_the_mirrors_lag(sides: Sides, tmp_path: Path) -> None:
    for topic in (QUICK, SLOW):
        create_topic(sides.source.bootstrap_servers, topic)
    append(sides.source, QUICK, numbered(100), partition=0)
    one_a_batch = {"batch.size": str(RECORD_BYTES)}
    append(sides.source, SLOW, [(b"key", b"v" * RECORD_BYTES)] * 50, partition=0, settings=one_a_batch)
    properties = {
        **REPLICATION,
        "clusters": "tool, B",
        "tool.bootstrap.servers": sides.source.bootstrap_servers,
        "B.bootstrap.servers": sides.target.bootstrap_servers,
        "tool->B.enabled": "true",
        "tool->B.topics": f"{QUICK}, {SLOW}",
        "tool->B.lag.group.id": GROUP,
        "tool->B.topic.max.bytes.per.second": f"{SLOW}={RECORD_BYTES // 100}",
        "tool.consumer.max.partition.fetch.bytes": str(2 * RECORD_BYTES),
    }
    with running_mirror(tmp_path / "mirror", properties) as mirror:

        def lag(topic: str) -> int | None:
            row = described(sides).get((topic, 0), {})
            return int(row["LAG"]) if row.get("LAG", "-").isdecimal() else None

        await_value(lambda: lag(QUICK) == 0, WAIT_S, mirror.log_text)
        slow = described(sides)[SLOW, 0]
        assert int(slow["LOG-END-OFFSET"]) == 50
        assert 0 < int(slow["LAG"]) == 50 - int(slow["CURRENT-OFFSET"])
        assert slow["CONSUMER-ID"] == "-", "nobody consumes with this group"
        mirror.stop()
