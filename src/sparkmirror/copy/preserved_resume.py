"""Finds where partitions go on whose offsets are preserved: where the target's log ends.

The claim comes first: from then on attempts before can't fill gaps, and what they had open is in the log.
See docs/decisions/0006.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, NamedTuple

from sparkmirror.batches.producer import ProducerId
from sparkmirror.copy.claims import transactional_id_of
from sparkmirror.copy.copy_plan import CopyPartition, TaskPlan
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.dead_letters import write_dead_letters
from sparkmirror.copy.partition_events import ResumeReason, Start
from sparkmirror.copy.preserved_start import Beginning, PreservedStarts
from sparkmirror.copy.preserved_tail import Bounds, Tail, Writers, read_tail
from sparkmirror.copy.same_record import has_same_record
from sparkmirror.copy.translated_resume import TranslatedResume
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import KafkaError, RetriableError, SparkmirrorError
from sparkmirror.domain.ids import LogIdentity, TopicPartition, is_another
from sparkmirror.domain.incidents import (
    Incident,
    IncidentKind,
    OnDataLoss,
    OnTopicRecreated,
    batch_skipped,
    records_lost,
    target_recreated,
    target_truncated,
)
from sparkmirror.domain.preserving import REFUSED
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.fencing import Fencing
from sparkmirror.kafka.offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.offsets.offset_runs import Run
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.migrations import Migrations, read_migrations
from sparkmirror.storage.promotions import promoted

_log = logging.getLogger(__name__)

_REMEDY: Final = (
    "Delete the target topic, and it is made anew with the source's offsets (sparkmirror offsets preserve "
    "does it, and keeps groups at their places); or leave it out of "
    "offsets.preserve.topics; or let it go on with other offsets: offsets.on.mismatch=continue-translated"
)


class _Found(NamedTuple):
    """What both logs say of a partition, and what was claimed."""

    claimed: ProducerId
    source: Bounds
    target: Bounds
    logs: LogIdentity
    accepted: int = 0
    """Before this offset the target's log counts as written by this flow: see `Failback`."""
    keeps_all: bool = False
    deleted_ids: Collection[bytes] = ()
    """Of target topics that were deleted on purpose: this one is in their place."""


class _Mismatch(NamedTuple):
    """Why the target's log can't get its source's offsets."""

    what: str


_Outcome = Start | Beginning | _Mismatch | SparkmirrorError


