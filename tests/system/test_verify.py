"""`sparkmirror verify` as people run it, over mirrors that are exact and mirrors that are not."""

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import confluent_kafka as confluent
import javaproperties
import pytest

from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.clusters import LocalCluster
from sparkmirror.copy.copy_plan import CopyPartition
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.kafka.topic_log import TopicWriter
from sparkmirror.storage.positions import Position, position_record
from sparkmirror.verify.comparison import Comparison
from sparkmirror.verify.plan import MirroredPartition, Offsets, merged, plan_ranges
from sparkmirror.verify.ranges import Sides, verify_range
from tests.support.batches import Rec
from tests.support.broker_data import admin, create_topic, latest
from tests.support.connections import connection
from tests.support.mirror import COMMAND, REPLICATION
from tests.support.traffic import flowing
from tests.support.waiting import await_value
from tests.system import dual_run
from tests.system.dual_run import Mirrored

SOURCE, TARGET = Alias("V"), Alias("W")
FLOW: Final = Flow(SOURCE, TARGET)
POSITIONS: Final = "mm2-offsets.V.internal"
OURS: Final = ProducerId(424242, 0)
VERIFY_TIMEOUT_S: Final = 240.0

BEGAN_MS: Final = int(time.time() * 1000) - 3_600_000
"""Older records would be retention's before long."""

Edit = Callable[[list[Rec]], list[Rec]]


@dataclass(frozen=True, slots=True)
class Verified:
    code: int
    output: str
    errors: str

    @property
    def partitions(self) -> Mapping[str, Any]:
        """By source partition, of all flows."""
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
class ByHand:
    """A mirror that nobody runs: both sides and the positions are written here."""

    source: LocalCluster
    target: LocalCluster
    properties: Path

    @property
    def report(self) -> Path:
        return self.properties.with_name("report.json")

    def mirror(self, topic: str, records: Sequence[Rec], copies: Sequence[Rec], **settings: str) -> None:
        """One partition on both sides, and a position that says it's mirrored to the end."""
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


def some(count: int) -> list[Rec]:
    return [
        Rec(at, BEGAN_MS + at, b"key-%d" % (at % 7), b"value-%d" % at, (("trace", b"%d" % at),))
        for at in range(count)
    ]


def altered(at: int, **change: Any) -> Edit:
    return lambda records: [*records[:at], records[at]._replace(**change), *records[at + 1 :]]


EDITS: Final[Mapping[str, Edit]] = {
    "equal": lambda records: records,
    "missing": lambda records: records[:30] + records[31:],
    "doubled": lambda records: records[:31] + records[30:],
    "doubled-run": lambda records: records[:40] + records[30:],
    "reordered": lambda records: [*records[:30], records[31], records[30], *records[32:]],
    "key": altered(30, key=b"other"),
    "value": altered(30, value=None),
    "headers": altered(30, headers=()),
    "timestamp": altered(30, timestamp=BEGAN_MS),
    "foreign": lambda records: [*records[:30], Rec(0, BEGAN_MS + 5000, b"else", b"where"), *records[30:]],
    "cut": lambda records: records[:50],
}
EXPECTED: Final[Mapping[str, tuple[str, int | None, int | None]]] = {
    "missing": ("missing", 30, None),
    "doubled": ("extra", None, 31),
    "doubled-run": ("extra", None, 40),
    "reordered": ("order", 31, 30),
    "key": ("key", 30, 30),
    "value": ("value", 30, 30),
    "headers": ("headers", 30, 30),
    "timestamp": ("timestamp", 30, 30),
    "cut": ("missing", 50, None),
}


