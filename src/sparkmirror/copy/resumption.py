"""Finds where a task continues its partitions: exactly behind what the target already has of them.

Each start takes the same steps: claim an epoch, fence the attempts before, look up where they ended, record
the new one (`Succession`). If it may not claim, a partition continues at its stored position under a
new producer id: at least once, as Java does. So it does behind a position that no attempt has written. Where
offsets are preserved, the end of the target's log is the position (`PreservedEnds`) and nothing is recorded;
where that can't be, and the user wants it, the partition continues as any other, with translated offsets.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerId, ProducerState
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.dead_letters import write_dead_letters
from sparkmirror.copy.partition_events import ResumeReason, Start
from sparkmirror.copy.preserve.preserved_resume import PreservedEnds, Translated
from sparkmirror.copy.resume.claims import Claimed, Claims, Unfenced
from sparkmirror.copy.resume.last_copied import LogEnd, TargetLogs
from sparkmirror.copy.resume.succession import (
    NOT_WANTED,
    ClaimResults,
    Found,
    Succession,
    is_overtaken,
    is_used,
    newest_word,
)
from sparkmirror.copy.resume.topic_lookup import Topics, first_offsets, read_topics
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
    batch_skipped,
    not_idempotent,
    offsets_translated,
    records_lost,
    source_recreated,
    source_truncated,
    target_recreated,
    target_renamed,
    target_truncated,
)
from sparkmirror.kafka.data.partition_offsets import LATEST, list_offsets
from sparkmirror.kafka.transactions.transaction_runs import new_producer_id
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.storage.attempts import Attempt
from sparkmirror.storage.positions import Position, position_record

_log = logging.getLogger(__name__)

_T = TypeVar("_T")
_Store = Callable[[Sequence[LogRecord]], None]
_Reasons = Mapping[TopicPartition, ResumeReason]
_Starts = Mapping[TopicPartition, Start | SparkmirrorError]


class _Now(NamedTuple):
    """The state of both logs of a partition. `end` is the end of the target's log.

    `first` is where to start if not at the position; None if the position holds.
    """

    logs: LogIdentity
    first: int | None
    end: LogEnd
    target_logs: TargetLogs


@dataclass(frozen=True, slots=True)
class Resumption:
    """Finds the starts of a plan's partitions. Blocks.

    `store` stores positions, and raises KafkaError.
    """

    plan: TaskPlan
    cycles: CycleDetection
    store: _Store
    succession: Succession
    preserved: PreservedEnds

    @classmethod
    def of(cls, plan: TaskPlan, cycles: CycleDetection, store: _Store, claims: Claims | None) -> "Resumption":
        """`claims` is None where attempts can't be recorded."""
        return cls(plan, cycles, store, Succession(plan, claims), PreservedEnds.of(plan, cycles))

    def end(self) -> None:
        """Let what is under way return soon."""
        self.preserved.end()

    def starts(self, reasons: _Reasons) -> _Starts:
        """The start of each partition, or why it can't start now.

        A new producer id or epoch is stored and acknowledged before this returns, as are the producer ids if
        cycle detection needs them. Where others can start, partitions whose beginnings take long to fill come
        with the next call.
        """
        kept = {at: reason for at, reason in reasons.items() if at in self.preserved.sources}
        has_others = len(kept) < len(reasons)
        ends = _each(kept, partial(self.preserved.starts, has_others=has_others))
        translated = {at: found for at, found in ends.items() if isinstance(found, Translated)}
        counted = {at: reason for at, reason in reasons.items() if at not in kept or at in translated}
        starts = {at: found for at, found in ends.items() if not isinstance(found, Translated)}
        for source, start in _each(counted, self._continued).items():
            starts[source] = _noted(start, translated[source]) if source in translated else start
        return starts

    def _continued(self, reasons: _Reasons) -> _Starts:
        """The starts of partitions whose offsets are not preserved. Raises KafkaError when none can start."""
        reasons = dict(reasons)
        plans = [plan for plan in self.plan.partitions if plan.source in reasons]
        topics = read_topics(self.plan, plans)
        for at, known in topics.logs.items():
            reasons[at] = _unsettled_by(reasons[at], known)
        claims = self.succession.claim(plans, reasons)
        reasons.update(self.succession.read_again(reasons, claims, topics))
        found = self._look_up(plans, reasons, claims, topics)
        write_dead_letters(self.plan, [reason.skipped for reason in reasons.values() if reason.skipped])
        starts = self._with_producers(
            found,
            reasons,
            {source: _read_logs(reasons[source], topics.logs[source]) for source in found},
            self.succession.states(reasons, claims),
        )
        self.succession.record(starts, claims, topics.positions_id)
        self.cycles.record(
            start.producer.producer.id for start in starts.values() if isinstance(start, Start)
        )
        self._store(starts, reasons)
        return {**starts, **self.preserved.promoted(starts)}

    # the look-up

    def _look_up(
        self,
        plans: Sequence[CopyPartition],
        reasons: _Reasons,
        claims: ClaimResults,
        topics: Topics,
    ) -> Mapping[TopicPartition, Found | SparkmirrorError]:
        """Find where each continues."""
        target = ConsumerSettings(self.plan.producer.connection)
        ends = list_offsets(target, [plan.target for plan in plans], LATEST, topics.target)
        firsts = first_offsets(self.plan, reasons, topics)
        found: dict[TopicPartition, Found | SparkmirrorError] = {}
        with closing(self.succession.logs(reasons, claims, ends, topics.target)) as target_logs:
            for plan in plans:
                end, first, claim = ends[plan.target], firsts.get(plan.source), claims.get(plan.source)
                if isinstance(claim, SparkmirrorError):
                    found[plan.source] = claim
                elif isinstance(end, SparkmirrorError):
                    found[plan.source] = end
                elif isinstance(first, SparkmirrorError):
                    found[plan.source] = first
                else:
                    marker = claim.marker if isinstance(claim, Claimed) else None
                    now = _Now(topics.logs[plan.source], first, LogEnd(end, marker), target_logs)
                    found[plan.source] = self._found(plan, reasons[plan.source], now, claim)
        return found

    def _found(
        self, plan: CopyPartition, reason: ResumeReason, now: _Now, claim: Claimed | Unfenced | None
    ) -> Found | SparkmirrorError:
        position, end = reason.position, now.end.offset
        if is_used(position, claim):
            self.succession.renounce(plan.source)
            return RetriableError(f"{plan.source}: its producer epoch is in use; claiming the next")
        if is_overtaken(claim, end):
            self.succession.renounce(plan.source)
            return RetriableError(f"{plan.target}: the target has lost the fence; claiming again")
        if position is None:
            return Found(_required(now.first), end)
        changed = self._changed(plan, position, reason, now)
        return changed or self._behind(plan, position, reason, now, newest_word(position, claim))

    def _behind(
        self, plan: CopyPartition, position: Position, reason: ResumeReason, now: _Now, last: Attempt | None
    ) -> Found | SparkmirrorError:
        """Continue in logs that are as they were. `last` is the attempt before, if it says where it ended."""
        if reason.is_settled:
            return _settled(plan, position, reason, now)
        if last is not None and reason.skipped is None:
            return self.succession.behind(plan, position, last, now.end, now.target_logs)
        return _behind_position(plan, position, reason, now.end.offset)

    def _changed(
        self, plan: CopyPartition, position: Position, reason: ResumeReason, now: _Now
    ) -> Found | SparkmirrorError | None:
        """The start if a log was replaced or truncated since the position; None if neither was."""
        logs, first = now.logs, now.first
        end = _expected_end(reason, now)
        following = position.offset + 1
        if is_another(position.logs.source_id, logs.source_id):
            first = _required(first)
            return self._allowed(plan, source_recreated(following, first), first, end)
        if is_another(position.logs.target_id, logs.target_id):
            next_offset = following if first is None else first
            incident = _another_target(plan, position.logs.target_id, next_offset)
            return self._allowed(plan, incident, next_offset, now.end.offset)
        if reason.is_gone:
            first = _required(first)
            return self._allowed(plan, records_lost(following, first), first, end)
        if reason.diverged_at is not None and reason.diverged_at < following:
            at = reason.diverged_at
            return self._allowed(plan, source_truncated(following, at), at, end)
        return None

    def _allowed(
        self, plan: CopyPartition, incident: Incident, position: int, end: int
    ) -> Found | KafkaError:
        """Continue behind what is lost, unless the user wants to be asked."""
        refusal = incident.refusal(self.plan.settings.reactions)
        if refusal is not None:
            return KafkaError(f"{plan.source}: {refusal}, or reset the offset")
        _log.warning("%s: %s", plan.source, incident.text)
        return Found(position, end, incident)

    # producers

    def _with_producers(
        self,
        found: Mapping[TopicPartition, Found | SparkmirrorError],
        reasons: _Reasons,
        logs: Mapping[TopicPartition, LogIdentity],
        begun: Mapping[TopicPartition, ProducerState],
    ) -> dict[TopicPartition, Start | SparkmirrorError]:
        """`begun` has the states of attempts that are claimed, or continue.

        The others share a new producer id, which is requested only if it is needed.
        """
        is_needed = any(isinstance(each, Found) and at not in begun for at, each in found.items())
        producer, refusal = self._new_producer() if is_needed else (NOT_IDEMPOTENT, None)
        new = ProducerState(producer, 0, 0)
        starts: dict[TopicPartition, Start | SparkmirrorError] = {}
        for source, each in found.items():
            if isinstance(each, SparkmirrorError):
                starts[source] = each
                continue
            state = begun.get(source, new)._replace(next_offset=each.next_offset)
            incidents = _skipped(reasons[source]), each.incident, None if source in begun else refusal
            known = logs[source]
            # What is on the target may be of a later leader epoch than the position.
            known = known._replace(source_epoch=max(known.source_epoch, each.source_epoch))
            starts[source] = Start(each.position, state, tuple(filter(None, incidents)), known, each.run)
        return starts

    def _new_producer(self) -> tuple[ProducerId, Incident | None]:
        """A new id, or why there is none. In transactions the writer has the transactional id's."""
        if self.plan.transaction is not None:
            return NOT_IDEMPOTENT, None
        reason: object = NOT_WANTED
        if self.plan.producer.idempotent:
            try:
                return new_producer_id(self.plan.producer.connection), None
            except (AuthorizationError, UnsupportedVersionError) as error:
                reason = error
        if not (self.plan.names_show_origin or self.plan.settings.provenance_header):
            reason = f"{reason}. A flow in the other direction would bring these records back"
        return NOT_IDEMPOTENT, not_idempotent(reason)

    def _store(
        self,
        results: Mapping[TopicPartition, Start | SparkmirrorError],
        reasons: Mapping[TopicPartition, ResumeReason],
    ) -> None:
        """Store what the next attempt must find before the first batch."""
        plan = self.plan
        translated = self.preserved.sources
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


