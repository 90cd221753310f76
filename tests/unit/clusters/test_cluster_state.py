from pathlib import Path

import pytest

from sparkmirror.clusters.cluster_state import STATE_FILE, ClusterSpec, ClusterState, NodeState
from sparkmirror.clusters.processes import ProcessId
from sparkmirror.domain.errors import ClusterStartError

SPEC = ClusterSpec("source", 3, {"num.partitions": "8"}, heap_mb=256)


def test_saved_state_is_loaded(tmp_path: Path) -> None:
    nodes = (NodeState(9092, 9093, ProcessId(12, "34")), NodeState(9094, 9095), NodeState())
    state = ClusterState(SPEC, "an-id", nodes)
    state.save(tmp_path)
    assert ClusterState.load(tmp_path) == state
    assert [file.name for file in tmp_path.iterdir()] == [STATE_FILE]


def test_folder_without_a_cluster_has_no_state(tmp_path: Path) -> None:
    assert ClusterState.load(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{}", '{"nodes": [{}]}', "[]"])
def test_error_of_unreadable_state_names_the_file_and_the_folder_to_delete(tmp_path: Path, text: str) -> None:
    (tmp_path / STATE_FILE).write_text(text)
    with pytest.raises(ClusterStartError, match=rf"{STATE_FILE} can't be read .* Delete {tmp_path}"):
        ClusterState.load(tmp_path)


def test_cluster_ids_do_not_begin_with_a_hyphen() -> None:
    ids = {ClusterState.new(SPEC).cluster_id for _ in range(500)}
    assert len(ids) == 500
    assert all(len(cluster_id) == 22 and not cluster_id.startswith("-") for cluster_id in ids)


def test_settings_may_change_but_not_the_number_of_brokers() -> None:
    state = ClusterState.new(SPEC)
    other = ClusterSpec("source", 3, {}, heap_mb=512)
    assert state.wanted_as(other) == ClusterState(other, state.cluster_id, state.nodes)
    with pytest.raises(ClusterStartError, match=r"has data of 3 broker\(s\), not 1"):
        state.wanted_as(ClusterSpec("source", 1))
