"""Kafka's own tools and Java's consumers see on the target what they see on the source.

Not part of `make test`: `python -m pytest tests/system/check_preserved_witnesses.py` takes three minutes, and
the tools' jars come from Maven Central, once.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import TopicPartition
from tests.support.broker_data import append, create_topic, end_offsets, move_log_starts, numbered, topics
from tests.support.mirror import REPLICATION, running_mirror
from tests.support.mixed_data import WRITERS
from tests.support.topic_reader import TopicReader
from tests.support.waiting import await_value
from tests.system.dual_run import Sides
from tests.system.java_consumers import Seen, consumed
from tests.system.java_mm2 import JavaClasses, java_classes
from tests.system.kafka_tools import printed

WAIT_S: Final = 180.0
PLAIN: Final = "witness.plain"
KINDS: Final = ("compacted", "transactions", "headers-and-nulls")
START: Final = 40
"""The log start of PLAIN: records before it are deleted."""
RESETS: Final = ("earliest", "latest", "none")
LEVELS: Final = ("read_committed", "read_uncommitted")
FLOWS: Final = {"kept": "read_committed", "all": "read_uncommitted"}
"""The isolation level of each flow, by its source alias."""

_CONSOLE: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
_SHOWN: Final = ("offset", "partition", "timestamp", "key", "headers")
_QUIET_MS: Final = "20000"
_DUMP: Final = "org.apache.kafka.tools.DumpLogSegments"
_RECORD: Final = re.compile(
    r"^\| offset: (\d+) (?!.*endTxnMarker)(\w+: -?\d+) "
    r"keySize: (-?\d+) valueSize: (-?\d+) .*headerKeys: (\[.*?\])",
    re.MULTILINE,
)
_MARKER: Final = re.compile(r"^\| offset: (\d+) .*endTxnMarker: (\w+)", re.MULTILINE)


class Dumped(NamedTuple):
    """The output of kafka-dump-log.sh for a partition's segments, by offset."""

    records: Mapping[int, tuple[str, ...]]
    markers: Mapping[int, str]


