"""Where a task takes its partitions up: exactly after what the target already has, whoever wrote it.

What was written after the stored position is read back (`ReadBack`): go on behind it under the numbers that
follow. An attempt that still lives writes the same records under the same numbers, and a broker keeps one
copy. Where a number would stop meaning the same record, numbers begin anew.

In transactions nothing is written behind the stored position, except by an attempt before they were used.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.batches.batch_copying import CopyRules
from sparkmirror.batches.log_records import LogRecord
from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerId, ProducerState
from sparkmirror.copy.copy_plan import CopyPartition, TaskPlan
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.read_back import ReadBack
from sparkmirror.domain.client_settings import ConsumerSettings, OffsetReset
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
from sparkmirror.kafka.metadata import Metadata
from sparkmirror.kafka.offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.kafka.topic_log import TopicWriter
from sparkmirror.kafka.transactions import new_producer_id
from sparkmirror.offsets.offset_runs import Run
from sparkmirror.storage.dead_letters import DeadLetter, dead_letters_topic
from sparkmirror.storage.positions import Position, position_record

_log = logging.getLogger(__name__)

_UNEXPLAINED = "the broker refused a sequence, and nothing in the log explains why"


class ResumeReason(NamedTuple):
    """Why a partition begins, or begins again, and from what is known of it."""

    position: Position | None = None
    """None lets `auto.offset.reset` decide."""
    is_gone: bool = False
    """The offset after the position is not in the source any more."""
    diverged_at: int | None = None
    """From this offset on the source has other records than those that were read."""
    is_distrusted: bool = False
    """A broker refused the numbers that follow the position."""
    skipped: DeadLetter | None = None
    """The batch that ends with the position is left out."""


class Start(NamedTuple):
    """`position` is the next upstream offset to copy; `incident` is what people should know of it.

    `logs` are those that it is about. `run` ends right before it, if what is there of it is known.
    """

    position: int
    producer: ProducerState
    incident: Incident | None = None
    logs: LogIdentity = UNKNOWN_LOGS
    run: Run | None = None


class _UnderNewId(NamedTuple):
    """A start whose numbers begin anew, at the target's offset `next_offset`."""

    position: int
    next_offset: int
    incident: Incident | None = None
    logs: LogIdentity = UNKNOWN_LOGS


_Begun = Start | _UnderNewId | SparkmirrorError


