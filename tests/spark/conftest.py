"""A local Spark session that all tests of this folder share. The processes must end with the session."""

import sys
from collections.abc import Iterator

import psutil
import pytest
from pyspark.sql import SparkSession

from sparkmirror.clusters import LocalCluster
from sparkmirror.spark.session import Session, default_master
from tests.spark.running_job import PASSWORD, JobTestbed, own_jvm
from tests.support.command_lines import command_line
from tests.support.waiting import patience


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    log = tmp_path_factory.mktemp("spark") / "spark.log"
    with pytest.MonkeyPatch.context() as environment:
        # Spark looks for data sources with this Python, by default with the first python3 of the PATH.
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        started = Session.start(default_master(8), {"spark.example.password": PASSWORD}, log)
    jvm = psutil.Process(own_jvm(started).process.pid)
    yield started
    processes = [jvm, *filter(is_no_zombie, jvm.children(recursive=True))]
    assert any("worker_daemon" in command_line(process) for process in processes), "no Python daemon ran"
    started.close()
    _, left = psutil.wait_procs(processes, timeout=5 * patience())
    assert not left, f"Session.close left {left}"
    assert not started.is_alive
    assert "WARN" in log.read_text(), "Spark's noise has gone elsewhere"


@pytest.fixture(scope="session")
def spark(session: Session) -> SparkSession:
    return session.spark


@pytest.fixture(scope="session")
def clusters_and_session(
    session: Session, source_cluster: LocalCluster, target_cluster: LocalCluster
) -> JobTestbed:
    made = JobTestbed(session, source_cluster, target_cluster)
    made.create_state_topics()
    return made


@pytest.fixture
def testbed(clusters_and_session: JobTestbed) -> Iterator[JobTestbed]:
    yield clusters_and_session
    clusters_and_session.end_jobs()


def is_no_zombie(process: psutil.Process) -> bool:
    """Whether the process is no zombie: the child of Spark's start script ends and stays one."""
    return bool(process.status() != psutil.STATUS_ZOMBIE)
