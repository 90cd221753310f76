"""Two clusters that mirror each other under the same names (`IdentityReplicationPolicy`), in one process."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

import psutil
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.verify.flow_partitions import flow_partitions
from sparkmirror.verify.range_comparison import verify_range
from sparkmirror.verify.range_planning import plan_ranges
from sparkmirror.verify.rules_and_result import Comparison
from tests.support.broker_data import Keyed, append, create_topic, keyed, numbered, topics
from tests.support.mirror import Mirror, running_mirror
from tests.support.progress import await_caught_up
from tests.support.waiting import await_value
from tests.system.dual_run import Sides

TOPIC: Final = "round.orders"
TIMEOUT_S: Final = 60.0
BATCH: Final = 40
ALIASES: Final = ("near", "far")


@pytest.fixture(scope="module")
def pair(sides: Sides) -> Mapping[str, LocalCluster]:
    for cluster in sides:
        create_topic(cluster.bootstrap_servers, TOPIC, partitions=2)
    return dict(zip(ALIASES, sides, strict=True))


@pytest.fixture(scope="module")
def mirror(pair: Mapping[str, LocalCluster], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    properties = {
        "clusters": ", ".join(ALIASES),
        **{f"{alias}.bootstrap.servers": cluster.bootstrap_servers for alias, cluster in pair.items()},
        "near->far.enabled": "true",
        "far->near.enabled": "true",
        "topics": r"round\..*",
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "heartbeats.replication.enabled": "false",
        "refresh.topics.interval.seconds": "1",
    }
    write(pair, 0)
    with running_mirror(tmp_path_factory.mktemp("cycles") / "mirror", properties) as started:
        yield started


def write(pair: Mapping[str, LocalCluster], number: int) -> None:
    """Write a batch of different records to each side, in turn with and without an idempotent producer."""
    for side, cluster in enumerate(pair.values()):
        settings = {"enable.idempotence": "true"} if (number + side) % 2 else {}
        records = numbered(BATCH, (2 * number + side) * BATCH)
        for partition in range(2):
            append(cluster, TOPIC, records, partition=partition, settings=settings)


def await_everywhere(pair: Mapping[str, LocalCluster], batches: int) -> None:
    """Wait until every record is on both sides, once in each of two partitions."""
    expected = sorted([*numbered(2 * batches * BATCH)] * 2)
    seen: dict[str, list[Keyed]] = {}

    def has_all(alias: str) -> bool:
        seen[alias] = keyed(pair[alias], TOPIC)
        return len(seen[alias]) >= len(expected)

    for alias in pair:
        await_value(lambda: has_all(alias), TIMEOUT_S, lambda: f"{alias} has {len(seen[alias])} records")  # noqa: B023
    for here, there in (ALIASES, ALIASES[::-1]):
        await_caught_up(pair[here], pair[there], here, [TOPIC])
    for cluster in pair.values():
        assert sorted(keyed(cluster, TOPIC)) == expected


def test_each_record_is_mirrored_once_in_each_direction(
    pair: Mapping[str, LocalCluster], mirror: Mirror
) -> None:
    write(pair, 1)
    await_everywhere(pair, 2)
    mirror.await_log(rf"{TOPIC}-[01]: offsets \d+ to \d+ were mirrored from near to far")


def test_each_record_is_mirrored_once_after_killed_workers_and_a_restart(
    pair: Mapping[str, LocalCluster], mirror: Mirror
) -> None:
    write(pair, 2)
    for worker in mirror.workers():
        with suppress(psutil.NoSuchProcess):
            worker.send_signal(signal.SIGKILL)
    write(pair, 3)
    await_everywhere(pair, 4)
    mirror.stop()
    write(pair, 4)
    mirror.start()
    await_everywhere(pair, 5)
    mirror.stop()


def test_verify_reports_cycled_records_as_no_difference(
    pair: Mapping[str, LocalCluster], mirror: Mirror
) -> None:
    """Compare as `sparkmirror verify` does, without Spark."""
    flows = read_mirror_maker_file(mirror.file).flows
    assert [flow.flow for flow in flows] == [ALIASES, ALIASES[::-1]]
    of_each = len(keyed(pair["near"], TOPIC)) // 2
    for flow in flows:
        assert flow.source is not None
        contents = flow_partitions(flow, flow.source, None)
        found = sum(map(verify_range, plan_ranges(contents.sides, contents.mirrored)), Comparison())
        assert found == Comparison(equal=of_each, foreign=of_each)


def test_internal_topics_are_not_mirrored(pair: Mapping[str, LocalCluster]) -> None:
    for here, there in (ALIASES, ALIASES[::-1]):
        names = set(topics(pair[here]))
        assert {"mm2-producer-ids.internal", f"mm2-progress.{there}.internal", TOPIC} <= names
        assert f"mm2-progress.{here}.internal" not in names
