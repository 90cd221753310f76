"""A flow is handed over from Java's MirrorMaker 2 to sparkmirror and back, under constant load.

Each of them reads the other's records in the internal topics.
"""

import json
import re
import sys
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.request import urlopen

import pytest

from sparkmirror.cli.main import main
from sparkmirror.client import remote_cluster_utils
from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST
from sparkmirror.clusters.processes import start_process
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.topic_log import read_topic
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.storage.offset_sync_topic import RunSync, parse_offset_sync
from sparkmirror.view.groups import groups_of
from sparkmirror.view.words import Word
from tests.support.broker_data import append, end_offsets, keyed, numbered, records
from tests.support.connections import connection
from tests.support.waiting import await_value
from tests.system.dual_run import Sides
from tests.system.hand_over_scenario import (
    DEDICATED,
    FLOWS,
    ORDERS,
    PARTITIONS,
    READER,
    STOPPED_GROUP,
    WAIT_S,
    HandedOver,
    Reader,
    checkpoints,
    hand_over,
    remote,
)
from tests.system.java_mm2 import JavaClasses, java_classes

ALIASES: Final = [alias for alias, _ in FLOWS]
SYNCS: Final = f"mm2-offset-syncs.{DEDICATED[1]}.internal"


class Log(NamedTuple):
    """Offsets and values of the records of a partition."""

    offsets: list[int]
    values: list[bytes | None]

    def read_by(self, committed: int) -> int:
        """Return the number of records before this committed offset."""
        return bisect_left(self.offsets, committed)