@pytest.fixture(scope="module")
def by_hand(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> ByHand:
    properties = {
        "clusters": "V, W",
        "V.bootstrap.servers": source_cluster.bootstrap_servers,
        "W.bootstrap.servers": target_cluster.bootstrap_servers,
        "V->W.enabled": "true",
        "V->W.topics": r"verify\..*",
        "V->W.heartbeats.replication.enabled": "false",
        **REPLICATION,
    }
    path = tmp_path_factory.mktemp("verify") / "mm2.properties"
    path.write_text(javaproperties.dumps(properties), encoding="ascii")
    made = ByHand(source_cluster, target_cluster, path)
    create_topic(target_cluster.bootstrap_servers, POSITIONS, config={"cleanup.policy": "compact"})
    topics = [*EDITS, "grows", "recompressed", "source-retention", "target-retention", "live", "java"]
    with ThreadPoolExecutor(max_workers=len(topics)) as threads:  # most of it is waiting for the brokers
        for written in [threads.submit(write_by_hand, made, name) for name in topics]:
            written.result()
    write_unusual(made)
    return made


def write_by_hand(made: ByHand, name: str) -> None:
    records = some(40 if name == "grows" else 60)
    copies = EDITS[name](records) if name in EDITS else records
    codec = {"compression.type": "zstd"} if name == "recompressed" else {}
    made.mirror(f"verify.{name}", records, copies, **codec)


def write_unusual(made: ByHand) -> None:
    """What is not simply equal or different."""
    delete_before(made.source, "verify.source-retention", 20)
    delete_before(made.target, "V.verify.target-retention", 25)
    # The mirror goes on: what follows the stored position is not judged, whether it has arrived or not.
    made.store("verify.live", Position(39, ProducerState(OURS, 40, 40)))
    made.store("verify.java", Position(39))
    create_topic(made.source.bootstrap_servers, "verify.not-begun")
    write(made.source, "verify.not-begun", some(3))
    create_topic(made.source.bootstrap_servers, "verify.empty")


@pytest.fixture(scope="module")
def verified(by_hand: ByHand) -> Verified:
    return verify(by_hand.properties, "-o", "json", "--report", str(by_hand.report))


def test_a_difference_decides_the_exit_code(verified: Verified) -> None:
    assert verified.code == 1, verified.errors


@pytest.mark.parametrize("name", EXPECTED)
def test_a_difference_is_named_with_its_place(verified: Verified, name: str) -> None:
    found = verified.partitions[f"verify.{name}-0"]
    assert found["state"] == "different"
    first = found["differences"][0]
    assert (first["what"], first["source_offset"], first["target_offset"]) == EXPECTED[name]
    assert sum(found["counts"].values()) == {"doubled-run": 10, "cut": 10}.get(name, 1)
    assert found["foreign"] == 0


@pytest.mark.parametrize(
    ("name", "equal", "foreign", "not_comparable"),
    [
        ("equal", 60, 0, 0),
        ("recompressed", 60, 0, 0),
        ("foreign", 60, 1, 0),
        ("source-retention", 40, 0, 20),
        ("target-retention", 35, 0, 25),
        ("live", 40, 0, 0),
        ("java", 40, 0, 0),
        ("empty", 0, 0, 0),
    ],
)
def test_what_is_equal_is_counted(
    verified: Verified, name: str, equal: int, foreign: int, not_comparable: int
) -> None:
    found = verified.partitions[f"verify.{name}-0"]
    assert (found["state"], found["equal"], found["foreign"], found["not_comparable"]) == (
        "equal",
        equal,
        foreign,
        not_comparable,
    )


def test_partition_without_position_is_reported(verified: Verified) -> None:
    assert verified.partitions["verify.not-begun-0"]["state"] == "not begun"


def test_with_a_report_only_what_is_new_is_compared(by_hand: ByHand, verified: Verified) -> None:
    topic = "verify.grows"
    arguments = ("--topics", topic, r"verify\.equal", "--report", str(by_hand.report))
    again = verify(by_hand.properties, *arguments)
    assert again.code == 0, again.output + again.errors
    assert "✓ 100 records are the same on both clusters" in again.output
    assert "Spark" not in again.errors

    # What was compared is not read again, so that nobody sees it's gone.
    delete_before(by_hand.target, f"V.{topic}", 40)
    write(by_hand.source, topic, some(50)[40:])
    write(by_hand.target, f"V.{topic}", some(49)[40:])
    by_hand.store(topic, Position(49, ProducerState(OURS, 49, 49)))
    grown = verify(by_hand.properties, *arguments, "-o", "junit")
    assert grown.code == 1, grown.errors
    assert "Comparing 1 ranges" in grown.errors
    suite = ET.fromstring(grown.output)[0]
    cases = {case.get("name"): case for case in suite}
    assert suite.attrib["tests"] == "2"
    assert suite.attrib["failures"] == "1"
    failure = cases["verify.grows-0"].find("failure")
    assert failure is not None
    assert "missing: source offset 49, target offset -" in failure.attrib["message"]
    assert cases["verify.equal-0"].find("failure") is None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--flow", "W->V"], "has no flow W->V that mirrors topics (it has: V->W)"),
        (["--topics", r"verify\.not-begun"], "verify.not-begun-0: V.verify.not-begun-0 does not exist on W"),
    ],
)
def test_where_there_is_nothing_to_compare_it_ends_with_2(
    by_hand: ByHand, arguments: list[str], told: str
) -> None:
    ended = verify(by_hand.properties, *arguments)
    assert ended.code == 2
    assert told in ended.errors
    assert "Traceback" not in ended.errors


def test_an_unreachable_cluster_ends_with_2(by_hand: ByHand, tmp_path: Path) -> None:
    properties = tmp_path / "mm2.properties"
    text = by_hand.properties.read_text()
    properties.write_text(text.replace(by_hand.target.bootstrap_servers.replace(":", r"\:"), r"127.0.0.1\:1"))
    assert properties.read_text() != text
    ended = verify(properties)
    assert ended.code == 2
    assert "127.0.0.1:1" in ended.errors


