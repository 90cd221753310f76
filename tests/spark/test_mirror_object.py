"""`Mirror`, a guest in a user's session: what it plans, tells, and leaves behind."""

import threading
from pathlib import Path
from typing import Any, Final

import javaproperties
import pytest

from sparkmirror import Mirror, MirrorException, MirrorListener
from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.errors import ConfigError
from sparkmirror.spark.session import Session
from tests.support.broker_data import append, create_topic, end_offsets, numbered
from tests.support.mirror import REPLICATION
from tests.support.waiting import await_value, patience

WAIT_S: Final = 60.0


@pytest.fixture
def config(
    source_cluster: LocalCluster, target_cluster: LocalCluster, request: pytest.FixtureRequest
) -> dict[str, str]:
    """A flow of a topic with two partitions of ten records, with an alias of the test's own."""
    alias = request.node.name.replace("_", "-")[5:45]
    create_topic(source_cluster.bootstrap_servers, f"of.{alias}", partitions=2)
    for partition in range(2):
        append(source_cluster, f"of.{alias}", numbered(10), partition=partition)
    return {
        **REPLICATION,
        "clusters": f"{alias}, guest-target",
        f"{alias}.bootstrap.servers": source_cluster.bootstrap_servers,
        "guest-target.bootstrap.servers": target_cluster.bootstrap_servers,
        f"{alias}->guest-target.enabled": "true",
        f"{alias}->guest-target.topics": f"of.{alias}",
        "heartbeats.replication.enabled": "false",
        "tasks.max": "2",
    }


@pytest.fixture
def topic(config: dict[str, str]) -> str:
    return next(value for key, value in config.items() if key.endswith(".topics"))


class Noting(MirrorListener):
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.ended = threading.Event()

    def onStarted(self, mirror: Mirror) -> None:  # noqa: ARG002, N802
        self.calls.append("started")
        raise ValueError("a listener's bug")

    def onProgress(self, progress: Any) -> None:  # noqa: N802
        self.calls.append(progress["flows"][0]["state"]["word"])

    def onTerminated(self, exception: MirrorException | None) -> None:  # noqa: N802
        self.calls.append(f"ended {exception}")
        self.ended.set()


def jobs_of(spark: Any) -> list[int]:
    return list(spark.sparkContext.statusTracker().getActiveJobsIds())


def test_guest_copies_and_leaves_the_session_as_it_was(
    session: Session, config: dict[str, str], topic: str, target_cluster: LocalCluster, tmp_path: Path
) -> None:
    spark = session.spark
    file = tmp_path / "mm2.properties"
    file.write_text(javaproperties.dumps(config), encoding="ascii")
    spark.addTag("the-users")
    before = (spark.conf.getAll, spark.getTags(), jobs_of(spark))
    listener = Noting()
    mirror = Mirror(str(file), spark=spark)
    mirror.addListener(listener)
    assert not mirror.isActive
    assert mirror.lastProgress is None
    assert "is not started" in mirror._repr_html_()
    with mirror:
        planned = mirror.plan()
        copies = planned.where("action = 'copy'").orderBy("name").collect()
        assert [row["name"] for row in copies] == [f"{topic}-0", f"{topic}-1"]
        assert mirror.start() is mirror
        mirror.await_lag(0, timeout=WAIT_S * patience())
        alias = topic.removeprefix("of.")
        assert sum(end_offsets(target_cluster, [f"{alias}.{topic}"]).values()) == 20
        rows = mirror.status().where("lag = 0").orderBy("partition").collect()
        assert [(row.topic, row.partition, row.position) for row in rows] == [(topic, 0, 10), (topic, 1, 10)]
        assert mirror.status(arrow=True).column("flow").to_pylist() == [f"{alias}->guest-target"] * 2
        assert mirror.isActive
        assert mirror.awaitTermination(0.1) is False
        assert f"{topic}</td>" in mirror._repr_html_()
        await_value(lambda: mirror.recentProgress, WAIT_S, lambda: "no progress")
        assert mirror.lastProgress is not None
        with pytest.raises(MirrorException, match="starts once"):
            mirror.start()
    assert not mirror.isActive
    assert mirror.exception() is None
    assert mirror.awaitTermination(0)
    assert listener.ended.wait(WAIT_S * patience())
    assert listener.calls[0] == "started"
    assert listener.calls[-1] == "ended None"
    assert (spark.conf.getAll, spark.getTags(), jobs_of(spark)) == before
    spark.removeTag("the-users")
    assert spark.range(10).count() == 10


def test_jobs_are_described_by_flow_and_partitions(
    session: Session, config: dict[str, str], topic: str
) -> None:
    with Mirror(config, spark=session.spark).start() as mirror:
        mirror.await_lag(0, timeout=WAIT_S * patience())
        store = session.spark.sparkContext._jsc.sc().statusStore()
        jobs = store.jobsList(None)
        told = [str(jobs.apply(at).description()) for at in range(jobs.length())]
        alias = topic.removeprefix("of.")
        name = f"{alias}->guest-target MirrorSourceConnector"
        assert f"Some({name}, copy job 1: 2 partitions in 2 tasks)" in told


def test_a_lag_that_stays_is_told(session: Session, config: dict[str, str], topic: str) -> None:
    mirror = Mirror(config, spark=session.spark)
    with pytest.raises(MirrorException, match=rf"not caught up after 1 s: .*{topic.removeprefix('of.')}"):
        mirror.await_lag(0, timeout=1)
    mirror.stop()


def test_a_second_spark_in_one_process_is_refused_in_one_line(
    session: Session, config: dict[str, str]
) -> None:
    assert session.is_alive
    with pytest.raises(MirrorException, match="a Spark session already, and Spark allows one: Mirror"):
        Mirror(config).start()


def test_a_wrong_config_is_refused_before_anything_starts(config: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="clusters"):
        Mirror({key: value for key, value in config.items() if key != "clusters"})
