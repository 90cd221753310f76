"""Translates offsets anywhere in plain, transactional and compacted topics, in clusters in memory."""

import random
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

import pytest

from sparkmirror.copy.copy_plan import OffsetSyncPlan
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, GroupId, TopicPartition
from sparkmirror.groups.checkpoint_connector import CheckpointConnector
from sparkmirror.kafka.groups.consumer_groups import Committed, Groups
from sparkmirror.metrics.readings import CheckpointReading
from sparkmirror.offsets.wire_records import Checkpoint
from sparkmirror.storage.progress import PartitionProgress
from tests.contract.checkpointing import checkpointing
from tests.contract.copying import SOURCE, Bench, ProgressReports, running
from tests.memory.compaction import compact
from tests.memory.server import MemoryServer, serving
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import append, create_topic, latest, numbered, records, topics
from tests.support.connections import connection
from tests.support.mixed_data import write_transactions
from tests.support.waiting import await_value

pytestmark = pytest.mark.memory

PLAIN, TRANSACTIONS, COMPACTED = (TopicPartition(f"exact.{kind}", 0) for kind in ("plain", "txn", "compact"))
KINDS: Final = (PLAIN, TRANSACTIONS, COMPACTED)
GROUPS: Final = [GroupId(f"exact-{number:03}") for number in range(75)]
FLOW: Final = Flow(SOURCE, Alias("far"))
NAME: Final = ConnectorName("MirrorCheckpointConnector")
SYNCS: Final = f"mm2-offset-syncs.{FLOW.target}.internal"
PROPERTIES: Final = {"topics": "exact.*", "groups": "exact-.*"}
CHECKPOINTS: Final = f"{SOURCE}.checkpoints.internal"
SYNC_LAG_MAX: Final = 100
"""The default of offset.lag.max."""
BATCH: Final = {"batch.num.messages": "50"}
WAIT_S: Final = 60.0

Offsets = Mapping[tuple[GroupId, TopicPartition], int]


class Side(NamedTuple):
    bench: Bench
    committed: Offsets
    here: Mapping[TopicPartition, list[int]]
    """The offsets that have a record."""
    there: Mapping[TopicPartition, list[int]]


@pytest.fixture(scope="module")
def sides() -> Iterator[Side]:
    """Three topics of the source are mirrored, and hundreds of offsets are committed for them."""
    with serving("exact source") as source, serving("exact target") as target:
        bench = Bench(source, target)
        bench.create_state_topics()
        write_topics(source)
        create_topic(source.bootstrap_servers, SYNCS, config={"cleanup.policy": "compact"})
        for partition in KINDS:
            partitions = topics(source)[partition.topic]
            create_topic(target.bootstrap_servers, f"{SOURCE}.{partition.topic}", partitions=partitions)
        here = offsets_in(source, "")
        mirror(bench, here)
        yield Side(bench, commit_anywhere(source, here), here, offsets_in(target, f"{SOURCE}."))


def write_topics(source: MemoryServer) -> None:
    create_topic(source.bootstrap_servers, PLAIN.topic)
    for first in range(0, 1000, 50):
        append(source, PLAIN.topic, numbered(50, first))
    write_transactions(source.bootstrap_servers, TRANSACTIONS.topic)
    create_topic(source.bootstrap_servers, COMPACTED.topic)
    rng = random.Random(2)
    for _ in range(20):
        keys = [b"%d" % rng.randrange(400) for _ in range(50)]
        append(source, COMPACTED.topic, [(key, b"value of " + key) for key in keys], settings=BATCH)
    source.call(lambda: compact(source.cluster.log(COMPACTED)))


def offsets_in(cluster: MemoryServer, prefix: str) -> Mapping[TopicPartition, list[int]]:
    """The offsets of all records, since a mirror copies aborted ones too by default."""
    found: dict[TopicPartition, list[int]] = {}
    for partition in KINDS:
        for record in records(cluster, f"{prefix}{partition.topic}"):
            where = TopicPartition(partition.topic, record.partition() or 0)
            found.setdefault(where, []).append(record.offset() or 0)
    return found


