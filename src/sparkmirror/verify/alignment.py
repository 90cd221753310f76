"""Aligns the two sides of a comparison: passes equal records, and finds gaps where the sides differ.

Batches of equal bytes are not opened. Records are equal by content; batches and offsets don't matter.

Pure.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from sparkmirror.verify.cleaner import Cleaner
from sparkmirror.verify.comparison import GaveUpError
from sparkmirror.verify.records import Content, Record
from sparkmirror.verify.side import Side, same_bytes

_LOOKAHEAD_MIN = 16
_LOOKAHEAD_MAX = 50_000
_LOOKAHEAD_BYTES_MAX = 16 << 20
"""The longest gap, on one side, after which equal records are searched."""

_OPENED_TOGETHER_MAX = 1_000
"""Many records are opened faster together; few keep the sides near the same boundary between batches."""


class Gap(NamedTuple):
    """The records of each side between two places where they are equal."""

    missing: list[Record]
    """From the source."""
    extra: list[Record]
    """From the target."""
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
    """`equal` counts the records passed so far. `cleaners` get them while they wait for keys.

    `moved` gets offsets of equal records, or of the first of a batch, that differ between the sides.
    """

    def __init__(
        self,
        source: Side,
        target: Side,
        cleaners: Sequence[Cleaner],
        *,
        to_target_end: bool,
        moved: Callable[[int, int], None] | None = None,
    ) -> None:
        self._source = source
        self._target = target
        self._cleaners = cleaners
        self._to_target_end = to_target_end
        self._opened_together = 1
        self._moved = moved
        self.equal = 0

    def gaps(self) -> Iterator[Gap]:
        """In order, the last one up to the sides' ends. Without `to_target_end` that one has nothing extra.

        Raises GaveUpError where the sides have nothing in common for too long.
        """
        while self._skip_equal() and (meeting := self._find_meeting()) is not None:
            yield Gap(self._source.opened.take(meeting.source), self._target.opened.take(meeting.target))
        is_first = True
        while True:
            missing = self._source.opened.take(self._source.open(_LOOKAHEAD_MIN))
            extra = self._target.opened.take(self._target.open(_LOOKAHEAD_MIN)) if self._to_target_end else []
            if not missing and not extra:
                return
            yield Gap(missing, extra, is_first and not self._source.open(1) and not self._target.open(1))
            is_first = False

    def _skip_equal(self) -> bool:
        """Pass records while both sides hold the same; False when a side ends."""
        source, target = self._source, self._target
        while True:
            self._skip_equal_batches()
            if not (source.open(1, self._opened_together) and target.open(1, self._opened_together)):
                return False
            equal = source.opened.equal_beginning(target.opened)
            self._pass_to_cleaners(equal)
            self._check_offsets(equal)
            source.opened.drop(equal)
            target.opened.drop(equal)
            self.equal += equal
            if source.opened and target.opened:
                return True
            self._opened_together = min(2 * self._opened_together, _OPENED_TOGETHER_MAX)

    def _check_offsets(self, count: int) -> None:
        if self._moved is None:
            return
        pairs = zip(self._source.opened.offsets, self._target.opened.offsets, strict=False)
        for offset, copied_to in islice(pairs, count):
            if offset != copied_to:
                self._moved(offset, copied_to)

    def _pass_to_cleaners(self, count: int) -> None:
        for cleaner in filter(None, self._cleaners):
            cleaner.saw(body for _, body in islice(self._source.opened.contents, count))

    def _skip_equal_batches(self) -> None:
        source, target = self._source, self._target
        if any(self._cleaners):
            return  # cleaners need the keys
        while (batch := source.whole_batch()) and (copy := target.whole_batch()):
            if not same_bytes(
                batch,
                copy,
                timestamps=source.timestamps,
                decompressed_bytes_max=source.decompressed_bytes_max,
            ):
                return
            self._opened_together = 1
            if self._moved is not None and batch.header.base_offset != copy.header.base_offset:
                self._moved(batch.header.base_offset, copy.header.base_offset)
            self.equal += batch.header.record_count
            source.pop_batch()
            target.pop_batch()

    def _find_meeting(self) -> _Meeting | None:
        """None when the sides have no equal records up to their ends."""
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
        places: dict[Content, int] = {}
        for at, content in enumerate(islice(self._source.opened.contents, count)):
            places.setdefault(content, at)
        best: _Meeting | None = None
        for at, content in enumerate(islice(self._target.opened.contents, count)):
            if best is not None and at > best.distance[0]:
                break
            place = places.get(content)
            if place is not None:
                found = _Meeting(place, at)
                best = found if best is None or found.distance < best.distance else best
        return best
