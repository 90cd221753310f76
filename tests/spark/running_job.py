"""Runs the Spark job of a copy job between two real clusters, with plans and stop records from the test."""

import threading
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final

import psutil
from pyspark import SparkStageInfo

from sparkmirror.clusters import LocalCluster
from sparkmirror.copy.copy_plan import StatePlan, TaskPlan
from sparkmirror.copy.task.copy_job import CopyJob
from sparkmirror.copy.task.outcomes import EndReason, Outcome
from sparkmirror.domain.client_settings import ConsumerSettings, ProducerSettings
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.spark.driver_jvm import OwnJvm
from sparkmirror.spark.private_members import jobs_with_tag
from sparkmirror.spark.session import Session
from sparkmirror.storage.positions import read_positions
from sparkmirror.storage.progress import JobEpoch, PartitionProgress
from sparkmirror.storage.progress_reader import ProgressReader
from tests.support.broker_data import append, create_topic, end_offsets, numbered
from tests.support.connections import connection
from tests.support.waiting import await_value, patience

PARTITIONS: Final = 3
FLOW: Final = Flow(Alias("here"), Alias("there"))
_POSITIONS: Final = "spark.positions"
_PROGRESS: Final = "spark.progress"
_ATTEMPTS: Final = "spark.attempts"
WAIT_S: Final = 30.0
PASSWORD: Final = "of-a-store: it\u0027s \u00fc"
"""A secret that only Spark itself may know."""


def topic(connector: str) -> str:
    """Name the connector's own topic."""
    return f"spark.{connector}"


def remote(connector: str) -> str:
    return f"here.{topic(connector)}"


class RunningJob:
    """A started copy job; `outcomes` waits for its end."""

    def __init__(self, session: Session, plans: Sequence[TaskPlan]) -> None:
        self._session = session
        self._result: list[Sequence[Outcome] | Exception] = []
        self._ended = threading.Event()
        self.job = CopyJob(session.host, plans, self._end)
        self.job.start()

    def _end(self, result: Sequence[Outcome] | Exception) -> None:
        self._result.append(result)
        self._ended.set()

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    def outcomes(self, timeout_s: float = WAIT_S) -> Sequence[Outcome]:
        assert self._ended.wait(timeout_s * patience()), "the job still runs"
        assert self.job.join(timeout_s * patience())
        (result,) = self._result  # reported once
        assert not isinstance(result, Exception), result
        return result

    def reasons(self, timeout_s: float = WAIT_S) -> list[tuple[int, EndReason]]:
        return sorted((outcome.task, outcome.reason) for outcome in self.outcomes(timeout_s))

    def failed_attempts(self) -> int:
        return sum(stage.numFailedTasks for stage in self._stage_infos())

    def stages(self) -> list[tuple[int, int]]:
        """List the numbers of tasks and of running tasks of each stage of each job."""
        return [(stage.numTasks, stage.numActiveTasks) for stage in self._stage_infos()]

    def _stage_infos(self) -> list[SparkStageInfo]:
        tracker = self._session.spark.sparkContext.statusTracker()
        jobs = [
            tracker.getJobInfo(number)
            for number in jobs_with_tag(self._session.spark.sparkContext, self.job.tag)
        ]
        infos = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return [info for info in infos if info]


