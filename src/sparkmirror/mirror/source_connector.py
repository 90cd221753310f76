"""Runs a MirrorSourceConnector: finds topics, prepares them on the target, keeps the right tasks running."""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

from sparkmirror.domain.assignment import Assignment, PartitionAssignment, count_moves
from sparkmirror.domain.errors import (
    SparkmirrorError,
    SupersededError,
)
from sparkmirror.domain.quantities import as_time, some_of
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.mirror.copy_jobs import CopyJobs
from sparkmirror.mirror.flow_clusters import FlowClusters
from sparkmirror.mirror.flow_start import FlowStart
from sparkmirror.mirror.reassignment import (
    DEFAULT_REASSIGNMENT,
    Imbalance,
    Reassignment,
    ReassignmentPolicy,
    Running,
)
from sparkmirror.mirror.shared_targets import SharedTargets
from sparkmirror.mirror.slot_changes import SlotChanges
from sparkmirror.mirror.source_topics import SourceTopics
from sparkmirror.mirror.target_syncs import FIRST_SYNC_AFTER_S, SYNC_CONFIGS, sync_jobs
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.periodic.jobs import Job, PeriodicThread
from sparkmirror.plan.flow_planning import obstacles
from sparkmirror.plan.without_position import started_over, starts_over
from sparkmirror.policies.rate_limits import NO_LIMITS, RateLimits
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.settings.topic_selection import BlockKind
from sparkmirror.setup.append_time import AppendTimeTopics
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.setup.promoted_topics import CHECK_INTERVAL_S, PromotedTopics
from sparkmirror.setup.recreated_targets import RecreatedTargets
from sparkmirror.setup.topic_delete_sync import TopicDeleteSync
from sparkmirror.setup.topic_explanation import LATER_TOPICS
from sparkmirror.setup.topic_plan import CopyPlan, copy_partitions
from sparkmirror.setup.topic_sync import Topics, TopicSync
from sparkmirror.spark.session import Session
from sparkmirror.spark.slots import counted_slots
from sparkmirror.storage.own_topics import watching
from sparkmirror.storage.positions import topics_with_positions
from sparkmirror.storage.promotions import Promotions
from sparkmirror.storage.troubles import Troubles

_WATCH_INTERVAL_S = 1.0
_WAITING_RETRY_S = 2.0
"""The delay before new partitions that are not visible yet are listed again."""
_VISIBLE_TIMEOUT_S = 3.0
"""The time to wait for slots first: a copy job without them would be replaced soon."""
_RETRIABLE_RETRY_S = 5.0
"""After a retriable error, such as an unreachable broker: data should flow again soon."""
_PROBLEM_RETRY_S = 30.0
_SPARK_CHECK_INTERVAL_S = 2.0
_NEVER_S = float("inf")

_REFRESH = "refresh topics"
_REPORT_OBSTACLES = "report obstacles"
_REPORT_OBSTACLES_AFTER_S = 1.0
"""Copying has started by then."""
_WHAT_TO_DO = "This one stops. Where both have READ on the flow's group on the target, one of them stands by"
_STARTS_OVER_TOLD_S = 10.0
"""The time that copying waits for what tells whether the mirror starts over."""
_TOLD_BY_SYNC = frozenset(kind.value for kind in BlockKind)
_OBSTACLES_MAX = 20
"""The most obstacles that are logged in full."""


