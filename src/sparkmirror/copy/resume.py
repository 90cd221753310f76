"""Finds where a task resumes its partitions: exactly after what the target already has of them.

Records that were written after the stored position are read back (`ReadBack`), and the partition continues
behind them under the sequence that follows. An older attempt that still runs writes the same records under
the same sequences, and a broker keeps one copy. Where a sequence would stop meaning the same record, the next
producer epoch or a new producer id starts at sequence 0. In transactions nothing is written behind the stored
position, except by an attempt from before transactions were used.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.batches.batch_copying import CopyRules
from sparkmirror.batches.log_records import LogRecord
from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerId, ProducerState
from sparkmirror.copy.copy_plan import CopyPartition, TaskPlan
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.dead_letters import write_dead_letters
from sparkmirror.copy.first_offsets import first_offsets
from sparkmirror.copy.partition_events import Diverged, ResumeReason, Start
from sparkmirror.copy.read_back import Found, ReadBack
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import (
    AuthorizationError,
    KafkaError,
    RetriableError,
    SparkmirrorError,
    UnsupportedVersionError,
)
from sparkmirror.domain.ids import UNKNOWN_LOGS, LogIdentity, TopicPartition, is_another
from sparkmirror.domain.incidents import (
    Incident,
    IncidentKind,
    OnDataLoss,
    OnTopicRecreated,
    batch_skipped,
    records_lost,
    source_recreated,
    source_truncated,
    target_recreated,
    target_truncated,
)
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.offsets import LATEST, list_offsets
from sparkmirror.kafka.producers import unreplicated_records
from sparkmirror.kafka.transactions import new_producer_id
from sparkmirror.storage.positions import Position, position_record

_log = logging.getLogger(__name__)

_UNEXPLAINED = "the broker refused a sequence, and nothing in the log explains why"


class _UnderNewId(NamedTuple):
    """A start under a new producer id, at the target's offset `next_offset`."""

    position: int
    next_offset: int
    incident: Incident | None = None
    logs: LogIdentity = UNKNOWN_LOGS


_Found = Start | _UnderNewId | SparkmirrorError


