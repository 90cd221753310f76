"""Claims partitions for an attempt: after that nothing of an earlier attempt is added to their logs any more.

In this order: an epoch is claimed of the partition's transactional id, the claim is recorded, all records
are read; where an earlier attempt may still write, a marker of the epoch is written into the target's log;
when the marker is replicated, the records are read again. So of two attempts that start at once the older
one sees the newer one's claim, or the newer one fences the older.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import CONTROL, iterate_batches
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import (
    AuthorizationError,
    RetriableError,
    SparkmirrorError,
    UnsupportedVersionError,
)
from sparkmirror.domain.ids import LogIdentity, TopicPartition
from sparkmirror.kafka.data.partition_offsets import LATEST, list_offsets
from sparkmirror.kafka.data.partition_reader import PartitionReader
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.transactions.fencing import Claim, Fencing
from sparkmirror.kafka.wire.fetch import FetchedPartition
from sparkmirror.offsets.sequence_ends import SequenceEnd
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.storage.attempts import (
    Attempt,
    AttemptLog,
    Stage,
    attempt_record,
    fencing_id,
    owner_of,
)

_log = logging.getLogger(__name__)

RENEWAL_S: Final = 6 * 3600.0
"""Attempts last no longer. A coordinator forgets an id that claims nothing for 7 days by default
(`transactional.id.expiration.ms`): the next attempt would get another producer id, which fences nothing."""
_MARKER_TIMEOUT_S: Final = 30.0
_MARKER_WAIT_S: Final = 0.1
_OTHER_ID_WAIT_S: Final = 30.0
"""A request of an attempt under another producer id, which no marker fences, may take this long to arrive."""


class Unfenced(NamedTuple):
    """Why a partition can't be claimed, and attempts of it may overlap."""

    reason: SparkmirrorError


@dataclass(frozen=True, slots=True)
class Claimed:
    """`own` is the attempt that may begin; `last` is the one that began last before it, if one did.

    `over` are those that are over: their records may be deleted when `own` has begun. `marker` is the target
    offset of the own marker; None where none was needed, or it may not be read.
    """

    own: Attempt
    last: Attempt | None
    over: Sequence[Attempt]
    marker: int | None = None

    def begin(self, position: int, target_offset: int, logs: LogIdentity, positions_id: bytes) -> Attempt:
        """The own attempt from this upstream offset on, which follows what was read in the leader epoch."""
        ends = (SequenceEnd(0, position, logs.source_epoch),)
        logs = logs._replace(source_epoch=-1)
        begun = replace(self.own, stage=Stage.OPEN, target_offset=target_offset, ends=ends, logs=logs)
        return replace(begun, positions_id=positions_id)


