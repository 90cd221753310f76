"""Real clusters, shared by every test of a run that asks for them."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from sparkmirror.clusters import LocalCluster
from tests.support.cluster_pairs import cluster_pair_of

settings.register_profile("patient", deadline=None)  # how long an example takes is the machine's affair
settings.load_profile("patient")


@pytest.fixture(scope="session")
def cluster_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, LocalCluster]]:
    settings = {
        # The cleaner would let tests of compacted topics wait for 15 s.
        "log.cleaner.backoff.ms": "500",
        # Tests write records of years ago; a broker looks for such half a minute after its start, and later.
        "log.retention.ms": "-1",
        # Nobody restarts them: that they are missed late keeps idle cores quiet and busy ones out of trouble.
        "broker.heartbeat.interval.ms": "2000",
        "broker.session.timeout.ms": "18000",
    }
    with cluster_pair_of(1, settings, tmp_path_factory.mktemp("clusters")) as pair:
        yield pair


@pytest.fixture(scope="session")
def source_cluster(cluster_pair: tuple[LocalCluster, LocalCluster]) -> LocalCluster:
    """One broker that other tests use too: name topics and groups so that nobody else has them."""
    return cluster_pair[0]


@pytest.fixture(scope="session")
def target_cluster(cluster_pair: tuple[LocalCluster, LocalCluster]) -> LocalCluster:
    """Likewise; started beside the source."""
    return cluster_pair[1]
