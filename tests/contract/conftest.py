"""Fixtures of the contract tests: clusters in memory, clusters to kill, and clusters for copy loops."""

from collections.abc import Iterator

import pytest

from sparkmirror.clusters import ClusterSpec, LocalCluster
from tests.contract.copying import Bench, ProgressReports
from tests.memory.server import MemoryServer, serving
from tests.support.any_cluster import AnyCluster
from tests.support.secured_broker import SecuredBroker, secured_broker

TRIO_SESSION_S = 6.0
"""The time after which a broker of `trio` that does not answer is fenced."""

AUTHORIZER = {
    # A resource without ACLs is open to everyone.
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="session")
def memory_cluster() -> Iterator[MemoryServer]:
    """One broker in memory, behind a real socket."""
    with serving("memory") as server:
        yield server


IN_MEMORY = pytest.param("memory_cluster", marks=pytest.mark.memory)


@pytest.fixture(scope="session", params=[IN_MEMORY, "target_cluster"])
def cluster(request: pytest.FixtureRequest) -> AnyCluster:
    """A cluster in memory and one of a real broker, which must behave alike."""
    made: AnyCluster = request.getfixturevalue(request.param)
    return made


@pytest.fixture(scope="session", params=[IN_MEMORY, "frail_cluster"])
def group_cluster(request: pytest.FixtureRequest) -> AnyCluster:
    """Return a cluster like `cluster`, whose group members may have short session timeouts."""
    made: AnyCluster = request.getfixturevalue(request.param)
    return made


@pytest.fixture(scope="session")
def memory_pair() -> Iterator[tuple[AnyCluster, AnyCluster]]:
    with serving("memory source") as source, serving("memory target") as target:
        yield source, target


@pytest.fixture(scope="session")
def memory_bench(memory_pair: tuple[AnyCluster, AnyCluster]) -> Bench:
    made = Bench(*memory_pair)
    made.create_state_topics()
    return made


@pytest.fixture(scope="session")
def real_bench(cluster_pair: tuple[LocalCluster, LocalCluster]) -> Bench:
    made = Bench(*cluster_pair)
    made.create_state_topics()
    return made


IN_MEMORY_BENCH = pytest.param("memory_bench", marks=pytest.mark.memory)


@pytest.fixture(scope="session", params=[IN_MEMORY_BENCH, "real_bench"])
def bench(request: pytest.FixtureRequest) -> Bench:
    """The two clusters of a copy task, in memory and of real brokers."""
    made: Bench = request.getfixturevalue(request.param)
    return made


@pytest.fixture(scope="session")
def watch(bench: Bench) -> Iterator[ProgressReports]:
    made = ProgressReports(bench)
    yield made
    made.close()


@pytest.fixture(scope="session")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three brokers and one transaction coordinator. A test leaves all brokers running."""
    settings = {
        "broker.session.timeout.ms": str(int(TRIO_SESSION_S * 1000)),
        "replica.fetch.wait.max.ms": "100",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    spec = ClusterSpec("trio", brokers=3, settings=settings, heap_mb=192)
    cluster = LocalCluster.start(spec, tmp_path_factory.mktemp("trio"))
    yield cluster
    cluster.stop(timeout_s=0)


@pytest.fixture(scope="session")
def frail_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One broker to kill and freeze, with an authorizer. A test leaves it running."""
    settings = {
        # A short session, because a restarted broker has to wait until its former session has expired.
        "broker.session.timeout.ms": "1500",
        # Group members may have shorter sessions than Kafka's minimum of 6 s.
        "group.min.session.timeout.ms": "1000",
        # Compacted topics are cleaned soon.
        "log.cleaner.backoff.ms": "200",
        **AUTHORIZER,
    }
    spec = ClusterSpec("frail", settings=settings, heap_mb=256)
    with LocalCluster.start(spec, tmp_path_factory.mktemp("frail")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def guarded_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One broker with an authorizer, a source for `frail_cluster`. A test deletes its ACLs."""
    spec = ClusterSpec("guarded", settings=AUTHORIZER, heap_mb=192)
    with LocalCluster.start(spec, tmp_path_factory.mktemp("guarded")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured") / "broker") as made:
        yield made


@pytest.fixture(scope="session")
def secured_bench(secured: SecuredBroker) -> Bench:
    """The broker is source and target."""
    made = Bench(secured.cluster, secured.cluster)
    made.create_state_topics()
    return made
