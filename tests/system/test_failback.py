"""A consumer group fails over to the other cluster and back: it reads every record once.

Two flows run in one process, in both directions. On either cluster the group reads the topic and the remote
topic while records are written; their offsets differ between the clusters.
"""

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Final

import confluent_kafka as confluent

from sparkmirror.cli.main import main
from sparkmirror.client import remote_cluster_utils
from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.offsets.wire_records import Checkpoint
from tests.support.broker_data import append, create_topic, delete_records, numbered, records, topics
from tests.support.mirror import running_mirror
from tests.support.traffic import flowing
from tests.support.waiting import await_value
from tests.system.consumer_groups import consuming
from tests.system.hand_over_scenario import Offsets, committed

ORDERS: Final = "failback.orders"
GROUP: Final = "failback-billing"
HERE, THERE = "fa", "fb"
GONE: Final = 30
"""The number of records deleted from one partition here, so that its offsets are higher here than there."""
BACKLOG: Final = 100
RATE: Final = 400
WAIT_S: Final = 90.0

Origin = tuple[str, int]
"""The alias of the cluster where a record was produced, and its partition of ORDERS."""
ORIGINS: Final = [(alias, partition) for alias in (HERE, THERE) for partition in range(2)]


class Reading:
    """All records that the group has read so far on either cluster."""

    def __init__(self, clusters: dict[str, LocalCluster]) -> None:
        self.clusters = clusters
        self.values: dict[Origin, list[bytes | None]] = {origin: [] for origin in ORIGINS}

    def consume(self, alias: str, counts: dict[Origin, int]) -> None:
        """Read exactly this number of further records on the cluster and commit at the end."""
        left = {named(origin, alias): count for origin, count in counts.items()}
        origins = {named(origin, alias): origin for origin in ORIGINS}
        with consuming(self.clusters[alias], GROUP) as consumer:
            consumer.subscribe(sorted({partition.topic for partition in origins}))
            while any(left.values()):
                messages = consumer.consume(1, WAIT_S)
                assert messages, f"{left} on {alias} did not come"
                (message,) = messages
                assert message.error() is None, message.error()
                partition = TopicPartition(message.topic() or "", message.partition() or 0)
                self.values[origins[partition]].append(message.value())
                left[partition] -= 1
                if not left[partition]:
                    consumer.pause([confluent.TopicPartition(*partition)])
            consumer.commit(asynchronous=False)

    def next_offsets(self, alias: str) -> Offsets:
        """Return the offset of the group's next record on the cluster, for each partition.

        At the end of a partition that is its end offset. Partitions without read records are left out.
        """
        there = {origin: offsets(self.clusters[alias], named(origin, alias)) for origin in ORIGINS}
        return {
            named(origin, alias): (there[origin] + [there[origin][-1] + 1])[len(read)]
            for origin, read in self.values.items()
            if read and len(there[origin]) >= len(read)
        }

    def await_group(self, alias: str) -> Offsets:
        """Wait until the mirror has set the group's offsets on the cluster to exactly these."""
        count = sum(map(bool, self.values.values()))

        def settled() -> Offsets | None:
            next_offsets = self.next_offsets(alias)
            return (
                next_offsets
                if len(next_offsets) == count and self.committed(alias, next_offsets) == next_offsets
                else None
            )

        def left() -> str:
            next_offsets = self.next_offsets(alias)
            return f"on {alias}: {self.committed(alias, next_offsets)}, not {next_offsets}"

        return await_value(settled, WAIT_S, left)

    def committed(self, alias: str, partitions: Iterable[TopicPartition]) -> Offsets:
        return committed(self.clusters[alias], GROUP, sorted(partitions))


def named(origin: Origin, alias: str) -> TopicPartition:
    """Return the partition's name on the cluster: its own topic or the remote topic."""
    source, partition = origin
    return TopicPartition(ORDERS if source == alias else f"{source}.{ORDERS}", partition)


def offsets(cluster: LocalCluster, partition: TopicPartition) -> list[int]:
    return [
        record.offset() or 0
        for record in records(cluster, partition.topic)
        if record.partition() == partition.partition
    ]


def written(cluster: LocalCluster) -> dict[int, list[bytes | None]]:
    found: dict[int, list[bytes | None]] = {}
    for record in records(cluster, ORDERS):
        found.setdefault(record.partition() or 0, []).append(record.value())
    return found


