"""A target that loses records while they are copied."""

from collections.abc import Iterator

import pytest

from sparkmirror.domain.incidents import IncidentKind
from tests.unit.copy.one_partition import OnePartition, copy_of, one_partition


@pytest.fixture
def partition() -> Iterator[OnePartition]:
    with one_partition() as made:
        yield made


def test_a_target_that_comes_back_empty_is_an_incident(partition: OnePartition) -> None:
    task = partition.start()
    partition.write_batches(0, 50)
    partition.run_until_stored(49)
    partition.target.wipe()
    partition.stage.target.changed()
    partition.write_batches(50, 100)
    partition.run_until_stored(99)
    assert partition.copied == list(range(50, 100))
    assert copy_of(task).incidents[IncidentKind.TARGET_TRUNCATED] == 1
