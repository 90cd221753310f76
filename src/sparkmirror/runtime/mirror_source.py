"""Runs a MirrorSourceConnector: finds topics, prepares them on the target, keeps the right tasks running."""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace

from sparkmirror.connectors.source import remote_topic, should_replicate
from sparkmirror.connectors.topic_plan import (
    GrowTopic,
    NewTopic,
    SourceTopic,
    TopicPlan,
    copy_partitions,
    missing_topics,
    plan_topics,
    replicated_topics,
)
from sparkmirror.domain.acls import target_acls
from sparkmirror.domain.assignment import Assignment, PartitionAssignment, count_moves
from sparkmirror.domain.config_filter import config_changes
from sparkmirror.domain.copy_plan import CopyPartition
from sparkmirror.domain.errors import KafkaError, SparkmirrorError
from sparkmirror.domain.incidents import OnBadBatch
from sparkmirror.domain.rate_limits import NO_LIMITS, RateLimits
from sparkmirror.engine.session import Session
from sparkmirror.kafka import error_codes
from sparkmirror.kafka.admin import Admin, TopicCreation
from sparkmirror.runtime.flow_log import flow_log
from sparkmirror.runtime.flow_settings import FlowWorker, SourceConnector
from sparkmirror.runtime.generations import Generations
from sparkmirror.runtime.internal_topics import COMPACTED, ensure_topics
from sparkmirror.runtime.periodic import PeriodicThread
from sparkmirror.runtime.rebalancing import DEFAULT_REBALANCES, Imbalance, Rebalances, Rebalancing, Running
from sparkmirror.runtime.schedule import Job
from sparkmirror.runtime.spark_watch import SparkWatch
from sparkmirror.storage.dead_letters import dead_letters_topic
from sparkmirror.storage.progress import progress_topic

_WATCH_INTERVAL_S = 1.0
_WAITING_RETRY_S = 2.0
"""How soon to look again for partitions that were just created and are not visible yet."""
_VISIBLE_TIMEOUT_S = 3.0
"""How long to wait for them at once: a generation without them would be replaced soon."""
_TROUBLE_RETRY_S = 5.0
"""What passes by itself, a broker that is away say, must not hold up data that could flow again."""
_PROBLEM_RETRY_S = 30.0
_LOOK_AT_SPARK_INTERVAL_S = 2.0
_SLOTS_LAST_S = 4.0
"""So long the slots must be others: where an executor died, most clusters start the next within that time."""
_NEVER_S = float("inf")

_REFRESH = "refresh topics"
_TIMESTAMP_TYPE = "message.timestamp.type"
_SEGMENT_BYTES = "16777216"
"""Positions are rewritten each second: small segments let compaction keep the topic quick to read."""


