"""Remembers the partitions of a mirror whose topics were deleted on the source while it was watched."""

from collections.abc import Sequence
from typing import Final

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.status.flow_lag import PartitionLag

DELETED: Final = (
    "its topic was deleted on the source: nothing to do, the mirror leaves it out at its next refresh"
)


class GonePartitions:
    """One owner."""

    def __init__(self, kept_s: float) -> None:
        """`kept_s` is how often the mirror refreshes its topics: then it has left them out, too."""
        self._kept_s = kept_s
        self._seen: dict[TopicPartition, tuple[float, PartitionLag]] = {}

    def of(self, found: Sequence[PartitionLag], now: float) -> list[PartitionLag]:
        """Those that were found before, and are not now; `now` is any clock's seconds."""
        known = self._seen | {each.source: (now, each) for each in found}
        self._seen = {of: seen for of, seen in known.items() if now - seen[0] < self._kept_s}
        gone = [lag for at, lag in self._seen.values() if at < now]
        return [lag._replace(end=None, records=None, seconds=None, why=DELETED) for lag in gone]
