"""Starts the clusters that the tests of a process share, and groups tests to run side by side."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

from sparkmirror.clusters import LocalCluster
from tests.support.cluster_pairs import cluster_pair_of

settings.register_profile("no deadline", deadline=None)  # how long an example takes depends on the machine
settings.load_profile("no deadline")

GROUPS: Final = {
    "mirrored": "one mirror",
    "trio": "broken brokers",
    "frail_cluster": "broken brokers",
    "guarded_cluster": "broken brokers",
    "secured": "one secured broker",
    "session": "one Spark session",
}
"""Fixtures that are costly to set up, and the group of the tests that share them."""
ORDER: Final = ("system", "faults", "contract", "spark", "unit")
"""Folders, those with the longest tests first, so that only short tests are left for the end."""


@pytest.hookimpl(wrapper=True)  # xdist reads the groups in the same hook, and pytest sorts by parameters
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Put each file into one xdist group: that of a fixture that it uses, or else one of its own."""
    groups: dict[Path, str] = {}
    for item in items:
        shared = (GROUPS[name] for name in getattr(item, "fixturenames", ()) if name in GROUPS)
        groups[item.path] = next(
            shared, groups.get(item.path, str(item.path.relative_to(item.config.rootpath)))
        )
    for item in items:
        item.add_marker(pytest.mark.xdist_group(groups[item.path]))
    yield
    items.sort(key=lambda item: (groups[item.path] not in GROUPS.values(), _place(item)))


def _place(item: pytest.Item) -> int:
    folder = item.path.relative_to(item.config.rootpath / "tests").parts[0]
    return ORDER.index(folder) if folder in ORDER else len(ORDER)


@pytest.fixture(autouse=True)
def root_logger_as_before() -> Iterator[None]:
    """Commands that run in this process configure logging: undone, or later tests would see more."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    for handler in set(root.handlers) - set(handlers):
        if not type(handler).__module__.startswith("_pytest"):
            root.removeHandler(handler)


@pytest.fixture(scope="session")
def cluster_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, LocalCluster]]:
    settings = {
        # The cleaner would let tests of compacted topics wait for 15 s.
        "log.cleaner.backoff.ms": "500",
        # Tests write records of years ago; a broker looks for such half a minute after its start, and later.
        "log.retention.ms": "-1",
        # No test restarts them, so sessions may be long: idle cores stay quiet, busy ones miss none.
        "broker.heartbeat.interval.ms": "2000",
        "broker.session.timeout.ms": "18000",
    }
    with cluster_pair_of(1, settings, tmp_path_factory.mktemp("clusters")) as pair:
        yield pair


@pytest.fixture(scope="session")
def source_cluster(cluster_pair: tuple[LocalCluster, LocalCluster]) -> LocalCluster:
    """One broker that other tests use too: give topics and groups names that no other test uses."""
    return cluster_pair[0]


@pytest.fixture(scope="session")
def target_cluster(cluster_pair: tuple[LocalCluster, LocalCluster]) -> LocalCluster:
    """Likewise; started beside the source."""
    return cluster_pair[1]
