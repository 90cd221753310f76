"""The differences of a comparison: what is missing, extra, changed or out of order.

What comes to light in two places, as missing and as extra, is one difference of order.
"""

from collections import OrderedDict
from typing import TypeVar

from sparkmirror.verify.alignment import Gap
from sparkmirror.verify.comparison import Difference, GaveUpError, Rules
from sparkmirror.verify.records import Content, Record
from sparkmirror.verify.side import SourceSide
from sparkmirror.verify.words import are_related, changes, preview

MISSING, EXTRA, ORDER = "missing", "extra", "order"

_DIFFERENCES_MAX = 1_000
"""A partition with more of them is not worth reading on."""
_FOREIGN_KEPT_MAX = 10_000
"""So many are remembered in case one turns out to be a copy that came too early."""

T = TypeVar("T")


class Findings:
    """Those so far, and how many records are `foreign`, that is somebody else's."""

    def __init__(self, source: SourceSide, rules: Rules) -> None:
        self._source = source
        self._rules = rules
        self.foreign = 0
        self._changed: list[Difference] = []
        self._missing: dict[Content, list[Record]] = {}
        self._extra: dict[Content, list[tuple[Record, str]]] = {}
        self._foreign: OrderedDict[Content, Record] = OrderedDict()
        self._count = 0

    @property
    def differences(self) -> list[Difference]:
        """By offset."""
        missing = [
            Difference(MISSING, record.offset, None, preview(record))
            for records in self._missing.values()
            for record in records
        ]
        extra = [
            Difference(EXTRA, None, record.offset, f"{why}: {preview(record)}")
            for records in self._extra.values()
            for record, why in records
        ]
        return sorted([*self._changed, *missing, *extra], key=_place)

    def pair_up(self, gap: Gap) -> Gap:
        """Note what was moved or changed; what is left of the gap then."""
        missing = [record for record in gap.missing if not self._moved_forward(record)]
        extra = [record for record in gap.extra if not self._moved_back(record)]
        missing, extra = self._swapped(missing, extra)
        left = Gap([], [])
        for record, copy in zip(missing, extra, strict=False):
            if are_related(record, copy, compacted=self._rules.is_compacted):
                self._note_change(record, copy)
            else:
                left.missing.append(record)
                left.extra.append(copy)
        paired = min(len(missing), len(extra))
        return Gap(left.missing + missing[paired:], left.extra + extra[paired:])

    def add_missing(self, record: Record) -> None:
        self._missing.setdefault(record.content, []).append(record)
        self._counted()

    def add_extra(self, record: Record) -> None:
        before = self._source.recent_offset(record)
        if before is not None:
            self._add_extra(record, f"a second copy of source offset {before}")
        elif self._rules.producer_id is not None and record.producer_id == self._rules.producer_id:
            self._add_extra(record, "written by the mirror, but the source does not have it")
        else:
            self.foreign += 1
            self._foreign[record.content] = record
            if len(self._foreign) > _FOREIGN_KEPT_MAX:
                self._foreign.popitem(last=False)

    def _add_extra(self, record: Record, why: str) -> None:
        self._extra.setdefault(record.content, []).append((record, why))
        self._counted()

    def _moved_forward(self, record: Record) -> bool:
        """Whether the target had it too early."""
        content = record.content
        if content in self._foreign:
            copy = self._foreign.pop(content)
            self.foreign -= 1
        elif content in self._extra:
            copy, _ = _pop(self._extra, content)
        else:
            return False
        self._note_order(record, copy)
        return True

    def _moved_back(self, copy: Record) -> bool:
        """Whether it was missing where it should have been."""
        if copy.content not in self._missing:
            return False
        self._note_order(_pop(self._missing, copy.content), copy)
        return True

    def _swapped(self, missing: list[Record], extra: list[Record]) -> tuple[list[Record], list[Record]]:
        copies: dict[Content, list[Record]] = {}
        for copy in extra:
            copies.setdefault(copy.content, []).append(copy)
        left, taken = [], set()
        for record in missing:
            if record.content in copies:
                copy = _pop(copies, record.content)
                taken.add(copy.offset)
                self._note_order(record, copy)
            else:
                left.append(record)
        return left, [copy for copy in extra if copy.offset not in taken]

    def _note_change(self, record: Record, copy: Record) -> None:
        parts = list(changes(record, copy))
        what = ", ".join(name for name, _ in parts)
        detail = "; ".join(f"{name} {became}" for name, became in parts)
        self._note(Difference(what, record.offset, copy.offset, detail))

    def _note_order(self, record: Record, copy: Record) -> None:
        self._note(Difference(ORDER, record.offset, copy.offset, f"out of order: {preview(record)}"))

    def _note(self, difference: Difference) -> None:
        self._changed.append(difference)
        self._counted()

    def _counted(self) -> None:
        self._count += 1
        if self._count > _DIFFERENCES_MAX:
            raise GaveUpError(f"more than {_DIFFERENCES_MAX:,} differences")


def _pop(of: dict[Content, list[T]], content: Content) -> T:
    found = of[content].pop(0)
    if not of[content]:
        del of[content]
    return found


def _place(difference: Difference) -> int:
    source, target = difference.source_offset, difference.target_offset
    return source if source is not None else target if target is not None else 0
