"""What contract tests share beside the two clusters of every run."""

from collections.abc import Iterator

import pytest

from sparkmirror.clusters import ClusterSpec, LocalCluster
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


@pytest.fixture(scope="session")
def frail_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One broker to kill and freeze, with an authorizer. A test leaves it running."""
    settings = {
        # A short session: the controller makes a restarted broker wait until its former one has run out.
        "broker.session.timeout.ms": "1500",
        # Who has no ACL is open to all.
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    spec = ClusterSpec("frail", settings=settings, heap_mb=256)
    with LocalCluster.start(spec, tmp_path_factory.mktemp("frail")) as cluster:
        yield cluster
