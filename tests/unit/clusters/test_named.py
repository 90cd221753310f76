from pathlib import Path

import pytest

from sparkmirror.clusters.cluster_state import ClusterSpec, ClusterState
from sparkmirror.clusters.local import cause_in
from sparkmirror.clusters.named import ClusterRequest, NamedClusters
from sparkmirror.domain.errors import ClusterStartError


def quiet(_text: str) -> None: ...


def saved(home: Path, name: str) -> Path:
    directory = home / name
    directory.mkdir(parents=True)
    ClusterState.new(ClusterSpec(name)).save(directory)
    return directory


def test_request_keeps_the_settings_that_it_does_not_change() -> None:
    before = ClusterSpec("source", 3, {"num.partitions": "8"}, heap_mb=256)
    assert ClusterRequest("source").spec(None) == ClusterSpec("source")
    assert ClusterRequest("source").spec(before) == before
    assert ClusterRequest("source", 1, {"a": "b"}).spec(before) == ClusterSpec("source", 1, {"a": "b"}, 256)


def test_clusters_are_listed_by_their_folders(tmp_path: Path) -> None:
    for name in ("target", "source"):
        saved(tmp_path, name)
    (tmp_path / "stranger").mkdir()
    clusters = NamedClusters(tmp_path)
    assert [cluster.spec.name for cluster in clusters.all()] == ["source", "target"]
    assert clusters.find("stranger") is None


def test_unknown_name_is_an_error_and_stops_no_cluster(tmp_path: Path) -> None:
    directory = saved(tmp_path, "source")
    with pytest.raises(ClusterStartError, match=r"no cluster named x \(known: source\)"):
        NamedClusters(tmp_path).down(["source", "x"], quiet, delete_data=True)
    assert directory.exists()


def test_data_is_deleted_only_on_request(tmp_path: Path) -> None:
    directory = saved(tmp_path, "source")
    NamedClusters(tmp_path).down(["source"], quiet)
    assert directory.exists()
    NamedClusters(tmp_path).down(["source"], quiet, delete_data=True)
    assert not directory.exists()


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (
            "ERROR Exiting\njava.lang.Exception: No protocol for FOO\n\tat x.y\nCaused by: a.B: c\n",
            "No protocol for FOO",
        ),
        (
            "Error: Could not find or load main class kafka.Kafka\n",
            "Could not find or load main class kafka.Kafka",
        ),
        ("2026 INFO starting\n", "2026 INFO starting"),
        ("", "its log is empty"),
    ],
)
def test_a_broker_that_ends_is_told_by_its_cause_in_one_line(log: str, cause: str) -> None:
    assert cause_in(log) == cause