@dataclass(frozen=True, slots=True)
class Resumption:
    """Finds the starts of a plan's partitions. Blocks.

    `rules` are the partitions' copy rules; `store` stores positions, and raises KafkaError.
    """

    plan: TaskPlan
    rules: Mapping[TopicPartition, CopyRules]
    cycles: CycleDetection
    store: Callable[[Sequence[LogRecord]], None]

    def starts(
        self, reasons: Mapping[TopicPartition, ResumeReason]
    ) -> Mapping[TopicPartition, Start | SparkmirrorError]:
        """The start of each partition, or why it can't start now.

        A sequence that a broker refused must be explained by the target's log, if not now (records may wait
        for the followers), then before the last try. A new producer id or epoch is stored and acknowledged
        before this returns, as are the producer ids if cycle detection needs them. Raises KafkaError when no
        partition can start.
        """
        reasons = dict(reasons)  # reading the logs may add to them
        plans = [plan for plan in self.plan.partitions if plan.source in reasons]
        source = read_metadata(self.plan.consumer.connection, {plan.source.topic for plan in plans})
        target = read_metadata(self.plan.producer.connection, {plan.target_topic for plan in plans})
        logs = {
            plan.source: LogIdentity(
                source_id=source.topic_ids.get(plan.source.topic, b""),
                target_id=target.topic_ids.get(plan.target_topic, b""),
            )
            for plan in plans
        }
        ends = list_offsets(self._target, [plan.target for plan in plans], LATEST, target)
        firsts = first_offsets(self.plan, reasons, logs, source)
        found: dict[TopicPartition, _Found] = {}
        for plan in plans:
            end, first = ends[plan.target], firsts.get(plan.source)
            if isinstance(end, SparkmirrorError):
                found[plan.source] = end
            elif isinstance(first, SparkmirrorError):
                found[plan.source] = first
            else:
                found[plan.source], reasons[plan.source] = self._found(
                    plan, reasons[plan.source], logs[plan.source], first, end
                )
        write_dead_letters(self.plan, [reason.skipped for reason in reasons.values() if reason.skipped])
        starts = self._with_ids(
            found, {source: _read_logs(reasons[source], logs[source]) for source in found}
        )
        self.cycles.record(
            start.producer.producer.id for start in starts.values() if isinstance(start, Start)
        )
        self._store(starts, reasons)
        return starts

    @property
    def _target(self) -> ConsumerSettings:
        return ConsumerSettings(self.plan.producer.connection)

    # starts

    def _found(
        self, plan: CopyPartition, reason: ResumeReason, logs: LogIdentity, first: int | None, end: int
    ) -> tuple[_Found, ResumeReason]:
        """The start, and the reason with what reading the logs has added to it."""
        found_start = self._find(plan, reason, logs, first, end)
        if isinstance(found_start, Diverged):
            reason = reason._replace(diverged_at=found_start.at, diverging_epoch=found_start.epoch)
            found_start = self._find(plan, reason, logs, first, end)
            assert not isinstance(found_start, Diverged), (
                "a divergence ends the search before the log is read"
            )
        if reason.is_distrusted:
            found_start = self._explained(plan, reason, found_start)
        return found_start, reason

    def _find(
        self, plan: CopyPartition, reason: ResumeReason, logs: LogIdentity, first: int | None, end: int
    ) -> _Found | Diverged:
        """`first` is where to start if not at the position; `end` is where the target's log ends."""
        position = reason.position
        if position is None:
            return _UnderNewId(_required(first), end)
        changed = self._changed(plan, position, reason, logs, first, end)
        if changed is not None:
            return changed
        following = position.offset + 1
        if position.producer is None or not self.plan.producer.idempotent:
            return _UnderNewId(following, end, _skipped(reason))
        if reason.skipped is not None:
            state = position.producer._replace(next_offset=end)
            return _renumbered(Start(following, state, _skipped(reason)))
        return self._continued(plan, position, position.producer, end)

    def _changed(
        self,
        plan: CopyPartition,
        position: Position,
        reason: ResumeReason,
        logs: LogIdentity,
        first: int | None,
        end: int,
    ) -> _Found | None:
        """The start if a log was replaced or truncated since the position; None if neither was."""
        following = position.offset + 1
        if is_another(position.logs.source_id, logs.source_id):
            first = _required(first)
            return self._recreated(plan, source_recreated(following, first), first, end)
        if is_another(position.logs.target_id, logs.target_id):
            next_offset = following if first is None else first
            return self._recreated(plan, target_recreated(next_offset), next_offset, end)
        if reason.is_gone:
            first = _required(first)
            return self._without(plan, records_lost(following, first), first, end)
        if reason.diverged_at is not None and reason.diverged_at < following:
            at = reason.diverged_at
            return self._without(plan, source_truncated(following, at), at, end)
        return None

    def _recreated(self, plan: CopyPartition, incident: Incident, position: int, end: int) -> _Found:
        if self.plan.settings.reactions.on_topic_recreated is OnTopicRecreated.FAIL:
            return _blocked_by(plan, incident, "on.topic.recreated is fail. Set it to record or restart")
        _log.warning("%s: %s", plan.source, incident.text)
        return _UnderNewId(position, end, incident)

    def _without(self, plan: CopyPartition, incident: Incident, position: int, end: int) -> _Found:
        """Continue behind a gap if `on.data.loss` allows it. A gap changes which record a sequence means."""
        if self.plan.settings.reactions.on_data_loss is OnDataLoss.FAIL:
            return _blocked_by(plan, incident, "on.data.loss is fail. Set it to record")
        _log.warning("%s: %s", plan.source, incident.text)
        return _UnderNewId(position, end, incident)

    def _continued(
        self, plan: CopyPartition, position: Position, state: ProducerState, end: int
    ) -> _Found | Diverged:
        first = position.offset + 1
        if end == state.next_offset:
            return Start(first, state, run=position.run)
        if end < state.next_offset:
            incident = target_truncated(plan.target, end, state.next_offset, first)
            return _renumbered(Start(first, state._replace(next_offset=end), incident))
        read_back = ReadBack(self.plan.consumer, self._target, self.rules, self.cycles)
        try:
            found = read_back.find(plan, first, position.logs.source_epoch, state, end)
        except AuthorizationError as error:
            text = f"records behind the stored position may come twice: {error}"
            incident = Incident(IncidentKind.NOT_READ_BACK, text)
            return _renumbered(Start(first, state._replace(next_offset=end), incident))
        except SparkmirrorError as error:
            return error
        return found.diverged or self._behind(plan, state, found, end)

    def _behind(self, plan: CopyPartition, state: ProducerState, found: Found, end: int) -> _Found:
        """Continue behind the records that were read back."""
        if found.records:
            _log.info(
                "%s: %d records behind the stored position are there already; continuing from offset %d",
                plan.target,
                found.records,
                found.position,
            )
        start = Start(
            found.position,
            state.after(found.records, end),
            logs=UNKNOWN_LOGS._replace(source_epoch=found.source_epoch),
        )
        if found.is_whole:
            return start
        text = (
            f"of {found.records} records behind the stored position not all are in the source any more; "
            f"going on behind the last one that is, offset {found.position}"
        )
        return _renumbered(start._replace(incident=Incident(IncidentKind.SOURCE_CHANGED, text)))

    # refused sequences

    def _explained(self, plan: CopyPartition, reason: ResumeReason, found_start: _Found) -> _Found:
        """The start, unless nothing in the log explains yet why its sequence was refused."""
        position = reason.position
        if (
            position is None
            or position.producer is None
            or found_start != Start(position.offset + 1, position.producer)
        ):
            return found_start
        if not reason.is_last_try:
            return RetriableError(f"{plan.target}: {_UNEXPLAINED}; retrying")
        try:
            unreplicated = unreplicated_records(self._target.connection, plan.target, position.producer)
        except SparkmirrorError as error:
            return error
        if unreplicated:
            text = (
                f"{unreplicated} records of an earlier attempt are not replicated: waiting for the followers"
            )
            return RetriableError(f"{plan.target}: {text}")
        return _renumbered(
            found_start._replace(incident=Incident(IncidentKind.SEQUENCE_UNKNOWN, _UNEXPLAINED))
        )

    # new producer ids and epochs

    def _with_ids(
        self, found: Mapping[TopicPartition, _Found], logs: Mapping[TopicPartition, LogIdentity]
    ) -> Mapping[TopicPartition, Start | SparkmirrorError]:
        """A new id is requested only if it is needed; partitions that start together may share it."""
        producer, refusal = NOT_IDEMPOTENT, None
        if any(isinstance(found_start, _UnderNewId) for found_start in found.values()):
            producer, refusal = self._new_producer()
        starts: dict[TopicPartition, Start | SparkmirrorError] = {}
        for source, found_start in found.items():
            if isinstance(found_start, SparkmirrorError):
                starts[source] = found_start
                continue
            known = logs[source]
            # Records read back may be of a later leader epoch than the position's.
            known = known._replace(source_epoch=max(known.source_epoch, found_start.logs.source_epoch))
            if isinstance(found_start, _UnderNewId):
                state = ProducerState(producer, 0, found_start.next_offset)
                starts[source] = Start(found_start.position, state, found_start.incident or refusal, known)
            else:
                state = found_start.producer
                if self.plan.transaction is not None:
                    state = ProducerState(NOT_IDEMPOTENT, 0, state.next_offset)
                starts[source] = found_start._replace(producer=state, logs=known)
        return starts

    def _new_producer(self) -> tuple[ProducerId, Incident | None]:
        """A new id, or why there is none. In transactions the writer has the transactional id's."""
        if not self.plan.producer.idempotent or self.plan.transaction is not None:
            return NOT_IDEMPOTENT, None
        try:
            return new_producer_id(self.plan.producer.connection), None
        except (AuthorizationError, UnsupportedVersionError) as error:
            text = f"writing at least once: {error}"
            if not (self.plan.names_show_origin or self.plan.settings.provenance_header):
                text = f"{text}. A flow in the other direction would bring these records back"
            _log.warning("%s", text)
            return NOT_IDEMPOTENT, Incident(IncidentKind.NOT_IDEMPOTENT, text)

    def _store(
        self,
        results: Mapping[TopicPartition, Start | SparkmirrorError],
        reasons: Mapping[TopicPartition, ResumeReason],
    ) -> None:
        """Store new ids and epochs before the first batch under them, so that the next attempt finds them."""
        plan = self.plan
        records = [
            position_record(
                plan.connector,
                plan.flow.source,
                source,
                Position(start.position - 1, start.producer, start.logs),
            )
            for source, start in results.items()
            if isinstance(start, Start) and _is_renumbered(start, reasons[source].position)
        ]
        if records:
            self.store(records)


