"""Kafka's own integration cases of MirrorMaker 2, by name, run against a worker.

`tests/EVIDENCE.md` says for each case of `MirrorConnectorsIntegrationBaseTest` which test has it; those
without a test elsewhere are here. Where Java promises a lag of `offset.lag.max`, ours has to be exact.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from typing import Final

import pytest

from sparkmirror import MirrorClient
from sparkmirror.clusters import LocalCluster
from sparkmirror.offsets.wire_records import Checkpoint
from tests.support.broker_data import append, config, configure, create_topic, keyed, numbered, topics
from tests.support.broker_data import records as all_records
from tests.support.waiting import await_value
from tests.system.connect_node import (
    CHECKPOINT,
    SOURCE,
    ConnectNode,
    connector_config,
    group_properties,
    running_nodes,
)
from tests.system.consumer_groups import commit, committed, consuming, read

PRIMARY, BACKUP = "kprimary", "kbackup"
PARTITIONS: Final = 3
COUNT: Final = 10
"""The number of records in each partition."""
WAIT_S: Final = 90.0
EXCLUDED: Final = r"delete\.retention\..*"


class Cases:
    """The clusters, the worker, and the connectors that most cases share."""

    def __init__(self, primary: LocalCluster, backup: LocalCluster, node: ConnectNode) -> None:
        self.primary, self.backup, self.node = primary, backup, node

    def config(
        self, kind: str, topic: str, aliases: tuple[str, str] = (PRIMARY, BACKUP), **more: str
    ) -> dict[str, str]:
        source, target = zip(aliases, (self.primary, self.backup), strict=True)
        settings = connector_config(kind, source, target, topics=topic)
        settings |= {
            "groups": f"{topic}-group",
            "refresh.topics.interval.seconds": "1",
            "sync.topic.configs.interval.seconds": "1",
            "sync.group.offsets.enabled": "true",
            "sync.group.offsets.interval.seconds": "1",
            "heartbeats.replication.enabled": "false",
            "config.properties.exclude": EXCLUDED,
        }
        return settings | {key.replace("_", "."): value for key, value in more.items()}

    def produce(self, topic: str, partitions: int = PARTITIONS, count: int = COUNT) -> None:
        for partition in range(partitions):
            append(self.primary, topic, numbered(count), partition=partition)

    def await_copied(self, topic: str, count: int) -> None:
        def is_there() -> bool:
            return topic in topics(self.backup) and len(keyed(self.backup, topic)) >= count

        await_value(is_there, WAIT_S, self.node.log_text)
        assert len(keyed(self.backup, topic)) == count

    def await_synced(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Until the group's offsets on the backup cluster are exactly these."""

        def found() -> Mapping[int, int]:
            return committed(self.backup, group, topic, PARTITIONS)

        await_value(lambda: found() == offsets, WAIT_S, lambda: f"{found()}, not {offsets}")

    def translated(self, group: str) -> Mapping[str, int]:
        with MirrorClient({"bootstrap.servers": self.backup.bootstrap_servers}) as client:
            found = client.remote_consumer_offsets(group, PRIMARY, 30.0)
        return {str(partition): offset.offset for partition, offset in found.items()}

    def await_config(self, topic: str, expected: Mapping[str, str]) -> None:
        def found() -> Mapping[str, str | None]:
            there = config(self.backup, topic) if topic in topics(self.backup) else {}
            return {name: there.get(name) for name in expected}

        await_value(lambda: found() == expected, WAIT_S, lambda: f"{found()}, not {expected}")

    def assert_monotonic_checkpoints(self, group: str) -> None:
        """Like `assertMonotonicCheckpoints`: a group that went forward is never translated backwards."""
        written = [
            Checkpoint.decode(record.key() or b"", record.value() or b"")
            for record in all_records(self.backup, f"{PRIMARY}.checkpoints.internal")
        ]
        of_group = sorted((each for each in written if each.group == group), key=_partition_of)
        for _, of_partition in groupby(of_group, key=_partition_of):
            for former, latter in pairwise(of_partition):
                if latter.upstream_offset >= former.upstream_offset:
                    assert latter.downstream_offset >= former.downstream_offset, (former, latter)


def _partition_of(checkpoint: Checkpoint) -> tuple[str, int]:
    return checkpoint.topic_partition


