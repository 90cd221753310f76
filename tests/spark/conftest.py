"""One local Spark session for all tests of this folder; whatever it started must end with it."""

from collections.abc import Iterator

import psutil
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.spark.session import Session, default_master
from tests.spark.running_job import Bed, own_jvm


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    log = tmp_path_factory.mktemp("spark") / "spark.log"
    started = Session.start(default_master(8), {}, log)
    jvm = psutil.Process(own_jvm(started).process.pid)
    yield started
    family = [jvm, *filter(is_awake, jvm.children(recursive=True))]
    assert any("worker_daemon" in " ".join(process.cmdline()) for process in family), "no Python daemon ran"
    started.close()
    _, left = psutil.wait_procs(family, timeout=5)
    assert not left, f"Session.close left {left}"
    assert not started.is_alive
    assert "WARN" in log.read_text(), "Spark's noise has gone elsewhere"


@pytest.fixture(scope="session")
def clusters_and_session(session: Session, source_cluster: LocalCluster, target_cluster: LocalCluster) -> Bed:
    made = Bed(session, source_cluster, target_cluster)
    made.create_state_topics()
    return made


@pytest.fixture
def bed(clusters_and_session: Bed) -> Iterator[Bed]:
    yield clusters_and_session
    clusters_and_session.end_jobs()


def is_awake(process: psutil.Process) -> bool:
    """Spark's start script leaves the JVM a child that has ended."""
    return bool(process.status() != psutil.STATUS_ZOMBIE)
