"""What contract tests share beside the two clusters of every run."""

from collections.abc import Iterator

import pytest

from sparkmirror.clusters import LocalCluster
from tests.contract.copying import Bench, Watch


@pytest.fixture(scope="session")
def bench(source_cluster: LocalCluster, target_cluster: LocalCluster) -> Bench:
    made = Bench(source_cluster, target_cluster)
    made.create_state_topics()
    return made


@pytest.fixture(scope="session")
def watch(bench: Bench) -> Iterator[Watch]:
    made = Watch(bench)
    yield made
    made.close()