@dataclass(frozen=True, slots=True)
class Resumption:
    """Finds the starts of some partitions of a plan. Blocks; `rules` are those that they are copied by."""

    plan: TaskPlan
    rules: Mapping[TopicPartition, CopyRules]
    loops: CycleDetection

    def starts(
        self, occasions: Mapping[TopicPartition, ResumeReason], *, is_last_try: bool = False
    ) -> Mapping[TopicPartition, Start | SparkmirrorError]:
        """The start of each partition, or why it can't begin now.

        What a broker refused must be explained by something, if not now (what it has may wait for its
        followers), then before the last try. Where numbers begin anew, that is stored and acknowledged before
        this returns, as are the producer ids if they must show what comes back. Raises KafkaError when none
        can begin.
        """
        plans = [plan for plan in self.plan.partitions if plan.source in occasions]
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
        firsts = self._first_offsets(occasions, logs, source)
        found: dict[TopicPartition, _Begun] = {}
        for plan in plans:
            end, first = ends[plan.target], firsts.get(plan.source)
            if isinstance(end, SparkmirrorError):
                found[plan.source] = end
            elif isinstance(first, SparkmirrorError):
                found[plan.source] = first
            else:
                occasion = occasions[plan.source]
                begun = self._begin(plan, occasion, logs[plan.source], first, end)
                if occasion.is_distrusted:
                    begun = _explained(plan, occasion, begun, is_last_try=is_last_try)
                found[plan.source] = begun
        self._write(
            dead_letters_topic(self.plan.flow.source),
            [occasion.skipped.to_record() for occasion in occasions.values() if occasion.skipped],
        )
        starts = self._with_ids(
            found, {source: _read_logs(occasions[source], logs[source]) for source in found}
        )
        self.loops.record(start.producer.producer.id for start in starts.values() if isinstance(start, Start))
        self._store(starts, occasions)
        return starts

    # what there is

    @property
    def _target(self) -> ConsumerSettings:
        return ConsumerSettings(self.plan.producer.connection)

    def _first_offsets(
        self,
        occasions: Mapping[TopicPartition, ResumeReason],
        logs: Mapping[TopicPartition, LogIdentity],
        metadata: Metadata,
    ) -> Mapping[TopicPartition, int | SparkmirrorError]:
        """Where those begin whose position does not say it. `metadata` is the source's."""
        restarts = self.plan.settings.reactions.on_topic_recreated is OnTopicRecreated.RESTART
        reset: list[TopicPartition] = []
        anew: list[TopicPartition] = []
        for source, occasion in occasions.items():
            known = UNKNOWN_LOGS if occasion.position is None else occasion.position.logs
            source_is_new = is_another(known.source_id, logs[source].source_id)
            target_is_new = is_another(known.target_id, logs[source].target_id)
            if restarts and (source_is_new or target_is_new):
                reset.append(source)
            elif source_is_new:
                anew.append(source)
            elif occasion.position is None or occasion.is_gone:
                reset.append(source)
        at_start = list_offsets(self.plan.consumer, anew, EARLIEST, metadata)
        return {**self._reset_offsets(reset, metadata), **at_start}

    def _reset_offsets(
        self, partitions: Collection[TopicPartition], metadata: Metadata
    ) -> Mapping[TopicPartition, int | SparkmirrorError]:
        """Where `auto.offset.reset` lets partitions without a position begin."""
        policy = self.plan.consumer.offset_reset
        if policy is OffsetReset.NONE:
            return {
                partition: KafkaError(f"{partition} has no valid position and auto.offset.reset is none")
                for partition in partitions
            }
        which = EARLIEST if policy is OffsetReset.EARLIEST else LATEST
        return list_offsets(self.plan.consumer, partitions, which, metadata)

    # what follows from it

    def _begin(
        self, plan: CopyPartition, occasion: ResumeReason, logs: LogIdentity, first: int | None, end: int
    ) -> _Begun:
        """`first` is where to begin if not at the position; `end` is where the target's log ends."""
        position = occasion.position
        if position is None:
            return _UnderNewId(_required(first), end)
        changed = self._changed(plan, position, occasion, logs, first, end)
        if changed is not None:
            return changed
        following = position.offset + 1
        if position.producer is None or not self.plan.producer.idempotent:
            return _UnderNewId(following, end, _skipped(occasion))
        if occasion.skipped is not None:
            state = position.producer._replace(next_offset=end)
            return _renumbered(Start(following, state, _skipped(occasion)))
        return self._continued(plan, position, position.producer, end)

    def _changed(
        self,
        plan: CopyPartition,
        position: Position,
        occasion: ResumeReason,
        logs: LogIdentity,
        first: int | None,
        end: int,
    ) -> _Begun | None:
        """What follows when a log is not any more what the position is about; None if both are."""
        following = position.offset + 1
        if is_another(position.logs.source_id, logs.source_id):
            first = _required(first)
            return self._recreated(plan, source_recreated(following, first), first, end)
        if is_another(position.logs.target_id, logs.target_id):
            goes_on = following if first is None else first
            return self._recreated(plan, target_recreated(goes_on), goes_on, end)
        if occasion.is_gone:
            first = _required(first)
            return self._without(plan, records_lost(following, first), first, end)
        if occasion.diverged_at is not None and occasion.diverged_at < following:
            at = occasion.diverged_at
            return self._without(plan, source_truncated(following, at), at, end)
        return None

    def _recreated(self, plan: CopyPartition, incident: Incident, position: int, end: int) -> _Begun:
        if self.plan.settings.reactions.on_topic_recreated is OnTopicRecreated.FAIL:
            return _held_up(plan, incident, "on.topic.recreated is fail. Set it to record or restart")
        _log.warning("%s: %s", plan.source, incident.text)
        return _UnderNewId(position, end, incident)

    def _without(self, plan: CopyPartition, incident: Incident, position: int, end: int) -> _Begun:
        """Go on behind a gap, if that is allowed: with it changes what a number means."""
        if self.plan.settings.reactions.on_data_loss is OnDataLoss.FAIL:
            return _held_up(plan, incident, "on.data.loss is fail. Set it to record")
        _log.warning("%s: %s", plan.source, incident.text)
        return _UnderNewId(position, end, incident)

    def _continued(self, plan: CopyPartition, position: Position, state: ProducerState, end: int) -> _Begun:
        first = position.offset + 1
        if end == state.next_offset:
            return Start(first, state, run=position.run)
        if end < state.next_offset:
            incident = target_truncated(plan.target, end, state.next_offset, first)
            return _renumbered(Start(first, state._replace(next_offset=end), incident))
        read_back = ReadBack(self.plan.consumer, self._target, self.rules, self.loops)
        try:
            found = read_back.find(plan, first, state, end)
        except AuthorizationError as error:
            text = f"records behind the stored position may come twice: {error}"
            incident = Incident(IncidentKind.NOT_READ_BACK, text)
            return _renumbered(Start(first, state._replace(next_offset=end), incident))
        except SparkmirrorError as error:
            return error
        if found.records:
            _log.info(
                "%s: %d records behind the stored position are there already; going on from offset %d",
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

    # numbers that begin anew

    def _with_ids(
        self, found: Mapping[TopicPartition, _Begun], logs: Mapping[TopicPartition, LogIdentity]
    ) -> Mapping[TopicPartition, Start | SparkmirrorError]:
        """A new id is asked for only if somebody needs one; partitions that begin together may share it."""
        producer, refusal = NOT_IDEMPOTENT, None
        if any(isinstance(begun, _UnderNewId) for begun in found.values()):
            producer, refusal = self._new_producer()
        starts: dict[TopicPartition, Start | SparkmirrorError] = {}
        for source, begun in found.items():
            if isinstance(begun, SparkmirrorError):
                starts[source] = begun
                continue
            known = logs[source]
            # What was read back may be of a later leader than what the position knows.
            known = known._replace(source_epoch=max(known.source_epoch, begun.logs.source_epoch))
            if isinstance(begun, _UnderNewId):
                state = ProducerState(producer, 0, begun.next_offset)
                starts[source] = Start(begun.position, state, begun.incident or refusal, known)
            else:
                state = begun.producer
                if self.plan.transaction is not None:
                    state = ProducerState(NOT_IDEMPOTENT, 0, state.next_offset)
                starts[source] = begun._replace(producer=state, logs=known)
        return starts

    def _new_producer(self) -> tuple[ProducerId, Incident | None]:
        """The id, or that there is none, and why. In transactions it is theirs, which the writer knows."""
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
        occasions: Mapping[TopicPartition, ResumeReason],
    ) -> None:
        """Before the first batch under new numbers, whoever comes next must know of them."""
        plan = self.plan
        records = [
            position_record(
                plan.connector,
                plan.flow.source,
                source,
                Position(start.position - 1, start.producer, start.logs),
            )
            for source, start in results.items()
            if isinstance(start, Start) and _is_renumbered(start, occasions[source].position)
        ]
        self._write(plan.state.positions_topic, records)

    def _write(self, topic: str, records: Sequence[LogRecord]) -> None:
        if records:
            with closing(TopicWriter(self.plan.state.connection)) as writer:
                writer.write(topic, records)