@pytest.fixture(scope="module")
def handed_over(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> HandedOver:
    return hand_over(sides, tmp_path_factory.mktemp("handed"))


@pytest.fixture(scope="module")
def source_logs(handed_over: HandedOver) -> Mapping[TopicPartition, Log]:
    return {
        partition: log
        for topic in PARTITIONS
        for partition, log in logs(handed_over.sides.source, topic).items()
    }


@pytest.fixture(scope="module")
def target_logs(handed_over: HandedOver) -> Mapping[TopicPartition, Log]:
    names = [f"{alias}.{topic}" for alias, topic in product(ALIASES, PARTITIONS)]
    return {
        partition: log for name in names for partition, log in logs(handed_over.sides.target, name).items()
    }


@pytest.fixture(scope="module")
def java(handed_over: HandedOver) -> Iterator[JavaClasses]:
    with java_classes() as classes:
        yield classes


def logs(cluster: LocalCluster, topic: str) -> Mapping[TopicPartition, Log]:
    found: dict[TopicPartition, Log] = {}
    for record in records(cluster, topic):
        partition, offset = record.partition(), record.offset()
        assert partition is not None
        assert offset is not None
        log = found.setdefault(TopicPartition(topic, partition), Log([], []))
        log.offsets.append(offset)
        log.values.append(record.value())
    return found


@pytest.mark.parametrize("alias", ALIASES)
def test_every_record_is_copied_once_and_in_order(
    alias: str, source_logs: Mapping[TopicPartition, Log], target_logs: Mapping[TopicPartition, Log]
) -> None:
    assert len(source_logs) == sum(PARTITIONS.values())
    for partition, log in source_logs.items():
        assert target_logs[remote(alias, partition)].values == log.values


@pytest.mark.parametrize("alias", ALIASES)
def test_checkpoints_never_go_back(handed_over: HandedOver, alias: str) -> None:
    written = checkpoints(handed_over.sides, alias)
    assert 0 < handed_over.by_java[alias] < handed_over.by_sparkmirror[alias] < len(written)
    for group, partition in product((READER, STOPPED_GROUP), remotes(alias)):
        own = [each for each in written if (each.group, each.topic_partition) == (group, partition)]
        for earlier, later in pairwise(own):
            assert earlier.upstream_offset <= later.upstream_offset
            assert earlier.downstream_offset < later.downstream_offset


@pytest.mark.parametrize("alias", ALIASES)
def test_no_checkpoint_is_past_its_groups_offset(
    handed_over: HandedOver,
    alias: str,
    source_logs: Mapping[TopicPartition, Log],
    target_logs: Mapping[TopicPartition, Log],
) -> None:
    original = {remote(alias, partition): log for partition, log in source_logs.items()}
    for checkpoint in checkpoints(handed_over.sides, alias):
        passed_over = target_logs[checkpoint.topic_partition].read_by(checkpoint.downstream_offset)
        assert passed_over <= original[checkpoint.topic_partition].read_by(checkpoint.upstream_offset), (
            checkpoint
        )


@pytest.mark.parametrize("alias", ALIASES)
def test_group_that_stopped_under_sparkmirror_continues_at_its_next_record(
    handed_over: HandedOver, alias: str, source_logs: Mapping[TopicPartition, Log]
) -> None:
    """Also after Java's second run, whose translation is less exact."""
    next_values = {
        remote(alias, partition): source_logs[partition].values[source_logs[partition].read_by(offset)]
        for partition, offset in handed_over.stopped_at.items()
    }
    assert first_values(handed_over.sides.target, STOPPED_GROUP, f"{alias}.{ORDERS}") == next_values


@pytest.mark.usefixtures("target_logs")  # reads the logs before this test writes
def test_group_that_read_to_the_end_continues_at_the_end(handed_over: HandedOver) -> None:
    target = handed_over.sides.target
    for alias, topic in product(ALIASES, PARTITIONS):
        name, new = f"{alias}.{topic}", numbered(1, first=1_000_000)
        for partition in range(PARTITIONS[topic]):
            append(target, name, new, partition=partition)
        expected = {TopicPartition(name, partition): new[0][1] for partition in range(PARTITIONS[topic])}
        assert first_values(target, READER, name) == expected


def first_values(target: LocalCluster, group: str, topic: str) -> Mapping[TopicPartition, bytes | None]:
    """Read the first record of each partition that a member of the group receives."""
    partitions = len(end_offsets(target, [topic]))
    found: dict[TopicPartition, bytes | None] = {}

    def read() -> bool:
        for message in reader.read():
            topic, partition = message.topic(), message.partition()
            assert topic is not None
            assert partition is not None
            found.setdefault(TopicPartition(topic, partition), message.value())
        return len(found) == partitions

    with closing(Reader(target, group, [topic])) as reader:
        await_value(read, WAIT_S, lambda: f"{group} got {found}")
    return found


class Dump(NamedTuple):
    """An internal topic, with Java's formatter and the command that print it."""

    formatter: str
    command: list[str]
    topic: str
    is_on_source: bool = False


@pytest.mark.parametrize(
    "dump",
    [
        Dump("CheckpointFormatter", ["checkpoints", "--source", DEDICATED[0]], "ho.checkpoints.internal"),
        Dump("HeartbeatFormatter", ["heartbeats"], "heartbeats"),
        Dump("OffsetSyncFormatter", ["offset-syncs", "--other", DEDICATED[1]], SYNCS, is_on_source=True),
    ],
    ids=lambda dump: dump.command[0],
)
def test_commands_print_the_same_as_javas_formatters(
    handed_over: HandedOver, java: JavaClasses, capsys: pytest.CaptureFixture[str], dump: Dump
) -> None:
    cluster = handed_over.sides.source if dump.is_on_source else handed_over.sides.target
    found = [(key or b"", value or b"") for key, value in keyed(cluster, dump.topic)]
    assert main([*dump.command, "--bootstrap-server", cluster.bootstrap_servers]) == 0
    lines = capsys.readouterr().out.splitlines()
    # Other mirrors may have sent more heartbeats.
    assert lines[: len(found)] == java.formatted(dump.formatter, found)
    assert found


@pytest.mark.parametrize(("alias", "group"), list(product(ALIASES, (READER, STOPPED_GROUP))))
def test_client_translates_offsets_as_javas_does(
    handed_over: HandedOver, java: JavaClasses, alias: str, group: str
) -> None:
    properties = {"bootstrap.servers": handed_over.sides.target.bootstrap_servers}
    ours = remote_cluster_utils.translate_offsets(properties, alias, group)
    assert {partition: at.offset for partition, at in ours.items()} == java.translated(
        properties, alias, group
    )
    assert len(ours) == (sum(PARTITIONS.values()) if group == READER else PARTITIONS[ORDERS])


def test_translation_is_not_behind_javas_with_the_same_syncs(
    handed_over: HandedOver,
    java: JavaClasses,
    source_logs: Mapping[TopicPartition, Log],
    target_logs: Mapping[TopicPartition, Log],
) -> None:
    """With offset syncs as Java reads them, and with sparkmirror's headers, never past the group's offset."""
    source = handed_over.sides.source
    plain, with_runs = histories(source, without_runs=True), histories(source, without_runs=False)
    with java.sync_store(store_properties(handed_over.sides)) as store:
        for partition, log in source_logs.items():
            copy = target_logs[remote(DEDICATED[0], partition)]
            for committed in range(log.offsets[0], log.offsets[-1] + 2, 7):
                by_java = store.translate(partition, committed)
                by_plain, by_runs = (each[partition].translate(committed) for each in (plain, with_runs))
                assert by_java is not None
                assert by_java <= by_plain <= by_runs
                assert copy.read_by(by_runs) <= log.read_by(committed), (partition, committed)


def histories(source: LocalCluster, *, without_runs: bool) -> Mapping[TopicPartition, SyncHistory]:
    found: dict[TopicPartition, SyncHistory] = {}
    for record in read_topic(connection(source), SYNCS):
        parsed = parse_offset_sync(record)
        assert parsed is not None
        sync, run = RunSync(parsed.sync) if without_runs else parsed
        if sync.topic_partition in found:
            found[sync.topic_partition].add(sync, run)
        else:
            found[sync.topic_partition] = SyncHistory(sync, run)
    return found


def store_properties(sides: Sides) -> dict[str, str]:
    here, there = DEDICATED
    return {
        "name": "asked",
        "connector.class": "MirrorCheckpointConnector",
        "source.cluster.alias": here,
        "target.cluster.alias": there,
        "source.cluster.bootstrap.servers": sides.source.bootstrap_servers,
        "target.cluster.bootstrap.servers": sides.target.bootstrap_servers,
    }


def remotes(alias: str) -> list[TopicPartition]:
    return [
        remote(alias, TopicPartition(topic, partition))
        for topic, count in PARTITIONS.items()
        for partition in range(count)
    ]


def test_javas_mirror_is_watched_from_outside(handed_over: HandedOver) -> None:
    flow = handed_over.watched
    assert flow.is_observed
    assert flow.state.word in (Word.CAUGHT_UP, Word.CATCHING_UP), flow.state
    assert flow.position_age_s is not None
    assert flow.position_age_s < WAIT_S
    assert flow.heartbeat_age_s is not None
    assert flow.speed.bytes is None, "nobody reports bytes"
    assert flow.latency_ms == (None, None)
    assert {topic.name for topic in flow.topics} == set(PARTITIONS)
    assert {partition.task for topic in flow.topics for partition in topic.partitions} == {None}
    groups = groups_of(flow)
    assert groups is not None
    assert READER in {group.name for group in groups.matching()}


def test_a_mirror_of_java_that_was_stopped_is_watched_as_one_that_requires_action(
    handed_over: HandedOver, tmp_path: Path
) -> None:
    log = tmp_path / "watch.log"
    sparkmirror = str(Path(sys.executable).with_name("sparkmirror"))
    command = [sparkmirror, "watch", str(handed_over.file), "--http", f"{HOST}:0"]
    process = start_process([command], log, outlives_us=False)

    def flow(path: str) -> dict[str, Any] | None:
        assert process.is_alive(), log.read_text()
        url = re.search(r"http://[\d.:]+", log.read_text())
        if url is None:
            return None
        with urlopen(f"{url[0]}{path}", timeout=WAIT_S) as answer:
            (found,) = json.load(answer)["flows"]
        return found if found["heartbeat_age_seconds"] is not None else None

    try:
        found = await_value(lambda: flow("/mirror"), WAIT_S, log.read_text)
        process.terminate()
        await_value(lambda: not process.is_alive(), WAIT_S, log.read_text)
    finally:
        process.kill()
    (source,) = (each for each in found["connectors"] if each["kind"] == "source")
    assert found["observed"]
    assert source["state"]["word"] == "action required"
    assert "its last heartbeat was" in source["state"]["error"]
    assert "Traceback" not in log.read_text()