@dataclass(frozen=True, slots=True)
class PreservedResume:
    """Of a plan's partitions whose offsets are preserved. Blocks.

    Where that ends, and the user wants it, `translated` goes on with them.
    """

    plan: TaskPlan
    cycles: CycleDetection
    beginnings: PreservedStarts
    translated: TranslatedResume

    @property
    def sources(self) -> frozenset[TopicPartition]:
        return frozenset(plan.source for plan in self.plan.partitions if plan.preserves_offsets)

    def end(self) -> None:
        """Let what is under way return soon."""
        self.beginnings.ended.set()

    def starts(
        self, reasons: Mapping[TopicPartition, ResumeReason]
    ) -> Mapping[TopicPartition, Start | SparkmirrorError]:
        """The start of each partition, or why it can't start now.

        Where others can start, those whose beginning must be filled come with the next call. Raises
        KafkaError when no partition can start.
        """
        translated = {at: reasons[at] for at in self.translated.known(reasons)}
        kept = {at: reason for at, reason in reasons.items() if at not in translated}
        outcomes = self._filled(kept)
        mismatches = {at: each.what for at, each in outcomes.items() if isinstance(each, _Mismatch)}
        if self.translated.is_wanted:
            translated.update({at: kept.pop(at) for at in mismatches})
        write_dead_letters(self.plan, [reason.skipped for reason in kept.values() if reason.skipped])
        return {
            **{source: _settled(source, outcomes[source]) for source in kept},
            **self._translated(translated, mismatches),
        }

    def _translated(
        self, reasons: Mapping[TopicPartition, ResumeReason], mismatches: Mapping[TopicPartition, str]
    ) -> Mapping[TopicPartition, Start | SparkmirrorError]:
        if not reasons:
            return {}
        starts = self.translated.starts(reasons, mismatches)
        return {**starts, **promoted(self._migrations().promotions, reasons)}

    def _migrations(self) -> Migrations:
        """To be read behind the claims.

        A promotion is recorded before it claims the partitions: who claims later than it sees the record.
        """
        owner = owner_of(self.plan.state.positions_topic, self.plan.connector)
        return read_migrations(self.plan.state.connection, self.plan.flow.source, owner)

    def _filled(self, reasons: Mapping[TopicPartition, ResumeReason]) -> Mapping[TopicPartition, _Outcome]:
        """As they are found; where nothing but beginnings must be filled, behind that."""
        plans = {plan.source: plan for plan in self.plan.partitions if plan.source in reasons}
        outcomes = self._outcomes(list(plans.values()), reasons)
        due = {source: each for source, each in outcomes.items() if isinstance(each, Beginning)}
        if due and len(due) == len(outcomes):
            filled = self.beginnings.fill({plans[source].target: each for source, each in due.items()})
            ready = [plans[source] for source in due if filled[plans[source].target] is None]
            outcomes.update({at: error for at in due if (error := filled[plans[at].target]) is not None})
            outcomes.update(self._outcomes(ready, reasons))
        return outcomes

    def _outcomes(
        self, plans: Sequence[CopyPartition], reasons: Mapping[TopicPartition, ResumeReason]
    ) -> dict[TopicPartition, _Outcome]:
        outcomes: dict[TopicPartition, _Outcome] = {}
        for source, found in self._look_up(plans).items():
            plan = next(plan for plan in plans if plan.source == source)
            if isinstance(found, SparkmirrorError):
                outcomes[source] = found
                continue
            try:
                outcomes[source] = self._outcome(plan, reasons[source], found)
            except SparkmirrorError as error:
                outcomes[source] = error
        return outcomes

    def _look_up(self, plans: Sequence[CopyPartition]) -> Mapping[TopicPartition, _Found | SparkmirrorError]:
        """Claim the partitions, then read where both logs start and end. Raises KafkaError."""
        if not plans:
            return {}
        sources, targets = [plan.source for plan in plans], [plan.target for plan in plans]
        consumer, target = self.plan.consumer, ConsumerSettings(self.plan.producer.connection)
        source_topics = read_metadata(consumer.connection, {plan.source.topic for plan in plans})
        target_topics = read_metadata(target.connection, {plan.target_topic for plan in plans})
        claims = self._claim(sources)
        migrations = self._migrations()
        refusals = promoted(migrations.promotions, sources)
        self.cycles.record(claim.id for claim in claims.values() if isinstance(claim, ProducerId))
        uncommitted = ConsumerSettings(consumer.connection)
        bounds = [
            list_offsets(uncommitted, sources, EARLIEST, source_topics),
            list_offsets(uncommitted, sources, LATEST, source_topics),
            list_offsets(target, targets, EARLIEST, target_topics),
            list_offsets(target, targets, LATEST, target_topics),
        ]
        found: dict[TopicPartition, _Found | SparkmirrorError] = {}
        for plan in plans:
            claim = claims[plan.source]
            offsets = [each[plan.source if at < 2 else plan.target] for at, each in enumerate(bounds)]
            results = (refusals.get(plan.source), claim, *offsets)
            error = next((each for each in results if isinstance(each, SparkmirrorError)), None)
            logs = LogIdentity(
                source_id=source_topics.topic_ids.get(plan.source.topic, b""),
                target_id=target_topics.topic_ids.get(plan.target_topic, b""),
            )
            if error is not None:
                found[plan.source] = error
            else:
                start, end, target_start, target_end = (int(each) for each in offsets)  # type: ignore[arg-type]  # no error is among them
                assert isinstance(claim, ProducerId)
                failback = migrations.failbacks.get(plan.source.topic)
                found[plan.source] = _Found(
                    claim,
                    Bounds(start, end),
                    Bounds(target_start, target_end),
                    logs,
                    0 if failback is None else failback.accepted(plan.source.partition, logs),
                    keeps_all=failback is not None and not failback.is_of_another_source(logs),
                    deleted_ids=migrations.deleted_ids(plan.source.topic),
                )
        return found

    def _claim(
        self, sources: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ProducerId | SparkmirrorError]:
        ids = {source: transactional_id_of(self.plan, source) for source in sources}
        with closing(Fencing(self.plan.producer.connection)) as fencing:
            claims = fencing.claim(list(ids.values()))
        return {source: claims[each] for source, each in ids.items()}

    def _outcome(self, plan: CopyPartition, reason: ResumeReason, found: _Found) -> _Outcome:
        target = ConsumerSettings(self.plan.producer.connection)
        tail = read_tail(target, plan.target, found.target, _writers(reason, found))
        what = self._mismatch(plan, reason, found, tail)
        if what is not None:
            return _Mismatch(f"{plan.target}: {what}")
        end, start = found.target.end, found.source.start
        on_recreated = self.plan.settings.reactions.on_topic_recreated
        if on_recreated is OnTopicRecreated.FAIL and _is_unasked(reason, found):
            text = target_recreated(max(start, end)).text
            return KafkaError(
                f"{plan.source}: {text}, if it may: on.topic.recreated is fail. Set it to record"
            )
        if tail.is_filler and end < start:
            return Beginning(found.claimed.id, end, start)
        log_start = self._hide_filler(plan, found)
        if isinstance(log_start, SparkmirrorError):
            return log_start
        started = self._start(plan, reason, found, tail)
        if not isinstance(started, Start):
            return started
        run = Run(log_start, log_start, end - log_start) if log_start < end else None
        return started._replace(log_start=log_start, run=run)

    def _start(
        self, plan: CopyPartition, reason: ResumeReason, found: _Found, tail: Tail
    ) -> Start | SparkmirrorError:
        writer = tail.state.producer
        if writer.id == found.claimed.id and writer.epoch > found.claimed.epoch:
            return RetriableError(f"{plan.source}: its producer epoch is in use; claiming the next")
        if _is_unexplained(reason, tail):
            return RetriableError(f"{plan.target}: a sequence was refused, and its log does not show yet why")
        position, incident = _position(plan, reason, found, tail)
        if incident is not None and incident.kind is IncidentKind.RECORDS_LOST:
            if self.plan.settings.reactions.on_data_loss is OnDataLoss.FAIL:
                text = f"{plan.source}: {incident.text}, if it may: on.data.loss is fail. Set it to record"
                return KafkaError(text)
            _log.warning("%s: %s", plan.source, incident.text)
        return Start(
            position,
            tail.state,
            incident,
            _read_logs(reason, found),
            claimed=found.claimed,
            keeps_all=found.keeps_all,
        )

    def _mismatch(self, plan: CopyPartition, reason: ResumeReason, found: _Found, tail: Tail) -> str | None:
        """Why the target's log can't get its source's offsets; None if it can."""
        source, target = found.source, found.target
        what: str | None = None
        if tail.foreign is not None:
            what = (
                f"somebody else (producer id {tail.foreign.producer_id}) has written offset "
                f"{tail.foreign.base_offset}"
            )
        elif target.end > source.end:
            what = (
                f"it ends at {target.end}, and its source at {source.end}, which was truncated or made anew"
            )
        elif (
            reason.position is not None
            and target.end > max(target.start, found.accepted)
            and _is_new(reason, found)
        ):
            what = f"it holds records of another topic of the name {plan.source.topic}, deleted since"
        elif reason.diverged_at is not None and reason.diverged_at < target.end:
            what = (
                f"the source has lost its records from offset {reason.diverged_at} on, and has others there"
            )
        elif reason.position is None and not tail.is_own and target.end > max(source.start, found.accepted):
            what = (
                f"it ends at {target.end} with nothing of this flow, and its source begins at {source.start} "
                "(sparkmirror failback lets the opposite of a promoted flow go on)"
            )
        elif reason.taken is not None and reason.taken < target.end:
            what = (
                f"the offset {reason.taken} of its next record is taken by a control marker, which its "
                "transaction coordinator has repeated"
            )
        elif tail.last_record is not None and not has_same_record(self.plan, plan, tail.last_record):
            what = f"it has another record at offset {tail.last_record} than its source"
        return what

    def _hide_filler(self, plan: CopyPartition, found: _Found) -> int | SparkmirrorError:
        """Where the log starts then, without filler, which comes back where a broker was killed."""
        start, end = found.target
        if start >= end or found.source.start == 0:
            return start
        filler_end = self.beginnings.filler_end(plan.target, found.target)
        if filler_end == start:
            return start
        return self.beginnings.move({plan.target: filler_end})[plan.target] or filler_end


