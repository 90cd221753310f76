"""Runs: consecutive offsets of the source that are consecutive on the target too.

Batches are copied whole, so one offset sync can speak for all records of its run, however many: inside a
run, and right behind it, the translation is exact.
"""

from bisect import bisect_right
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

RUNS_MAX: Final = 1000
"""Known runs of one partition; where markers or gaps break each run after a few records, the newest count."""


@dataclass(frozen=True, slots=True)
class Run:
    """At least one record, by its offsets on both sides."""

    first_upstream: int
    first_downstream: int
    count: int

    @classmethod
    def ending(cls, last_upstream: int, last_downstream: int, count: int) -> "Run":
        return cls(last_upstream - count + 1, last_downstream - count + 1, count)

    @property
    def last_upstream(self) -> int:
        return self.first_upstream + self.count - 1

    @property
    def last_downstream(self) -> int:
        return self.first_downstream + self.count - 1

    @property
    def shift(self) -> int:
        """What is to be added to an offset of the source."""
        return self.first_downstream - self.first_upstream

    def goes_on_with(self, later: "Run") -> bool:
        """Whether both are one, with nothing between and nothing in common."""
        return (
            later.first_upstream == self.last_upstream + 1
            and later.first_downstream == self.last_downstream + 1
        )

    def and_then(self, later: "Run") -> "Run":
        return Run(self.first_upstream, self.first_downstream, self.count + later.count)

    def up_to(self, upstream: int, downstream: int) -> int:
        """How many of its records end with that one; 1 if it's no record of this run."""
        count = upstream - self.first_upstream + 1
        is_inside = 0 < count <= self.count and downstream == self.first_downstream + count - 1
        return count if is_inside else 1


class KnownRuns:
    """What is known of a partition's runs, in order. Offsets only grow: who begins anew makes another."""

    __slots__ = ("_runs",)

    def __init__(self, first: Run) -> None:
        self._runs = [first]

    def add(self, run: Run) -> None:
        """Runs that it covers, or goes on from, become one with it. One that contradicts it is dropped."""
        runs = self._runs
        while runs and runs[-1].first_upstream >= run.first_upstream:
            runs.pop()
        if runs and runs[-1].shift == run.shift and runs[-1].last_upstream >= run.first_upstream - 1:
            first = runs.pop().first_upstream
            run = Run.ending(run.last_upstream, run.last_downstream, run.last_upstream - first + 1)
        elif runs and (
            runs[-1].last_upstream >= run.first_upstream or runs[-1].last_downstream >= run.first_downstream
        ):
            runs.clear()
        runs.append(run)
        del runs[:-RUNS_MAX]

    def translate(self, upstream: int) -> int | None:
        """Where the record with this offset, or what comes instead of it, is at the earliest on the target.

        Exact inside of runs and right behind them; between runs where the earlier one ends. None before all.
        """
        at = bisect_right(self._runs, upstream, key=attrgetter("first_upstream"))
        if at == 0:
            return None
        run = self._runs[at - 1]
        return run.first_downstream + min(upstream - run.first_upstream, run.count)
