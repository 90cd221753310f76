from pathlib import Path

import javaproperties
import pytest

from sparkmirror.clusters.broker import Broker
from sparkmirror.clusters.cluster_state import ClusterSpec, NodeState
from sparkmirror.clusters.storage import is_formatted, random_id


def broker_of(folder: Path, **settings: str) -> Broker:
    broker = Broker(1, folder, NodeState())
    broker.format("a-cluster", ClusterSpec("source", settings=settings))
    return broker


def test_storage_has_the_ids_of_node_and_cluster(tmp_path: Path) -> None:
    meta = javaproperties.loads((broker_of(tmp_path).data / "meta.properties").read_text())
    assert meta.items() >= {"version": "1", "cluster.id": "a-cluster", "node.id": "1"}.items()


def test_storage_is_formatted_once(tmp_path: Path) -> None:
    first = (broker_of(tmp_path).data / "meta.properties").read_text()
    assert (broker_of(tmp_path).data / "meta.properties").read_text() == first


@pytest.mark.parametrize(
    ("setting", "ours"),
    [
        ("num.partitions", True),
        ("log.retention.ms", True),
        ("log.dirs", False),
        ("metadata.log.dir", False),
        ("controller.quorum.bootstrap.servers", False),
        ("unstable.feature.versions.enable", False),
    ],
)
def test_storage_with_settings_that_affect_it_is_left_to_kafkas_tool(
    tmp_path: Path, setting: str, ours: bool
) -> None:
    assert is_formatted(broker_of(tmp_path, **{setting: "2"}).data) == ours


def test_random_ids_do_not_begin_with_a_hyphen() -> None:
    ids = {random_id() for _ in range(1_000)}
    assert len(ids) == 1_000
    assert {(len(each), each.startswith("-")) for each in ids} == {(22, False)}
