"""Runs: consecutive offsets of the source that are consecutive on the target too.

Batches are copied whole, so one offset sync can cover all records of its run, however many: inside a
run, and right behind it, the translation is exact.
"""

from bisect import bisect_right
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple

RUNS_MAX: Final = 1000
"""Known runs of one partition; where markers or gaps break each run after a few records, the newest count."""


class Known(NamedTuple):
    """A record with known offsets on both clusters."""

    upstream: int
    downstream: int


class Gap(NamedTuple):
    """The gap between two known records, whose records can be at any fitting place on the target."""

    after: Known
    before: Known


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive records, at least one, by their offsets on both sides."""

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
        """The difference to add to an offset of the source."""
        return self.first_downstream - self.first_upstream

    def continues_with(self, later: "Run") -> bool:
        """Whether both are one, with nothing between and nothing in common."""
        return (
            later.first_upstream == self.last_upstream + 1
            and later.first_downstream == self.last_downstream + 1
        )

    def is_before(self, later: "Run") -> bool:
        """Whether it ends before the later one begins, on both sides."""
        return self.last_upstream < later.first_upstream and self.last_downstream < later.first_downstream

    def latest_for(self, upstream: int) -> int:
        """The last offset on the target that a record up to the run's last one can have."""
        return max(upstream + self.shift, self.first_downstream - 1)

    def touches(self, other: "Run") -> bool:
        """Whether both together are one."""
        return self.shift == other.shift and (
            self.first_upstream <= other.last_upstream + 1 and other.first_upstream <= self.last_upstream + 1
        )

    def united(self, other: "Run") -> "Run":
        """Join it with one that it touches."""
        first = min(self.first_upstream, other.first_upstream)
        count = max(self.last_upstream, other.last_upstream) - first + 1
        return Run(first, first + self.shift, count)

    def and_then(self, later: "Run") -> "Run":
        return Run(self.first_upstream, self.first_downstream, self.count + later.count)

    def until(self, upstream: int) -> "Run":
        """The part that ends with that record."""
        return Run(self.first_upstream, self.first_downstream, upstream - self.first_upstream + 1)

    def up_to(self, upstream: int, downstream: int) -> int:
        """The count of its records up to that one; 1 if it's no record of this run."""
        count = upstream - self.first_upstream + 1
        is_inside = 0 < count <= self.count and downstream == self.first_downstream + count - 1
        return count if is_inside else 1


_FIRST: Final = attrgetter("first_upstream")


class KnownRuns:
    """The known runs of a partition, in order. Offsets only grow: a new log needs a new object."""

    __slots__ = ("_runs",)

    def __init__(self, *first: Run) -> None:
        self._runs = list(first)

    def add(self, run: Run) -> None:
        """Runs that it covers or continues become one with it. One that contradicts it is dropped."""
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

    def insert(self, run: Run) -> None:
        """Take a run that lies anywhere. One that contradicts another is left out."""
        whole = [each for each in self._runs if each.touches(run)]
        others = [each for each in self._runs if not each.touches(run)]
        for each in whole:
            run = run.united(each)
        at = bisect_right(others, run.first_upstream, key=_FIRST)
        is_behind = at == 0 or others[at - 1].is_before(run)
        if is_behind and (at == len(others) or run.is_before(others[at])):
            others.insert(at, run)
            self._runs = others[-RUNS_MAX:]

    def first_from(self, upstream: int) -> Known | None:
        """The first record from this offset on."""
        at = bisect_right(self._runs, upstream, key=_FIRST)
        if at and upstream <= self._runs[at - 1].last_upstream:
            return Known(upstream, upstream + self._runs[at - 1].shift)
        if at == len(self._runs):
            return None
        return Known(self._runs[at].first_upstream, self._runs[at].first_downstream)

    def last_before(self, upstream: int) -> Known | None:
        """The last record before this offset."""
        at = bisect_right(self._runs, upstream - 1, key=_FIRST)
        if at == 0:
            return None
        run = self._runs[at - 1]
        last = min(run.last_upstream, upstream - 1)
        return Known(last, last + run.shift)

    def translate(self, upstream: int) -> int | None:
        """The earliest place on the target of the record with this offset, or of what comes instead of it.

        Exact inside of runs and right behind them; between runs where the earlier one ends. None before all.
        """
        at = bisect_right(self._runs, upstream, key=_FIRST)
        if at == 0:
            return None
        run = self._runs[at - 1]
        return run.first_downstream + min(upstream - run.first_upstream, run.count)
