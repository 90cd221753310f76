"""Runs a MirrorCheckpointConnector: translates what groups commit, and lets idle ones go on on the target."""

import time
from collections.abc import Iterable

from sparkmirror.connectors.checkpoint import checkpoints_of
from sparkmirror.domain.checkpoints import CheckpointBook, OfGroup, offsets_to_write
from sparkmirror.domain.errors import KafkaError, SparkmirrorError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.domain.log_records import LogRecord
from sparkmirror.domain.sync_history import SyncHistory
from sparkmirror.domain.wire_records import Checkpoint
from sparkmirror.kafka.admin import Admin, TopicCreation
from sparkmirror.kafka.groups import Committed, Groups
from sparkmirror.kafka.topic_log import TopicTail, TopicWriter
from sparkmirror.runtime.flow_log import flow_log
from sparkmirror.runtime.flow_settings import CheckpointConnector, FlowSettings
from sparkmirror.runtime.internal_topics import COMPACTED, ensure_topics
from sparkmirror.runtime.periodic import PeriodicThread
from sparkmirror.runtime.schedule import Job
from sparkmirror.storage.checkpoints import read_checkpoints
from sparkmirror.storage.offset_syncs import parse_offset_sync

_FIRST_EMISSION_S = 5.0
"""The first syncs are written by then; who starts a mirror does not want to wait for a whole interval."""
_READ_TIMEOUT_S = 60.0
_NEVER_S = float("inf")


