"""Fills gaps of logs with control markers, which take one offset each and which no consumer returns.

An attempt's first one is an empty transaction of the partition's transactional id, which the coordinator
refuses once the epoch was claimed over. From that marker on the leader refuses those of attempts before. So
the next ones are written directly, where the right is there: no coordinator repeats them. The last
few of a long gap are left at first, so that markers of the next attempt have room beside what is under way; a
short one is filled at once, when the coordinator has said that nobody has claimed since. See
docs/design/preserved-offsets.md.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Final, NamedTuple

from sparkmirror.batches.producer import ProducerId
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import (
    AuthorizationError,
    FencedError,
    RetriableError,
    SparkmirrorError,
    UnsupportedVersionError,
)
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.data.partition_offsets import LATEST, offsets_by
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.transactions.bulk_markers import Bulk, coordinator_epoch, write_markers
from sparkmirror.kafka.transactions.fencing import Claim, Fencing
from sparkmirror.kafka.wire.error_codes import INVALID_PRODUCER_EPOCH

_log = logging.getLogger(__name__)

_SHOWN_TIMEOUT_S: Final = 30.0
"""`replica.lag.time.max.ms`: brokers wait so long for slow followers."""
_POLLS_S: Final = (0.002, 0.002, 0.005, 0.01, 0.02, 0.05)

MARKERS_PER_ROUND: Final = 100
"""Other partitions' gaps must not wait long for a long one."""
_BULK_FROM: Final = 50
_BULK_PER_ROUND: Final = 10_000
_LEFT_FOR_OTHERS: Final = 4
"""An attempt that comes next may add a marker or two while bulk is on its way."""
_IDLE_S: Final = 60.0
"""Older connections may be closed: what is sent once only is not sent through these."""
_STILL_S: Final = 0.1
"""Direct markers of an attempt before, on their way when the id was claimed, are in the log by then."""


class Gap(NamedTuple):
    """The log ended at `begin` when it was last known, and must end at `end`."""

    transactional_id: str
    producer: ProducerId
    partition: TopicPartition
    begin: int
    end: int
    is_fenced: bool = True
    """Whether a marker of this epoch is in the log."""


class WrongEndError(SparkmirrorError):
    """The log does not end in the gap: it has lost records, or another producer writes to it."""

    def __init__(self, gap: Gap, seen: int) -> None:
        self.seen = seen
        self.expected = gap.begin if seen < gap.begin else gap.end
        super().__init__(f"{gap.partition} ends at {seen}, expected is {self.expected}")


