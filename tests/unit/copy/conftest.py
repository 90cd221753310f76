from collections.abc import Iterator

import pytest

from tests.unit.copy.one_partition import OnePartition, one_partition


@pytest.fixture
def partition() -> Iterator[OnePartition]:
    with one_partition() as made:
        yield made