def _skipped(occasion: ResumeReason) -> Incident | None:
    letter = occasion.skipped
    return None if letter is None else batch_skipped(letter.first, letter.last, letter.error)


def _read_logs(occasion: ResumeReason, current: LogIdentity) -> LogIdentity:
    """What is known of the logs from here on: the epoch only of what was read of this very log.

    A topic that is not there now may come back as another: who it was must not be forgotten.
    """
    if occasion.position is None:
        return current
    known = occasion.position.logs
    is_other = is_another(known.source_id, current.source_id)
    epoch_counts = not (is_other or occasion.is_gone or occasion.diverged_at is not None)
    return LogIdentity(
        source_id=current.source_id or known.source_id,
        source_epoch=known.source_epoch if epoch_counts else current.source_epoch,
        target_id=current.target_id or known.target_id,
    )


def _required(first: int | None) -> int:
    assert first is not None, "asked for by `_first_offsets`"
    return first


def _held_up(plan: CopyPartition, incident: Incident, why: str) -> KafkaError:
    return KafkaError(f"{plan.source}: {incident.text}, if it may: {why}, or reset the offset")


def _explained(plan: CopyPartition, occasion: ResumeReason, begun: _Begun, *, is_last_try: bool) -> _Begun:
    position = occasion.position
    if (
        position is None
        or position.producer is None
        or begun != Start(position.offset + 1, position.producer)
    ):
        return begun
    if not is_last_try:
        return RetriableError(f"{plan.target}: {_UNEXPLAINED}; looking again")
    return _renumbered(begun._replace(incident=Incident(IncidentKind.SEQUENCE_UNKNOWN, _UNEXPLAINED)))


def _renumbered(start: Start) -> Start | _UnderNewId:
    state = start.producer
    if state.producer.is_last:
        return _UnderNewId(start.position, state.next_offset, start.incident, start.logs)
    return start._replace(producer=state.in_next_epoch(state.next_offset))


def _is_renumbered(start: Start, known: Position | None) -> bool:
    before = None if known is None or known.producer is None else known.producer.producer
    return start.producer.producer not in (before, NOT_IDEMPOTENT)