def _writers(reason: ResumeReason, found: _Found) -> Writers:
    """Java MM2, too, keeps offsets where none is missing: its position is then that of the last record."""
    position, own = reason.position, found.claimed
    if position is None or _is_made_anew(reason, found):
        return Writers(own, {own.id}, found.accepted)
    if position.producer is None:
        is_java = position.offset + 1 == found.target.end
        return Writers(own, {own.id}, max(found.target.end if is_java else 0, found.accepted))
    run = position.run
    same_end = run.last_downstream + 1 if run is not None and run.shift == 0 else 0
    return Writers(own, {own.id, position.producer.producer.id}, max(same_end, found.accepted))


def _read_logs(reason: ResumeReason, found: _Found) -> LogIdentity:
    """The leader epoch counts only if it is that of the record before the target's end."""
    position = reason.position
    if position is None or _is_new(reason, found) or position.offset + 1 != found.target.end:
        return found.logs
    return found.logs._replace(source_epoch=position.logs.source_epoch)


def _is_new(reason: ResumeReason, found: _Found) -> bool:
    assert reason.position is not None
    return is_another(reason.position.logs.source_id, found.logs.source_id)


def _is_made_anew(reason: ResumeReason, found: _Found) -> bool:
    """Whether the target topic is another than the one with the last position."""
    position = reason.position
    return position is not None and is_another(position.logs.target_id, found.logs.target_id)


