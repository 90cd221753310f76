"""Translates a group's offsets from the source to the target, by the offset syncs of one partition.

The translation is exact within a run of records that a sync covers. Elsewhere the rule is that of Java's
`OffsetSyncStore` (KAFKA-12468, KAFKA-14666, KAFKA-15202): 64 slots, of which slot *i* holds a sync at most
about 2^i offsets behind the newest, so that groups near the end are translated precisely, and groups far
behind early enough.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from sparkmirror.offsets.offset_runs import Gap, Known, KnownRuns, Run
from sparkmirror.offsets.wire_records import OffsetSync

SLOTS: Final = 64
BEFORE_HISTORY: Final = -1
"""Java's result for an offset older than every sync, whose place on the target is unknown."""


class Place(NamedTuple):
    """The offset where a group continues, and the most offsets of the target that it reads again.

    `behind_max` is 0 for an exact place, and None where nothing newer is known.
    """

    offset: int
    behind_max: int | None


class SyncHistory:
    """A partition's syncs, the newest in slot 0; neighbours may hold the same one."""

    __slots__ = ("_resolved", "_runs", "_slots")

    def __init__(self, first: OffsetSync, run: int = 1) -> None:
        self._slots = [first] * SLOTS
        self._runs = KnownRuns(Run.ending(first.upstream_offset, first.downstream_offset, run))
        self._resolved = KnownRuns()

    @property
    def syncs(self) -> list[OffsetSync]:
        """The syncs in the slots, the newest first."""
        slots = self._slots
        return [sync for at, sync in enumerate(slots) if at == 0 or sync is not slots[at - 1]]

    @property
    def begin(self) -> int:
        """The first offset of the source that can be translated."""
        first = self._runs.first_from(0)
        oldest = self._slots[-1].upstream_offset
        return oldest if first is None else min(first.upstream, oldest)

    def add(self, sync: OffsetSync, run: int = 1) -> None:
        """Take the next sync, which covers so many records, counted back from its own.

        One behind the newest, on either side, shows that a log started again: older syncs are dropped. So
        does a run that leaves no room for the newest.
        """
        newest, ending = self._slots[0], Run.ending(sync.upstream_offset, sync.downstream_offset, run)
        if sync.upstream_offset < newest.upstream_offset or newest.downstream_offset > ending.latest_for(
            newest.upstream_offset
        ):
            self._slots, self._runs, self._resolved = [sync] * SLOTS, KnownRuns(ending), KnownRuns()
            return
        self._slots = _with(self._slots, sync)
        self._runs.add(ending)

    def translate(self, upstream: int) -> int:
        """The offset on the target where a group continues that reads this offset of the source next.

        Never behind Java, and never past a record that the group has not read. BEFORE_HISTORY for what is
        older than all that is known, but 0 where the next known record is the target's first: the source had
        lost what was before, or the target has.
        """
        by_runs = (runs.translate(upstream) for runs in (self._runs, self._resolved))
        found = max(self._by_slots(upstream), *(BEFORE_HISTORY if at is None else at for at in by_runs))
        if found == BEFORE_HISTORY and (following := self._following(upstream)) is not None:
            return 0 if following.downstream == 0 else BEFORE_HISTORY
        return found

    def place(self, upstream: int) -> Place | None:
        """The same, and how far from exact it may be. None for an offset older than every sync."""
        offset = self.translate(upstream)
        if offset == BEFORE_HISTORY:
            return None
        following = self._following(upstream)
        if following is not None:
            return Place(offset, max(0, following.downstream - offset))
        return Place(offset, 0 if upstream == self._slots[0].upstream_offset + 1 else None)

    def refutes(self, upstream: int, downstream: int) -> bool:
        """Whether a group that continues there on the target would miss records.

        This happens after the target has lost its log: earlier translations are about the earlier log.
        """
        following = self._synced_from(upstream)
        return following is not None and following.downstream < downstream

    def gap_at(self, upstream: int) -> Gap | None:
        """The gap between two known records that keeps the translation of an offset from being exact."""
        exact = (self._runs.first_from(upstream), self._resolved.first_from(upstream))
        if any(known is not None and known.upstream == upstream for known in exact):
            return None
        place, following = self.place(upstream), self._following(upstream)
        if place is None or following is None or not place.behind_max:
            return None
        last = [runs.last_before(upstream) for runs in (self._runs, self._resolved)]
        last.append(next((_known(sync) for sync in self._slots if sync.upstream_offset < upstream), None))
        return Gap(max(known for known in last if known is not None), following)

    def learn(self, runs: Iterable[Run]) -> None:
        """Take runs between syncs that were found in the logs; contradictions are dropped."""
        for run in runs:
            self._resolved.insert(run)

    def _following(self, upstream: int) -> Known | None:
        """The first record from this offset on with known offsets on both clusters."""
        known = (self._synced_from(upstream), self._resolved.first_from(upstream))
        return min((each for each in known if each is not None), default=None)

    def _synced_from(self, upstream: int) -> Known | None:
        """Return the first known pair at or behind this offset, by syncs."""
        slot = next(
            (_known(sync) for sync in reversed(self._slots) if sync.upstream_offset >= upstream), None
        )
        return min((each for each in (slot, self._runs.first_from(upstream)) if each), default=None)

    def _by_slots(self, upstream: int) -> int:
        """The offset of a sync is known; behind one it's only sure that the sync's own record was read."""
        for sync in self._slots:
            if sync.upstream_offset <= upstream:
                return sync.downstream_offset + (sync.upstream_offset < upstream)
        return BEFORE_HISTORY


def _known(sync: OffsetSync) -> Known:
    return Known(sync.upstream_offset, sync.downstream_offset)


def _with(old: list[OffsetSync], newest: OffsetSync) -> list[OffsetSync]:
    """The slots after one more sync: every invariant between neighbours holds again.

    A slot whose sync became too old gets the newest old one that fits there, else what the slot before got.
    """
    slots = [newest, *old[1:]]
    candidate, at = newest, 0
    for slot in range(1, SLOTS):
        before = slots[slot - 1]
        while True:
            sync = old[at]
            is_far_enough = _is_far_enough(before, sync, slot - 1)
            fits = _is_recent(before, sync, slot) and is_far_enough
            fits = fits and (slot == SLOTS - 1 or _is_far_enough(sync, slots[slot + 1], slot))
            is_repeated = at < SLOTS - 1 and sync is old[at + 1]
            if fits:
                candidate = sync
            is_passed_over = is_repeated or not is_far_enough
            if fits or is_passed_over:
                at += 1
            if at >= slot or not is_passed_over:
                break
        if _is_recent(before, slots[slot], slot):
            break
        slots[slot] = candidate
    return slots


def _is_recent(before: OffsetSync, sync: OffsetSync, slot: int) -> bool:
    """Whether a sync is young enough for a slot, by that in the slot before (invariant B)."""
    allowed = (1 << slot) - (1 << slot - 1)
    return sync is before or before.upstream_offset <= sync.upstream_offset + allowed


def _is_far_enough(newer: OffsetSync, older: OffsetSync, slot: int) -> bool:
    """Whether the newer one, in this slot, is worth keeping beside the older one (invariant C)."""
    return newer is older or newer.upstream_offset >= older.upstream_offset + (1 << max(slot - 2, 0))