@pytest.fixture(scope="module")
def cases(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cases]:
    """A worker with one flow, of every topic whose name begins with `kic.`."""
    properties = group_properties(target_cluster, "kafka-cases")
    with running_nodes(tmp_path_factory.mktemp("kafka-cases"), properties, 1) as (node,):
        node.await_answers()
        found = Cases(source_cluster, target_cluster, node)
        node.put("kic-source", found.config(SOURCE, r"kic\..*", offset_lag_max=str(COUNT)))
        node.put("kic-checkpoint", found.config(CHECKPOINT, r"kic\..*", groups=r"kic\..*"))
        yield found
        node.stop()


def remote(topic: str) -> str:
    return f"{PRIMARY}.{topic}"


def ends(partitions: int, count: int) -> dict[int, int]:
    return dict.fromkeys(range(partitions), count)


def test_replication_with_empty_partition(cases: Cases) -> None:
    """`testReplicationWithEmptyPartition`: there the group begins with the first record that comes."""
    topic, group = "kic.empty-partition", "kic.empty-partition-group"
    last = PARTITIONS - 1
    create_topic(cases.primary.bootstrap_servers, topic, partitions=PARTITIONS)
    cases.produce(topic, last)
    commit(cases.primary, group, topic, {**ends(last, COUNT), last: 0})
    cases.await_copied(remote(topic), last * COUNT)
    cases.await_synced(group, remote(topic), ends(last, COUNT))
    with consuming(cases.backup, group) as consumer:
        consumer.subscribe([remote(topic)])
        append(cases.primary, topic, [(b"first", b"first")], partition=last)
        assert read(consumer, 1) == [(b"first", b"first")]


def test_one_way_replication_with_auto_offset_sync(cases: Cases) -> None:
    """`testOneWayReplicationWithAutoOffsetSync`, and `…WithFrequentOffsetSyncs`: both have to be exact."""
    topic, later, group = "kic.one-way", "kic.one-way-later", "kic.one-way-group"
    for name in (topic, later):
        create_topic(cases.primary.bootstrap_servers, name, partitions=PARTITIONS)
        cases.produce(name)
        commit(cases.primary, group, name, ends(PARTITIONS, COUNT))
        cases.await_copied(remote(name), PARTITIONS * COUNT)
        cases.await_synced(group, remote(name), ends(PARTITIONS, COUNT))
    with consuming(cases.backup, group) as consumer:
        consumer.subscribe([remote(topic), remote(later)])
        append(cases.primary, later, [(b"next", b"next")], partition=0)
        assert read(consumer, 1) == [(b"next", b"next")]
    cases.assert_monotonic_checkpoints(group)


def test_no_checkpoints_if_no_records_are_mirrored(cases: Cases) -> None:
    """`testNoCheckpointsIfNoRecordsAreMirrored`: a topic whose records expired before they were mirrored."""
    topic, nothing, group = "kic.some", "kic.none", "kic.none-group"
    for name in (topic, nothing):
        create_topic(cases.primary.bootstrap_servers, name)
    cases.produce(topic, 1)
    cases.await_copied(remote(topic), COUNT)
    commit(cases.primary, group, topic, {0: COUNT})
    await_value(lambda: f"{remote(topic)}-0" in cases.translated(group), WAIT_S, cases.node.log_text)
    assert f"{remote(nothing)}-0" not in cases.translated(group)
    cases.produce(nothing, 1)
    commit(cases.primary, group, nothing, {0: COUNT})
    await_value(
        lambda: cases.translated(group) == {f"{remote(name)}-0": COUNT for name in (topic, nothing)},
        WAIT_S,
        lambda: f"{cases.translated(group)}",
    )


def test_restart_replication(cases: Cases) -> None:
    """`testRestartReplication`."""
    topic, group = "kic.restart", "kic.restart-group"
    create_topic(cases.primary.bootstrap_servers, topic, partitions=PARTITIONS)
    for times in (1, 2):
        cases.produce(topic)
        cases.await_copied(remote(topic), times * PARTITIONS * COUNT)
        commit(cases.primary, group, topic, ends(PARTITIONS, times * COUNT))
        cases.await_synced(group, remote(topic), ends(PARTITIONS, times * COUNT))
        cases.assert_monotonic_checkpoints(group)
        for name in ("kic-source", "kic-checkpoint"):
            answer = cases.node.ask("POST", f"/connectors/{name}/restart?includeTasks=true")
            assert answer.status in {202, 204}, answer


