"""Three brokers on either side, shared by the drills of a run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.clusters import LocalCluster
from tests.faults.stage import Stage, clusters, open_stage


@pytest.fixture(scope="module")  # six brokers more than other tests need
def trios(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, LocalCluster]]:
    with clusters(tmp_path_factory.mktemp("trios")) as pair:
        yield pair


@pytest.fixture
def stage(trios: tuple[LocalCluster, LocalCluster], tmp_path: Path) -> Iterator[Stage]:
    with open_stage(*trios, tmp_path) as opened:
        yield opened
