"""Decides which records one side may lack because its log cleaner (compaction) removed them.

The cleaner keeps the last record of every key: a record that it has removed must be followed, on the same
side, by a record of the same key. It leaves an offset without a record for each: where the offsets of a gap
are complete, a record that only the other side has was never there.

Pure.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sparkmirror.batches.agreement.compared_log import ComparedLog, GaveUpError, Record, Span
from sparkmirror.batches.record_batch import FetchedBatch
from sparkmirror.batches.record_body import read_body, read_key
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX
from sparkmirror.verify.recent_records import RecentRecords

_AWAITED_MAX = 1_000_000
_OPENED_TOGETHER = 1_000


class Cleaner:
    """The log cleaner of one side. True while it awaits the keys of records that it may have removed."""

    def __init__(self, *, is_on: bool) -> None:
        self.is_on = is_on
        self._awaiting: dict[bytes, Record] = {}

    def __bool__(self) -> bool:
        return bool(self._awaiting)

    def may_have_removed(self, record: Record) -> bool:
        """Whether the cleaner may have removed this record, which the side lacks, as far as is known yet."""
        if not self.is_on:
            return False
        key, value, _ = read_body(record.body)
        if key is None:
            return False
        if value is None:  # the cleaner removes tombstones too, in time, after what they delete
            self._awaiting.pop(key, None)
            return True
        self._awaiting.setdefault(key, record)
        if len(self._awaiting) > _AWAITED_MAX:
            raise GaveUpError(f"compaction left more than {_AWAITED_MAX:,} keys to explain")
        return True

    def saw(self, bodies: Iterable[bytes]) -> None:
        """Take note of records of this side; they come in the order of the log."""
        if self._awaiting:
            for body in bodies:
                if (key := read_key(body)) is not None:
                    self._awaiting.pop(key, None)

    def not_removed(
        self, later: Iterable[FetchedBatch], span: Span, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
    ) -> list[Record]:
        """The records that it can't have removed, because their keys do not follow in that span either."""
        if self._awaiting:
            side = ComparedLog(later, span, timestamps=False, decompressed_bytes_max=decompressed_bytes_max)
            while self._awaiting and (count := side.open(1, _OPENED_TOGETHER)):
                self.saw(body for _, body in side.opened.keys)
                side.opened.drop(count)
        return list(self._awaiting.values())


class Holes(NamedTuple):
    """The count of records that a side may have had in a gap, and those that it has again after the gap."""

    possible: int
    repeated: Sequence[Record] = ()


def holes(side: ComparedLog, recent: RecentRecords, own: Sequence[Record], others: Sequence[Record]) -> Holes:
    """Count those of `others` that this side may have had in a gap, where it has only `own`.

    The next record of the side is the first one after the gap. Where records repeat, the gap may as well be
    further ahead: what ends it is equal to what comes before it.
    """
    if not others:
        return Holes(0)
    later, found, repeated = side.next_offset, -len(own), 0
    sought = deque(record.key for record in others)
    for offset, key in recent.records_before(own[0].offset if own else later):
        found += later - offset - 1
        if found >= len(others) or key != sought[-1]:
            break
        sought.rotate(1)
        repeated, later = min(repeated + 1, len(others)), offset
    else:
        found = found + later - side.span.first if recent.is_whole else len(others)
    return Holes(min(found, len(others)), others[len(others) - repeated :])
