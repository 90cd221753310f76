"""Counts the offsets without a record in a gap: the log cleaner leaves one for each record that it removes.

A record that only the other side has, where no offset is without a record, was never there.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from sparkmirror.batches.agreement.compared_log import ComparedLog, Record
from sparkmirror.verify.recent import Recent


class Holes(NamedTuple):
    """How many of some records a side may have had, and those of them that it has behind the holes again."""

    possible: int
    repeated: Sequence[Record] = ()


def holes(side: ComparedLog, recent: Recent, own: Sequence[Record], others: Sequence[Record]) -> Holes:
    """How many of `others`, which this side does not have in a gap, it may have had.

    `own` are its records in the same gap, and the next record of the side is the first one behind the gap.
    Where records repeat, the gap may as well be further ahead: what ends it is equal to what comes before it.
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
