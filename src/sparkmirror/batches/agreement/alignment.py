"""Matches the records of two logs in order: yields what is equal, and gaps where the logs differ.

Batches of equal bytes are not opened. Records are equal by content; batches and offsets don't matter.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from sparkmirror.batches.agreement.compared_log import ComparedLog, GaveUpError, Record
from sparkmirror.batches.agreement.equality import RecordKey, same_batch
from sparkmirror.batches.record_batch import FetchedBatch

_LOOKAHEAD_MIN = 16
_LOOKAHEAD_MAX = 50_000
_LOOKAHEAD_BYTES_MAX = 16 << 20
"""The longest gap, on one side, after which equal records are searched."""

_OPENED_TOGETHER_MAX = 1_000
"""Many records are opened faster together; few keep the logs near the same boundary between batches."""


class EqualBatches(NamedTuple):
    """A batch of the source and its copy, which were not opened."""

    source: FetchedBatch
    target: FetchedBatch


class EqualRecords(NamedTuple):
    """Equal records that follow each other on both sides, and their offsets there."""

    keys: Sequence[RecordKey]
    source_offsets: Sequence[int]
    target_offsets: Sequence[int]


class Gap(NamedTuple):
    """The records of each side between two places where they are equal."""

    missing: list[Record]
    """The records of the source."""
    extra: list[Record]
    """The records of the target."""
    is_whole: bool = True
    """False for a part of what follows after the last equal record."""


class _Meeting(NamedTuple):
    """The counts of records on each side before they are equal again."""

    source: int
    target: int

    @property
    def distance(self) -> tuple[int, int]:
        return self.source + self.target, self.source


class Alignment:
    """Walks over a source and its copy once: call `copies` or `differences`, not both."""

    def __init__(self, source: ComparedLog, target: ComparedLog) -> None:
        self._source = source
        self._target = target
        self._opened_together = 1

    def copies(self) -> Iterator[EqualBatches | EqualRecords]:
        """Pair each record of the source with the first equal one of the target behind the match before.

        The target may have more records anywhere between. The first record of the source that it lacks ends
        the matching. Both logs are taken only as far as needed. Raises CorruptBatchError.
        """
        while True:
            yield from self._equal()
            if not self._source.open(1) or not self._skip_to(self._source.opened.keys[0]):
                return

    def differences(self, *, to_target_end: bool) -> Iterator[EqualBatches | EqualRecords | Gap]:
        """Equal records, and gaps where either side may lack records of the other.

        The last gap goes up to the logs' ends; without `to_target_end` it has nothing extra. Raises
        CorruptBatchError, and GaveUpError where the logs have nothing in common for too long.
        """
        source, target = self._source, self._target
        while True:
            yield from self._equal()
            meeting = self._find_meeting() if source.opened and target.opened else None
            if meeting is None:
                break
            yield Gap(source.opened.take(meeting.source), target.opened.take(meeting.target))
        is_first = True
        while True:
            missing = source.opened.take(source.open(_LOOKAHEAD_MIN))
            extra = target.opened.take(target.open(_LOOKAHEAD_MIN)) if to_target_end else []
            if not missing and not extra:
                return
            yield Gap(missing, extra, is_first and not source.open(1) and not target.open(1))
            is_first = False

    def _equal(self) -> Iterator[EqualBatches | EqualRecords]:
        """Pass records while both logs hold the same; ends where they differ, or with one of them."""
        source, target = self._source, self._target
        while True:
            yield from self._equal_batches()
            if not (source.open(1, self._opened_together) and target.open(1, self._opened_together)):
                return
            if equal := source.opened.equal_beginning(target.opened):
                here, there = source.opened, target.opened
                found = EqualRecords(here.keys[:equal], here.offsets[:equal], there.offsets[:equal])
                here.drop(equal)
                there.drop(equal)
                yield found
            if source.opened and target.opened:
                return
            self._opened_together = min(2 * self._opened_together, _OPENED_TOGETHER_MAX)

    def _equal_batches(self) -> Iterator[EqualBatches]:
        source, target = self._source, self._target
        while (batch := source.whole_batch()) and (copy := target.whole_batch()):
            if not same_batch(
                batch,
                copy,
                timestamps=source.timestamps,
                decompressed_bytes_max=source.decompressed_bytes_max,
            ):
                return
            self._opened_together = 1
            source.pop_batch()
            target.pop_batch()
            yield EqualBatches(batch, copy)

    def _skip_to(self, key: RecordKey) -> bool:
        """Drop the target's records before the next equal one; False, with nothing left, if there is none."""
        opened = self._target.opened
        while self._target.open(1, _OPENED_TOGETHER_MAX):
            try:
                opened.drop(opened.keys.index(key))
            except ValueError:
                opened.drop(len(opened))
            else:
                return True
        return False

    def _find_meeting(self) -> _Meeting | None:
        """Find the nearest place where both sides are equal again; None if there is none up to their ends."""
        source, target = self._source, self._target
        count = _LOOKAHEAD_MIN
        while True:
            is_all = max(source.open(count), target.open(count)) < count
            meeting = self._meeting_within(count)
            # A meeting beyond this window on one side would be farther than one found this near.
            if meeting is not None and (is_all or sum(meeting) <= count):
                return meeting
            if is_all:
                return None
            if (
                count >= _LOOKAHEAD_MAX
                or source.opened.bytes_of(count) + target.opened.bytes_of(count) > _LOOKAHEAD_BYTES_MAX
            ):
                if meeting is not None:
                    return meeting
                raise GaveUpError(
                    f"from source offset {source.opened.offsets[0]} and target offset "
                    f"{target.opened.offsets[0]} on, the next {count:,} records have nothing in common"
                )
            count *= 4

    def _meeting_within(self, count: int) -> _Meeting | None:
        places: dict[RecordKey, int] = {}
        for at, key in enumerate(islice(self._source.opened.keys, count)):
            places.setdefault(key, at)
        best: _Meeting | None = None
        for at, key in enumerate(islice(self._target.opened.keys, count)):
            if best is not None and at > best.distance[0]:
                break
            place = places.get(key)
            if place is not None:
                found = _Meeting(place, at)
                best = found if best is None or found.distance < best.distance else best
        return best