_Claims = dict[TopicPartition, Claimed | Unfenced | SparkmirrorError]


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims partitions, and records that in `topic`. Blocks."""

    plan: TaskPlan
    topic: str
    cycles: CycleDetection

    @classmethod
    def of(cls, plan: TaskPlan, cycles: CycleDetection) -> "Claims | None":
        """Make the claims of a plan; None where attempts are not recorded."""
        topic = plan.state.attempts_topic
        return None if topic is None else cls(plan, topic, cycles)

    def unchanged(self, claims: Mapping[TopicPartition, Claimed]) -> Mapping[TopicPartition, Claimed]:
        """Return those claims that are the newest still. Reads only. Raises KafkaError."""
        if not claims:
            return {}
        with closing(AttemptLog(self.plan.state.connection, self.topic, self.owner)) as log:
            known = log.read(claims)
        found: dict[TopicPartition, Claimed] = {}
        for source, claim in claims.items():
            newest = known[source][-1:]
            again = _claimed(source, claim.own, known[source], claim.marker)
            if isinstance(again, Claimed) and newest and newest[0].producer == claim.own.producer:
                found[source] = again
        return found

    def claim(
        self, plans: Sequence[CopyPartition], settled: Mapping[TopicPartition, ProducerId]
    ) -> Mapping[TopicPartition, Claimed | Unfenced | SparkmirrorError]:
        """Claim each source partition; returns its claim, or why it has none now.

        `settled` are this task's own attempts that have nothing unanswered and send nothing more. Raises
        KafkaError when nothing can be claimed now.
        """
        found: _Claims = {}
        try:
            with closing(AttemptLog(self.plan.state.connection, self.topic, self.owner)) as log:
                known = log.read(plan.source for plan in plans)
                own = self._claim(plans, known, found)
                # Before a marker: a flow back would take its producer for a stranger for good.
                self.cycles.record(attempt.producer.id for attempt in own.values())
                self.write([attempt_record(self.owner, source, attempt) for source, attempt in own.items()])
                self._check([plan for plan in plans if plan.source in own], own, settled, found, log)
        except (AuthorizationError, UnsupportedVersionError) as error:
            return {plan.source: Unfenced(error) for plan in plans}
        return found

    @property
    def owner(self) -> str:
        return _owner(self.plan)

    def write(self, records: Sequence[LogRecord]) -> None:
        """Raises KafkaError."""
        if records:
            with closing(TopicWriter(self.plan.state.connection)) as writer:
                writer.write(self.topic, records)

    def _transactional_id(self, source: TopicPartition) -> str:
        return transactional_id_of(self.plan, source)

    def _claim(
        self,
        plans: Sequence[CopyPartition],
        known: Mapping[TopicPartition, list[Attempt]],
        found: _Claims,
    ) -> Mapping[TopicPartition, Attempt]:
        own: dict[TopicPartition, Attempt] = {}
        claimed = claim_epochs(self.plan, [plan.source for plan in plans])
        for plan in plans:
            producer = claimed[plan.source]
            if isinstance(producer, ProducerId):
                own[plan.source] = Attempt(producer, _generation(producer, known[plan.source]))
            elif isinstance(producer, AuthorizationError | UnsupportedVersionError):
                found[plan.source] = Unfenced(producer)
            else:
                found[plan.source] = producer
        return own

    def _check(
        self,
        plans: Sequence[CopyPartition],
        own: Mapping[TopicPartition, Attempt],
        settled: Mapping[TopicPartition, ProducerId],
        found: _Claims,
        log: AttemptLog,
    ) -> None:
        """Fence earlier attempts that may write, and give way to later ones."""
        known = log.read(own)
        open_ones = {
            plan.source: [
                attempt
                for attempt in _before(own[plan.source], known[plan.source])
                if attempt.may_write and attempt.producer != settled.get(plan.source)
            ]
            for plan in plans
        }
        fenced = [plan for plan in plans if open_ones[plan.source]]
        markers: dict[TopicPartition, int | None] = {}
        if fenced:
            self._await_others(fenced, own, open_ones)
            for source, marker in self._mark(fenced, own).items():
                if isinstance(marker, SparkmirrorError):
                    found[source] = marker
                else:
                    markers[source] = marker
            known = log.read(own)
        for source in own:
            found.setdefault(source, _claimed(source, own[source], known[source], markers.get(source)))

    def _await_others(
        self,
        plans: Sequence[CopyPartition],
        own: Mapping[TopicPartition, Attempt],
        open_ones: Mapping[TopicPartition, Sequence[Attempt]],
    ) -> None:
        """A marker fences one producer id: of another, what is on its way must have arrived."""
        others = [
            plan.source
            for plan in plans
            if any(attempt.producer.id != own[plan.source].producer.id for attempt in open_ones[plan.source])
        ]
        if others:
            _log.warning(
                "%d partitions had another producer id in their previous attempt, which can't be fenced: "
                "waiting %.0f s for its last writes, first %s",
                len(others),
                _OTHER_ID_WAIT_S,
                others[0],
            )
            network_of(self.plan.producer.connection).sleep(_OTHER_ID_WAIT_S)

    def _mark(
        self, plans: Sequence[CopyPartition], own: Mapping[TopicPartition, Attempt]
    ) -> Mapping[TopicPartition, int | SparkmirrorError | None]:
        """Write the markers and wait until they are replicated: their offsets, None if they can't be read."""
        target = ConsumerSettings(self.plan.producer.connection)
        ends = list_offsets(target, [plan.target for plan in plans], LATEST)
        found: dict[TopicPartition, int | SparkmirrorError | None] = {}
        marked: list[CopyPartition] = []
        for plan in plans:
            end = ends[plan.target]
            if isinstance(end, SparkmirrorError):
                found[plan.source] = end
            else:
                marked.append(plan)
        with closing(Fencing(self.plan.producer.connection)) as fencing:
            outcomes = fencing.mark(
                {
                    self._transactional_id(plan.source): Claim(own[plan.source].producer, plan.target)
                    for plan in marked
                }
            )
        pending: dict[TopicPartition, tuple[int, ProducerId]] = {}
        for plan in marked:
            error = found[plan.source] = outcomes[self._transactional_id(plan.source)]
            end = ends[plan.target]
            if error is None and isinstance(end, int):
                pending[plan.target] = end, own[plan.source].producer
        awaited = set(pending)
        try:
            markers = self._await_markers(target, pending)
        except AuthorizationError:
            return found  # the fence holds all the same; the look-up says which right is missing
        for plan in marked:
            if plan.target in markers:
                found[plan.source] = markers[plan.target]
            elif plan.target in awaited:
                text = "the fence of earlier attempts is not replicated: waiting for the followers"
                found[plan.source] = RetriableError(f"{plan.target}: {text}")
        return found

    def _await_markers(
        self, target: ConsumerSettings, pending: dict[TopicPartition, tuple[int, ProducerId]]
    ) -> Mapping[TopicPartition, int]:
        """Read on from these offsets until the markers appear. Return the offsets of those that did."""
        network = network_of(target.connection)
        deadline = network.time() + _MARKER_TIMEOUT_S
        markers: dict[TopicPartition, int] = {}
        with closing(PartitionReader(target)) as reader:
            while pending and network.time() < deadline:
                offsets = {partition: offset for partition, (offset, _) in pending.items()}
                for fetched in reader.fetch(offsets, _MARKER_WAIT_S):
                    offset, producer = pending.pop(fetched.partition)
                    if fetched.error:
                        continue  # the log was replaced or shortened meanwhile, perhaps the marker with it
                    following, is_there = _read_on(fetched, producer, offset)
                    if is_there:
                        markers[fetched.partition] = following
                    else:
                        pending[fetched.partition] = following, producer
        return markers