class MirrorSource:
    """One flow's source connector. Everything but the copying happens on `thread`."""

    def __init__(
        self,
        settings: FlowWorker,
        connector: SourceConnector,
        session: "Future[Session]",
        slots_of: Callable[[Session], int],
        rebalances: Rebalances = DEFAULT_REBALANCES,
        *,
        limits: Callable[[], RateLimits] = lambda: NO_LIMITS,
    ) -> None:
        self._settings = settings
        self._connector = connector
        self._told = connector.settings
        self._rebalances = rebalances
        self._log = flow_log(__name__, settings.flow, connector.name)
        self._generations = Generations(settings, connector, session, slots_of, limits)
        self._rebalancing = Rebalancing(
            settings.worker_client, progress_topic(settings.flow.source), connector.name, rebalances
        )
        self._spark_watch = SparkWatch(self._log)
        self._other_slots_since: float | None = None
        self._source: Admin | None = None
        self._target: Admin | None = None
        self._running: tuple[CopyPartition, ...] = ()
        self._reported_problems: set[str] = set()
        self._acls_unavailable = False
        self.thread = PeriodicThread("source connector", self._log, self._prepare, self._finish)

    @property
    def dealt(self) -> Assignment | None:
        """The partitions of each task that runs; None while none does. Safe in any thread."""
        running = self._generations.running
        return None if running is None else running.dealt

    # life

    def _prepare(self) -> Iterable[Job]:
        flow = self._settings.flow
        self._source = self._source or Admin(self._connector.source_admin, flow.source)
        self._target = self._target or Admin(self._connector.target_admin, flow.target)
        self._create_own_topics()
        self._generations.recall()
        return self._jobs()

    def _jobs(self) -> list[Job]:
        told = self._told
        jobs = [
            # Without an interval the topics are still found once, at the start.
            Job(_REFRESH, told.refresh_topics_interval_s or _NEVER_S, self._refresh),
            Job("watch tasks", _WATCH_INTERVAL_S, self._watch, first_after_s=_WATCH_INTERVAL_S),
            Job("look at Spark", _LOOK_AT_SPARK_INTERVAL_S, self._look_at_spark, _LOOK_AT_SPARK_INTERVAL_S),
        ]
        if told.partition_assignment is PartitionAssignment.LOAD and told.tasks_max > 1:
            interval_s = self._rebalances.look_interval_s
            jobs.append(Job("rebalance", interval_s, self._rebalance, first_after_s=interval_s))
        if told.sync_topic_configs_interval_s is not None:
            interval_s = told.sync_topic_configs_interval_s
            jobs.append(Job("sync topic configs", interval_s, self._sync_configs, first_after_s=10.0))
        if told.sync_topic_acls_interval_s is not None:
            interval_s = told.sync_topic_acls_interval_s
            jobs.append(Job("sync topic ACLs", interval_s, self._sync_acls, first_after_s=10.0))
        return jobs

    def _finish(self) -> None:
        self._generations.stop(in_order=self.thread.may_run)
        self._rebalancing.close()
        for admin in (self._source, self._target):
            if admin is not None:
                admin.close()

    def _create_own_topics(self) -> None:
        told = self._told
        positions = self._settings.worker.offset_topic
        ensure_topics(
            self._admins[1],
            [
                TopicCreation(
                    positions.name,
                    positions.partitions,
                    positions.replication_factor,
                    {"segment.bytes": _SEGMENT_BYTES, **dict(positions.configs)},
                ),
                TopicCreation(
                    progress_topic(self._settings.flow.source),
                    1,
                    positions.replication_factor,
                    {"segment.bytes": _SEGMENT_BYTES, **COMPACTED},
                ),
            ],
        )
        if told.reactions.on_bad_batch is OnBadBatch.SKIP:
            letters = dead_letters_topic(self._settings.flow.source)
            ensure_topics(
                self._admins[1], [TopicCreation(letters, 1, positions.replication_factor, COMPACTED)]
            )
        if told.offset_syncs_topic is not None:
            side = self._settings.flow.source if told.offset_syncs_on_source else self._settings.flow.target
            admin = Admin(self._connector.offset_syncs_admin, side)
            try:
                syncs = TopicCreation(
                    told.offset_syncs_topic, 1, told.offset_syncs_replication_factor, COMPACTED
                )
                ensure_topics(admin, [syncs])
            finally:
                admin.close()

    @property
    def _admins(self) -> tuple[Admin, Admin]:
        assert self._source is not None
        assert self._target is not None
        return self._source, self._target

    # topics

    def _refresh(self) -> None:
        try:
            self._refresh_once()
        except SparkmirrorError as error:
            self.thread.hasten(_REFRESH, _TROUBLE_RETRY_S if error.retriable else _PROBLEM_RETRY_S)
            raise

    def _refresh_once(self) -> None:
        source_admin, target_admin = self._admins
        source = {
            topic: SourceTopic(partitions) for topic, partitions in source_admin.partition_counts().items()
        }
        made, problems = self._apply(self._plan(source, target_admin.partition_counts()))
        self._report_problems(problems)
        target = target_admin.await_partitions(made, _VISIBLE_TIMEOUT_S)
        copy = copy_partitions(self._told, source, target)
        if copy.waiting:
            self.thread.hasten(_REFRESH, _PROBLEM_RETRY_S if problems else _WAITING_RETRY_S)
        self._run(self._with_timestamp_types(copy.ready))

    def _plan(self, source: Mapping[str, SourceTopic], target: Mapping[str, int]) -> TopicPlan:
        missing = missing_topics(self._told, source, target)
        configs = self._admins[0].topic_configs(missing)
        described = {
            topic: replace(source[topic], configs=tuple(configs.get(topic, ()))) for topic in missing
        }
        return plan_topics(self._told, {**source, **described}, target)

    def _apply(self, plan: TopicPlan) -> tuple[Mapping[str, int], list[str]]:
        """Create and grow topics on the target: their partitions now, and as text what could not be done."""
        creations = [
            TopicCreation(new.name, new.partitions, new.replication_factor, dict(new.configs))
            for new in plan.creates
        ]
        created = self._admins[1].create_topics(creations)
        grown = self._admins[1].grow_topics({topic.name: topic.partitions for topic in plan.grows})
        results = {**created, **grown}
        changes: list[NewTopic | GrowTopic] = [*plan.creates, *plan.grows]
        made = {change.name: change.partitions for change in changes if results[change.name] is None}
        for topic in made:
            self._log.info("%s %s", "created" if topic in created else "grew", topic)
        failures = [str(error) for error in results.values() if error is not None]
        return made, [*plan.warnings, *failures]

    def _report_problems(self, problems: Iterable[str]) -> None:
        current = set(problems)
        for problem in sorted(current - self._reported_problems):
            self._log.warning("%s", problem)
        self._reported_problems = current

    def _with_timestamp_types(self, partitions: tuple[CopyPartition, ...]) -> tuple[CopyPartition, ...]:
        """Note which target topics stamp records with their own time: copied batches must say so."""
        topics = sorted({partition.target_topic for partition in partitions})
        stamping = {
            topic
            for topic, entries in self._admins[1].topic_configs(topics, [_TIMESTAMP_TYPE]).items()
            if any(entry.name == _TIMESTAMP_TYPE and entry.value == "LogAppendTime" for entry in entries)
        }
        return tuple(
            replace(partition, target_stamps_append_time=partition.target_topic in stamping)
            for partition in partitions
        )

    # tasks

    def _run(self, partitions: tuple[CopyPartition, ...]) -> None:
        if partitions == self._running:
            return
        self._generations.replace(partitions, self._rebalancing.load)
        self._running = partitions
        if not partitions:
            self._log.info("no topic to mirror yet")

    def _watch(self) -> None:
        if self._generations.has_ended:
            self._running = ()
            self._generations.forget()
            self.thread.hasten(_REFRESH, self._generations.resubmit_delay_s())

    def _look_at_spark(self) -> None:
        """Say what is wrong with the tasks; deal anew once executors came, or died and were not replaced."""
        job, now = self._generations.job, time.monotonic()
        if job is None:
            return
        self._spark_watch.look(job, now)
        if not self._generations.has_other_slots():
            self._other_slots_since = None
        elif self._other_slots_since is None:
            self._other_slots_since = now
        elif now - self._other_slots_since >= _SLOTS_LAST_S:
            self._other_slots_since = None
            self._log.info("Spark has other slots than before: dealing the partitions anew")
            self._deal_anew()

    def _rebalance(self) -> None:
        """Look at the tasks' load; deal the partitions anew when that is worth a pause."""
        before = self._generations.running
        if before is None:
            return
        imbalance = self._rebalancing.look(before, time.monotonic())
        if imbalance is not None:
            self._rebalancing.done(time.monotonic())
            self._deal_anew()
            self._tell_moves(before, imbalance)

    def _deal_anew(self) -> None:
        partitions, self._running = self._running, ()
        try:
            self._run(partitions)
        except SparkmirrorError:
            self.thread.hasten(_REFRESH, _PROBLEM_RETRY_S)  # which runs what doesn't run then
            raise

    def _tell_moves(self, before: Running, imbalance: Imbalance) -> None:
        after = self._generations.running
        if after is not None:
            self._log.info(
                "generation %d: moved %d of %d partitions, %s",
                after.number,
                count_moves(before.dealt, after.dealt),
                len(self._running),
                imbalance,
            )

    # configs and ACLs

    def _sync_configs(self) -> None:
        source_admin, target_admin = self._admins
        pairs = replicated_topics(
            self._told, source_admin.partition_counts(), target_admin.partition_counts()
        )
        at_source = source_admin.topic_configs([topic for topic, _ in pairs])
        at_target = target_admin.topic_configs([remote for _, remote in pairs])
        changes = {
            remote: config_changes(
                self._told.config_filter, at_source.get(topic, ()), at_target.get(remote, ())
            ).operations
            for topic, remote in pairs
        }
        results = target_admin.alter_configs({topic: ops for topic, ops in changes.items() if ops})
        for topic, error in results.items():
            if error is None:
                self._log.info("configs of %s follow the source again", topic)
            else:
                self._log.warning("%s", error)

    def _sync_acls(self) -> None:
        source_admin, target_admin = self._admins
        try:
            bindings = target_acls(
                source_admin.topic_acls(),
                lambda topic: should_replicate(self._told, topic),
                lambda topic: remote_topic(self._told, topic),
            )
            existing = set(target_admin.topic_acls())
        except KafkaError as error:
            if error.code != error_codes.SECURITY_DISABLED:
                raise
            self._say_acls_unavailable(error)
            return
        refused = target_admin.create_acls([binding for binding in bindings if binding not in existing])
        if refused:
            self._log.warning("%d ACLs were refused on the target", refused)

    def _say_acls_unavailable(self, error: SparkmirrorError) -> None:
        if not self._acls_unavailable:
            self._log.info("no ACLs to sync: %s. Consider sync.topic.acls.enabled=false", error)
        self._acls_unavailable = True
