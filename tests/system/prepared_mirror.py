"""A mirror whose records and positions are written by the tests, and the command that verifies it."""

import json
import os
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import confluent_kafka as confluent
import javaproperties

from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.storage.positions import Position, position_record
from tests.support import broker_data
from tests.support.batches import Rec
from tests.support.broker_data import admin, create_topic
from tests.support.connections import connection
from tests.support.mirror import COMMAND, REPLICATION

SOURCE, TARGET = Alias("V"), Alias("W")
FLOW: Final = Flow(SOURCE, TARGET)
POSITIONS: Final = "mm2-offsets.V.internal"
OURS: Final = ProducerId(424242, 0)
VERIFY_TIMEOUT_S: Final = 240.0

BEGAN_MS: Final = int(time.time() * 1000) - 3_600_000
"""The first timestamp, recent enough not to be deleted by retention."""


@dataclass(frozen=True, slots=True)
class Verified:
    code: int
    output: str
    errors: str

    @property
    def partitions(self) -> Mapping[str, Any]:
        """Results by source partition, of all flows."""
        flows = json.loads(self.output)["flows"]
        return {partition["source"]: partition for flow in flows for partition in flow["partitions"]}


def verify(properties: Path, *arguments: str) -> Verified:
    command = [COMMAND, "verify", str(properties), "--slots", "2", *arguments]
    ended = subprocess.run(
        command,
        capture_output=True,
        check=False,
        text=True,
        timeout=VERIFY_TIMEOUT_S,
        env={**os.environ, "COLUMNS": "200"},
    )
    return Verified(ended.returncode, ended.stdout, ended.stderr)


@dataclass(frozen=True, slots=True)
class PreparedMirror:
    """A mirror written by the tests: records on both sides and positions."""

    source: LocalCluster
    target: LocalCluster
    properties: Path

    @property
    def report(self) -> Path:
        return self.properties.with_name("report.json")

    def mirror(self, topic: str, records: Sequence[Rec], copies: Sequence[Rec], **settings: str) -> None:
        """Write one partition on both sides, and a position at its end."""
        create_topic(self.source.bootstrap_servers, topic)
        create_topic(self.target.bootstrap_servers, f"V.{topic}")
        write(self.source, topic, records)
        write(self.target, f"V.{topic}", copies, {"batch.num.messages": "7", **settings})
        self.store(topic, Position(len(records) - 1, ProducerState(OURS, len(copies), len(copies))))

    def store(self, topic: str, position: Position) -> None:
        record = position_record(
            ConnectorName("MirrorSourceConnector"), SOURCE, TopicPartition(topic, 0), position
        )
        with closing(TopicWriter(connection(self.target))) as writer:
            writer.write(POSITIONS, [record])


def prepared_mirror(
    source: LocalCluster, target: LocalCluster, folder: Path, *, topics: str, **settings: str
) -> PreparedMirror:
    """Prepare the mirror of a flow that has stored no position yet. Settings are those of the flow."""
    properties = {
        "clusters": "V, W",
        "V.bootstrap.servers": source.bootstrap_servers,
        "W.bootstrap.servers": target.bootstrap_servers,
        "V->W.enabled": "true",
        "V->W.topics": topics,
        "V->W.heartbeats.replication.enabled": "false",
        **REPLICATION,
        **settings,
    }
    path = folder / "mm2.properties"
    path.write_text(javaproperties.dumps(properties), encoding="ascii")
    if POSITIONS not in broker_data.topics(target):
        create_topic(target.bootstrap_servers, POSITIONS, config={"cleanup.policy": "compact"})
    return PreparedMirror(source, target, path)


def write(
    cluster: LocalCluster, topic: str, records: Iterable[Rec], settings: Mapping[str, str] | None = None
) -> None:
    producer = confluent.Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "log_level": 0,
            "batch.num.messages": "5",
            **(settings or {}),
        }
    )
    produce(producer, topic, records)


def produce(producer: confluent.Producer, topic: str, records: Iterable[Rec]) -> None:
    """Wait until all are acknowledged."""
    for record in records:
        producer.produce(
            topic,
            partition=0,
            key=record.key,
            value=record.value,
            headers=list(record.headers),
            timestamp=record.timestamp,
        )
    assert producer.flush(30) == 0


def delete_before(cluster: LocalCluster, topic: str, offset: int) -> None:
    client = admin(cluster)
    (future,) = client.delete_records([confluent.TopicPartition(topic, 0, offset)]).values()
    future.result(30)


def numbered_records(count: int) -> list[Rec]:
    return [
        Rec(at, BEGAN_MS + at, b"key-%d" % (at % 7), b"value-%d" % at, (("trace", b"%d" % at),))
        for at in range(count)
    ]
