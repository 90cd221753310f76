"""A topic's original moves to the other cluster and comes back, beside one mirror of both flows.

Offsets, records and groups are equal on both sides at each step.
"""

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest

from sparkmirror.cli.main import main
from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import append, create_topic, keyed_of, numbered, topics
from tests.support.mirror import Mirror, running_mirror
from tests.support.topic_reader import TopicReader
from tests.support.waiting import await_value
from tests.system.consumer_groups import commit, committed

OLD, NEW = "circle-a", "circle-b"
OUT, BACK = f"{OLD}->{NEW}", f"{NEW}->{OLD}"
ORDERS: Final = "circle.orders"
SPLIT: Final = "circle.split"
"""It gets records on both clusters behind the parting."""
ASIDE: Final = "aside.circle"
GROUP: Final = "circle-billing"
WAIT_S: Final = 90.0
DONE: Final = {"done"}


class Circle(NamedTuple):
    old: LocalCluster
    new: LocalCluster
    mirror: Mirror

    def run(
        self, capsys: pytest.CaptureFixture[str], command: str, flow: str, topic: str, *arguments: str
    ) -> dict[str, Any]:
        """The steps of an executed command, which must succeed, and their states."""
        capsys.readouterr()
        common = ["--topic", topic, "--still-for", "1", "--execute", "-o", "json"]
        code = main([command, str(self.mirror.file), "--flow", flow, *common, *arguments])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        (migration,) = json.loads(printed.out)["migrations"]
        return {step["step"]: step["state"] for step in migration["steps"]}

    def await_same(self, topic: str) -> None:
        await_value(
            lambda: all(placed(self.old, topic, at) == placed(self.new, topic, at) for at in range(2)),
            WAIT_S,
            lambda: f"{[placed(each, topic, 0) for each in self[:2]]}\n{self.mirror.log_text()[-3000:]}",
        )


def placed(cluster: LocalCluster, topic: str, partition: int) -> list[tuple[object, ...]]:
    """Offsets, keys, values and times."""
    if topic not in topics(cluster):
        return [()]
    with TopicReader(cluster.bootstrap_servers, topic) as reader:
        return [
            (each.offset(), each.key(), each.value(), each.timestamp()) for each in reader.read(partition)
        ]


@pytest.fixture(scope="module")
def circle(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Circle]:
    for topic in (ORDERS, SPLIT):
        create_topic(source_cluster.bootstrap_servers, topic, partitions=2)
        for partition in range(2):
            append(source_cluster, topic, numbered(50, first=1000 * partition), partition=partition)
    properties = {
        "clusters": f"{OLD}, {NEW}",
        f"{OLD}.bootstrap.servers": source_cluster.bootstrap_servers,
        f"{NEW}.bootstrap.servers": target_cluster.bootstrap_servers,
        f"{OUT}.enabled": "true",
        f"{BACK}.enabled": "true",
        "topics": r"circle\..*",
        "groups": GROUP,
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "offsets.preserve": "true",
        "emit.heartbeats.enabled": "false",
        "refresh.topics.interval.seconds": "1",
        "tasks.max": "1",
    }
    with running_mirror(tmp_path_factory.mktemp("circle") / "mirror", properties) as mirror:
        made = Circle(source_cluster, target_cluster, mirror)
        made.await_same(ORDERS)
        made.await_same(SPLIT)
        yield made


def test_an_original_moves_and_comes_back(circle: Circle, capsys: pytest.CaptureFixture[str]) -> None:
    old, new, _ = circle
    commit(old, GROUP, ORDERS, {0: 10, 1: 50})
    assert set(circle.run(capsys, "promote", OUT, ORDERS).values()) == DONE
    assert committed(new, GROUP, ORDERS, 2) == {0: 10, 1: 50}
    append(new, ORDERS, numbered(5, first=50))
    assert set(circle.run(capsys, "failback", OUT, ORDERS).values()) == DONE
    circle.await_same(ORDERS)
    append(new, ORDERS, numbered(2, first=55))
    circle.await_same(ORDERS)
    commit(new, GROUP, ORDERS, {0: 56, 1: 50})
    assert set(circle.run(capsys, "promote", BACK, ORDERS).values()) == DONE
    assert committed(old, GROUP, ORDERS, 2) == {0: 56, 1: 50}
    append(old, ORDERS, numbered(3, first=57))
    assert set(circle.run(capsys, "failback", BACK, ORDERS).values()) == DONE
    circle.await_same(ORDERS)
    append(old, ORDERS, numbered(1, first=60))
    circle.await_same(ORDERS)
    assert keyed_of(new, ORDERS, 0) == numbered(61)


def test_records_of_the_old_source_are_kept_aside_and_its_topic_is_recreated(
    circle: Circle, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, mirror = circle
    assert set(circle.run(capsys, "promote", OUT, SPLIT).values()) == DONE
    append(new, SPLIT, numbered(5, first=50))
    append(old, SPLIT, numbered(3, first=700))
    plan = ["failback", str(mirror.file), "--flow", OUT, "--topic", SPLIT]
    assert main(plan) == 1
    assert "Decide: --delete deletes" in capsys.readouterr().out
    assert len(placed(old, SPLIT, 0)) == 53, "a plan changes nothing"
    chosen = ["--delete", "--keep-aside", ASIDE]
    assert set(circle.run(capsys, "failback", OUT, SPLIT, *chosen).values()) == DONE
    circle.await_same(SPLIT)
    assert keyed_of(old, SPLIT, 0) == numbered(55)
    assert keyed_of(old, ASIDE, 0) == numbered(3, first=700)
    failures = [line for line in mirror.log_text().splitlines() if f"[{OUT}]" in line and "FAILED" in line]
    assert not failures, "the promotion fences partitions before their tasks know of it"