def test_a_flow_that_never_ran_ends_with_2(by_hand: ByHand, tmp_path: Path) -> None:
    """Its positions are looked for where nobody has stored any."""
    properties = tmp_path / "mm2.properties"
    properties.write_text(re.sub(r"\bV\b", "never", by_hand.properties.read_text()))
    ended = verify(properties)
    assert ended.code == 2
    assert "the positions of never->W can't be read on W: read mm2-offsets.never.internal on " in ended.errors
    assert ended.errors.endswith("Has the flow run?\n")


# splitting


@pytest.fixture
def both(by_hand: ByHand) -> Sides:
    return Sides(
        FLOW, ConsumerSettings(connection(by_hand.source)), ConsumerSettings(connection(by_hand.target))
    )


def mirrored_partition(topic: str, count: int, copies: int) -> MirroredPartition:
    plan = CopyPartition(TopicPartition(topic, 0), f"V.{topic}")
    return MirroredPartition(plan, Position(count - 1, ProducerState(OURS, copies, copies)))


def test_a_big_partition_is_split_and_its_parts_add_up(by_hand: ByHand, both: Sides) -> None:
    ranges = plan_ranges(both, [mirrored_partition("verify.equal", 60, 60)], range_offsets=10)
    assert len(ranges) == 6
    assert sum(map(verify_range, ranges), Comparison()) == Comparison(equal=60)


def test_after_a_gap_the_split_is_found_by_time(by_hand: ByHand, both: Sides) -> None:
    ranges = plan_ranges(both, [mirrored_partition("verify.missing", 60, 59)], range_offsets=10)
    # There is none at 30, because that record is missing.
    assert [plan.target_span.first - plan.source_span.first for plan in ranges] == [0, 0, 0, -1, -1]
    found = [verify_range(plan) for plan in ranges]
    assert [comparison.is_equal for comparison in found] == [True, True, False, True, True]
    assert verify_range(merged(ranges[1:4])).counts == {"missing": 1}


def test_retention_is_no_difference_where_a_partition_is_split(by_hand: ByHand, both: Sides) -> None:
    for name, lost in (("source-retention", 20), ("target-retention", 25)):
        ranges = plan_ranges(both, [mirrored_partition(f"verify.{name}", 60, 60)], range_offsets=10)
        assert len(ranges) > 2
        found = sum(map(verify_range, ranges), Comparison())
        assert found == Comparison(equal=60 - lost, not_comparable=lost)


def test_records_removed_by_retention_are_reported_once(by_hand: ByHand, both: Sides) -> None:
    for name, done, not_comparable in (("source-retention", 10, 10), ("target-retention", 10, 15)):
        partition = mirrored_partition(f"verify.{name}", 60, 60)._replace(done=Offsets(done, done))
        (plan,) = plan_ranges(both, [partition])
        assert verify_range(plan) == Comparison(equal=50 - not_comparable, not_comparable=not_comparable)
    delete_before(by_hand.source, "verify.java", 60)
    delete_before(by_hand.target, "V.verify.java", 60)
    gone = mirrored_partition("verify.java", 60, 60)._replace(done=Offsets(40, 40))
    (plan,) = plan_ranges(both, [gone])
    assert verify_range(plan) == Comparison(not_comparable=20)


# a real mirror


def _live_position(mirrored: Mirrored) -> int:
    """The offset that is stored for the topic that is being written, -1 for none: up to there is compared."""
    key = dual_run.position_key(TopicPartition(dual_run.LIVE, 0), "rc")
    value = latest(mirrored.sides.target, "mm2-offsets.rc.internal").get(key)
    return -1 if value is None else json.loads(value)["offset"]


def test_a_mirror_that_runs_is_equal(mirrored: Mirrored) -> None:
    with flowing(mirrored.sides.source, dual_run.LIVE, rate=200, timestamp_ms=BEGAN_MS):
        await_value(lambda: _live_position(mirrored) >= 0, 30, mirrored.mirror.log_text)
        ended = verify(mirrored.mirror.file, "--flow", "rc->B", "-o", "json")
    assert ended.code == 0, ended.output + ended.errors
    partitions = ended.partitions
    assert {partition["state"] for partition in partitions.values()} == {"equal"}
    assert sum(partition["foreign"] + partition["not_comparable"] for partition in partitions.values()) == 0
    assert {name.rpartition("-")[0] for name in partitions} >= {*dual_run.COMMITTED, dual_run.LIVE}
    assert partitions["mixed.transactions-0"]["equal"] > 0
    assert partitions["mixed.codecs-0"]["equal"] >= 600
    assert partitions[f"{dual_run.LIVE}-0"]["equal"] > 0
