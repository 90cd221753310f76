"""Finds where a task resumes its partitions: exactly after what the target already has of them.

Those whose offsets are preserved come here only where that ended (`preserved_resume`).

`Succession` claims them, and looks up where the attempt before ended; `UnfencedResume` does what can be done
without. In transactions nothing is written behind the stored position, except by an attempt from before
transactions were used.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.batches.batch_copying import CopyRules
from sparkmirror.batches.log_records import LogRecord
from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerId, ProducerState
from sparkmirror.copy.copy_plan import CopyPartition, TaskPlan
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.dead_letters import write_dead_letters
from sparkmirror.copy.partition_events import Diverged, ResumeReason, Start
from sparkmirror.copy.resume.claims import Claimed, Unfenced
from sparkmirror.copy.resume.first_offsets import first_offsets
from sparkmirror.copy.resume.last_copied import LogEnd, TargetLogs
from sparkmirror.copy.resume.succession import ClaimResults, Succession, is_overtaken, is_used, newest_word
from sparkmirror.copy.resume.unfenced_resume import FoundStart, UnderNewId, UnfencedResume, renumbered
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
from sparkmirror.kafka.admin.metadata import Metadata
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.data.partition_offsets import LATEST, list_offsets
from sparkmirror.kafka.transactions.transaction_runs import new_producer_id
from sparkmirror.storage.attempts import Attempt
from sparkmirror.storage.positions import Position, position_record

_log = logging.getLogger(__name__)


class _Now(NamedTuple):
    """What both logs say of a partition. `end` is where the target's log ends.

    `first` is where to start if not at the position; None if the position holds.
    """

    logs: LogIdentity
    first: int | None
    end: LogEnd
    target_logs: TargetLogs


@dataclass(frozen=True, slots=True)
class Resumption:
    """Finds the starts of a plan's partitions. Blocks.

    `rules` are the partitions' copy rules; `store` stores positions, and raises KafkaError.
    """

    plan: TaskPlan
    rules: Mapping[TopicPartition, CopyRules]
    cycles: CycleDetection
    store: Callable[[Sequence[LogRecord]], None]
    succession: Succession

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
        for at, known in logs.items():
            reasons[at] = _unsettled_by(reasons[at], known)
        claimed = self.succession.claim(plans, reasons)
        reasons.update(self.succession.read_again(reasons, claimed))
        found = self._look_up(plans, reasons, logs, claimed, (source, target))
        write_dead_letters(self.plan, [reason.skipped for reason in reasons.values() if reason.skipped])
        starts = self._with_ids(
            found,
            {source: _read_logs(reasons[source], logs[source]) for source in found},
            self.succession.states(reasons, claimed),
        )
        self.succession.record(starts, claimed)
        self.cycles.record(
            start.producer.producer.id for start in starts.values() if isinstance(start, Start)
        )
        self._store(starts, reasons)
        return starts

    @property
    def _unfenced(self) -> UnfencedResume:
        return UnfencedResume(self.plan, self.rules, self.cycles)

    @property
    def _target(self) -> ConsumerSettings:
        return ConsumerSettings(self.plan.producer.connection)

    # starts

    def _look_up(
        self,
        plans: Sequence[CopyPartition],
        reasons: dict[TopicPartition, ResumeReason],
        logs: Mapping[TopicPartition, LogIdentity],
        claimed: ClaimResults,
        metadata: tuple[Metadata, Metadata],
    ) -> dict[TopicPartition, FoundStart]:
        """The start of each; what reading the logs adds to its reason is put there.

        `metadata` is the source's and the target's.
        """
        source, target = metadata
        ends = list_offsets(self._target, [plan.target for plan in plans], LATEST, target)
        firsts = first_offsets(self.plan, reasons, logs, source)
        found: dict[TopicPartition, FoundStart] = {}
        with closing(self.succession.logs(reasons, claimed, ends, target)) as target_logs:
            for plan in plans:
                end, first, claim = ends[plan.target], firsts.get(plan.source), claimed.get(plan.source)
                if isinstance(claim, SparkmirrorError):
                    found[plan.source] = claim
                elif isinstance(end, SparkmirrorError):
                    found[plan.source] = end
                elif isinstance(first, SparkmirrorError):
                    found[plan.source] = first
                else:
                    marker = claim.marker if isinstance(claim, Claimed) else None
                    now = _Now(logs[plan.source], first, LogEnd(end, marker), target_logs)
                    reason = reasons[plan.source]
                    found[plan.source], reasons[plan.source] = self._found(plan, reason, now, claim)
        return found

    def _found(
        self,
        plan: CopyPartition,
        reason: ResumeReason,
        now: _Now,
        claim: Claimed | Unfenced | None,
    ) -> tuple[FoundStart, ResumeReason]:
        """The start, and the reason with what reading the logs has added to it."""
        if is_used(reason.position, claim):
            return RetriableError(f"{plan.source}: its producer epoch is in use; claiming the next"), reason
        if is_overtaken(claim, now.end.offset):
            return RetriableError(f"{plan.target}: the target has lost the fence; claiming again"), reason
        last = newest_word(reason.position, claim)
        found_start = self._find(plan, reason, now, last)
        if isinstance(found_start, Diverged):
            reason = reason._replace(diverged_at=found_start.at, diverging_epoch=found_start.epoch)
            found_start = self._find(plan, reason, now, last)
            assert not isinstance(found_start, Diverged), (
                "a divergence ends the search before the log is read"
            )
        if reason.is_distrusted and not isinstance(claim, Claimed):
            found_start = self._unfenced.explained(plan, reason, found_start)
        return found_start, reason

    def _find(  # noqa: PLR0911 - one for each reason
        self, plan: CopyPartition, reason: ResumeReason, now: _Now, last: Attempt | None
    ) -> FoundStart | Diverged:
        """`last` is the attempt that was fenced, if it is recorded where it ended."""
        position = reason.position
        if position is None:
            return UnderNewId(_required(now.first), now.end.offset)
        changed = self._changed(plan, position, reason, now)
        if changed is not None:
            return changed
        following = position.offset + 1
        if position.producer is None or not self.plan.producer.idempotent:
            return UnderNewId(following, now.end.offset, _skipped(reason))
        if reason.is_settled:
            expected, end = position.producer.next_offset, now.end.offset
            if reason.renews and end < expected:  # an attempt is recorded to begin where the log ends
                return UnderNewId(following, end, target_truncated(plan.target, end, expected, following))
            return UnderNewId(following, expected, _skipped(reason))
        if reason.skipped is None and last is not None:
            return self.succession.behind(plan, position, last, now.end, now.target_logs)
        if reason.skipped is not None:
            state = position.producer._replace(next_offset=now.end.offset)
            return renumbered(Start(following, state, _skipped(reason)))
        return self._unfenced.continued(plan, position, position.producer, now.end.offset)

    def _changed(
        self, plan: CopyPartition, position: Position, reason: ResumeReason, now: _Now
    ) -> FoundStart | None:
        """The start if a log was replaced or truncated since the position; None if neither was."""
        logs, first = now.logs, now.first
        end = _expected_end(reason, now)
        following = position.offset + 1
        if is_another(position.logs.source_id, logs.source_id):
            first = _required(first)
            return self._recreated(plan, source_recreated(following, first), first, end)
        if is_another(position.logs.target_id, logs.target_id):
            next_offset = following if first is None else first
            return self._recreated(plan, target_recreated(next_offset), next_offset, now.end.offset)
        if reason.is_gone:
            first = _required(first)
            return self._without(plan, records_lost(following, first), first, end)
        if reason.diverged_at is not None and reason.diverged_at < following:
            at = reason.diverged_at
            return self._without(plan, source_truncated(following, at), at, end)
        return None

    def _recreated(self, plan: CopyPartition, incident: Incident, position: int, end: int) -> FoundStart:
        if self.plan.settings.reactions.on_topic_recreated is OnTopicRecreated.FAIL:
            return _blocked_by(plan, incident, "on.topic.recreated is fail. Set it to record or restart")
        _log.warning("%s: %s", plan.source, incident.text)
        return UnderNewId(position, end, incident)

    def _without(self, plan: CopyPartition, incident: Incident, position: int, end: int) -> FoundStart:
        """Continue behind a gap if `on.data.loss` allows it. A gap changes which record a sequence means."""
        if self.plan.settings.reactions.on_data_loss is OnDataLoss.FAIL:
            return _blocked_by(plan, incident, "on.data.loss is fail. Set it to record")
        _log.warning("%s: %s", plan.source, incident.text)
        return UnderNewId(position, end, incident)

    # new producer ids and epochs

    def _with_ids(
        self,
        found: Mapping[TopicPartition, FoundStart],
        logs: Mapping[TopicPartition, LogIdentity],
        begun: Mapping[TopicPartition, ProducerState],
    ) -> dict[TopicPartition, Start | SparkmirrorError]:
        """`begun` has the states of attempts that begin or go on.

        A new id is requested only if it is needed; partitions that start together may share it.
        """
        producer, refusal = NOT_IDEMPOTENT, None
        if any(isinstance(found_start, UnderNewId) for at, found_start in found.items() if at not in begun):
            producer, refusal = self._new_producer()
        starts: dict[TopicPartition, Start | SparkmirrorError] = {}
        for source, found_start in found.items():
            if isinstance(found_start, SparkmirrorError):
                starts[source] = found_start
                continue
            known = logs[source]
            # Records read back may be of a later leader epoch than the position's.
            known = known._replace(source_epoch=max(known.source_epoch, found_start.logs.source_epoch))
            if source in begun:
                end = (
                    found_start.next_offset
                    if isinstance(found_start, UnderNewId)
                    else found_start.producer.next_offset
                )
                run = found_start.run if isinstance(found_start, Start) else None
                state = begun[source]._replace(next_offset=end)
                starts[source] = Start(found_start.position, state, found_start.incident, known, run)
            elif isinstance(found_start, UnderNewId):
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
        """Store what the next attempt must find before the first batch."""
        plan = self.plan
        translated = {partition.source for partition in plan.partitions if partition.preserves_offsets}
        records = [
            position_record(
                plan.connector,
                plan.flow.source,
                source,
                Position(start.position - 1, start.producer, start.logs, is_translated=source in translated),
            )
            for source, start in results.items()
            if isinstance(start, Start) and _is_news(start, reasons[source])
        ]
        if records:
            self.store(records)


def _expected_end(reason: ResumeReason, now: _Now) -> int:
    """Where the target's log ends.

    Where an attempt just goes on, that is what was acknowledged: what the target has lost since shows then.
    """
    if reason.is_settled and reason.position is not None and reason.position.producer is not None:
        return reason.position.producer.next_offset
    return now.end.offset


def _unsettled_by(reason: ResumeReason, logs: LogIdentity) -> ResumeReason:
    """In a target topic that was created again nothing fences anybody: an attempt can't just go on."""
    known = UNKNOWN_LOGS if reason.position is None else reason.position.logs
    return reason._replace(is_settled=reason.is_settled and not is_another(known.target_id, logs.target_id))


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


def _is_news(start: Start, reason: ResumeReason) -> bool:
    """Whether the next attempt must find this start: under another id or epoch, or behind an incident."""
    known = reason.position
    before = None if known is None or known.producer is None else known.producer.producer
    return start.producer.producer not in (before, NOT_IDEMPOTENT) or reason.is_settled
