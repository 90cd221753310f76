"""Computes a partition's lag in seconds: the time since the source received the first missing record.

It remembers when the source's end offset was first seen beyond an offset, so it reads no records. For records
from before the first update only the records' own timestamps are known: the record before the first missing
one is older than it. Callers pass any clock's seconds. The lag in records is `copy.partition_copy`'s.

Pure.
"""

from math import inf
from typing import NamedTuple

_KEPT_MAX = 64


class _End(NamedTuple):
    offset: int
    seen_at: float


class TimeLag:
    """The lag of one partition; exact to the time between two updates, in a long backlog to a few percent."""

    __slots__ = ("_apart_s", "_end", "_ends", "_first", "_next", "known_since")

    def __init__(self) -> None:
        self._first: _End | None = None
        self._ends: list[_End] = []
        self._apart_s = 0.0
        self._end = 0
        self._next = 0
        self.known_since: float | None = None
        """The result of `since` where it needs no age of a record, else None."""

    def update(self, next_offset: int, end: int, now: float) -> None:
        """`next_offset` is the first that is not on the target yet, `end` the source's end."""
        if self._first is None or end < self._end:  # another topic of that name, or a truncated one
            self._first, self._ends = _End(end, now), []
        else:
            if end > self._end:
                self._note(_End(end, now))
            if next_offset < self._next:  # copied again, or lost; when these came is known no more
                self._first = _End(self._next, now)
        self._next, self._end = next_offset, end
        self._ends = [seen for seen in self._ends if seen.offset > next_offset]
        if not self._ends:
            self._apart_s = 0.0
        self.known_since = None if self.needs_age else self.since(None)

    def _note(self, end: _End) -> None:
        """Merge ends close in time to the later offset and the earlier time: rather too high a lag."""
        if self._ends and end.seen_at - self._ends[-1].seen_at < self._apart_s:
            self._ends[-1] = self._ends[-1]._replace(offset=end.offset)
            return
        self._ends.append(end)
        if len(self._ends) == _KEPT_MAX:
            self._apart_s = 2 * (end.seen_at - self._ends[0].seen_at) / _KEPT_MAX
            pairs = zip(self._ends[::2], self._ends[1::2], strict=True)
            self._ends = [_End(later.offset, earlier.seen_at) for earlier, later in pairs]

    @property
    def needs_age(self) -> bool:
        """Say whether `since` takes the last record's time: records that were there at first are missing."""
        first = self._first
        return first is not None and self._next < first.offset and self._next < self._end

    def since(self, last_at: float | None) -> float | None:
        """Return when the source got the first missing record; infinity without one, None before an update.

        `last_at` is when it received the last record on the target.
        """
        first = self._first
        if first is None:
            return None
        if self._next >= self._end:
            return inf
        if self._next < first.offset:
            return first.seen_at if last_at is None else min(first.seen_at, last_at)
        return self._ends[0].seen_at
