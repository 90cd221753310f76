"""`sparkmirror verify` over mirrors that are equal to their source and mirrors that differ."""

import json
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest

from sparkmirror.batches.producer import ProducerState
from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.topic_log import TopicTail
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.storage.events import parse_event
from sparkmirror.storage.positions import Position
from sparkmirror.storage.verified import Verified as Compared
from sparkmirror.storage.verified import verified_of
from sparkmirror.verify.range_comparison import Sides, verify_range
from sparkmirror.verify.range_planning import MirroredPartition, Offsets, merged, plan_ranges
from sparkmirror.verify.rules_and_result import Comparison
from tests.support.batches import Rec
from tests.support.broker_data import create_topic, latest
from tests.support.connections import connection
from tests.support.traffic import flowing
from tests.support.waiting import await_value
from tests.system import dual_run
from tests.system.dual_run import Mirrored
from tests.system.prepared_mirror import (
    BEGAN_MS,
    FLOW,
    OURS,
    SOURCE,
    PreparedMirror,
    Verified,
    delete_before,
    numbered_records,
    prepared_mirror,
    verify,
    write,
)

EVENTS: Final = StateTopic.EVENTS.of(SOURCE)
Edit = Callable[[list[Rec]], list[Rec]]


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
def prepared(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> PreparedMirror:
    made = prepared_mirror(
        source_cluster, target_cluster, tmp_path_factory.mktemp("verify"), topics=r"verify\..*"
    )
    topics = [*EDITS, "grows", "recompressed", "source-retention", "target-retention", "live", "java"]
    with ThreadPoolExecutor(max_workers=len(topics)) as threads:  # most of it is waiting for brokers
        for written in [threads.submit(write_topic, made, name) for name in topics]:
            written.result()
    write_unusual(made)
    create_topic(made.target.bootstrap_servers, EVENTS)
    return made


def write_topic(made: PreparedMirror, name: str) -> None:
    records = numbered_records(40 if name == "grows" else 60)
    copies = EDITS[name](records) if name in EDITS else records
    codec = {"compression.type": "zstd"} if name == "recompressed" else {}
    made.mirror(f"verify.{name}", records, copies, **codec)


def write_unusual(made: PreparedMirror) -> None:
    """Prepare partitions with deleted records, positions before the end, or no position."""
    delete_before(made.source, "verify.source-retention", 20)
    delete_before(made.target, "V.verify.target-retention", 25)
    # Records after the stored position are not compared, as the mirror is still copying them.
    made.store("verify.live", Position(39, ProducerState(OURS, 40, 40)))
    made.store("verify.java", Position(39))
    create_topic(made.source.bootstrap_servers, "verify.not-begun")
    write(made.source, "verify.not-begun", numbered_records(3))
    create_topic(made.source.bootstrap_servers, "verify.empty")
    create_topic(made.source.bootstrap_servers, "verify.target-deleted")
    write(made.source, "verify.target-deleted", numbered_records(3))
    made.store("verify.target-deleted", Position(2, ProducerState(OURS, 3, 3)))


@pytest.fixture(scope="module")
def verified(prepared: PreparedMirror) -> Verified:
    return verify(prepared.properties, "-o", "json", "--report", str(prepared.report))


def test_the_result_is_kept_among_the_events(prepared: PreparedMirror, verified: Verified) -> None:
    found = kept(prepared.target)
    assert set(map(str, found)) >= {f"verify.{name}-0" for name in EDITS}
    assert found[TopicPartition("verify.equal", 0)][1:] == (60, 0)
    assert found[TopicPartition("verify.live", 0)][1:] == (40, 0)
    assert found[TopicPartition("verify.doubled-run", 0)].differences == 10
    assert TopicPartition("verify.not-begun", 0) not in found
    assert "won't show" not in verified.errors


def kept(target: LocalCluster) -> Mapping[TopicPartition, Compared]:
    with closing(TopicTail(connection(target), EVENTS)) as tail:
        events = [parse_event(record) for record in tail.read_to_end(30.0)]
    return {of: it for event in events if event is not None for of, it in verified_of(event).items()}


def test_difference_exits_with_1(verified: Verified) -> None:
    assert verified.code == 1, verified.errors


@pytest.mark.parametrize("name", EXPECTED)
def test_difference_is_reported_with_its_offsets(verified: Verified, name: str) -> None:
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
def test_equal_foreign_and_incomparable_records_are_counted(
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


def test_partition_whose_target_was_deleted_after_it_was_mirrored_is_different(
    prepared: PreparedMirror,
) -> None:
    ended = verify(prepared.properties, "--topic", r"verify\.target-deleted", "-o", "json")
    assert ended.code == 1, ended.errors
    found = ended.partitions["verify.target-deleted-0"]
    assert found["state"] == "different"
    assert found["gave_up"] == (
        "V.verify.target-deleted-0 does not exist on W, but source offsets up to 2 were mirrored"
    )
    assert "Spark" not in ended.errors


def test_only_new_records_are_compared_with_a_report(prepared: PreparedMirror, verified: Verified) -> None:
    topic = "verify.grows"
    arguments = ("--topic", topic, "--topic", r"verify\.equal", "--report", str(prepared.report))
    again = verify(prepared.properties, *arguments)
    assert again.code == 0, again.output + again.errors
    assert "✓ 100 records are the same on both clusters" in again.output
    assert "Spark" not in again.errors

    # Compared records are not read again, so their deletion is not noticed.
    delete_before(prepared.target, f"V.{topic}", 40)
    write(prepared.source, topic, numbered_records(50)[40:])
    write(prepared.target, f"V.{topic}", numbered_records(49)[40:])
    prepared.store(topic, Position(49, ProducerState(OURS, 49, 49)))
    grown = verify(prepared.properties, *arguments, "-o", "junit")
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
    ("arguments", "message", "code"),
    [
        (["--flow", "W->V"], "has no flow W->V that mirrors topics (it has: V->W)", 2),
        (
            ["--topic", r"verify\.not-begun"],
            "verify.not-begun-0: V.verify.not-begun-0 does not exist on W",
            3,
        ),
    ],
)
def test_nothing_to_compare_has_a_code_of_its_own_where_records_were_never_begun(
    prepared: PreparedMirror, arguments: list[str], message: str, code: int
) -> None:
    ended = verify(prepared.properties, *arguments)
    assert ended.code == code
    assert message in ended.errors
    assert "Traceback" not in ended.errors


def test_unreachable_cluster_exits_with_2(prepared: PreparedMirror, tmp_path: Path) -> None:
    properties = tmp_path / "mm2.properties"
    text = prepared.properties.read_text()
    address = prepared.target.bootstrap_servers.replace(":", r"\:")
    properties.write_text(text.replace(address, r"127.0.0.1\:1"))
    assert properties.read_text() != text
    ended = verify(properties)
    assert ended.code == 2
    assert "127.0.0.1:1" in ended.errors


def test_flow_that_never_ran_exits_with_2(prepared: PreparedMirror, tmp_path: Path) -> None:
    """The flow's topic of positions does not exist."""
    properties = tmp_path / "mm2.properties"
    properties.write_text(re.sub(r"\bV\b", "never", prepared.properties.read_text()))
    ended = verify(properties)
    assert ended.code == 2
    assert ended.errors.endswith("never->W: nothing to compare: no mirror of this file has run yet\n")


# partitions split into ranges


@pytest.fixture
def pair(prepared: PreparedMirror) -> Sides:
    return Sides(
        FLOW, ConsumerSettings(connection(prepared.source)), ConsumerSettings(connection(prepared.target))
    )


def mirrored_partition(topic: str, count: int, copies: int) -> MirroredPartition:
    plan = CopyPartition(TopicPartition(topic, 0), f"V.{topic}")
    return MirroredPartition(plan, Position(count - 1, ProducerState(OURS, copies, copies)))


def test_split_partition_has_the_sum_of_its_ranges(prepared: PreparedMirror, pair: Sides) -> None:
    ranges = plan_ranges(pair, [mirrored_partition("verify.equal", 60, 60)], range_offsets=10)
    assert len(ranges) == 6
    assert sum(map(verify_range, ranges), Comparison()) == Comparison(equal=60)


def test_ranges_after_a_gap_are_aligned_by_timestamp(prepared: PreparedMirror, pair: Sides) -> None:
    ranges = plan_ranges(pair, [mirrored_partition("verify.missing", 60, 59)], range_offsets=10)
    # No range starts at 30, because that record is missing.
    assert [plan.target_span.first - plan.source_span.first for plan in ranges] == [0, 0, 0, -1, -1]
    found = [verify_range(plan) for plan in ranges]
    assert [comparison.is_equal for comparison in found] == [True, True, False, True, True]
    assert verify_range(merged(ranges[1:4])).counts == {"missing": 1}


def test_deleted_records_of_split_partitions_are_no_difference(prepared: PreparedMirror, pair: Sides) -> None:
    for name, lost in (("source-retention", 20), ("target-retention", 25)):
        ranges = plan_ranges(pair, [mirrored_partition(f"verify.{name}", 60, 60)], range_offsets=10)
        assert len(ranges) > 2
        found = sum(map(verify_range, ranges), Comparison())
        assert found == Comparison(equal=60 - lost, not_comparable=lost)


def test_records_removed_by_retention_are_reported_once(prepared: PreparedMirror, pair: Sides) -> None:
    for name, done, not_comparable in (("source-retention", 10, 10), ("target-retention", 10, 15)):
        partition = mirrored_partition(f"verify.{name}", 60, 60)._replace(done=Offsets(done, done))
        (plan,) = plan_ranges(pair, [partition])
        assert verify_range(plan) == Comparison(equal=50 - not_comparable, not_comparable=not_comparable)
    delete_before(prepared.source, "verify.java", 60)
    delete_before(prepared.target, "V.verify.java", 60)
    gone = mirrored_partition("verify.java", 60, 60)._replace(done=Offsets(40, 40))
    (plan,) = plan_ranges(pair, [gone])
    assert verify_range(plan) == Comparison(not_comparable=20)


# a running mirror


def _live_position(mirrored: Mirrored) -> int:
    """Read the stored offset of the topic that is being written, -1 for none; verify compares up to it."""
    key = dual_run.position_key(TopicPartition(dual_run.LIVE, 0), "rc")
    value = latest(mirrored.sides.target, "mm2-offsets.rc.internal").get(key)
    return -1 if value is None else json.loads(value)["offset"]


def test_running_mirror_is_equal(mirrored: Mirrored) -> None:
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
