"""Offset translation of a running mirror, compared with the records of both clusters."""

import random
from bisect import bisect_left
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.errors import RetriableError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.kafka.groups.consumer_groups import Committed, Groups
from sparkmirror.offsets.wire_records import Checkpoint
from tests.support.broker_data import append, create_topic, latest, numbered, records
from tests.support.connections import connection
from tests.support.mirror import running_mirror
from tests.support.mixed_data import write_compacted, write_transactions
from tests.support.waiting import await_value

ALIAS: Final = "follower"
PLAIN, COMPACTED, TRANSACTIONS = (f"follow.{kind}" for kind in ("plain", "compacted", "transactions"))
TOPICS: Final = (PLAIN, COMPACTED, TRANSACTIONS)
GROUPS: Final = [GroupId(f"follow-{number}") for number in range(20)]
WAIT_S: Final = 30.0

Log = Mapping[TopicPartition, list[int]]
"""Offsets that have a record, by source partition."""


def test_every_committed_offset_is_translated_exactly_where_the_logs_allow_it(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path
) -> None:
    create_topic(source_cluster.bootstrap_servers, PLAIN)
    append(source_cluster, PLAIN, numbered(500))
    write_compacted(source_cluster.bootstrap_servers, COMPACTED)
    write_transactions(source_cluster.bootstrap_servers, TRANSACTIONS)
    before = logs(source_cluster)
    committed = commit_anywhere(source_cluster, before)
    properties = {
        "clusters": f"{ALIAS}, B",
        f"{ALIAS}.bootstrap.servers": source_cluster.bootstrap_servers,
        "B.bootstrap.servers": target_cluster.bootstrap_servers,
        f"{ALIAS}->B.enabled": "true",
        f"{ALIAS}->B.topics": ", ".join(TOPICS),
        f"{ALIAS}->B.groups": "follow-.*",
        "emit.checkpoints.interval.seconds": "1",
        "B.offset.flush.interval.ms": "1000",
        "heartbeats.replication.enabled": "false",
    }

    def wrong() -> list[str]:
        there, found = logs(target_cluster, f"{ALIAS}."), checkpoints(target_cluster)
        return [
            f"{group} {partition}: {offset} is {found.get((group, partition))}"
            for (group, partition), offset in committed.items()
            if not is_exact(
                before[partition], offset, there.get(partition, []), found.get((group, partition))
            )
        ]

    with running_mirror(tmp_path / "mirror", properties) as mirror:
        mirror.await_log("checkpoints of 20 of")
        await_value(lambda: not wrong(), WAIT_S, lambda: "\n".join([*wrong(), mirror.log_text()]))
        mirror.stop()


def is_exact(here: list[int], upstream: int, there: list[int], downstream: int | None) -> bool:
    """Whether the same number of records precedes both offsets."""
    return downstream is not None and bisect_left(here, upstream) == bisect_left(there, downstream)


def logs(cluster: LocalCluster, prefix: str = "") -> Log:
    found: dict[TopicPartition, list[int]] = {}
    for topic in TOPICS:
        for record in records(cluster, f"{prefix}{topic}"):
            found.setdefault(TopicPartition(topic, record.partition() or 0), []).append(record.offset() or 0)
    return found


def commit_anywhere(cluster: LocalCluster, log: Log) -> Mapping[tuple[GroupId, TopicPartition], int]:
    """Commit every offset from the first record to the end, also those without a record."""
    rng = random.Random(7)
    committed: dict[tuple[GroupId, TopicPartition], int] = {}
    with closing(Groups(connection(cluster, alias="here"))) as groups:
        for group in GROUPS:
            wanted = {
                partition: Committed(rng.randint(offsets[0], offsets[-1] + 1), "")
                for partition, offsets in log.items()
            }
            committed.update({(group, partition): offset for partition, (offset, _) in wanted.items()})

            def is_written(
                group: GroupId = group, wanted: Mapping[TopicPartition, Committed] = wanted
            ) -> bool:
                try:
                    return not groups.write(group, wanted)
                except RetriableError:
                    return False

            await_value(is_written, WAIT_S, lambda: "no offset is written")
    return committed


def checkpoints(cluster: LocalCluster) -> Mapping[tuple[GroupId, TopicPartition], int]:
    decoded = [
        Checkpoint.decode(key or b"", value or b"")
        for key, value in latest(cluster, f"{ALIAS}.checkpoints.internal").items()
    ]
    return {
        (
            each.group,
            each.topic_partition._replace(topic=each.topic_partition.topic.removeprefix(f"{ALIAS}.")),
        ): each.downstream_offset
        for each in decoded
    }
