"""Starts three brokers on either side, shared by the drills of a module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.clusters import LocalCluster
from tests.faults.testbed import DrillTestbed, clusters, open_testbed


@pytest.fixture(scope="module")  # six brokers more than other tests need
def trios(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, LocalCluster]]:
    with clusters(tmp_path_factory.mktemp("trios")) as pair:
        yield pair


@pytest.fixture
def testbed(trios: tuple[LocalCluster, LocalCluster], tmp_path: Path) -> Iterator[DrillTestbed]:
    with open_testbed(*trios, tmp_path) as opened:
        yield opened
