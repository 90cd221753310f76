"""Starts, replaces and stops the copy jobs of one connector.

A copy job runs until the partitions change or the flow stops. It is stopped by a record in the progress
topic first, by cancelling its Spark job second. The next one starts when the last has ended, so that its
tasks find the last positions.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from sparkmirror.config.transaction_settings import transactional_id
from sparkmirror.copy.copy_plan import OffsetSyncPlan, StatePlan, TaskPlan, TransactionPlan
from sparkmirror.copy.task.copy_job import CopyJob
from sparkmirror.copy.task.outcomes import Outcome
from sparkmirror.domain.assignment import Assignment, assign, assign_by_load
from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.errors import SparkmirrorError, SupersededError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.quantities import counted
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.topic_log import TopicTail, TopicWriter
from sparkmirror.kafka.net.transport import meant_clusters
from sparkmirror.kafka.transactions.transaction_runs import fence
from sparkmirror.machine import machine_name
from sparkmirror.mirror.reassignment import Running
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.policies.rate_limits import NO_LIMITS, RateLimits, shares
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.spark.session import Session
from sparkmirror.storage.progress import Driver, JobEpoch, StateLost, parse

_RECALL_TIMEOUT_S = 30.0
_ANNOUNCE_STOP_TIMEOUT_S = 1.5
_STOP_TIMEOUT_S = 4.5
_CANCEL_TIMEOUT_S = 1.5
_RESUBMIT = Backoff(1.0, 60.0)
_NO_LOAD: Mapping[TopicPartition, float] = {}


class Announced(NamedTuple):
    """A copy job's number, the offset of its record in the progress topic, and the limits after that.

    `driver` is the process that wrote the record.
    """

    number: int
    offset: int
    limits: RateLimits = NO_LIMITS
    driver: Driver | None = None


def task_plans(  # noqa: PLR0913 - a plan's parts
    on: FlowWorker,
    connector: ConfiguredSource,
    announced: Announced,
    partitions: Sequence[CopyPartition],
    slots: int,
    *,
    assigner: Callable[[Collection[TopicPartition], int], Assignment] = assign,
    fences: bool = True,
) -> list[TaskPlan]:
    """Plan the tasks: at most `tasks.max`, and no more than partitions or slots.

    `fences` says whether the topic is there in which attempts are recorded.
    """
    settings = connector.settings
    count = min(settings.tasks_max, len(partitions), max(slots, 1))
    by_source = {partition.source: partition for partition in partitions}
    assignment = assigner(by_source, count)
    plans = [
        TaskPlan(
            flow=on.flow,
            connector=connector.name,
            task=task,
            job_epoch=announced.number,
            announced_at=announced.offset,
            partitions=tuple(by_source[source] for source in share),
            consumer=connector.consumer_of(task),
            producer=connector.producer_of(task),
            state=_state_plan(on, fences=fences),
            offset_syncs=_offset_sync_plan(on, connector),
            settings=settings.copying,
            transaction=_transaction_plan(on, connector, task),
            rate_limits=announced.limits,
            rate_shares=rate_shares,
            names_show_origin=settings.names_show_origin,
            driver=announced.driver,
        )
        for task, (share, rate_shares) in enumerate(zip(assignment, shares(assignment), strict=True))
    ]
    return [replace(plan, meant=meant_clusters(plan.connections)) for plan in plans]


def _state_plan(on: FlowWorker, *, fences: bool) -> StatePlan:
    source = on.flow.source
    return StatePlan(
        on.worker_client,
        on.worker.offset_topic.name,
        StateTopic.PROGRESS.of(source),
        StateTopic.ATTEMPTS.of(source) if fences else None,
    )


def _transaction_plan(on: FlowWorker, connector: ConfiguredSource, task: int) -> TransactionPlan | None:
    settings = connector.transactions
    if settings is None:
        return None
    own_id = transactional_id(on.worker.group_id, connector.name, task)
    return TransactionPlan(own_id, settings.timeout_s, settings.interval_s)


def _offset_sync_plan(on: FlowWorker, connector: ConfiguredSource) -> OffsetSyncPlan | None:
    settings = connector.settings
    if settings.offset_syncs_topic is None:
        return None
    return OffsetSyncPlan(
        connector.offset_syncs_producer,
        settings.offset_syncs_topic,
        settings.offset_lag_max,
        on.worker.offset_flush_interval_s,
    )


class CopyJobs:
    """Runs a connector's copy jobs, in its thread; only the end of a job arrives from another one."""

    def __init__(
        self,
        on: FlowWorker,
        connector: ConfiguredSource,
        session: "Future[Session]",
        slots_of: Callable[[Session], int],
        limits: Callable[[], RateLimits],
    ) -> None:
        self._on = on
        self._connector = connector
        self._session = session
        self._slots_of = slots_of
        self.slots: int | None = None
        """Spark's slots for the tasks, when Spark was asked last; None before."""
        self._slots_limit: int | None = None
        self._limits = limits
        self._log = flow_log(__name__, on.flow, connector.name)
        self._topic = StateTopic.PROGRESS.of(on.flow.source)
        self._writer = TopicWriter(on.worker_client)
        self._driver = Driver(machine_name(), os.getpid(), time.time())
        self._is_recalled = False
        self._number = 0
        self._transactional_tasks = 0
        self._announced_at: int | None = None
        self._assignment: Assignment = ()
        self.fences = True
        """Whether tasks record their attempts, and fence those before."""
        self._job: CopyJob | None = None
        self._ended = threading.Event()
        self._failures = 0

    def _recall(self) -> None:
        """Read the number of the last copy job, on whichever node it ran. Raises as `replace` does."""
        newest = self._newest()
        self._is_recalled = True
        if newest is None:
            return
        self._number = max(self._number, newest.number)
        self._transactional_tasks = max(self._transactional_tasks, newest.transactional_tasks)
        other = None if newest.stopped or newest.driver == self._driver else newest.driver
        if other is not None and self._announced_at is not None:
            raise SupersededError(f"{other}, copies this flow now, with copy job {newest.number}")
        if other is not None:
            self._log.info(
                "takes over from %s, which did not end its copy job %d; if that process still runs, it "
                "will stop",
                other,
                newest.number,
            )

    def _newest(self) -> JobEpoch | None:
        """The record of the connector's last copy job in the progress topic."""
        tail = TopicTail(self._on.worker_client, self._topic)
        try:
            # Compaction lags behind: there may be many reports of each partition, and one is parsed.
            latest = {record.key: record for record in tail.read_to_end(_RECALL_TIMEOUT_S)}
        finally:
            tail.close()
        found = [one for one in map(parse, latest.values()) if isinstance(one, JobEpoch)]
        return next((one for one in found if one.connector == self._connector.name), None)

    def replace(
        self, partitions: Sequence[CopyPartition], load: Mapping[TopicPartition, float] = _NO_LOAD
    ) -> None:
        """Run these partitions and nothing else, assigned by their load in bytes per second where it's known.

        Raises KafkaError when the topic can't be written, or a task of the last job can't be fenced;
        SupersededError once when another process announced a copy job after this one's last, and did not
        stop it: a second call takes the flow back.
        """
        if not self._is_recalled:
            self._recall()
        will_use = self._most_tasks(partitions) if self._connector.transactions is not None else 0
        may_be_used = max(self._transactional_tasks, will_use)
        announced_at = self._announce(
            JobEpoch(
                self._connector.name,
                self._number + 1,
                len(partitions),
                transactional_tasks=may_be_used,
                driver=self._driver,
            )
        )
        self._number += 1
        self._announced_at = announced_at
        self._transactional_tasks = may_be_used
        self._end_job()
        self._fence()
        self._transactional_tasks = will_use
        if partitions:
            self._submit(announced_at, partitions, load)

    def announce_loss(self) -> None:
        """Let the tasks write all that they know to the state topics, which are new. Raises KafkaError."""
        self._writer.write(self._topic, [StateLost(self._connector.name).to_record()])

    @property
    def running(self) -> Running | None:
        """The copy job that is copying, as far as is known."""
        if self._job is None or self.has_ended or self._announced_at is None:
            return None
        return Running(self._number, self._announced_at, self._assignment)

    @property
    def has_ended(self) -> bool:
        """Whether the job ended unasked."""
        return self._job is not None and self._ended.is_set()

    @property
    def job(self) -> CopyJob | None:
        """The Spark job of the current copy job."""
        return None if self.has_ended else self._job

    @property
    def can_move(self) -> bool:
        """Whether there are slots on executors that stay. Raises SparkmirrorError as `has_other_slots`."""
        return self._session.result().slots > 0

    def has_other_slots(self) -> bool:
        """Whether Spark's current slots allow another number of tasks than run.

        Raises SparkmirrorError when Spark does not respond.
        """
        if self.job is None:
            return False
        slots = max(self._slots_now(), 1)
        partitions = sum(map(len, self._assignment))
        return min(self._connector.settings.tasks_max, partitions, slots) != len(self._assignment)

    def limit_slots(self, slots: int | None) -> None:
        """Let later copy jobs use at most so many slots, although Spark says that there are more."""
        self._slots_limit = slots

    def _slots_now(self) -> int:
        self.slots = self._slots_of(self._session.result())
        return self.slots if self._slots_limit is None else min(self.slots, self._slots_limit)

    def resubmit_delay_s(self) -> float:
        """The delay before the next `replace`, longer with each job that ended unasked."""
        self._failures += 1
        return _RESUBMIT.delay_s(self._failures, random.random())

    def forget(self) -> None:
        """Drop a job that has ended unasked: another process may have superseded it."""
        self._job = None
        self._is_recalled = False

    def stop(self, *, in_order: bool = True) -> None:
        """Stop the tasks by a stop record, or cancel them after some seconds.

        A node that may not run tasks any more (not `in_order`) cancels its own and writes nothing: another
        node may have announced copy jobs since, and a later record of this one would end them.
        """
        job = self.job
        # One without partitions, or that waits for Spark, is announced and has no job.
        is_announced = self._job is None and self._is_recalled and self._announced_at is not None
        if job is not None and not in_order:
            self._cancel(job)
        elif job is not None or (is_announced and in_order):
            try:
                stopped = JobEpoch(
                    self._connector.name,
                    self._number,
                    stopped=True,
                    transactional_tasks=self._transactional_tasks,
                    driver=self._driver,
                )
                self._announce(stopped, timeout_s=_ANNOUNCE_STOP_TIMEOUT_S)
            except SparkmirrorError as error:
                self._log.warning("the stop record can't be written (%s); cancelling the tasks", error)
                if job is not None:
                    self._cancel(job)
            else:
                if self._end_job() and job is not None:
                    self._log.info("stopped; the last positions are written")
        self._writer.close()

    def _most_tasks(self, partitions: Sequence[CopyPartition]) -> int:
        """The number of tasks if Spark has enough slots."""
        return min(self._connector.settings.tasks_max, len(partitions))

    def _fence(self) -> None:
        """Abort open transactions of earlier tasks, whose partitions other tasks copy now (KIP-618)."""
        group_id, name = self._on.worker.group_id, self._connector.name
        ids = [transactional_id(group_id, name, task) for task in range(self._transactional_tasks)]
        fence(self._connector.producer_of(0).connection, ids)

    def _announce(self, job_epoch: JobEpoch, timeout_s: float | None = None) -> int:
        (offset,) = self._writer.write(self._topic, [job_epoch.to_record()], timeout_s=timeout_s)
        return offset

    def _submit(
        self, announced_at: int, partitions: Sequence[CopyPartition], load: Mapping[TopicPartition, float]
    ) -> None:
        session = self._session.result()
        slots = self._slots_now()
        announced = Announced(self._number, announced_at, self._limits(), self._driver)
        assigner = partial(assign_by_load, load=load, previous=self._assignment)
        plans = task_plans(
            self._on, self._connector, announced, partitions, slots, assigner=assigner, fences=self.fences
        )
        session.require_private(frozenset().union(*(plan.connections for plan in plans)))
        self._assignment = tuple(tuple(copied.source for copied in plan.partitions) for plan in plans)
        wanted = self._most_tasks(partitions)
        if len(plans) < wanted:
            self._log.warning(
                "%d tasks instead of %d: Spark has %d slots for them", len(plans), wanted, slots
            )
        # One event per job: a cancelled job may end while its successor runs.
        self._ended = threading.Event()
        self._job = CopyJob(session.host, plans, partial(self._job_ended, self._ended), session.page)
        self._job.start()
        self._log.info(
            "copy job %d copies %s in %s",
            self._number,
            counted(len(partitions), "partition"),
            counted(len(plans), "task"),
        )

    def _end_job(self) -> bool:
        """Whether no job is left, or the last one followed its stop record."""
        job, self._job = self._job, None
        if job is None or job.join(_STOP_TIMEOUT_S):
            return True
        self._log.warning("tasks did not stop in %.0f s; cancelling them", _STOP_TIMEOUT_S)
        self._cancel(job)
        return False

    def _cancel(self, job: CopyJob) -> None:
        job.cancel()
        job.join(_CANCEL_TIMEOUT_S)

    def _job_ended(self, ended: threading.Event, result: Sequence[Outcome] | Exception) -> None:
        if isinstance(result, Exception):
            self._log.error("the Spark job ended: %s", result)
        ended.set()