def claim_epochs(
    plan: TaskPlan, sources: Collection[TopicPartition]
) -> Mapping[TopicPartition, ProducerId | SparkmirrorError]:
    """Claim an epoch for each source partition, above all before it. Blocks. Raises KafkaError."""
    ids = {source: transactional_id_of(plan, source) for source in sources}
    with closing(Fencing(plan.producer.connection)) as fencing:
        claimed = fencing.claim(list(ids.values()))
    return {source: claimed[each] for source, each in ids.items()}


def transactional_id_of(plan: TaskPlan, source: TopicPartition) -> str:
    return fencing_id(_owner(plan), plan.flow.source, source)


def _owner(plan: TaskPlan) -> str:
    return owner_of(plan.state.positions_topic, plan.connector)


def _read_on(fetched: FetchedPartition, producer: ProducerId, offset: int) -> tuple[int, bool]:
    """The offset of the producer's marker, and True; or the offset to read on from, and False."""
    for batch in iterate_batches(fetched.records):
        if producer.wrote(batch.header) and batch.header.attributes & CONTROL:
            return batch.header.base_offset, True
        offset = max(offset, batch.header.last_offset + 1)
    return offset, False


def _generation(producer: ProducerId, known: Sequence[Attempt]) -> int:
    if not known:
        return 0
    return known[-1].generation + (known[-1].producer.id != producer.id)


def _before(own: Attempt, known: Sequence[Attempt]) -> list[Attempt]:
    return [attempt for attempt in known if attempt.order < own.order]


def _claimed(
    source: TopicPartition, own: Attempt, known: Sequence[Attempt], marker: int | None
) -> Claimed | SparkmirrorError:
    if known[-1:] and known[-1].order > own.order:
        return RetriableError(f"{source}: another task has claimed it meanwhile; retrying")
    before = _before(own, known)
    last = next((attempt for attempt in reversed(before) if attempt.ends), None)
    return Claimed(own, last, before, marker)
