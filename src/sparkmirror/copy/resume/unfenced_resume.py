"""Continues where no attempt is recorded: what lies behind the stored position is found by content.

So it is where attempts can't be fenced, and once behind a position that an older version has written.
Sequences mean the same record to every attempt then, and a broker keeps one copy; where they would stop doing
so, the next epoch or a new producer id starts at sequence 0.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.batches.batch_copying import CopyRules
from sparkmirror.batches.producer import ProducerState
from sparkmirror.copy.copy_plan import CopyPartition, TaskPlan
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.partition_events import Diverged, ResumeReason, Start
from sparkmirror.copy.resume.read_back import Found, ReadBack
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import AuthorizationError, RetriableError, SparkmirrorError
from sparkmirror.domain.ids import UNKNOWN_LOGS, LogIdentity, TopicPartition
from sparkmirror.domain.incidents import Incident, IncidentKind, target_truncated
from sparkmirror.kafka.transactions.known_producers import unreplicated_records
from sparkmirror.storage.positions import Position

_log = logging.getLogger(__name__)

_UNEXPLAINED = "the broker refused a sequence, and nothing in the log explains why"


class UnderNewId(NamedTuple):
    """A start under a new producer id, at the target's offset `next_offset`."""

    position: int
    next_offset: int
    incident: Incident | None = None
    logs: LogIdentity = UNKNOWN_LOGS


FoundStart = Start | UnderNewId | SparkmirrorError


@dataclass(frozen=True, slots=True)
class UnfencedResume:
    """Of a plan's partitions; `rules` are their copy rules. Blocks."""

    plan: TaskPlan
    rules: Mapping[TopicPartition, CopyRules]
    cycles: CycleDetection

    @property
    def _target(self) -> ConsumerSettings:
        return ConsumerSettings(self.plan.producer.connection)

    def continued(
        self, plan: CopyPartition, position: Position, state: ProducerState, end: int
    ) -> FoundStart | Diverged:
        first = position.offset + 1
        if end == state.next_offset:
            return Start(first, state, run=position.run)
        if end < state.next_offset:
            incident = target_truncated(plan.target, end, state.next_offset, first)
            return renumbered(Start(first, state._replace(next_offset=end), incident))
        read_back = ReadBack(self.plan.consumer, self._target, self.rules, self.cycles)
        try:
            found = read_back.find(plan, first, position.logs.source_epoch, state, end)
        except AuthorizationError as error:
            text = f"records behind the stored position may come twice: {error}"
            incident = Incident(IncidentKind.NOT_READ_BACK, text)
            return renumbered(Start(first, state._replace(next_offset=end), incident))
        except SparkmirrorError as error:
            return error
        return found.diverged or self._behind(plan, state, found, end)

    def _behind(self, plan: CopyPartition, state: ProducerState, found: Found, end: int) -> FoundStart:
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
        return renumbered(start._replace(incident=Incident(IncidentKind.SOURCE_CHANGED, text)))

    def explained(self, plan: CopyPartition, reason: ResumeReason, found_start: FoundStart) -> FoundStart:
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
        return renumbered(
            found_start._replace(incident=Incident(IncidentKind.SEQUENCE_UNKNOWN, _UNEXPLAINED))
        )


def renumbered(start: Start) -> Start | UnderNewId:
    state = start.producer
    if state.producer.is_last:
        return UnderNewId(start.position, state.next_offset, start.incident, start.logs)
    return start._replace(producer=state.in_next_epoch(state.next_offset))