def _each(
    reasons: _Reasons, starts: Callable[[_Reasons], Mapping[TopicPartition, _T]]
) -> dict[TopicPartition, _T | SparkmirrorError]:
    """Find the starts of partitions; each has the same error where none is found."""
    try:
        return dict(starts(reasons)) if reasons else {}
    except SparkmirrorError as error:
        _log.warning("%d partitions can't start: %s; retrying", len(reasons), error)
        return dict.fromkeys(reasons, error)


def _noted(start: Start | SparkmirrorError, translated: Translated) -> Start | SparkmirrorError:
    """The start, with the incident where the mismatch is a new one."""
    if translated.mismatch is None or isinstance(start, SparkmirrorError):
        return start
    noted = offsets_translated(translated.mismatch, start.position)
    return start._replace(incidents=(noted, *start.incidents))


def _another_target(plan: CopyPartition, known_id: bytes, next_offset: int) -> Incident:
    former = plan.former_target
    if former is not None and former.topic_id == known_id:
        return target_renamed(former.topic, plan.target_topic, next_offset)
    return target_recreated(next_offset)


def _settled(plan: CopyPartition, position: Position, reason: ResumeReason, now: _Now) -> Found:
    """The attempt continues, or another one is claimed in good time: behind what was acknowledged."""
    following, end, expected = position.offset + 1, now.end.offset, _expected_end(reason, now)
    if reason.renews and end < expected:  # an attempt is recorded to begin where the log ends
        return Found(following, end, target_truncated(plan.target, end, expected, following))
    return Found(following, expected)