def mirror(bench: Bench, here: Mapping[TopicPartition, list[int]]) -> None:
    plan = bench.plan(*here)
    syncs = OffsetSyncPlan(connection(bench.source, alias=SOURCE), SYNCS, lag_max=SYNC_LAG_MAX)
    with closing(ProgressReports(bench)) as watch, running(replace(plan, offset_syncs=syncs)):
        for partition, offsets in here.items():
            watch.await_progress(
                partition.topic,
                partial(has_copied, count=len(offsets)),
                partition=partition.partition,
            )


def has_copied(report: PartitionProgress, count: int) -> bool:
    return report.records >= count


def commit_anywhere(cluster: MemoryServer, here: Mapping[TopicPartition, list[int]]) -> Offsets:
    """Each group once, at any offset from the first record to the end, also at those without a record."""
    rng = random.Random(20)
    committed: dict[tuple[GroupId, TopicPartition], int] = {}
    for group in GROUPS:
        offsets = {partition: rng.randint(those[0], those[-1] + 1) for partition, those in here.items()}
        commit(cluster, group, offsets)
        committed |= {(group, partition): offset for partition, offset in offsets.items()}
    return committed


def commit(cluster: AnyCluster, group: GroupId, offsets: Mapping[TopicPartition, int]) -> None:
    with closing(Groups(connection(cluster, alias="here"))) as groups:
        wanted = {partition: Committed(offset, "") for partition, offset in offsets.items()}
        assert not groups.write(group, wanted)


def checkpointed(sides: Side) -> Offsets:
    decoded = (
        Checkpoint.decode(key or b"", value or b"")
        for key, value in latest(sides.bench.target, CHECKPOINTS).items()
    )
    return {
        (
            it.group,
            TopicPartition(it.topic_partition.topic.removeprefix(f"{SOURCE}."), it.topic_partition.partition),
        ): (it.downstream_offset)
        for it in decoded
    }


def inexact(sides: Side) -> list[str]:
    """The offsets that don't have the same number of records before them on both sides."""
    found = checkpointed(sides)
    return [
        f"{group} {partition}: {upstream} became {found.get((group, partition))}"
        for (group, partition), upstream in sides.committed.items()
        if (group, partition) not in found
        or bisect_left(sides.here[partition], upstream)
        != bisect_left(sides.there[partition], found[group, partition])
    ]


def test_300_random_offsets_are_exact_by_default(sides: Side) -> None:
    assert len(sides.committed) == 300
    with checkpointing(*ends(sides), PROPERTIES | {"translation.resolve": "off"}):
        await_value(lambda: len(checkpointed(sides)) == 300, WAIT_S, lambda: str(len(checkpointed(sides))))
    assert inexact(sides), "offset syncs alone are enough: nothing is shown"
    with checkpointing(*ends(sides), PROPERTIES):
        await_value(lambda: not inexact(sides), WAIT_S, lambda: "\n".join(inexact(sides)))


def test_exact_groups_cost_no_reads(sides: Side) -> None:
    read = []
    with checkpointing(*ends(sides), PROPERTIES) as connector:
        for number in (1, 2, 3):  # in each interval a new group, by whose checkpoint the one before is over
            group = GroupId(f"exact-new-{number}")
            commit(sides.bench.source, group, {PLAIN: number})
            await_value(partial(is_checkpointed, sides, group), WAIT_S, lambda: "no checkpoint")
            # The time for look-ups in an interval may not have been enough for all groups.
            done = await_value(
                partial(with_all_looked_up, connector), WAIT_S, lambda: "offsets are looked up"
            )
            read.append(done.lookup_bytes)
    assert read[1] == read[2] < 1 << 20


def with_all_looked_up(connector: CheckpointConnector) -> CheckpointReading | None:
    reading = connector.meter.reading((FLOW, NAME), None, 0.0)
    return None if reading.lookups_waiting else reading


def is_checkpointed(sides: Side, group: GroupId) -> bool:
    return (group, PLAIN) in checkpointed(sides)


def ends(sides: Side) -> tuple[tuple[str, AnyCluster], tuple[str, AnyCluster]]:
    return (str(SOURCE), sides.bench.source), (str(FLOW.target), sides.bench.target)
