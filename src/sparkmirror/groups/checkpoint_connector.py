"""Runs a MirrorCheckpointConnector: translates groups' offsets, and commits those of idle groups."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from sparkmirror.batches.cycles import names_show_origin
from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.domain.lag_groups import shows_lag
from sparkmirror.domain.troubles import TroubleWord
from sparkmirror.groups.group_explanation import LATER_GROUPS
from sparkmirror.groups.group_looks import GroupLooks
from sparkmirror.groups.group_lookups import GroupLookups
from sparkmirror.groups.group_problems import GroupProblems
from sparkmirror.groups.offset_resolver import OffsetResolver
from sparkmirror.groups.offset_writes import OffsetWrites
from sparkmirror.groups.reverse_syncs import ReverseSyncs
from sparkmirror.groups.target_logs import TargetLogs
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.kafka.groups.consumer_groups import Groups, ListedGroup, Offsets
from sparkmirror.metrics.checkpoint_meter import CheckpointMeter
from sparkmirror.metrics.readings import GroupTranslation
from sparkmirror.offsets.checkpoints import CheckpointBook, is_refuted, offsets_to_write
from sparkmirror.offsets.resolution import ResolveOffsets
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.offsets.wire_records import Checkpoint
from sparkmirror.periodic.flow_log import LogOnce, flow_log
from sparkmirror.periodic.jobs import Job, PeriodicThread
from sparkmirror.settings.checkpoint import (
    MirrorCheckpointSettings,
    counterpart,
    counterparts,
    is_followed,
    named_groups,
    news_of,
    selected_groups,
)
from sparkmirror.settings.configured import ConfiguredCheckpoint, FlowWorker
from sparkmirror.settings.internal_topics import checkpoints_topic
from sparkmirror.storage.checkpoint_topic import read_checkpoints
from sparkmirror.storage.offset_sync_topic import OffsetSyncsReader
from sparkmirror.storage.own_topics import OwnTopics, watching
from sparkmirror.storage.troubles import Troubles

_FIRST_EMISSION_S = 5.0
"""The first syncs are written by then, and a new mirror should not wait for a whole interval."""
_READ_TIMEOUT_S = 60.0
_NEVER_S = float("inf")
_FIRST_GROUPS_RETRY_S = 5.0


class CheckpointConnector:
    """Emits the checkpoints of a flow."""

    def __init__(
        self,
        settings: FlowWorker,
        connector: ConfiguredCheckpoint,
        require: Callable[[], None] = lambda: None,
        troubles: Troubles | None = None,
    ) -> None:
        """`require` returns when the clusters are those that are meant."""
        self._require = require
        self._flow = settings.flow
        self._connector = connector
        self._settings = connector.settings
        self._log = flow_log(__name__, settings.flow, connector.name)
        self._unlisted_on_source, self._unlisted_on_target = LogOnce(self._log), LogOnce(self._log)
        self._writer = TopicWriter(connector.producer)
        self._syncs = OffsetSyncsReader(connector.offset_syncs_consumer, self._settings.offset_syncs_topic)
        self._reverse_syncs = ReverseSyncs(connector)
        self._resolver = OffsetResolver(
            connector.records_consumer,
            ConsumerSettings(connector.target_admin),
            self._log,
            names_show_origin=names_show_origin(connector.settings.policy, settings.flow.source),
        )
        self._book = CheckpointBook()
        own = checkpoints_topic(self._flow, connector)
        self.troubles = troubles or Troubles(self._log)
        self._topics = OwnTopics(
            [own], connector.target_admin, connector.admin_plugins, self._log, self.troubles
        )
        self._problems = GroupProblems(self._log, self.troubles)
        self._target_logs = TargetLogs(connector.target_admin)
        self._knows_own_checkpoints = True
        self._are_groups_known = False
        self._source: Groups | None = None
        self._target: Groups | None = None
        self._groups: list[GroupId] = []
        self._writing = OffsetWrites(self._log, self._flow.target)
        self._reverse_trouble = ""
        self.written_topics: frozenset[str] = frozenset()
        self.meter = CheckpointMeter()
        """The numbers for `/metrics`."""
        self.looks = GroupLooks(self._settings)
        """The state of each group, for the view."""
        self._lookups = GroupLookups(self._settings, self._resolver, self.meter, self._log)
        self.thread = PeriodicThread("checkpoint connector", self._log, self._prepare, self._finish)

    @property
    def groups(self) -> Sequence[GroupId] | None:
        """The groups that are followed; None before they were listed. Safe in any thread."""
        return tuple(self._groups) if self._are_groups_known else None

    # life

    def _prepare(self) -> Iterable[Job]:
        settings = self._settings
        self._source = self._source or Groups(self._connector.source_admin)
        self._target = self._target or Groups(self._connector.target_admin)
        self._require()
        self._topics.ensure()
        if not self._topics.result.missing:
            self._book = CheckpointBook(self._own_checkpoints())
        if settings.refresh_groups_interval_s is None:
            self._log.info("%s", LATER_GROUPS)
        emit_after_s = min(_FIRST_EMISSION_S, settings.emit_checkpoints_interval_s)
        jobs = [
            # Without an interval the groups are still found once, at the start.
            Job("refresh groups", settings.refresh_groups_interval_s or _NEVER_S, self._refresh),
            Job("emit checkpoints", settings.emit_checkpoints_interval_s, self._emit, emit_after_s),
            watching(self._watch_topic),
        ]
        if settings.sync_group_offsets_interval_s is not None:
            interval_s = settings.sync_group_offsets_interval_s
            sync_after_s = emit_after_s + min(_FIRST_EMISSION_S, interval_s)
            jobs.append(Job("sync group offsets", interval_s, self._sync, sync_after_s))
        return jobs

    def _finish(self) -> None:
        self._writer.close()
        self._syncs.close()
        self._reverse_syncs.close()
        self._resolver.close()
        self._target_logs.close()
        for groups in (self._source, self._target):
            if groups is not None:
                groups.close()

    def _own_checkpoints(self) -> list[Checkpoint]:
        """Read the checkpoints of earlier runs, so that no group is set back by this one (KAFKA-15905)."""
        topic = self._settings.checkpoints_topic
        self._knows_own_checkpoints = True
        try:
            return list(read_checkpoints(self._connector.checkpoints_consumer, topic))
        except KafkaError as error:
            if error.retriable:
                raise
            self._log.warning("%s; offsets older than the newest sync are not translated", error)
            self._knows_own_checkpoints = False
            return []

    def _watch_topic(self) -> None:
        """Write the last checkpoints to a topic that is new."""
        had_topic = not self._topics.result.refused
        result = self._topics.watch(time.monotonic())
        if result.remade or not (had_topic or result.refused):
            self._write_checkpoints(self._book.all())

    # jobs

    def _refresh(self) -> None:
        """List the groups that have an offset in a mirrored topic."""
        try:
            self._find_groups()
        except KafkaError:
            if not self._are_groups_known:  # without any, the next regular time may be far
                self.thread.hasten("refresh groups", _FIRST_GROUPS_RETRY_S)
            raise

    def _find_groups(self) -> None:
        assert self._source is not None
        settings = self._settings
        listed = _listed_on(self._source, self._unlisted_on_source)
        wanted, failed = selected_groups(settings, sorted(listed))
        consumers = [group for group in wanted if listed[group].commits_offsets]
        # Brokers list the groups that they coordinate: one that nobody lists may have no coordinator now.
        unlisted = [group for group in self._groups if group not in listed]
        unreadable: dict[GroupId, KafkaError] = {}
        for group, error in self._source.hidden(named_groups(settings) - listed.keys()).items():
            self._problems.log(group, error)
            unreadable[group] = error
        committed = self._source.committed([*consumers, *unlisted])
        groups = []
        for group in sorted(committed):
            offsets = committed[group]
            if isinstance(offsets, KafkaError):
                self._problems.log(group, offsets)
                unreadable[group] = offsets
                groups.append(group)
            elif shows_lag([metadata for _, metadata in offsets.values()]):
                self._problems.log(group, "shows a mirror's lag (lag.group.id): left alone", logging.INFO)
            elif any(is_followed(settings, topic) for topic, _ in offsets):
                groups.append(group)
        if groups != self._groups or not self._are_groups_known:
            every = sum(each.commits_offsets for each in listed.values())
            self._log.info("writes checkpoints of %d of %d consumer groups", len(groups), every)
        for group in sorted(set(wanted) - set(consumers)):
            self._problems.log(group, f"is a {listed[group].word} group: left alone", logging.INFO)
        self._problems.tell(TroubleWord.NOT_READ, unreadable)
        self._problems.tell(TroubleWord.BLOCKED, failed)
        self._groups, self._are_groups_known = groups, True
        self._lookups.keep_only(groups)
        self._problems.log_rest()

    def _emit(self) -> None:
        """Emit checkpoints from syncs first, then those that need records of the logs."""
        assert self._source is not None
        self._read_syncs()
        self._withdraw()
        found: dict[GroupId, Offsets] = {}
        errors: dict[GroupId, KafkaError] = {}
        for part in self._source.committed_parts(self._groups):
            offsets_of = {}
            for group, offsets in part.items():
                if isinstance(offsets, KafkaError):
                    self._problems.log(group, offsets)
                    errors[group] = offsets
                else:
                    offsets_of[group] = offsets
            self._lookups.note(offsets_of, self._book)
            # Groups close to the end may have read records that only the newest syncs cover.
            self._read_syncs()
            self._emit_news(offsets_of)
            found.update(offsets_of)
        if self._settings.resolve is not ResolveOffsets.OFF:
            improved = self._lookups.run(found, self._syncs.histories)
            self._emit_news({group: found[group] for group in improved})
        self._measure(found)
        self.looks.note_translation(found, self._histories(), self._book, time.monotonic(), errors)
        self._problems.log_rest()

    def _measure(self, found: Mapping[GroupId, Offsets]) -> None:
        now, settings, histories = time.time(), self._settings, self._histories()
        self.meter.translated(
            {group: translation_of(settings, offsets, histories, now) for group, offsets in found.items()},
            now,
        )

    def _read_syncs(self) -> None:
        newest_only = not self._knows_own_checkpoints
        self._syncs.catch_up(_READ_TIMEOUT_S, newest_only=newest_only)
        error = self._reverse_syncs.catch_up(_READ_TIMEOUT_S, newest_only=newest_only)
        trouble = "" if error is None else str(error)
        if trouble and trouble != self._reverse_trouble:
            self._log.warning("%s; offsets are not translated back before that is there", trouble)
        self._reverse_trouble = trouble

    def _histories(self) -> Mapping[TopicPartition, SyncHistory]:
        """Read the histories of this flow, and those of the opposite flow."""
        return {**self._reverse_syncs.histories, **self._syncs.histories}

    def _emit_news(self, offsets_of: Mapping[GroupId, Offsets]) -> None:
        settings, histories = self._settings, self._histories()
        news = [
            checkpoint
            for group, offsets in offsets_of.items()
            for checkpoint in news_of(settings, group, offsets, histories, self._book)
        ]
        self._write_checkpoints(self._target_logs.within(news) if news else [])

    def _write_checkpoints(self, checkpoints: Sequence[Checkpoint]) -> None:
        """Groups' offsets are synced also where the topic can't be written to."""
        topic, now_ms = self._settings.checkpoints_topic, int(time.time() * 1000)
        records = [
            LogRecord(each.encode_key(), each.encode_value(), timestamp_ms=now_ms) for each in checkpoints
        ]
        if records and not self._topics.lacks(topic):
            self._writer.write(topic, records)
            written_at = time.time()
            self.meter.take(checkpoints, written_at * 1000 - now_ms, written_at)
            self.written_topics = frozenset({topic})
        for checkpoint in checkpoints:
            self._book.note(checkpoint)

    def _withdraw(self) -> None:
        """Forget what is known of logs that the target has lost: groups start at the new logs' beginnings.

        A tombstone would withdraw a checkpoint too, but Java's RemoteClusterUtils fails at one.
        """
        known = self._book.all()
        lost = self._target_logs.replaced({each.topic_partition.topic for each in known})
        if not lost:
            return
        self._syncs.forget(lambda source: counterpart(self._settings, source).topic in lost)
        stale = [each for each in known if each.topic_partition.topic in lost and each.downstream_offset]
        self._write_checkpoints([replace(each, downstream_offset=0) for each in stale])
        self._log.warning(
            "%s: deleted and created again on %s: %d checkpoints of the former logs are withdrawn",
            ", ".join(sorted(lost)),
            self._flow.target,
            len(stale),
        )

    def _sync(self) -> None:
        """Write checkpoints as offsets of groups that have no members on the target, only ever forward."""
        assert self._target is not None
        listed = _listed_on(self._target, self._unlisted_on_target)
        for group in self._groups:
            if group in listed and not listed[group].commits_offsets:
                there = f"is a {listed[group].word} group on {self._flow.target}: left alone there"
                self._problems.log(group, there, logging.INFO)
        histories = counterparts(self._settings, self._histories())
        idle = [
            group
            for group in self._groups
            if self._book.of_group(group) and (group not in listed or listed[group].takes_offsets)
        ]
        on_target: dict[GroupId, Mapping[TopicPartition, int]] = {}
        errors: dict[GroupId, KafkaError] = {}
        for part in self._target.committed_parts(idle):
            for group, committed in part.items():
                if isinstance(committed, KafkaError):
                    self._problems.log(group, committed)
                    errors[group] = committed
                    continue
                there_now = {partition: offset for partition, (offset, _) in committed.items()}
                ahead = {
                    partition: checkpoint
                    for partition, checkpoint in offsets_to_write(
                        self._book.of_group(group), there_now
                    ).items()
                    if not is_refuted(checkpoint, histories.get(partition))
                }
                inside = self._target_logs.within(list(ahead.values())) if ahead else ()
                ahead = {checkpoint.topic_partition: checkpoint for checkpoint in inside}
                refused = self._writing.write(self._target, group, ahead) if ahead else None
                there_now |= {
                    partition: each.downstream_offset
                    for partition, each in ahead.items()
                    if refused is None or partition not in refused.partitions
                }
                if refused is not None:
                    self._problems.log(group, refused.text)
                    if refused.error is not None:
                        errors[group] = refused.error
                elif ahead:
                    self._problems.forget(group)
                on_target[group] = there_now
        active = frozenset(group for group in self._groups if group in listed and listed[group].is_active)
        self.looks.note_target(on_target, active, time.monotonic(), errors)
        self._problems.tell(TroubleWord.NOT_COMMITTED, errors)
        self.meter.refused(len(errors))
        self._problems.log_rest()


def _listed_on(side: Groups, unlisted: LogOnce) -> Mapping[GroupId, ListedGroup]:
    """List the groups of the brokers that answer; those of the others keep none back."""
    listed, errors = side.listing()
    unlisted.log(f"groups of one broker are not known, those of the others are: {error}" for error in errors)
    return listed


def translation_of(
    settings: MirrorCheckpointSettings,
    committed: Mapping[TopicPartition, tuple[int, str]],
    histories: Mapping[TopicPartition, SyncHistory],
    at: float,
) -> GroupTranslation:
    """Sum up how well a group's offsets are translated, over the partitions that the flow mirrors.

    `at` is in epoch seconds, `committed` are the source's.
    """
    exact = approximate = unknown = reread_max = 0
    for partition, (offset, _) in committed.items():
        if not is_followed(settings, partition.topic):
            continue
        history = histories.get(partition)
        place = None if history is None else history.place(offset)
        if place is None:
            unknown += 1
        elif place.behind_max == 0:
            exact += 1
        else:
            approximate += 1
            reread_max += place.behind_max or 0
    return GroupTranslation(at, exact, approximate, unknown, reread_max)
