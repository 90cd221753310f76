"""Tests how many tasks Spark's settings allow."""

import pytest

from sparkmirror.spark.slots import UNBOUNDED, allocated_slots, counted_slots, is_local, local_slots

DYNAMIC = {"spark.master": "yarn", "spark.dynamicAllocation.enabled": "true"}
STANDALONE = {**DYNAMIC, "spark.master": "spark://host:7077"}
MOST = "spark.dynamicAllocation.maxExecutors"
CORES = "spark.executor.cores"


@pytest.mark.parametrize(
    ("settings", "slots"),
    [
        ({"spark.master": "yarn"}, None),
        ({**DYNAMIC, "spark.dynamicAllocation.enabled": "false"}, None),
        ({**DYNAMIC, "spark.master": "local[4]"}, None),
        (DYNAMIC, UNBOUNDED),
        ({**DYNAMIC, MOST: "infinity"}, UNBOUNDED),
        ({**DYNAMIC, MOST: "4"}, 4),
        ({**DYNAMIC, MOST: "4", CORES: "3"}, 12),
        ({**DYNAMIC, MOST: "4", CORES: "5", "spark.task.cpus": "2"}, 8),
        ({**STANDALONE, MOST: "4"}, UNBOUNDED),
        ({**STANDALONE, MOST: "4", CORES: "1"}, 4),
        ({**STANDALONE, MOST: "4", CORES: "2", "spark.cores.max": "6"}, 6),
        ({**STANDALONE, "spark.cores.max": "6"}, 6),
        ({**DYNAMIC, "spark.master": "local-cluster[2,1,1024]", MOST: "2", CORES: "1"}, 2),
    ],
)
def test_dynamic_allocation_allows_what_it_may_bring(settings: dict[str, str], slots: int | None) -> None:
    assert allocated_slots(settings.get) == slots


@pytest.mark.parametrize(
    ("master", "local", "slots"),
    [
        ("local", True, 1),
        ("local[6]", True, 6),
        ("local[6,1000000]", True, 6),
        ("local[*]", True, None),
        ("local-cluster[2,1,1024]", False, None),
        ("spark://host:7077", False, None),
        ("k8s://https://host", False, None),
        ("yarn", False, None),
    ],
)
def test_a_local_cluster_is_a_cluster(master: str, local: bool, slots: int | None) -> None:
    assert is_local(master) == local
    assert local_slots(master) == slots


def test_a_share_of_unbounded_slots_is_not_shown() -> None:
    assert counted_slots(16) == 16
    assert counted_slots(UNBOUNDED // 1000) is None
