"""Fills gaps of logs with control markers, which take one offset each and which no consumer returns.

Each is an empty transaction of the partition's transactional id. So an attempt whose epoch was claimed over
can't add any; see docs/decisions/0006. Of a long gap all but the last few are written in bulk, where the
right is there: behind an own marker, which makes the leader refuse bulk of attempts before. A few are left
so that markers of the next attempt have room beside what is under way.
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
    RetriableError,
    SparkmirrorError,
    UnsupportedVersionError,
)
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.bulk_markers import Bulk, coordinator_epoch, write_markers
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.fencing import Claim, Fencing
from sparkmirror.kafka.offsets import LATEST, offsets_by
from sparkmirror.kafka.transport import network_of

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
    """The log does not end in the gap: it has lost records, or somebody else writes to it."""

    def __init__(self, gap: Gap, seen: int) -> None:
        self.seen = seen
        self.expected = gap.begin if seen < gap.begin else gap.end
        super().__init__(f"{gap.partition} ends at {seen}, expected is {self.expected}")


class ControlMarkers:
    """Blocks. Not thread-safe: one owner, who closes it."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._network = network_of(settings)
        self._target = ConsumerSettings(settings)
        self._fencing = Fencing(settings)
        self._cluster = Cluster(settings)
        self._epochs: dict[tuple[TopicPartition, ProducerId], int] = {}
        """The coordinators' epochs, as far as bulk needs them."""
        self._writes_bulk = True
        """Until that is refused."""

    def fill(self, gaps: Sequence[Gap]) -> Mapping[TopicPartition, int | SparkmirrorError]:
        """Where each log ends then, all of it replicated: at the gap's end, or nearer to it.

        Nothing of the gaps' owner may be unanswered. After an error the id must be claimed again: it is
        unknown whether a marker is still added. Raises RetriableError when no broker responds.
        """
        results: dict[TopicPartition, int | SparkmirrorError] = {}
        ends = self._ends(gaps, results)
        here = [gap for gap in gaps if gap.partition in ends]
        bulk = [gap for gap in here if self._is_long(gap, ends) and _key(gap) in self._epochs]
        counts = {gap.partition: self._count(gap, ends) for gap in here if gap not in bulk}
        results.update(self._fill_singly([gap for gap in here if gap not in bulk], counts, ends))
        for gap in here:
            if gap not in bulk and self._is_long(gap, ends) and isinstance(results[gap.partition], int):
                self._learn_epoch(gap, ends[gap.partition])
        if bulk:
            results.update(self._fill_in_bulk(bulk, ends))
        return {gap.partition: _checked(gap, results[gap.partition]) for gap in gaps}

    def _ends(
        self, gaps: Sequence[Gap], results: dict[TopicPartition, int | SparkmirrorError]
    ) -> Mapping[TopicPartition, int]:
        """Where the logs end, if in the gap; else an error is added to the results."""
        # Where an own marker is in the log nobody else can have added anything, or our next one is refused.
        ends = {gap.partition: gap.begin for gap in gaps if gap.is_fenced}
        by_partition = {gap.partition: gap for gap in gaps if not gap.is_fenced}
        found = offsets_by(self._cluster, self._target, by_partition, LATEST)
        for partition, end in found.items():
            gap = by_partition[partition]
            if isinstance(end, SparkmirrorError):
                results[partition] = end
            elif not gap.begin <= end <= gap.end:
                results[partition] = WrongEndError(gap, end)
            else:
                ends[partition] = end
        return ends

    # one by one

    def _count(self, gap: Gap, ends: Mapping[TopicPartition, int]) -> int:
        """How many to write before the end is read again: what was under way may arrive beside the first."""
        left = gap.end - ends[gap.partition]
        first_only = not gap.is_fenced or self._is_long(gap, ends)
        return min(left, 1 if first_only else MARKERS_PER_ROUND)

    def _fill_singly(
        self, gaps: Sequence[Gap], counts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | SparkmirrorError]:
        failed: dict[TopicPartition, SparkmirrorError] = {}
        for number in count(1):
            due = [gap for gap in gaps if counts[gap.partition] >= number and gap.partition not in failed]
            if not due:
                break
            failed.update({at: error for at, error in self._mark(due).items() if error is not None})
        wanted = {at: ends[at] + more for at, more in counts.items() if at not in failed}
        return {**failed, **self._await_ends(wanted)}

    # in bulk

    def _is_long(self, gap: Gap, ends: Mapping[TopicPartition, int]) -> bool:
        return self._writes_bulk and gap.end - ends[gap.partition] >= _BULK_FROM

    def _learn_epoch(self, gap: Gap, offset: int) -> None:
        """From the own marker there."""
        with suppress(SparkmirrorError):  # it is read again behind the next one
            found = coordinator_epoch(self._settings, gap.partition, gap.producer, offset)
            if found is not None:
                self._epochs[_key(gap)] = found

    def _fill_in_bulk(
        self, gaps: Sequence[Gap], ends: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | SparkmirrorError]:
        bulks = {
            gap.partition: Bulk(
                gap.producer,
                self._epochs[_key(gap)],
                min(gap.end - _LEFT_FOR_OTHERS - ends[gap.partition], _BULK_PER_ROUND),
            )
            for gap in gaps
        }
        failed: dict[TopicPartition, SparkmirrorError] = {}
        wanted: dict[TopicPartition, int] = {}
        for partition, error in write_markers(self._settings, bulks).items():
            if isinstance(error, AuthorizationError | UnsupportedVersionError):
                _log.info("control markers are written one by one: %s", error)
                self._writes_bulk = False
                wanted[partition] = ends[partition]
            elif error is not None:
                self._epochs.pop((partition, bulks[partition].producer))
                failed[partition] = error
            else:
                wanted[partition] = ends[partition] + bulks[partition].number
        return {**failed, **self._await_ends(wanted)}

    def close(self) -> None:
        self._fencing.close()
        self._cluster.close()

    def _mark(self, gaps: Sequence[Gap]) -> Mapping[TopicPartition, SparkmirrorError | None]:
        claims = {gap.transactional_id: Claim(gap.producer, gap.partition) for gap in gaps}
        outcomes = self._fencing.mark(claims)
        return {claim.partition: outcomes[each] for each, claim in claims.items()}

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
                return results
            if self._network.time() > deadline:
                break
            self._network.sleep(_POLLS_S[min(polls, len(_POLLS_S) - 1)])
        text = "control markers are not replicated: waiting for the followers"
        return {**results, **{at: RetriableError(f"{at}: {text}") for at in left}}


def _checked(gap: Gap, result: int | SparkmirrorError) -> int | SparkmirrorError:
    return WrongEndError(gap, result) if isinstance(result, int) and result > gap.end else result


def _key(gap: Gap) -> tuple[TopicPartition, ProducerId]:
    return gap.partition, gap.producer
