"""Spark's own Kafka connector as a witness: the same options read the same rows, or are refused by both.

It fetches the newest connector that the registry has, some 60 MB with its dependencies.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

import confluent_kafka as confluent
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.processes import start_process
from sparkmirror.domain.errors import JarsError
from sparkmirror.java.find_java import find_java
from sparkmirror.java.ivy import Ivy, Module
from tests.spark import connector_program
from tests.spark.programs import PYTHON_PATH, await_end
from tests.support.broker_data import create_topic

VERSIONS: Final = ("4.3.0", "4.2.0")
TOPIC: Final = "witnessed.orders"
FIRST_MS: Final = 1_700_000_000_000
COUNT: Final = 30
WAIT_S: Final = 500
SUBSCRIBED: Final = {"subscribe": TOPIC}
FROM_START: Final = {**SUBSCRIBED, "startingOffsets": "earliest"}


def batch(**options: str | None) -> dict[str, Any]:
    return {"streaming": False, "options": {**SUBSCRIBED, **options}}


def stream(**options: str | None) -> dict[str, Any]:
    return {"streaming": True, "options": {**FROM_START, **options}}


def at(*offsets: int) -> str:
    return json.dumps({TOPIC: {str(number): offset for number, offset in enumerate(offsets)}})


SOME_MS: Final = FIRST_MS + 60_000 * 9
CASES: Final[dict[str, dict[str, Any]]] = {
    "everything": batch(),
    "headers": batch(includeHeaders="true"),
    "pattern": batch(subscribe=None, subscribePattern="witnessed\\.o.*"),
    "assigned": batch(subscribe=None, assign=json.dumps({TOPIC: [1]})),
    "two selections": batch(assign=json.dumps({TOPIC: [1]})),
    "no selection": batch(subscribe=None),
    "no topic": batch(subscribe=" ,"),
    "missing topic": batch(subscribe="witnessed.nowhere"),
    "offsets": batch(startingOffsets=at(3, 5), endingOffsets=at(20, -1)),
    "offsets without a partition": batch(startingOffsets=json.dumps({TOPIC: {"0": 3}})),
    "offsets in another form": batch(startingOffsets="7"),
    "start at the end": batch(startingOffsets="latest"),
    "end at the start": batch(endingOffsets="earliest"),
    "partition starts at its end": batch(startingOffsets=at(-1, 0)),
    "end before start": batch(startingOffsets=at(9, 9), endingOffsets=at(5, 5)),
    "time": batch(startingTimestamp=str(SOME_MS)),
    "time range": batch(startingTimestamp=str(SOME_MS), endingTimestamp=str(SOME_MS + 300_000)),
    "times": batch(startingOffsetsByTimestamp=at(SOME_MS, FIRST_MS)),
    "time before offsets": batch(startingTimestamp=str(SOME_MS), startingOffsets="earliest"),
    "time behind all": batch(startingTimestamp=str(FIRST_MS * 2)),
    "time behind all at the end": batch(
        startingTimestamp=str(FIRST_MS * 2), startingOffsetsByTimestampStrategy="latest"
    ),
    "no number": batch(startingTimestamp="soon"),
    "tasks": batch(minPartitions="7"),
    "no tasks": batch(minPartitions="0"),
    "records of a task": batch(maxRecordsPerPartition="4"),
    "isolation": batch(**{"kafka.isolation.level": "read_committed"}),
    "reset": batch(**{"kafka.auto.offset.reset": "earliest"}),
    "deserializer": batch(**{"kafka.key.deserializer": "x"}),
    "values' deserializer": batch(**{"kafka.value.deserializer": "x"}),
    "auto commit": batch(**{"kafka.enable.auto.commit": "true"}),
    "interceptors": batch(**{"kafka.interceptor.classes": "x"}),
    "no servers": batch(**{"kafka.bootstrap.servers": None}),
    "security": batch(**{"kafka.security.protocol": "none"}),
    "stream": stream(),
    "limited stream": stream(maxOffsetsPerTrigger="7", includeHeaders="true"),
    "stream from the end": stream(startingOffsets="latest"),
    "stream from offsets": stream(startingOffsets=at(3, -1)),
    "stream from a time": stream(startingTimestamp=str(SOME_MS)),
    "stream with an end": stream(endingOffsets="latest"),
    "stream with an end in time": stream(endingOffsetsByTimestamp=at(SOME_MS, SOME_MS)),
    "stream with crossed limits": stream(minOffsetsPerTrigger="9", maxOffsetsPerTrigger="5"),
    "committed stream": stream(**{"kafka.isolation.level": "read_committed"}),
}


@pytest.fixture(scope="module")
def connector(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The jars of the newest version that there is; Spark has the others."""
    work, lock = tmp_path_factory.mktemp("connector"), os.open(os.devnull, os.O_RDONLY)
    for version in VERSIONS:
        module = Module("org.apache.spark", "spark-sql-kafka-0-10_2.13", version)
        try:
            jars = Ivy.of_pyspark(find_java()).retrieve(
                [module], work, keep_open=lock, on_line=lambda _: None
            )
        except JarsError:
            continue
        needed = ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2")
        return ",".join(str(jar) for jar in jars.iterdir() if jar.name.startswith(needed))
    pytest.skip("needs Spark's Kafka connector from Maven Central")


@pytest.fixture(scope="module")
def outcomes(
    connector: str, source_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], Any]:
    servers = source_cluster.bootstrap_servers
    create_topic(servers, TOPIC, partitions=2)
    producer = confluent.Producer({"bootstrap.servers": servers, "transactional.id": TOPIC})
    producer.init_transactions(30)
    for round_ in range(3):
        producer.begin_transaction()
        for number in range(round_ * 10, round_ * 10 + 10):
            for partition in range(2):
                headers: list[tuple[str, str | bytes | None]] = [("number", b"%d" % number), ("none", None)]
                producer.produce(
                    TOPIC,
                    b"value" * (number % 4),
                    None if number % 5 == 0 else b"key %d" % number,
                    partition,
                    timestamp=FIRST_MS + 60_000 * number,
                    headers=headers[: number % 3] or None,
                )
        producer.flush(30)
        if round_ == 1:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    log = tmp_path_factory.mktemp("witness") / "program.log"
    program = [sys.executable, str(Path(connector_program.__file__)), connector, servers]
    command = ["env", f"PYTHONPATH={PYTHON_PATH}", *program, json.dumps(list(CASES.values()))]
    process = start_process([command], log, outlives_us=False)
    try:
        await_end(process, WAIT_S, log)
    finally:
        process.kill()
    found: dict[tuple[str, str], Any] = {}
    for line in log.read_text().splitlines():
        if line.startswith("OUTCOME "):
            number, kind, outcome = json.loads(line.removeprefix("OUTCOME "))
            found[list(CASES)[number], kind] = outcome
    assert len(found) == 2 * len(CASES), log.read_text()[-4000:]
    return found


@pytest.mark.parametrize("name", CASES)
def test_options_mean_the_same(outcomes: dict[tuple[str, str], Any], name: str) -> None:
    theirs, ours = outcomes[name, "kafka"], outcomes[name, "sparkmirror"]
    if isinstance(theirs, str):
        assert isinstance(ours, str), theirs
    else:
        assert ours == theirs