class ControlMarkers:
    """Fills gaps with markers, blocking. Not thread-safe; the owner closes it."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._network = network_of(settings)
        self._target = ConsumerSettings(settings)
        self._fencing = Fencing(settings)
        self._cluster = Cluster(settings)
        self._epochs: dict[TopicPartition, tuple[ProducerId, int]] = {}
        """The coordinators' epochs, where a marker of that producer is in the log."""
        self._writes_directly = True
        """Until that is refused."""
        self._sees_owners = True
        """Until a broker is too old for it."""
        self._used_at = 0.0

    def fill(self, gaps: Sequence[Gap]) -> Mapping[TopicPartition, int | SparkmirrorError]:
        """Fill gaps; return each log's replicated end afterwards: the gap's end, or nearer to it.

        Nothing of the gaps' owner may be unanswered. After an error the id must be claimed again: it is
        unknown whether a marker is still added. Raises RetriableError when no broker responds.
        """
        results: dict[TopicPartition, int | SparkmirrorError] = {}
        ends = self._ends(gaps, results)
        bulks = self._bulks([gap for gap in gaps if gap.partition in ends], ends, results)
        if bulks:
            results.update(self._fill_directly(bulks, ends))
        singly = [gap for gap in gaps if gap.partition not in results]
        results.update(self._fill_singly(singly, ends))
        return {gap.partition: _checked(gap, results[gap.partition]) for gap in gaps}

    def _ends(
        self, gaps: Sequence[Gap], results: dict[TopicPartition, int | SparkmirrorError]
    ) -> Mapping[TopicPartition, int]:
        """Return the ends of the logs that end in the gap; others become errors in the results."""
        # Where an own marker is in the log nobody else can have added anything, or our next one is refused.
        ends = {gap.partition: gap.begin for gap in gaps if gap.is_fenced}
        by_partition = {gap.partition: gap for gap in gaps if not gap.is_fenced}
        if by_partition and self._writes_directly:
            self._network.sleep(_STILL_S)
        found = offsets_by(self._cluster, self._target, by_partition, LATEST, unreplicated=True)
        for partition, end in found.items():
            gap = by_partition[partition]
            if isinstance(end, SparkmirrorError):
                results[partition] = end
            elif not gap.begin <= end <= gap.end:
                results[partition] = WrongEndError(gap, end)
            elif end == gap.end:
                results[partition] = RetriableError(f"{partition}: another attempt has filled its gap")
            else:
                ends[partition] = end
        return ends

    # one by one

    def _fill_singly(
        self, gaps: Sequence[Gap], ends: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | SparkmirrorError]:
        counts = {gap.partition: self._count(gap, ends) for gap in gaps}
        failed: dict[TopicPartition, SparkmirrorError] = {}
        for number in count(1):
            due = [gap for gap in gaps if counts[gap.partition] >= number and gap.partition not in failed]
            if not due:
                break
            failed.update({at: error for at, error in self._mark(due).items() if error is not None})
        wanted = {at: ends[at] + more for at, more in counts.items() if at not in failed}
        results = {**failed, **self._await_ends(wanted)}
        for gap in gaps:
            if self._writes_directly and isinstance(results[gap.partition], int):
                self._learn_epoch(gap, ends[gap.partition])
        return results

    def _count(self, gap: Gap, ends: Mapping[TopicPartition, int]) -> int:
        """Return the number of markers to write before the end is read again: batches may be in flight."""
        left = gap.end - ends[gap.partition]
        first_only = not gap.is_fenced or self._writes_directly
        return min(left, 1 if first_only else MARKERS_PER_ROUND)

    def _mark(self, gaps: Sequence[Gap]) -> Mapping[TopicPartition, SparkmirrorError | None]:
        claims = {gap.transactional_id: Claim(gap.producer, gap.partition) for gap in gaps}
        outcomes = self._fencing.mark(claims)
        return {claim.partition: outcomes[each] for each, claim in claims.items()}

    def _learn_epoch(self, gap: Gap, offset: int) -> None:
        """Learn the coordinator epoch from our own marker there."""
        with suppress(SparkmirrorError):  # it is read again behind the next one
            found = coordinator_epoch(self._settings, gap.partition, gap.producer, offset)
            if found is not None:
                self._epochs[gap.partition] = gap.producer, found

    # directly

    def _bulks(
        self,
        gaps: Sequence[Gap],
        ends: Mapping[TopicPartition, int],
        results: dict[TopicPartition, int | SparkmirrorError],
    ) -> Mapping[TopicPartition, Bulk]:
        """Return the markers to write directly now. A partition claimed by another since becomes a result."""
        known = [gap for gap in gaps if self._writes_directly and self._knows_epoch(gap)]
        lefts = {gap.partition: gap.end - ends[gap.partition] for gap in known}
        short = [gap for gap in known if lefts[gap.partition] < _BULK_FROM]
        errors = self._claimed_over(short)
        results.update({at: error for at, error in errors.items() if error is not None})
        return {
            gap.partition: Bulk(
                gap.producer, self._epochs[gap.partition][1], _direct_count(lefts[gap.partition])
            )
            for gap in known
            if errors.get(gap.partition) is None and (self._sees_owners or gap not in short)
        }

    def _knows_epoch(self, gap: Gap) -> bool:
        return gap.is_fenced and self._epochs.get(gap.partition, (None, 0))[0] == gap.producer

    def _claimed_over(self, gaps: Sequence[Gap]) -> Mapping[TopicPartition, SparkmirrorError | None]:
        if not gaps or not self._sees_owners:
            return {}
        owners = self._fencing.owners([gap.transactional_id for gap in gaps])
        if any(isinstance(owner, UnsupportedVersionError) for owner in owners.values()):
            self._sees_owners = False
            return {}
        return {gap.partition: _other_owner(gap, owners[gap.transactional_id]) for gap in gaps}

    def _fill_directly(
        self, bulks: Mapping[TopicPartition, Bulk], ends: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | SparkmirrorError]:
        failed: dict[TopicPartition, SparkmirrorError] = {}
        wanted: dict[TopicPartition, int] = {}
        if self._network.time() - self._used_at > _IDLE_S:
            self._cluster.forget()
        for partition, error in write_markers(self._cluster, bulks).items():
            if isinstance(error, AuthorizationError | UnsupportedVersionError):
                _log.info("control markers are written one by one: %s", error)
                self._writes_directly = False
            elif error is not None:
                self._epochs.pop(partition)
                failed[partition] = _refusal(error)
            else:
                wanted[partition] = ends[partition] + bulks[partition].number
        return {**failed, **self._await_ends(wanted)}

    def close(self) -> None:
        self._fencing.close()
        self._cluster.close()

    def _await_ends(
        self, wanted: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | SparkmirrorError]:
        """Wait until the logs end there."""
        results: dict[TopicPartition, int | SparkmirrorError] = {}
        left, deadline = dict(wanted), self._network.time() + _SHOWN_TIMEOUT_S
        for polls in count():
            for partition, end in offsets_by(self._cluster, self._target, left, LATEST).items():
                if isinstance(end, SparkmirrorError) or end >= left[partition]:
                    results[partition] = end
                    del left[partition]
            if not left:
                self._used_at = self._network.time()
                return results
            if self._network.time() > deadline:
                break
            self._network.sleep(_POLLS_S[min(polls, len(_POLLS_S) - 1)])
        text = "control markers are not replicated: waiting for the followers"
        return {**results, **{at: RetriableError(f"{at}: {text}") for at in left}}


def _checked(gap: Gap, result: int | SparkmirrorError) -> int | SparkmirrorError:
    return WrongEndError(gap, result) if isinstance(result, int) and result > gap.end else result


def _direct_count(left: int) -> int:
    return left if left < _BULK_FROM else min(left - _LEFT_FOR_OTHERS, _BULK_PER_ROUND)


def _other_owner(gap: Gap, owner: ProducerId | SparkmirrorError) -> SparkmirrorError | None:
    if isinstance(owner, SparkmirrorError):
        return owner
    if owner == gap.producer:
        return None
    return FencedError(f"{gap.partition}: another task or command has claimed it", INVALID_PRODUCER_EPOCH)


def _refusal(error: SparkmirrorError) -> SparkmirrorError:
    """A marker of a later attempt is in the log."""
    return FencedError(str(error), error.code) if error.code == INVALID_PRODUCER_EPOCH else error