def test_offset_translation_behind_replication_flow(cases: Cases) -> None:
    """`testOffsetTranslationBehindReplicationFlow`: a group far behind, which then goes back."""
    topic, group = "kic.behind", "kic.behind-group"
    create_topic(cases.primary.bootstrap_servers, topic, partitions=PARTITIONS)
    cases.produce(topic, count=1000)
    cases.await_copied(remote(topic), PARTITIONS * 1000)
    for offset in (COUNT, 900, 100):
        commit(cases.primary, group, topic, ends(PARTITIONS, offset))
        expected = {f"{remote(topic)}-{partition}": offset for partition in range(PARTITIONS)}
        await_value(
            lambda expected=expected: cases.translated(group) == expected,  # type: ignore[misc]
            WAIT_S,
            lambda: f"{cases.translated(group)}",
        )
    cases.assert_monotonic_checkpoints(group)


def test_sync_topic_configs(cases: Cases) -> None:
    """`testSyncTopicConfigs`: what is excluded stays as it is on the backup cluster."""
    topic = "kic.configs"
    given = {"delete.retention.ms": "1000", "retention.bytes": "1000"}
    create_topic(cases.primary.bootstrap_servers, topic, config=given)
    cases.await_config(remote(topic), {"retention.bytes": "1000"})
    configure(cases.backup, remote(topic), {"delete.retention.ms": "2000", "retention.bytes": "2000"})
    cases.await_config(remote(topic), {"delete.retention.ms": "2000", "retention.bytes": "1000"})


def test_replicate_target_default(cases: Cases) -> None:
    """`testReplicateTargetDefault`: a config that the source no longer sets becomes the target's default."""
    topic = "kic.target-default"
    create_topic(cases.primary.bootstrap_servers, topic, config={"retention.bytes": "1000"})
    cases.await_config(remote(topic), {"retention.bytes": "1000"})
    configure(cases.primary, topic, {"retention.bytes": None})
    cases.await_config(remote(topic), {"retention.bytes": "-1"})


def test_replicate_source_default(cases: Cases) -> None:
    """`testReplicateSourceDefault`."""
    topic = "kics.source-default"
    create_topic(cases.primary.bootstrap_servers, topic)
    cases.node.put("kic-defaults", cases.config(SOURCE, topic, use_defaults_from="source"))
    cases.await_config(remote(topic), {"retention.bytes": "-1"})
    configure(cases.backup, remote(topic), {"delete.retention.ms": "2000", "retention.bytes": "2000"})
    cases.await_config(remote(topic), {"delete.retention.ms": "2000", "retention.bytes": "-1"})
    assert cases.node.ask("DELETE", "/connectors/kic-defaults").status == 204


def test_replication_without_offset_sync_will_not_create_offset_syncs_topic(cases: Cases) -> None:
    """`testReplicationWithoutOffsetSyncWillNotCreateOffsetSyncsTopic`."""
    topic, aliases = "kics.no-syncs", ("kpn", "kbn")
    create_topic(cases.primary.bootstrap_servers, topic, partitions=PARTITIONS)
    cases.produce(topic)
    without = cases.config(SOURCE, topic, aliases, **{"emit.offset-syncs.enabled": "false"})
    without = {key: value for key, value in without.items() if not key.startswith("offset-syncs.topic.")}
    cases.node.put("kic-no-syncs", without)
    cases.await_copied(f"{aliases[0]}.{topic}", PARTITIONS * COUNT)
    everywhere = {*topics(cases.primary), *topics(cases.backup)}
    assert not {f"mm2-offset-syncs.{alias}.internal" for alias in aliases} & everywhere
    assert cases.node.ask("DELETE", "/connectors/kic-no-syncs").status == 204


def test_offset_syncs_topics_on_target(cases: Cases) -> None:
    """`testOffsetSyncsTopicsOnTarget`."""
    topic, aliases = "kics.on-target", ("kpt", "kbt")
    location = {"offset-syncs.topic.location": "target"}
    create_topic(cases.primary.bootstrap_servers, topic, partitions=PARTITIONS)
    cases.produce(topic)
    commit(cases.primary, f"{topic}-group", topic, ends(PARTITIONS, COUNT))
    cases.node.put("kic-on-target", cases.config(SOURCE, topic, aliases, **location))
    cases.node.put("kic-on-target-checkpoint", cases.config(CHECKPOINT, topic, aliases, **location))
    cases.await_copied(f"{aliases[0]}.{topic}", PARTITIONS * COUNT)
    cases.await_synced(f"{topic}-group", f"{aliases[0]}.{topic}", ends(PARTITIONS, COUNT))
    assert "mm2-offset-syncs.kpt.internal" in topics(cases.backup)
    assert not {f"mm2-offset-syncs.{alias}.internal" for alias in aliases} & set(topics(cases.primary))