def _behind_position(plan: CopyPartition, position: Position, reason: ResumeReason, end: int) -> Found:
    """Continue at the stored position. What was written behind it is copied again: at least once."""
    following, incident, writer = position.offset + 1, None, position.producer
    if writer is not None and end < writer.next_offset:
        incident = target_truncated(plan.target, end, writer.next_offset, following)
    is_there = position.run is not None and position.run.last_downstream < end
    is_next = is_there and incident is None and reason.skipped is None
    return Found(following, end, incident, run=position.run if is_next else None)


def _expected_end(reason: ResumeReason, now: _Now) -> int:
    """The end of the target's log.

    Where an attempt just continues, that is what was acknowledged: what the target has lost since shows then.
    """
    if reason.is_settled and reason.position is not None and reason.position.producer is not None:
        return reason.position.producer.next_offset
    return now.end.offset


def _unsettled_by(reason: ResumeReason, logs: LogIdentity) -> ResumeReason:
    """Let no attempt just continue in a target topic that was created again: nothing is fenced there."""
    known = UNKNOWN_LOGS if reason.position is None else reason.position.logs
    return reason._replace(is_settled=reason.is_settled and not is_another(known.target_id, logs.target_id))


def _skipped(reason: ResumeReason) -> Incident | None:
    letter = reason.skipped
    return None if letter is None else batch_skipped(letter.first, letter.last, letter.error)


def _read_logs(reason: ResumeReason, current: LogIdentity) -> LogIdentity:
    """The logs' identities to store: the leader epoch counts only if it was read from this very log.

    It is the one that the new leader named, behind a divergence: a second truncation is noticed before
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
    assert first is not None, "looked up by `first_offsets`"
    return first


def _is_news(start: Start, reason: ResumeReason) -> bool:
    """Whether the next attempt must find this start: under another id or epoch, or behind an incident."""
    known = reason.position
    if known is None:  # another `auto.offset.reset`, or another end, must not decide again
        return True
    before = None if known.producer is None else known.producer.producer
    return start.producer.producer not in (before, NOT_IDEMPOTENT) or reason.is_settled
