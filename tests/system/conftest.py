"""Fixtures of the system tests: a mirror of several flows that has run twice over every kind of data."""

from collections.abc import Iterator

import pytest

from sparkmirror.clusters import LocalCluster
from tests.support.mirror import running_mirror
from tests.system import dual_run
from tests.system.dual_run import FirstRun, Mirrored, Sides


@pytest.fixture(scope="session")
def sides(source_cluster: LocalCluster, target_cluster: LocalCluster) -> Sides:
    return Sides(source_cluster, target_cluster)


@pytest.fixture(scope="session")
def mirrored(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirrored]:
    dual_run.write_data(sides)
    folder = tmp_path_factory.mktemp("mirrored") / "mirror"
    with running_mirror(folder, dual_run.properties(sides)) as mirror:
        dual_run.await_all_caught_up(sides)
        mirror.stop()
        first_run = FirstRun.ended(sides, mirror.log_text())
        dual_run.write_more_data(sides)
        mirror.start()
        dual_run.await_all_caught_up(sides)
        yield Mirrored(sides, mirror, first_run)
        mirror.stop()