class SourceConnector:
    """The source connector of one flow. Everything but the copying happens on `thread`."""

    def __init__(  # noqa: PLR0913 - what it runs with
        self,
        on: FlowWorker,
        connector: ConfiguredSource,
        session: "Future[Session]",
        slots_of: Callable[[Session], int],
        policy: ReassignmentPolicy = DEFAULT_REASSIGNMENT,
        *,
        limits: Callable[[], RateLimits] = lambda: NO_LIMITS,
        troubles: Troubles | None = None,
        clusters: FlowClusters | None = None,
        shared: SharedTargets | None = None,
    ) -> None:
        """`troubles` gets the events; `clusters` and `shared` are other connectors' too."""
        self._on = on
        self._connector = connector
        self._policy = policy
        self._log = flow_log(__name__, on.flow, connector.name)
        self._promoted = PromotedTopics(on, connector)
        self._settings = replace(connector.settings, topic_filter=self._promoted.filter)
        self._copy_jobs = CopyJobs(on, connector, session, slots_of, limits)
        self._reassignment = Reassignment(
            on.worker_client, StateTopic.PROGRESS.of(on.flow.source), connector.name, policy
        )
        self._slot_changes = SlotChanges(self._log, self._copy_jobs)
        self._admins: FlowAdmins | None = None
        self._troubles = troubles or Troubles(self._log)
        self._own_topics = SourceTopics(on, connector, self._log, self._troubles)
        self._clusters = clusters or FlowClusters(on, connector, note=self._troubles.note)
        self._shared = shared or SharedTargets()
        self._running: tuple[CopyPartition, ...] = ()
        self._topic_sync: TopicSync | None = None
        self._append_time: AppendTimeTopics | None = None
        self._copies = RecreatedTargets()
        self._topics: Topics | None = None
        self._is_checked = False
        self._asked_at: float | None = None
        self._start = FlowStart(on, connector, self._log)
        self._copy = CopyPlan()
        self._wanted: tuple[CopyPartition, ...] = ()
        self.thread = PeriodicThread("source connector", self._log, self._prepare, self._finish)

    @property
    def assignment(self) -> Assignment | None:
        """The partitions of each task that runs; None while none does. Safe in any thread."""
        running = self._copy_jobs.running
        return None if running is None else running.assignment

    @property
    def slots(self) -> int | None:
        """Spark's slots for its tasks, as of the last question; None without a bound. Safe in any thread."""
        slots = self._copy_jobs.slots
        return None if slots is None else counted_slots(slots)

    @property
    def promotions(self) -> Promotions:
        """The topics that are copied no more, as they were read last. Safe in any thread."""
        return self._promoted.filter.promoted

    @property
    def topics_gone(self) -> int:
        """The number of topics on the target whose source topic is gone. Safe in any thread."""
        return 0 if self._topics is None else self._topics.gone

    def _prepare(self) -> Iterable[Job]:
        self._admins = self._admins or FlowAdmins(self._on.flow, self._connector)
        self._clusters.require()
        self._own_topics.create(self._admins.target)
        self._copy_jobs.fences = self._own_topics.has_attempts
        self._clusters.record(can_remember=self._own_topics.has_attempts)
        self._start = FlowStart(self._on, self._connector, self._log)
        self._tell_promoted()
        self._topic_sync = self._new_topic_sync(self._admins)
        self._append_time = AppendTimeTopics(self._admins.target)
        return self.jobs(self._admins)

    def _new_topic_sync(self, admins: FlowAdmins) -> TopicSync:
        deletes = TopicDeleteSync(
            self._on, replace(self._connector, settings=self._settings), admins, self._log
        )
        begun = partial(topics_with_positions, *self._on.positions_of(self._connector.name))
        return TopicSync(self._settings, admins, self._log, deletes, begun)

    def jobs(self, admins: FlowAdmins) -> list[Job]:
        """The jobs of `thread` under these settings."""
        settings = self._settings
        if settings.refresh_topics_interval_s is None:
            self._log.info("%s", LATER_TOPICS)
        jobs = [
            # Without an interval the topics are still found once, at the start.
            Job(_REFRESH, settings.refresh_topics_interval_s or _NEVER_S, self._refresh),
            Job("watch tasks", _WATCH_INTERVAL_S, self._watch, first_after_s=_WATCH_INTERVAL_S),
            Job("check Spark", _SPARK_CHECK_INTERVAL_S, self._check_spark, _SPARK_CHECK_INTERVAL_S),
            watching(self._watch_own_topics),
        ]
        if settings.partition_assignment is PartitionAssignment.LOAD and settings.tasks_max > 1:
            interval_s = self._policy.check_interval_s
            jobs.append(
                Job("reassign partitions", interval_s, self._reassign_by_load, first_after_s=interval_s)
            )
        jobs.append(
            Job(_REPORT_OBSTACLES, _NEVER_S, self._report_obstacles, first_after_s=_REPORT_OBSTACLES_AFTER_S)
        )
        if settings.preserved_topics is not None:
            jobs.append(Job("watch promotions", CHECK_INTERVAL_S, self._watch_promotions, CHECK_INTERVAL_S))
        jobs += sync_jobs(settings, admins, self._log, self._troubles)
        return jobs

    def _finish(self) -> None:
        self._shared.note(self._connector, ())
        self._copy_jobs.stop(in_order=self.thread.may_run)
        self._reassignment.close()
        if self._topic_sync is not None:
            self._topic_sync.close()
        if self._admins is not None:
            self._admins.close()

    def _watch_own_topics(self) -> None:
        """Let tasks write all they know and record new attempts after a loss."""
        assert self._admins is not None
        remade = self._own_topics.watch(self._admins.target)
        self._copy_jobs.fences = self._own_topics.has_attempts
        if remade & self._own_topics.of_tasks:
            self._clusters.remember(can_remember=self._own_topics.has_attempts)
        if remade & self._own_topics.of_tasks and self._running:
            self._copy_jobs.announce_loss()
            self._reassign()

    # topics

    def _refresh(self) -> None:
        try:
            self._refresh_once()
        except SparkmirrorError as error:
            self.thread.hasten(_REFRESH, _RETRIABLE_RETRY_S if error.retriable else _PROBLEM_RETRY_S)
            raise

    def _refresh_once(self) -> None:
        assert self._topic_sync is not None
        assert self._append_time is not None
        assert self._admins is not None
        topics = self._topic_sync.plan()
        self._shared.note(self._connector, topics.pairs)
        made = self._topic_sync.apply(topics.plan)
        self._troubles.tell("topics", self._topic_sync.troubles)
        if self._topic_sync.is_without_configs and self._settings.sync_topic_configs_interval_s is not None:
            self.thread.hasten(SYNC_CONFIGS, FIRST_SYNC_AFTER_S)
        if topics is not self._topics or made or self._append_time.is_due:
            target = self._admins.target.await_partitions(made, _VISIBLE_TIMEOUT_S) if made else topics.target
            self._copy = copy_partitions(self._settings, topics.source, target, topics.pairs)
            if self._running and self._copy.waiting and self._topic_sync.awaits_more(time.monotonic()):
                self.thread.hasten(_REFRESH, _WAITING_RETRY_S)
                return
            self._wanted = self._marked(self._append_time.noted(self._copy.ready), topics)
            self._troubles.tell("timestamp types", self._append_time.unreadable)
            self._topics = topics
        if self._append_time.unreadable:
            self._topics = None  # so that they are asked for again
            self.thread.hasten(_REFRESH, _PROBLEM_RETRY_S)
        if self._copy.waiting:
            self.thread.hasten(
                _REFRESH, _PROBLEM_RETRY_S if self._topic_sync.has_problems else _WAITING_RETRY_S
            )
        if not self._is_checked:
            self._warn_of_second_copies(topics)
            self._is_checked = True
        replaced = self._copies.found(self._admins.target.listing(), self._wanted)
        if replaced and self._running:
            self._log.info(
                "%s: recreated on the target; restarting the tasks that copy there", some_of(replaced)
            )
            self._running = ()
        self._run(self._wanted)
        is_idle = not (self._wanted or self._copy.waiting or self._topic_sync.troubles)
        self._troubles.tell("first topic", [self._waits_for_topics()] if is_idle else [])

    def _marked(self, partitions: Sequence[CopyPartition], topics: Topics) -> tuple[CopyPartition, ...]:
        assert self._admins is not None
        self._start.look_back(topics.pairs, topics.listing, self._admins.target.listing())
        can_remember = self._own_topics.has_attempts
        return self._start.marked(
            partitions, topics.listing, topics.selected.topics, can_remember=can_remember
        )

    def _tell_promoted(self) -> bool:
        news = self._promoted.check()
        for text in news:
            self._log.info("%s", text)
        return bool(news)

    def _watch_promotions(self) -> None:
        """Start over with the topics that are left."""
        if not self._tell_promoted():
            return
        assert self._admins is not None
        assert self._topic_sync is not None
        self._topic_sync.close()
        self._topic_sync = self._new_topic_sync(self._admins)
        self._topics = None
        self.thread.hasten(_REFRESH, 0.0)

    def _warn_of_second_copies(self, topics: Topics) -> None:
        """Warn once, before the first position is stored. Copying begins all the same, as with Java.

        Raises SparkmirrorError when a retry can tell, for some seconds.
        """
        asked_at = self._asked_at = self._asked_at or time.monotonic()
        try:
            known = {remote for _, remote in self._shared.of(self._connector)}
            known |= {remote for topic, remote in topics.pairs if topic in self._start.lost}
            found = [
                each for each in started_over(self._on, self._connector, topics) if each.subject not in known
            ]
        except SparkmirrorError as error:
            if error.retriable and time.monotonic() - asked_at < _STARTS_OVER_TOLD_S:
                raise
            self._log.warning("can't tell whether this mirror starts over: %s", error)
            return
        if found:
            self._log.warning("%s", starts_over(found, self._on.flow.target))

    def _report_obstacles(self) -> None:
        """Log once what blocks parts of the flow, with its remedy; the rest of the flow runs."""
        if self._topics is None or self._topic_sync is None:
            self.thread.hasten(_REPORT_OBSTACLES, _PROBLEM_RETRY_S)
            return
        try:
            topics = self._topic_sync.plan()  # topics created since are no obstacle
            found = obstacles(self._on, self._connector, topics)
        except SparkmirrorError as error:
            if error.retriable:
                self.thread.hasten(_REPORT_OBSTACLES, _PROBLEM_RETRY_S)
            raise
        news = [it for it in found if it.kind not in _TOLD_BY_SYNC]
        for finding in news[:_OBSTACLES_MAX]:
            self._log.warning("%s", finding)
        if len(news) > _OBSTACLES_MAX:
            self._log.warning("and %d more: sparkmirror plan lists all", len(news) - _OBSTACLES_MAX)

    # tasks

    def _run(self, partitions: tuple[CopyPartition, ...]) -> None:
        if partitions is self._running or partitions == self._running:
            return
        try:
            self._copy_jobs.replace(partitions, self._reassignment.load)
        except SupersededError as error:
            if not self.thread.is_elected:
                raise SupersededError(f"{error}. {_WHAT_TO_DO}") from error
            self._log.warning("%s; copying is taken back: the group elected this process", error)
            self._copy_jobs.replace(partitions, self._reassignment.load)
        self._running = partitions

    def _waits_for_topics(self) -> Trouble:
        settings, source = self._settings, self._on.flow.source
        again = settings.refresh_topics_interval_s
        remedy = (
            f"it looks again every {as_time(again)} (refresh.topics.interval.seconds)"
            if again
            else "refresh.topics.enabled=false: only a restart finds topics that come later"
        )
        reason = f"no topic of {source} that is selected can be copied yet"
        return Trouble(Cause(TroubleWord.WAITING, Subject.ACTION, reason, remedy), "copy topics")

    def _watch(self) -> None:
        self._troubles.tell("shared topics", self._shared.troubles(self._connector))
        if self._copy_jobs.has_ended:
            self._running = ()
            self._copy_jobs.forget()
            self.thread.hasten(_REFRESH, self._copy_jobs.resubmit_delay_s())

    def _check_spark(self) -> None:
        """Tell waiting and failed tasks; reassign when executors came, leave, or were lost."""
        reason = self._slot_changes.check(time.monotonic())
        self._troubles.tell("slots", self._slot_changes.waiting, is_logged=True)
        if reason is not None:
            self._log.info("%s: reassigning the partitions", reason)
            self._reassign()

    def _reassign_by_load(self) -> None:
        """Check the tasks' load; reassign the partitions when that is worth a pause."""
        before = self._copy_jobs.running
        if before is None:
            return
        imbalance = self._reassignment.check(before, time.monotonic())
        if imbalance is not None:
            self._reassignment.done(time.monotonic())
            self._reassign()
            self._log_moves(before, imbalance)

    def _reassign(self) -> None:
        partitions, self._running = self._running, ()
        try:
            self._run(partitions)
        except SparkmirrorError:
            self.thread.hasten(_REFRESH, _PROBLEM_RETRY_S)  # which starts a copy job again
            raise

    def _log_moves(self, before: Running, imbalance: Imbalance) -> None:
        after = self._copy_jobs.running
        if after is not None:
            self._log.info(
                "copy job %d: moved %d of %d partitions, %s",
                after.number,
                count_moves(before.assignment, after.assignment),
                len(self._running),
                imbalance,
            )
