"""Notices partitions of which nobody reports: their task can't begin, or hangs."""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from sparkmirror.storage.progress import Generation, PartitionProgress

PATIENCE_S = 20.0
"""Every partition reports within a second of its task's start, and a task's worker starts within seconds."""


class Silence(NamedTuple):
    """`missing` partitions of a generation have not reported yet; 0 ends what was told before."""

    generation: Generation
    missing: int


class SilentPartitions:
    """Tells of each generation's silence once, and of its end."""

    def __init__(self) -> None:
        self._seen_at: dict[Generation, float] = {}
        self._told: set[Generation] = set()

    def look(
        self, generations: Collection[Generation], reports: Collection[PartitionProgress], now: float
    ) -> Iterator[Silence]:
        """`now` is any clock's seconds."""
        self._seen_at = {generation: self._seen_at.get(generation, now) for generation in generations}
        self._told &= self._seen_at.keys()
        reported = Counter((report.connector, report.generation) for report in reports)
        for generation, seen_at in self._seen_at.items():
            missing = generation.partitions - reported[generation.connector, generation.number]
            is_silent = missing > 0 and not generation.stopped
            if is_silent and generation not in self._told and now - seen_at >= PATIENCE_S:
                self._told.add(generation)
                yield Silence(generation, missing)
            elif not is_silent and generation in self._told:
                self._told.remove(generation)
                yield Silence(generation, 0)