def _is_unasked(reason: ResumeReason, found: _Found) -> bool:
    """Whether the topic was deleted by somebody else than the commands that make it anew."""
    position = reason.position
    return (
        position is not None
        and _is_made_anew(reason, found)
        and position.logs.target_id not in found.deleted_ids
    )


def _is_unexplained(reason: ResumeReason, tail: Tail) -> bool:
    """What another attempt wrote shows once followers have it."""
    is_as_before = reason.position is not None and reason.position.producer == tail.state
    return reason.is_distrusted and is_as_before and not reason.is_last_try


def _position(
    plan: CopyPartition, reason: ResumeReason, found: _Found, tail: Tail
) -> tuple[int, Incident | None]:
    """The next upstream offset to copy: where the target ends, or before markers at its end.

    There may be one too many, which has the offset of the next record.
    """
    end, start = found.target.end, found.source.start
    skipped, position = reason.skipped, reason.position
    if skipped is not None and skipped.first <= end <= skipped.last:
        return skipped.last + 1, batch_skipped(skipped.first, skipped.last, skipped.error)
    if end < start:
        return start, records_lost(end, start)
    copied = 0 if tail.last_record is None else tail.last_record + 1
    if _is_made_anew(reason, found):
        following = min(end, max(start, found.target.start, copied))
        return following, target_recreated(following) if _is_unasked(reason, found) else None
    known = None if position is None else position.producer
    if known is not None and end < known.next_offset:
        return end, target_truncated(plan.target, end, known.next_offset, end)
    done = 0 if position is None else position.offset + 1
    return min(end, max(start, found.target.start, copied, done)), None


def _settled(source: TopicPartition, outcome: _Outcome) -> Start | SparkmirrorError:
    match outcome:
        case Beginning(_, at, start):
            return RetriableError(f"{source}: the target is filled from offset {at} to {start} next")
        case _Mismatch(what):
            return KafkaError(f"{REFUSED}: {what}. {_REMEDY}")
        case _:
            return outcome
