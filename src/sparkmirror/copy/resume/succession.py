"""Lets an attempt succeed the one before it: claims partitions, continues where it ended, records itself.

An attempt continues without a new claim as long as nothing that it has sent is unanswered.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.partition_events import ResumeReason, Start
from sparkmirror.copy.resume.claims import RENEWAL_S, Claimed, Claims, Unfenced
from sparkmirror.copy.resume.last_copied import LastCopied, LogEnd, TargetLogs, known_end, last_copied
from sparkmirror.copy.resume.topic_lookup import Topics, positions_id
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import AuthorizationError, RetriableError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition, is_another
from sparkmirror.domain.incidents import (
    LASTING,
    Incident,
    IncidentKind,
    OnNewerPosition,
    records_repeated,
    target_truncated,
    unfenced,
)
from sparkmirror.kafka.net.metadata import Metadata
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.offsets.offset_runs import Run
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.storage.attempts import Attempt, Stage, attempt_record, deletion_record, missing_topic
from sparkmirror.storage.positions import Position, read_stored_positions

_log = logging.getLogger(__name__)

_EXPIRED: Final = (
    "records behind the stored position may come twice: the target's log no longer reaches back to it, "
    "and what is left of the attempt before does not tell what was there"
)

NOT_WANTED: Final = SparkmirrorError("enable.idempotence is false")

ClaimResults = Mapping[TopicPartition, Claimed | Unfenced | SparkmirrorError]


class Found(NamedTuple):
    """The place where a partition continues: `position` is upstream, the target's log ends at `next_offset`.

    What was read before is of the leader epoch `source_epoch`, -1 if unknown. `run` has the last records that
    are copied, if their places are known.
    """

    position: int
    next_offset: int
    incident: Incident | None = None
    source_epoch: int = -1
    run: Run | None = None


@dataclass(frozen=True, slots=True)
class Succession:
    """Lets attempts of a plan's partitions succeed others. Blocks.

    `claims` is None where attempts can't be recorded.
    """

    plan: TaskPlan
    claims: Claims | None
    _reported: set[tuple[TopicPartition, IncidentKind]] = field(default_factory=set)
    """The incidents that last, and were reported."""
    _waiting: dict[TopicPartition, tuple[Claimed, float]] = field(default_factory=dict)
    """The claims of partitions that could not start, and when they were made: retries write nothing."""

    def claim(
        self, plans: Sequence[CopyPartition], reasons: Mapping[TopicPartition, ResumeReason]
    ) -> ClaimResults:
        """The claims of those partitions that need one. Raises KafkaError when nothing can be claimed now."""
        wanted = [plan for plan in plans if self._is_needed(reasons[plan.source])]
        if self.claims is None or not self.plan.producer.idempotent:
            missing = missing_topic(self.plan.flow.source, self.plan.state.connection)
            why = missing if self.plan.producer.idempotent else NOT_WANTED
            return dict.fromkeys((plan.source for plan in wanted), Unfenced(why))
        if self.plan.transaction is not None:
            return self._claim_epochs(self.claims, wanted, reasons)
        kept = self.claims.unchanged(self._kept(wanted, reasons))
        claims = self._claim_epochs(
            self.claims, [plan for plan in wanted if plan.source not in kept], reasons
        )
        now = network_of(self.plan.producer.connection).time()
        new = {source: (claim, now) for source, claim in claims.items() if isinstance(claim, Claimed)}
        self._waiting.update(new)
        return {**claims, **kept}

    def renounce(self, source: TopicPartition) -> None:
        """Use the claim of a partition that could not start no more."""
        self._waiting.pop(source, None)

    def _kept(
        self, wanted: Sequence[CopyPartition], reasons: Mapping[TopicPartition, ResumeReason]
    ) -> Mapping[TopicPartition, Claimed]:
        """Return the claims that may be used again: coordinators forget old transactional ids."""
        oldest = network_of(self.plan.producer.connection).time() - RENEWAL_S
        return {
            plan.source: claim
            for plan in wanted
            if (known := self._waiting.get(plan.source)) is not None
            for claim, claimed_at in [known]
            if claimed_at >= oldest and not reasons[plan.source].renews
        }

    def _claim_epochs(
        self,
        claims: Claims,
        wanted: Sequence[CopyPartition],
        reasons: Mapping[TopicPartition, ResumeReason],
    ) -> ClaimResults:
        settled = {source: own for source, reason in reasons.items() if (own := _settled(reason))}
        return claims.claim(wanted, settled) if wanted else {}

    def read_again(
        self, reasons: Mapping[TopicPartition, ResumeReason], claims: ClaimResults, topics: Topics
    ) -> Mapping[TopicPartition, ResumeReason]:
        """The reasons of those where another attempt may have been newer, with the positions since the claim.

        Whatever this task has met before counts no more then. Where positions are lost with their topic, the
        attempts before say where they ended. Raises KafkaError.
        """
        doubtful = [
            source
            for source, reason in reasons.items()
            if isinstance(claim := claims.get(source), Claimed)
            and claim.last is not None
            and not _is_newest(reason, claim.last)
        ]
        if not doubtful:
            return {}
        plan = self.plan
        stored = read_stored_positions(
            plan.state.connection, plan.state.positions_topic, plan.connector, plan.flow.source, doubtful
        )
        found = {source: _newest(stored.of.get(source), claims[source]) for source in doubtful}
        lost = self._lost(
            [at for at in doubtful if found[at] is None and at not in stored.reset], claims, topics
        )
        return {source: ResumeReason(lost.get(source, found[source]), is_stored=True) for source in doubtful}

    def _lost(
        self, sources: Iterable[TopicPartition], claims: ClaimResults, topics: Topics
    ) -> Mapping[TopicPartition, Position]:
        """The ends of attempts whose positions were in a topic that was created again since.

        Raises RetriableError if that happened since `topics` were read.
        """
        before = {
            source: claim.last
            for source in sources
            if isinstance(claim := claims[source], Claimed) and claim.last is not None
        }
        if not before or self.plan.settings.reactions.on_newer_position is OnNewerPosition.REPEAT:
            return {}
        topic = self.plan.state.positions_topic
        if positions_id(self.plan) != topics.positions_id:
            raise RetriableError(f"{topic} was created again while it was read; retrying")
        found = {
            source: _end_of(last)
            for source, last in before.items()
            if is_another(last.positions_id, topics.positions_id)
            and topics.logs[source].are_known_as(last.logs)
        }
        if found:
            _log.warning(
                "the positions of %d partitions are lost with %s: continuing where the attempts before ended",
                len(found),
                topic,
            )
        return found

    def states(
        self, reasons: Mapping[TopicPartition, ResumeReason], claims: ClaimResults
    ) -> Mapping[TopicPartition, ProducerState]:
        """The producer states of attempts that begin or continue."""
        if self.plan.transaction is not None:
            return {}
        found: dict[TopicPartition, ProducerState] = {}
        for source, reason in reasons.items():
            claim = claims.get(source)
            if isinstance(claim, Claimed):
                found[source] = ProducerState(claim.own.producer, 0, 0)
            elif reason.is_settled and reason.position is not None and reason.position.producer is not None:
                found[source] = reason.position.producer
        return found

    def logs(
        self,
        reasons: Mapping[TopicPartition, ResumeReason],
        claims: ClaimResults,
        ends: Mapping[TopicPartition, int | SparkmirrorError],
        metadata: Metadata,
    ) -> TargetLogs:
        """The target's logs, which have these `ends`, where attempts before may have to be looked up.

        What they have written is behind what is known of it, and before the own marker.
        """
        expected = {
            plan.target: min(
                known_end(claim.last, reasons[plan.source].position).target_offset,
                end if claim.marker is None else claim.marker,
            )
            for plan in self.plan.partitions
            if isinstance(claim := claims.get(plan.source), Claimed)
            and claim.last is not None
            and claim.last.may_write
            and isinstance(end := ends[plan.target], int)
        }
        return TargetLogs(ConsumerSettings(self.plan.producer.connection), expected, metadata)

    def behind(
        self, plan: CopyPartition, position: Position, last: Attempt, log: LogEnd, logs: TargetLogs
    ) -> Found | SparkmirrorError:
        """Find where the partition continues behind what the attempt before has written."""
        end = log.offset
        try:
            found = last_copied(logs, plan.target, last, position, log)
        except AuthorizationError as error:
            text = f"records behind the stored position may come twice: {error}"
            return Found(
                known_end(last, position).end.offset, end, Incident(IncidentKind.NOT_READ_BACK, text)
            )
        except SparkmirrorError as error:
            return error
        following = found.end.offset
        incident: Incident | None = None
        if found.acknowledged is not None:
            incident = target_truncated(plan.target, min(end, log.fenced), found.acknowledged, following)
        elif found.is_uncertain:
            incident = Incident(IncidentKind.NOT_READ_BACK, _EXPIRED)
        elif found.repeated is not None:
            incident = records_repeated(plan.target, *found.repeated)
        elif found.records:
            _log.info(
                "%s: %d records behind the stored position are there already; continuing from offset %d",
                plan.target,
                found.records,
                following,
            )
        return Found(
            following, end, incident, found.end.epoch, None if incident else _last_run(found, position)
        )

    def record(
        self,
        starts: dict[TopicPartition, Start | SparkmirrorError],
        claims: ClaimResults,
        positions_id: bytes,
    ) -> None:
        """Record the attempts that begin, before their first batch and position; what is over is deleted.

        Raises KafkaError.
        """
        if self.plan.transaction is not None:
            return
        self._note_lasting(starts, claims)
        if self.claims is None:
            return
        records: list[LogRecord] = []
        over: list[LogRecord] = []
        for source, start in starts.items():
            claim = claims.get(source)
            if not isinstance(start, Start) or not isinstance(claim, Claimed):
                continue
            self.renounce(source)
            attempt = claim.begin(start.position, start.producer.next_offset, start.logs, positions_id)
            starts[source] = start._replace(attempt=attempt, marker=claim.marker)
            records.append(attempt_record(self.claims.owner, source, attempt))
            over += [deletion_record(self.claims.owner, source, each.producer) for each in claim.over]
        self.claims.write(records)
        self.claims.write(over)

    def _note_lasting(
        self, starts: dict[TopicPartition, Start | SparkmirrorError], claims: ClaimResults
    ) -> None:
        """Say once of each partition that it is copied at least once, and why."""
        noted: Counter[str] = Counter()
        for source, start in starts.items():
            if not isinstance(start, Start):
                continue
            claim = claims.get(source)
            every = start.incidents
            if isinstance(claim, Unfenced):
                every = (*every, unfenced(claim.reason))
            new = tuple(it for it in every if (source, it.kind) not in self._reported)
            lasting = [it for it in new if it.kind in LASTING]
            self._reported.update((source, it.kind) for it in lasting)
            noted.update(it.text for it in lasting)
            starts[source] = start._replace(incidents=new)
        for text, count in noted.items():
            _log.warning("%d partitions: %s", count, text)

    def _is_needed(self, reason: ResumeReason) -> bool:
        """Whether a claim is needed: in transactions only to fence an attempt without them."""
        if self.plan.transaction is not None:
            return reason.position is not None and reason.position.producer is not None
        return reason.renews or not reason.is_settled


def _last_run(found: LastCopied, position: Position) -> Run | None:
    """The run that ends with the last copied record: the stored one may reach further back."""
    stored, run = position.run, found.run
    if stored is None or found.records is None:
        return run
    if run is None:
        return stored if found.records == 0 else None
    return stored.united(run) if stored.touches(run) else run


def newest_word(position: Position | None, claim: Claimed | Unfenced | None) -> Attempt | None:
    """The attempt before, if it says where the partition is.

    Java, transactions, a reset, and versions that recorded no attempts leave a position that is newer.
    """
    if not isinstance(claim, Claimed) or position is None or position.producer is None:
        return None
    writer, last = position.producer.producer, claim.last
    known = any(attempt.producer.id == writer.id for attempt in claim.over)
    is_newer = last is not None and last.producer.id == writer.id and last.producer.epoch < writer.epoch
    return last if known and not is_newer else None


def _newest(position: Position | None, claim: Claimed | Unfenced | SparkmirrorError) -> Position | None:
    """The stored position, unless an older attempt has stored it: then what the one before says of itself.

    What an older attempt knew of the topics may be about others.
    """
    last = None if isinstance(claim, SparkmirrorError) else newest_word(position, claim)
    if last is None or position is None or position.producer is None:
        return position
    if position.producer.producer == last.producer:
        return position
    return _end_of(last)


def _end_of(attempt: Attempt) -> Position:
    """The position that the attempt's record tells."""
    end, target_offset = known_end(attempt, None)
    state = ProducerState(attempt.producer, end.sequence, target_offset)
    return Position(end.offset - 1, state, attempt.logs._replace(source_epoch=end.epoch))


def is_used(position: Position | None, claim: Claimed | Unfenced | None) -> bool:
    """Whether the claimed epoch, or a later one, was written with before.

    Versions that claim nothing continue under the stored id, and take its next epoch where they need one.
    """
    if not isinstance(claim, Claimed) or position is None or position.producer is None:
        return False
    writer, own = position.producer.producer, claim.own.producer
    return writer.id == own.id and writer.epoch >= own.epoch


def is_overtaken(claim: Claimed | Unfenced | None, end: int) -> bool:
    """Whether the target's log, which ends there, has lost the own marker."""
    return isinstance(claim, Claimed) and claim.marker is not None and end <= claim.marker


def _is_newest(reason: ResumeReason, last: Attempt) -> bool:
    """Whether no other attempt can have stored a position that is newer than the one that is known."""
    position = reason.position
    if position is None or position.producer is None or position.producer.producer != last.producer:
        return False
    is_its_end = last.stage is Stage.CLOSED and position.offset + 1 == last.ends[-1].offset
    return is_its_end or not reason.is_stored


def _settled(reason: ResumeReason) -> ProducerId | None:
    if not reason.is_settled or reason.position is None or reason.position.producer is None:
        return None
    return reason.position.producer.producer
