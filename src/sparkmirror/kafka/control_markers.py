"""Fills gaps of logs with control markers, which take one offset each and which no consumer returns.

Each is an empty transaction of the partition's transactional id. So an attempt whose epoch was claimed over
can't add any; see docs/decisions/0006.
"""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple

from sparkmirror.batches.producer import ProducerId
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import RetriableError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.fencing import Claim, Fencing
from sparkmirror.kafka.offsets import LATEST, list_offsets
from sparkmirror.kafka.transport import network_of

_SHOWN_TIMEOUT_S: Final = 30.0
"""`replica.lag.time.max.ms`: brokers wait so long for slow followers."""
_POLLS_S: Final = (0.002, 0.002, 0.005, 0.01, 0.02, 0.05)

MARKERS_PER_ROUND: Final = 100
"""Other partitions' gaps must not wait long for a long one."""


class Gap(NamedTuple):
    """The log ended at `begin` when it was last known, and must end at `end`."""

    transactional_id: str
    producer: ProducerId
    partition: TopicPartition
    begin: int
    end: int


class WrongEndError(SparkmirrorError):
    """The log does not end in the gap: it has lost records, or somebody else writes to it."""

    def __init__(self, gap: Gap, seen: int) -> None:
        self.seen = seen
        self.expected = gap.begin if seen < gap.begin else gap.end
        super().__init__(f"{gap.partition} ends at {seen}, expected is {self.expected}")


class ControlMarkers:
    """Blocks. Not thread-safe: one owner, who closes it."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._network = network_of(settings)
        self._target = ConsumerSettings(settings)
        self._fencing = Fencing(settings)

    def fill(
        self, gaps: Sequence[Gap], markers_max: int = MARKERS_PER_ROUND
    ) -> Mapping[TopicPartition, int | SparkmirrorError]:
        """Where each log ends then, all of it replicated; at most so many markers are added to each.

        Nothing of the gaps' owner may be unanswered. After an error the id must be claimed again: it is
        unknown whether a marker is still added. Raises RetriableError when no broker responds.
        """
        by_partition = {gap.partition: gap for gap in gaps}
        results: dict[TopicPartition, int | SparkmirrorError] = {}
        wanted: dict[TopicPartition, int] = {}
        ends: dict[TopicPartition, int] = {}
        for partition, end in list_offsets(self._target, by_partition, LATEST).items():
            gap = by_partition[partition]
            if isinstance(end, SparkmirrorError):
                results[partition] = end
            elif not gap.begin <= end <= gap.end:
                results[partition] = WrongEndError(gap, end)
            else:
                ends[partition] = end
                wanted[partition] = min(gap.end - end, markers_max)
        for number in count(1):
            due = [gap for gap in gaps if wanted.get(gap.partition, 0) >= number]
            if not due:
                break
            for partition, error in self._mark(due).items():
                if error is not None:
                    results[partition] = error
                    del wanted[partition]
        return {**results, **self._await_ends({at: ends[at] + more for at, more in wanted.items()})}

    def close(self) -> None:
        self._fencing.close()

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
            for partition, end in list_offsets(self._target, left, LATEST).items():
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