def _skipped(reason: ResumeReason) -> Incident | None:
    letter = reason.skipped
    return None if letter is None else batch_skipped(letter.first, letter.last, letter.error)


def _read_logs(reason: ResumeReason, current: LogIdentity) -> LogIdentity:
    """The logs' identities to store: the leader epoch counts only if it was read from this very log.

    Behind a divergence it is the one that the new leader named: a second truncation is noticed before
    anything was read.

    A topic that is missing now may be created again with another id: its old id must not be forgotten.
    """
    if reason.position is None:
        return current
    known = reason.position.logs
    is_other = is_another(known.source_id, current.source_id)
    if is_other or reason.is_gone:
        source_epoch = current.source_epoch
    else:
        source_epoch = known.source_epoch if reason.diverged_at is None else reason.diverging_epoch
    return LogIdentity(
        source_id=current.source_id or known.source_id,
        source_epoch=source_epoch,
        target_id=current.target_id or known.target_id,
    )


def _required(first: int | None) -> int:
    assert first is not None, "requested by `_first_offsets`"
    return first


def _blocked_by(plan: CopyPartition, incident: Incident, why: str) -> KafkaError:
    return KafkaError(f"{plan.source}: {incident.text}, if it may: {why}, or reset the offset")


def _renumbered(start: Start) -> Start | _UnderNewId:
    state = start.producer
    if state.producer.is_last:
        return _UnderNewId(start.position, state.next_offset, start.incident, start.logs)
    return start._replace(producer=state.in_next_epoch(state.next_offset))


def _is_renumbered(start: Start, known: Position | None) -> bool:
    before = None if known is None or known.producer is None else known.producer.producer
    return start.producer.producer not in (before, NOT_IDEMPOTENT)
