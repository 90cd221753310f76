"""Selects tests by tier, groups them to run side by side, and starts the clusters that they share."""

import logging
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

from sparkmirror.clusters import LocalCluster
from tests.support.cluster_pairs import cluster_pair_of
from tests.support.shared_pair import SharedPair, shared_pair
from tests.tiers import chosen, may_hold, tier_of

settings.register_profile("no deadline", deadline=None)  # how long an example takes depends on the machine
settings.load_profile("no deadline")

# A background job inherits that SIGINT is ignored, one of nohup SIGHUP. What tests start must not.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

GROUPS: Final = {
    "mirrored": "one mirror",
    "trio": "broken brokers",
    "frail_cluster": "broken brokers",
    "guarded_cluster": "broken brokers",
    "secured": "one secured broker",
    "session": "one Spark session",
    "image": "one image",
}
"""Fixtures that are costly to set up and to keep, and the group of the tests that share them."""
ORDER: Final = ("system", "faults", "contract", "spark", "unit")
"""Folders, those with the longest tests first, so that only short tests are left for the end."""
ID_MAX: Final = 60

_SHARED_PAIR: Final = pytest.StashKey[SharedPair]()
_ENDING: Final = pytest.StashKey[list[str]]()
"""The fixtures of `GROUPS` that no test behind this one uses."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tiers", default="", help="run tests of these tiers only: check,test,all (see tests/tiers.py)"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave folders out, unread, that have no test of the chosen tiers."""
    tests = config.rootpath / "tests"
    if collection_path == tests or not collection_path.is_relative_to(tests):
        return None
    folder = collection_path.relative_to(tests).parts[0]
    return None if may_hold(folder, chosen(config.getoption("tiers"))) else True


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: object) -> None:
    """Tell a process of xdist where it gets the shared pair of clusters."""
    config: pytest.Config = node.config  # type: ignore[attr-defined]  # xdist has no types
    if _SHARED_PAIR not in config.stash:
        config.stash[_SHARED_PAIR] = SharedPair(PAIR_SETTINGS)
        config.stash[_SHARED_PAIR].start()
    node.workerinput["shared_pair"] = config.stash[_SHARED_PAIR].address  # type: ignore[attr-defined]


def pytest_unconfigure(config: pytest.Config) -> None:
    if _SHARED_PAIR in config.stash:
        config.stash[_SHARED_PAIR].close()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Shorten long values, which would be a part of their test's name."""
    if isinstance(val, str | bytes) and len(val) > ID_MAX:
        return f"{val[:ID_MAX]!r} and {len(val) - ID_MAX} more"
    return None


@pytest.hookimpl(wrapper=True)  # xdist reads the groups in the same hook, and pytest sorts by parameters
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Deselect other tiers, and put each file into one xdist group: a costly fixture's, or one of its own."""
    _deselect_other_tiers(config, items)
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
    last = {name: item for item in items for name in _fixtures(item) & GROUPS.keys()}
    for name, item in last.items():
        item.stash.setdefault(_ENDING, []).append(name)


def _deselect_other_tiers(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = chosen(config.getoption("tiers"))
    by_choice: dict[bool, list[pytest.Item]] = defaultdict(list)
    for item in items:
        test = f"{item.path.name}::{item.name}"
        by_choice[tier_of(_folder(item), test, _fixtures(item)) in wanted].append(item)
    items[:] = by_choice[True]
    if by_choice[False]:
        config.hook.pytest_deselected(items=by_choice[False])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """End costly fixtures behind the last test that uses them; all others run with less load then."""
    yield
    fixtures = item.session._fixturemanager
    for name in item.stash.get(_ENDING, []):
        for fixture in fixtures.getfixturedefs(name, item) or ():
            fixture.finish(item._request)  # type: ignore[attr-defined]


def _fixtures(item: pytest.Item) -> set[str]:
    """The fixtures that the test has, also those that its parameters name."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    named = (parameter for parameter in parameters if isinstance(parameter, str))
    return {*getattr(item, "fixturenames", ()), *named}


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(item.config.rootpath / "tests").parts[0]


def _place(item: pytest.Item) -> int:
    folder = _folder(item)
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


PAIR_SETTINGS: Final = {
    # The cleaner would let tests of compacted topics wait for 15 s.
    "log.cleaner.backoff.ms": "500",
    # Tests write records of years ago; a broker looks for such half a minute after its start, and later.
    "log.retention.ms": "-1",
    # No test restarts them, so sessions may be long: idle cores stay quiet, busy ones miss none.
    "broker.heartbeat.interval.ms": "2000",
    "broker.session.timeout.ms": "18000",
}


@pytest.fixture(scope="session")
def cluster_pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LocalCluster, LocalCluster]]:
    """One source and one target, which all processes of a test run share."""
    if hasattr(request.config, "workerinput"):
        home = tmp_path_factory.getbasetemp().parent / "clusters"
        yield shared_pair(request.config.workerinput["shared_pair"], home)
    else:
        with cluster_pair_of(1, PAIR_SETTINGS, tmp_path_factory.mktemp("clusters")) as pair:
            yield pair


@pytest.fixture(scope="session")
def source_cluster(cluster_pair: tuple[LocalCluster, LocalCluster]) -> LocalCluster:
    """One broker that other tests use too: give topics and groups names that no other test uses."""
    return cluster_pair[0]


@pytest.fixture(scope="session")
def target_cluster(cluster_pair: tuple[LocalCluster, LocalCluster]) -> LocalCluster:
    """Likewise; started beside the source."""
    return cluster_pair[1]