def checkpoints(cluster: LocalCluster, alias: str) -> dict[TopicPartition, list[Checkpoint]]:
    """Read the group's checkpoints of the flow from that alias, in the order of writing."""
    found: dict[TopicPartition, list[Checkpoint]] = {}
    for record in records(cluster, f"{alias}.checkpoints.internal"):
        checkpoint = Checkpoint.decode(record.key() or b"", record.value() or b"")
        found.setdefault(checkpoint.topic_partition, []).append(checkpoint)
    return found


def properties(clusters: dict[str, LocalCluster]) -> dict[str, str]:
    return {
        "clusters": ", ".join(clusters),
        **{f"{alias}.bootstrap.servers": cluster.bootstrap_servers for alias, cluster in clusters.items()},
        **{f"{alias}.offset.flush.interval.ms": "1000" for alias in clusters},
        f"{HERE}->{THERE}.enabled": "true",
        f"{THERE}->{HERE}.enabled": "true",
        "topics": ORDERS,
        "groups": GROUP,
        "heartbeats.replication.enabled": "false",
        "refresh.groups.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
        "reverse.checkpointing.enabled": "true",
    }


def test_group_fails_over_and_back_and_reads_every_record_once(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path
) -> None:
    clusters = {HERE: source_cluster, THERE: target_cluster}
    reading = Reading(clusters)
    for cluster in clusters.values():
        create_topic(cluster.bootstrap_servers, ORDERS, partitions=2)
    append(source_cluster, ORDERS, numbered(GONE))
    delete_records(source_cluster, ORDERS, GONE)
    with running_mirror(tmp_path / "mirror", properties(clusters)) as mirror:
        for here, there in ((HERE, THERE), (THERE, HERE)):
            remote = f"{there}.{ORDERS}"
            await_value(lambda c=clusters[here], t=remote: t in topics(c), WAIT_S, mirror.log_text)  # type: ignore[misc]

        with flowing(source_cluster, ORDERS, rate=RATE, partitions=2):
            reading.consume(HERE, {(HERE, 0): 120, (HERE, 1): 90})
        for partition in range(2):
            append(source_cluster, ORDERS, numbered(BACKLOG, first=10_000), partition=partition)
        failed_over_to = reading.await_group(THERE)

        with flowing(target_cluster, ORDERS, rate=RATE, partitions=2):
            unread = len(written(source_cluster)[1]) - len(reading.values[HERE, 1])
            reading.consume(THERE, {(HERE, 0): 50, (HERE, 1): unread, (THERE, 0): 80, (THERE, 1): 40})
        for partition in range(2):
            append(target_cluster, ORDERS, numbered(BACKLOG, first=10_000), partition=partition)
        left_at = reading.committed(THERE, reading.next_offsets(THERE))
        came_back_to = reading.await_group(HERE)
        by_client = remote_cluster_utils.translate_offsets(
            {"bootstrap.servers": source_cluster.bootstrap_servers}, THERE, GROUP
        )
        assert {partition: at.offset for partition, at in by_client.items()} == came_back_to
        way_back = f"{THERE}->{HERE}"
        assert main(["groups", "explain", str(mirror.file), GROUP, "--flow", way_back]) == 0

        with flowing(source_cluster, ORDERS, rate=RATE, partitions=2):
            reading.consume(HERE, dict.fromkeys(ORIGINS, 20))
        ends = {
            (alias, partition): len(values)
            for alias, cluster in clusters.items()
            for partition, values in written(cluster).items()
        }
        reading.consume(HERE, {origin: end - len(reading.values[origin]) for origin, end in ends.items()})
        stands_by_at = reading.await_group(THERE)
        mirror.stop()

    for (alias, partition), values in reading.values.items():
        assert values == written(clusters[alias])[partition]
    assert all(left_at[partition] > offset for partition, offset in failed_over_to.items())
    assert all(stands_by_at[partition] >= offset for partition, offset in left_at.items())
    for here, there in ((HERE, THERE), (THERE, HERE)):
        written_checkpoints = checkpoints(clusters[here], there)
        assert written_checkpoints.keys() == {named(origin, here) for origin in ORIGINS}
        for earlier, later in (pair for each in written_checkpoints.values() for pair in pairwise(each)):
            assert earlier.upstream_offset <= later.upstream_offset
            assert earlier.downstream_offset < later.downstream_offset