@pytest.fixture(scope="module")
def copied(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> Sides:
    """Both clusters after two flows have copied the same topics and stopped."""
    source, target = sides
    create_topic(source.bootstrap_servers, PLAIN)
    append(source, PLAIN, numbered(START + 60))
    move_log_starts(source, {TopicPartition(PLAIN, 0): START})
    for kind in KINDS:
        WRITERS[kind](source.bootstrap_servers, f"witness.{kind}")
    properties = {
        **REPLICATION,
        "clusters": f"{', '.join(FLOWS)}, there",
        "there.bootstrap.servers": target.bootstrap_servers,
    }
    for alias, level in FLOWS.items():
        properties |= {
            f"{alias}.bootstrap.servers": source.bootstrap_servers,
            f"{alias}.consumer.isolation.level": level,
            f"{alias}->there.enabled": "true",
            f"{alias}->there.topics": r"witness\..*",
            f"{alias}->there.offsets.preserve": "true",
        }
    with running_mirror(tmp_path_factory.mktemp("witness") / "mirror", properties) as mirror:
        for alias in FLOWS:
            await_value(
                lambda alias=alias: ends(source) == ends(target, alias),  # type: ignore[misc]  # a default binds the loop's value
                WAIT_S,
                lambda: f"{ends(source)}: {mirror.log_text()[-3000:]}",
            )
        mirror.stop()
    return sides


@pytest.fixture(scope="module")
def java() -> Iterator[JavaClasses]:
    with java_classes() as classes:
        yield classes


def names(alias: str = "") -> list[str]:
    prefix = f"{alias}." if alias else ""
    return [f"{prefix}{topic}" for topic in (PLAIN, *(f"witness.{kind}" for kind in KINDS))]


def ends(cluster: LocalCluster, alias: str = "") -> list[int]:
    wanted = [name for name in names(alias) if name in topics(cluster)]
    return list(end_offsets(cluster, wanted).values())


def partitions(cluster: LocalCluster) -> list[TopicPartition]:
    return list(end_offsets(cluster, names()))


def remote(alias: str, partition: TopicPartition) -> TopicPartition:
    return TopicPartition(f"{alias}.{partition.topic}", partition.partition)


def console_lines(cluster: LocalCluster, alias: str, level: str) -> list[bytes]:
    """Values have bytes that end lines, too, so only all lines in order say which records there are."""
    shown = [f"--formatter-property=print.{what}=true" for what in _SHOWN]
    prefix = rf"{alias}\." if alias else ""
    chosen = ["--include", rf"{prefix}witness\..*", "--from-beginning", "--isolation-level", level]
    servers = ["--bootstrap-server", cluster.bootstrap_servers, "--timeout-ms", _QUIET_MS]
    return sorted(printed(_CONSOLE, *servers, *chosen, *shown).split(b"\n"))


@pytest.mark.parametrize("alias", FLOWS)
@pytest.mark.timeout(600)
def test_the_console_consumer_prints_the_same(copied: Sides, alias: str) -> None:
    wanted = console_lines(copied.source, "", FLOWS[alias])
    assert len(wanted) > 500
    for level in LEVELS:
        assert console_lines(copied.target, alias, level) == wanted


def dumped(cluster: LocalCluster, partition: TopicPartition) -> Dumped:
    """Segments that DeleteRecords has emptied stay a while: what is before the log's start doesn't count."""
    folder = cluster.brokers[0].data / f"{partition.topic}-{partition.partition}"
    files = ",".join(str(file) for file in sorted(folder.glob("*.log")))
    text = printed(_DUMP, "--print-data-log", "--files", files).decode(errors="replace")
    assert "isvalid: false" not in text
    with TopicReader(cluster.bootstrap_servers, partition.topic) as reader:
        start, _ = reader.offsets(partition.partition)
    return Dumped(
        {int(offset): tuple(rest) for offset, *rest in _RECORD.findall(text) if int(offset) >= start},
        {int(offset): kind for offset, kind in _MARKER.findall(text) if int(offset) >= start},
    )


@pytest.mark.parametrize("alias", FLOWS)
@pytest.mark.timeout(600)
def test_the_dumped_log_has_the_same_records_and_markers_for_all_other_offsets(
    copied: Sides, alias: str
) -> None:
    for partition in partitions(copied.source):
        there = remote(alias, partition)
        before, after = dumped(copied.source, partition), dumped(copied.target, there)
        assert after.records.items() <= before.records.items()
        with TopicReader(
            copied.source.bootstrap_servers,
            partition.topic,
            read_committed=FLOWS[alias] == "read_committed",
        ) as reader:
            start, end = reader.offsets(partition.partition)
            offsets = {record.offset() for record in reader.read(partition.partition)}
        assert after.records.keys() == offsets
        assert set(after.markers.values()) <= {"ABORT"}
        assert after.markers.keys() == set(range(start, end)) - offsets


@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.timeout(600)
def test_java_consumers_begin_and_read_alike(copied: Sides, java: JavaClasses, reset: str) -> None:
    """From no offset, one that was deleted, one in the middle, and one beyond the end."""
    source, target = (cluster.bootstrap_servers for cluster in copied)
    for partition, end in end_offsets(copied.source, names()).items():
        for alias, copied_level in FLOWS.items():
            for start in (None, 0, end // 2, end + 5):
                wanted = _seen(java, source, partition, copied_level, reset, start)
                for level in LEVELS:
                    found = _seen(java, target, remote(alias, partition), level, reset, start)
                    assert found == wanted, f"{partition} from {start}, {alias}, {level}"
                if start == end // 2 and end:
                    assert wanted.position == end


def _seen(
    java: JavaClasses, servers: str, partition: TopicPartition, level: str, reset: str, start: int | None
) -> Seen:
    settings = {"auto.offset.reset": reset, "isolation.level": level}
    return consumed(java, servers, partition, settings, start)
