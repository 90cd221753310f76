"""Finds where partitions continue whose offsets are preserved: where the target's log ends.

The claim comes first: from then on attempts before can't fill gaps, and what they had open is in the log.
See docs/design/preserved-offsets.md.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, NamedTuple

from sparkmirror.batches.agreement.equality import same_record_at
from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import CONTROL, FetchedBatch
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.dead_letters import write_dead_letters
from sparkmirror.copy.partition_events import ResumeReason, Start
from sparkmirror.copy.preserve.preserved_start import Beginning, PreservedStarts, filler_end
from sparkmirror.copy.preserve.preserved_tail import Bounds, Log, Tail, read_tails
from sparkmirror.copy.preserve.resume_decision import (
    Found,
    Known,
    is_unasked,
    is_unexplained,
    logs_read,
    mismatch,
    next_position,
    writers,
)
from sparkmirror.copy.resume.claims import claim_epochs
from sparkmirror.copy.resume.topic_lookup import read_topics
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import KafkaError, RetriableError, SparkmirrorError, StandbyError
from sparkmirror.domain.ids import Flow, TopicPartition, is_another
from sparkmirror.domain.incidents import (
    IncidentKind,
    target_recreated,
)
from sparkmirror.domain.preserving import REFUSED, waits_for_failback, waits_for_report
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.kafka.data.partition_reader import TOGETHER_MAX, SpanReader
from sparkmirror.offsets.offset_runs import Run
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.migrations import Migrations, read_migrations
from sparkmirror.storage.opposite_flow import OppositeFlow
from sparkmirror.storage.promotions import promoted

_log = logging.getLogger(__name__)

_ELSE: Final = (
    "leave it out of offsets.preserve.topics; or let it continue with other offsets: "
    "offsets.on.mismatch=continue-translated"
)
_OF_A_COPY: Final = (
    "Delete the target topic, and it is recreated with the source's offsets (sparkmirror offsets preserve "
    f"does it, and keeps groups at their places); or {_ELSE}"
)
_OF_ANOTHER: Final = (
    "This flow has not written it. If it is the original of a promoted copy, sparkmirror failback lets it "
    f"follow; else {_ELSE}"
)


_ONE_BATCH: Final = 1
"""The bytes to read for a single batch."""

_FILLED_AT_ONCE: Final = 5_000_000
"""Offsets of beginnings, which take about a second: others wait for them."""


class _Logs(NamedTuple):
    source: SpanReader
    target: SpanReader


class Translated(NamedTuple):
    """The partition continues with translated offsets: since an earlier mismatch, or since this one."""

    mismatch: str | None = None


class _Mismatch(NamedTuple):
    """Why the target's log can't get its source's offsets; `is_copy`: this flow has written it.

    `is_idle`: the source holds no record. It may become a copy of the target, by the opposite flow.
    """

    what: str
    is_copy: bool
    is_idle: bool


_Outcome = Start | Beginning | _Mismatch | SparkmirrorError


@dataclass(frozen=True, slots=True)
class PreservedEnds:
    """Finds the starts of a plan's partitions whose offsets are preserved. Blocks."""

    plan: TaskPlan
    cycles: CycleDetection
    beginnings: PreservedStarts
    sources: frozenset[TopicPartition]

    @classmethod
    def of(cls, plan: TaskPlan, cycles: CycleDetection) -> "PreservedEnds":
        sources = frozenset(each.source for each in plan.partitions if each.preserves_offsets)
        return cls(plan, cycles, PreservedStarts.of(plan), sources)

    def end(self) -> None:
        """Let what is under way return soon."""
        self.beginnings.ended.set()

    def starts(
        self, reasons: Mapping[TopicPartition, ResumeReason], *, has_others: bool
    ) -> Mapping[TopicPartition, Start | Translated | SparkmirrorError]:
        """The start of each partition, or why it can't start now.

        Where others can start (`has_others`: also outside of these), those whose beginnings take long to fill
        come with the next call. Raises KafkaError when no partition can start.
        """
        translated = self._translated(reasons)
        kept = {at: reason for at, reason in reasons.items() if at not in translated}
        outcomes = self._filled(kept, has_others=has_others or bool(translated))
        waiting = self._waiting(outcomes)
        found = {at: waiting.get(at) or self._settled(at, each) for at, each in outcomes.items()}
        skipped = (kept[at].skipped for at, each in found.items() if not isinstance(each, Translated))
        write_dead_letters(self.plan, [letter for letter in skipped if letter])
        return {**dict.fromkeys(translated, Translated()), **found}

    def promoted(self, sources: Collection[TopicPartition]) -> Mapping[TopicPartition, SparkmirrorError]:
        """Why those of them must not be written whose topic is promoted. To be asked behind the claims."""
        concerned = self.sources.intersection(sources)
        return promoted(self._migrations().promotions, concerned) if concerned else {}

    def _waiting(self, outcomes: Mapping[TopicPartition, _Outcome]) -> Mapping[TopicPartition, KafkaError]:
        """Find those whose source the opposite flow has copied from their target, or may have copied."""
        unknown = {
            at: each for at, each in outcomes.items() if isinstance(each, _Mismatch) and not each.is_copy
        }
        kept = [it for it in self.plan.partitions if it.source == it.target and it.source in unknown]
        here, there = self.plan.flow
        reported = OppositeFlow.read(there, self.plan.consumer.connection) if kept else OppositeFlow()
        found: dict[TopicPartition, KafkaError] = {}
        for each in kept:
            copies = reported.copies(each.source)
            if copies:
                found[each.source] = StandbyError(waits_for_failback(Flow(there, here)))
            elif copies is None and each.is_copied_back:
                why = f" ({reported.unread})" if reported.unread else ""
                text = f"{unknown[each.source].what}; {waits_for_report(Flow(there, here))}{why}"
                found[each.source] = RetriableError(f"{REFUSED} yet: {text}")
        return found

    @property
    def _target(self) -> ConsumerSettings:
        return ConsumerSettings(self.plan.producer.connection)

    def _translated(self, reasons: Mapping[TopicPartition, ResumeReason]) -> Collection[TopicPartition]:
        """The partitions that are translated since an earlier mismatch in the same target topic."""
        logs = {
            source: reason.position.logs
            for source, reason in reasons.items()
            if reason.position is not None and reason.position.is_translated and self._translates
        }
        if not logs:
            return ()
        targets = {each.source: each.target_topic for each in self.plan.partitions if each.source in logs}
        ids = read_metadata(self.plan.producer.connection, set(targets.values())).topic_ids
        return {
            source
            for source, topic in targets.items()
            if not is_another(logs[source].target_id, ids.get(topic, b""))
        }

    @property
    def _translates(self) -> bool:
        return self.plan.settings.preserving.continues_translated

    def _migrations(self) -> Migrations:
        """Read the migrations' records, after the claims.

        A promotion is recorded before it claims the partitions: who claims later than it sees the record.
        """
        owner = owner_of(self.plan.state.positions_topic, self.plan.connector)
        return read_migrations(self.plan.state.connection, self.plan.flow.source, owner)

    def _filled(
        self, reasons: Mapping[TopicPartition, ResumeReason], *, has_others: bool
    ) -> Mapping[TopicPartition, _Outcome]:
        """Find the outcomes, after filling beginnings that are short or beside which nothing can start."""
        plans = {plan.source: plan for plan in self.plan.partitions if plan.source in reasons}
        outcomes = self._outcomes(list(plans.values()), reasons)
        due = {source: each for source, each in outcomes.items() if isinstance(each, Beginning)}
        is_short = sum(start - at for _, at, start in due.values()) <= _FILLED_AT_ONCE
        if due and (is_short or not (has_others or len(due) < len(outcomes))):
            filled = self.beginnings.fill({plans[source].target: each for source, each in due.items()})
            ready = [plans[source] for source in due if filled[plans[source].target] is None]
            outcomes.update({at: error for at in due if (error := filled[plans[at].target]) is not None})
            outcomes.update(self._outcomes(ready, reasons))
        return outcomes

    def _outcomes(
        self, plans: Sequence[CopyPartition], reasons: Mapping[TopicPartition, ResumeReason]
    ) -> dict[TopicPartition, _Outcome]:
        outcomes: dict[TopicPartition, _Outcome] = {}
        known: list[Known] = []
        looked_up = self._look_up(plans)
        for plan in plans:
            found = looked_up[plan.source]
            if isinstance(found, SparkmirrorError):
                outcomes[plan.source] = found
            else:
                known.append(Known(plan, reasons[plan.source], found))
        with (
            closing(SpanReader(ConsumerSettings(self.plan.consumer.connection))) as source,
            closing(SpanReader(self._target)) as target,
        ):
            for begin in range(0, len(known), TOGETHER_MAX):
                some = known[begin : begin + TOGETHER_MAX]
                outcomes.update(self._read_outcomes(some, _Logs(source, target)))
        return outcomes

    def _read_outcomes(self, known: Sequence[Known], logs: _Logs) -> Mapping[TopicPartition, _Outcome]:
        """The outcomes of so many partitions that one request asks a broker about all of them."""
        ends = {each.plan.target: Log(each.found.target, writers(each.reason, each.found)) for each in known}
        tails = read_tails(self._target, logs.target, ends)
        lasts: dict[TopicPartition, int] = {}
        for each in known:
            tail = tails[each.plan.target]
            if isinstance(tail, Tail) and tail.last_record is not None:
                lasts[each.plan.source] = tail.last_record
        logs.source.expect(lasts)
        logs.target.expect(
            {each.plan.target: each.found.target.start for each in known if each.may_begin_filled}
        )
        outcomes: dict[TopicPartition, _Outcome] = {}
        for each in known:
            tail = tails[each.plan.target]
            try:
                outcomes[each.plan.source] = (
                    tail if isinstance(tail, SparkmirrorError) else self._outcome(each, tail, logs)
                )
            except SparkmirrorError as error:
                outcomes[each.plan.source] = error
        return outcomes

    def _look_up(self, plans: Sequence[CopyPartition]) -> Mapping[TopicPartition, Found | SparkmirrorError]:
        """Claim the partitions, then read where both logs start and end. Raises KafkaError."""
        if not plans:
            return {}
        sources, targets = [plan.source for plan in plans], [plan.target for plan in plans]
        target, topics = self._target, read_topics(self.plan, plans)
        claims = claim_epochs(self.plan, sources)
        migrations = self._migrations()
        refusals = promoted(migrations.promotions, sources)
        self.cycles.record(claim.id for claim in claims.values() if isinstance(claim, ProducerId))
        uncommitted = ConsumerSettings(self.plan.consumer.connection)
        bounds = [
            list_offsets(uncommitted, sources, EARLIEST, topics.source),
            list_offsets(uncommitted, sources, LATEST, topics.source),
            list_offsets(target, targets, EARLIEST, topics.target),
            list_offsets(target, targets, LATEST, topics.target),
        ]
        found: dict[TopicPartition, Found | SparkmirrorError] = {}
        for plan in plans:
            claim = claims[plan.source]
            offsets = [each[plan.source if at < 2 else plan.target] for at, each in enumerate(bounds)]
            results = (refusals.get(plan.source), claim, *offsets)
            error = next((each for each in results if isinstance(each, SparkmirrorError)), None)
            logs = topics.logs[plan.source]
            if error is not None:
                found[plan.source] = error
            else:
                start, end, target_start, target_end = (int(each) for each in offsets)  # type: ignore[arg-type]  # no error is among them
                assert isinstance(claim, ProducerId)
                failback = migrations.failbacks.get(plan.source.topic)
                found[plan.source] = Found(
                    claim,
                    Bounds(start, end),
                    Bounds(target_start, target_end),
                    logs,
                    0 if failback is None else failback.accepted(plan.source.partition, logs),
                    keeps_all=migrations.keeps_all(plan.source.topic, logs),
                    deleted_ids=migrations.deleted_ids(plan.source.topic),
                )
        return found

    def _outcome(self, known: Known, tail: Tail, logs: _Logs) -> _Outcome:
        plan, reason, found = known
        what = mismatch(known, tail)
        if what is None and tail.last is not None and not self._has_same_record(logs.source, plan, tail.last):
            what = f"it has another record at offset {tail.last_record} than its source"
        if what is not None:
            is_idle = found.source.start == found.source.end
            return _Mismatch(f"{plan.target}: {what}", reason.position is not None, is_idle)
        end, start = found.target.end, found.source.start
        refusal = target_recreated(max(start, end)).refusal(self.plan.settings.reactions)
        if refusal is not None and is_unasked(reason, found):
            return KafkaError(f"{plan.source}: {refusal}")
        if tail.is_filler and end < start:
            return Beginning(found.claimed.id, end, start)
        log_start = self._hide_filler(known, logs)
        if isinstance(log_start, SparkmirrorError):
            return log_start
        started = self._start(plan, reason, found, tail)
        if not isinstance(started, Start):
            return started
        run = Run(log_start, log_start, end - log_start) if log_start < end else None
        return started._replace(log_start=log_start, run=run)

    def _start(
        self, plan: CopyPartition, reason: ResumeReason, found: Found, tail: Tail
    ) -> Start | SparkmirrorError:
        writer = tail.state.producer
        if writer.id == found.claimed.id and writer.epoch > found.claimed.epoch:
            return RetriableError(f"{plan.source}: its producer epoch is in use; claiming the next")
        if is_unexplained(reason, tail):
            return RetriableError(f"{plan.target}: a sequence was refused, and its log does not show yet why")
        position, incident = next_position(plan, reason, found, tail)
        if incident is not None and incident.kind is IncidentKind.RECORDS_LOST:
            refusal = incident.refusal(self.plan.settings.reactions)
            if refusal is not None:
                return KafkaError(f"{plan.source}: {refusal}")
            _log.warning("%s: %s", plan.source, incident.text)
        return Start(
            position,
            tail.state,
            () if incident is None else (incident,),
            logs_read(reason, found),
            claimed=found.claimed,
            keeps_all=found.keeps_all,
        )

    def _hide_filler(self, known: Known, logs: _Logs) -> int | SparkmirrorError:
        """Return the log's start, moved behind filler, which comes back where a broker was killed."""
        target, bounds = known.plan.target, known.found.target
        if not known.may_begin_filled:
            return bounds.start
        end = filler_end(logs.target, target, bounds)
        if end == bounds.start:
            return end
        return self.beginnings.move({target: end})[target] or end

    def _settled(self, source: TopicPartition, outcome: _Outcome) -> Start | Translated | SparkmirrorError:
        match outcome:
            case Beginning(_, at, start):
                return RetriableError(f"{source}: the target is filled from offset {at} to {start} next")
            case _Mismatch(what, is_copy=False, is_idle=True):
                return RetriableError(f"{REFUSED} yet: {what}, and {source} holds no record")
            case _Mismatch(what) if self._translates:
                return Translated(what)
            case _Mismatch(what, is_copy):
                return KafkaError(f"{REFUSED}: {what}. {_OF_A_COPY if is_copy else _OF_ANOTHER}")
            case _:
                return outcome

    def _has_same_record(self, source: SpanReader, plan: CopyPartition, copied: FetchedBatch) -> bool:
        """Whether the last record of this batch of the target is the source's record at its offset.

        False if the source has a marker there; True where the source has lost the record, and for any record
        where transforms change them. Raises KafkaError.
        """
        offset = copied.header.last_offset
        batch = next(source.read(plan.source, offset, offset + 1, _ONE_BATCH), None)
        if batch is None:
            return True
        if batch.header.attributes & CONTROL:
            return False
        return plan.transforms is not None or same_record_at(
            offset, batch, copied, timestamps=not plan.target_stamps_append_time
        )