@dataclass(frozen=True, slots=True)
class JobTestbed:
    session: Session
    source: LocalCluster
    target: LocalCluster
    jobs: list[RunningJob] = field(default_factory=list)

    def create_state_topics(self) -> None:
        for name in (_POSITIONS, _PROGRESS, _ATTEMPTS):
            config = {"cleanup.policy": "compact"}
            create_topic(self.target.bootstrap_servers, name, config=config)

    def create_topics(self, connector: str) -> None:
        create_topic(self.source.bootstrap_servers, topic(connector), partitions=PARTITIONS)
        create_topic(self.target.bootstrap_servers, remote(connector), partitions=PARTITIONS)

    def announce(self, job_epoch: JobEpoch) -> int:
        writer = TopicWriter(connection(self.target))
        (offset,) = writer.write(_PROGRESS, [job_epoch.to_record()])
        writer.close()
        return offset

    def plans(self, connector: str, job_epoch: int = 1) -> list[TaskPlan]:
        """An announced copy job of one task per partition."""
        name = ConnectorName(connector)
        plan = TaskPlan(
            flow=FLOW,
            connector=name,
            task=0,
            job_epoch=job_epoch,
            announced_at=self.announce(JobEpoch(name, job_epoch, PARTITIONS)),
            partitions=(),
            consumer=ConsumerSettings(connection(self.source)),
            producer=ProducerSettings(connection(self.target)),
            state=StatePlan(connection(self.target), _POSITIONS, _PROGRESS, _ATTEMPTS),
            offset_syncs=None,
        )
        sources = [TopicPartition(topic(connector), number) for number in range(PARTITIONS)]
        return [
            replace(plan, task=task, partitions=(CopyPartition(source, remote(connector)),))
            for task, source in enumerate(sources)
        ]

    def run(self, plans: Sequence[TaskPlan]) -> RunningJob:
        self.jobs.append(RunningJob(self.session, plans))
        return self.jobs[-1]

    def end_jobs(self) -> None:
        """Cancel the jobs that a failed test has left."""
        for running in self.jobs:
            if not running.has_ended:
                running.job.cancel()
                running.outcomes()
        self.jobs.clear()

    def append_and_await_copies(
        self, connector: str, partitions: Collection[int] = range(PARTITIONS)
    ) -> None:
        """Append ten records to each partition and wait until the target has them once."""
        for partition in partitions:
            append(self.source, topic(connector), numbered(10), partition=partition)
        wanted = self.ends(connector)
        await_value(
            lambda: ends(self.target, remote(connector)) == wanted,
            WAIT_S,
            lambda: f"{ends(self.target, remote(connector))} instead of {wanted}; {self._report(connector)}",
        )

    def progress(self, connector: str) -> dict[int, PartitionProgress]:
        """Read the last progress record of each partition that has one."""
        with closing(ProgressReader(connection(self.target), _PROGRESS)) as reader:
            reader.catch_up()
            return {
                report.source.partition: report
                for report in reader.poll().values()
                if report.source.topic == topic(connector)
            }

    def _report(self, connector: str) -> str:
        log_file = own_jvm(self.session).log_file
        assert log_file is not None
        log = log_file.read_text(errors="replace").splitlines()
        said = [line for line in log if "task " in line or "Error" in line]
        return "\n".join([f"progress: {self.progress(connector)}", "Spark's log:", *said[-60:]])

    def ends(self, connector: str) -> list[int]:
        """Read the end offsets of the source's partitions."""
        return ends(self.source, topic(connector))

    def stored(self, connector: str) -> list[int]:
        """Read the stored position of every partition that has one."""
        partitions = [TopicPartition(topic(connector), number) for number in range(PARTITIONS)]
        stored = read_positions(
            connection(self.target), _POSITIONS, ConnectorName(connector), FLOW.source, partitions
        )
        return [stored[partition].offset for partition in partitions if partition in stored]

    def copying_workers(self) -> list[psutil.Process]:
        """Find the Python workers that are connected to the source."""
        port = self.source.brokers[0].port
        jvm = psutil.Process(own_jvm(self.session).process.pid)
        return [process for process in jvm.children(recursive=True) if _talks_to(process, port)]


def own_jvm(session: Session) -> OwnJvm:
    assert isinstance(session.ending, OwnJvm)
    return session.ending


def ends(cluster: LocalCluster, name: str) -> list[int]:
    return [end for _, end in sorted(end_offsets(cluster, [name]).items())]


def _talks_to(process: psutil.Process, port: int) -> bool:
    try:
        return any(found.raddr and found.raddr.port == port for found in process.net_connections("tcp"))
    except psutil.Error:
        return False