class Checkpoints:
    """One flow's checkpoint connector."""

    def __init__(self, settings: FlowSettings, connector: CheckpointConnector) -> None:
        self._flow = settings.flow
        self._connector = connector
        self._told = connector.settings
        self._log = flow_log(__name__, settings.flow, connector.name)
        self._writer = TopicWriter(connector.producer)
        self._syncs = TopicTail(connector.offset_syncs_consumer, self._told.offset_syncs_topic)
        self._histories: dict[TopicPartition, SyncHistory] = {}
        self._book = CheckpointBook()
        self._is_first_reading = self._knows_own_checkpoints = True
        self._source: Groups | None = None
        self._target: Groups | None = None
        self._groups: list[GroupId] = []
        self._troubles: dict[GroupId, str] = {}
        self.thread = PeriodicThread("checkpoint connector", self._log, self._prepare, self._finish)

    # life

    def _prepare(self) -> Iterable[Job]:
        told = self._told
        self._source = self._source or Groups(self._connector.source_admin, self._flow.source)
        self._target = self._target or Groups(self._connector.target_admin, self._flow.target)
        if not self._is_topic_new():
            self._book = CheckpointBook(self._own_checkpoints())
        emit_after_s = min(_FIRST_EMISSION_S, told.emit_checkpoints_interval_s)
        jobs = [
            # Without an interval the groups are still found once, at the start.
            Job("refresh groups", told.refresh_groups_interval_s or _NEVER_S, self._refresh),
            Job("emit checkpoints", told.emit_checkpoints_interval_s, self._emit, emit_after_s),
        ]
        if told.sync_group_offsets_interval_s is not None:
            interval_s = told.sync_group_offsets_interval_s
            sync_after_s = emit_after_s + min(_FIRST_EMISSION_S, interval_s)
            jobs.append(Job("sync group offsets", interval_s, self._sync, sync_after_s))
        return jobs

    def _finish(self) -> None:
        self._writer.close()
        self._syncs.close()
        for groups in (self._source, self._target):
            if groups is not None:
                groups.close()

    def _is_topic_new(self) -> bool:
        """Make the checkpoints topic unless it's there."""
        told = self._told
        admin = Admin(self._connector.target_admin, self._flow.target)
        try:
            topic = TopicCreation(told.checkpoints_topic, 1, told.checkpoints_replication_factor, COMPACTED)
            return bool(ensure_topics(admin, [topic]))
        finally:
            admin.close()

    def _own_checkpoints(self) -> list[Checkpoint]:
        """Those of earlier lives, so that no group is sent back by a new one (KAFKA-15905)."""
        topic = self._told.checkpoints_topic
        self._knows_own_checkpoints = True
        try:
            return list(read_checkpoints(self._connector.checkpoints_consumer, topic))
        except KafkaError as error:
            if error.retriable:
                raise
            self._log.warning("%s; offsets older than the newest sync are not translated", error)
            self._knows_own_checkpoints = False
            return []

    # jobs

    def _refresh(self) -> None:
        """Which groups there are that have an offset in a mirrored topic."""
        assert self._source is not None
        told = self._told
        listed = self._source.listed()
        wanted = [group for group in sorted(listed) if told.group_filter.should_replicate(group)]
        consumers = [group for group in wanted if listed[group].commits_offsets]
        groups = []
        for group, offsets in self._source.committed(consumers).items():
            if isinstance(offsets, KafkaError):
                self._say_trouble(group, offsets)
                groups.append(group)
            elif any(told.topic_filter.should_replicate(topic) for topic, _ in offsets):
                groups.append(group)
        if groups != self._groups:
            self._log.info("checkpoints %d groups of %d", len(groups), len(listed))
        for group in sorted(set(wanted) - set(consumers)):
            self._say_trouble(group, f"is a {listed[group].kind or listed[group].protocol} group: left alone")
        self._groups = groups

    def _emit(self) -> None:
        assert self._source is not None
        self._read_syncs()
        now_ms = int(time.time() * 1000)
        news: list[Checkpoint] = []
        for group, offsets in self._source.committed(self._groups).items():
            if isinstance(offsets, KafkaError):
                self._say_trouble(group, offsets)
                continue
            found = checkpoints_of(self._told, group, offsets, self._histories)
            news += filter(self._book.is_news, found)
        records = [
            LogRecord(checkpoint.encode_key(), checkpoint.encode_value(), timestamp_ms=now_ms)
            for checkpoint in news
        ]
        if records:
            self._writer.write(self._told.checkpoints_topic, records)
        for checkpoint in news:
            self._book.note(checkpoint)

    def _sync(self) -> None:
        """Write checkpoints as offsets of groups that have no members on the target, only ever forward."""
        assert self._target is not None
        listed = self._target.listed()
        groups = [group for group in self._groups if self._book.of_group(group)]
        idle = [group for group in groups if group not in listed or not listed[group].is_active]
        for group, committed in self._target.committed(idle).items():
            if isinstance(committed, KafkaError):
                self._say_trouble(group, committed)
                continue
            there = {partition: offset for partition, (offset, _) in committed.items()}
            if ahead := offsets_to_write(self._book.of_group(group), there):
                self._write(group, ahead)

    def _write(self, group: GroupId, checkpoints: OfGroup) -> None:
        assert self._target is not None
        offsets = {
            partition: Committed(checkpoint.downstream_offset, checkpoint.metadata or "")
            for partition, checkpoint in checkpoints.items()
        }
        try:
            refused = list(self._target.write(group, offsets).values())
        except KafkaError as error:
            refused = [error]
        if refused:
            self._say_trouble(group, f"{refused[0]}; it may have members there")
        else:
            self._troubles.pop(group, None)

    def _read_syncs(self) -> None:
        for record in self._syncs.read_to_end(_READ_TIMEOUT_S):
            parsed = parse_offset_sync(record)
            if parsed is None:
                continue
            partition = parsed.sync.topic_partition
            history = self._histories.get(partition)
            if history is None or (self._is_first_reading and not self._knows_own_checkpoints):
                self._histories[partition] = SyncHistory(*parsed)
            else:
                history.add(*parsed)
        self._is_first_reading = False

    def _say_trouble(self, group: GroupId, what: SparkmirrorError | str) -> None:
        """Once for as long as it stays the same."""
        if self._troubles.get(group) != str(what):
            self._troubles[group] = str(what)
            self._log.warning("group %s: %s", group, what)
