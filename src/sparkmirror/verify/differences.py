"""Collects the differences of a comparison: records that are missing, extra, changed or out of order.

A record that is missing in one place and extra in another is one difference, of order.

Pure.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TypeVar

from sparkmirror.batches.agreement.alignment import Gap
from sparkmirror.batches.agreement.compared_log import ComparedLog, GaveUpError, Record
from sparkmirror.batches.agreement.equality import RecordKey
from sparkmirror.batches.record_body import RecordBody, read_body
from sparkmirror.batches.records import naming_offset
from sparkmirror.verify.recent_records import RecentRecords
from sparkmirror.verify.rules_and_result import Difference, Rules

MISSING, EXTRA, ORDER, OFFSET = "missing", "extra", "order", "offset"

_DIFFERENCES_MAX = 1_000
"""The comparison of a partition ends at so many."""
_FOREIGN_KEPT_MAX = 10_000
"""Foreign records are kept, up to this count, in case one turns out to be a copy that came too early."""

_SHOWN_BYTES = 40
"""The first bytes of a key or value, for a preview."""

T = TypeVar("T")


class Findings:
    """Collects differences, and counts `foreign` records, written by another producer."""

    def __init__(self, source: ComparedLog, recent: RecentRecords, rules: Rules) -> None:
        """`recent` is of the source: it recognizes second copies."""
        self._source = source
        self._recent = recent
        self._rules = rules
        self.foreign = 0
        self._changed: list[Difference] = []
        self._missing: dict[RecordKey, list[Record]] = {}
        self._extra: dict[RecordKey, list[tuple[Record, str]]] = {}
        self._foreign: OrderedDict[RecordKey, Record] = OrderedDict()
        self._count = 0
        self._shift = 0

    @property
    def differences(self) -> list[Difference]:
        """List all differences, ordered by offset."""
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

    def pair_up(self, gap: Gap, *, compacted: bool) -> Gap:
        """Note records that were moved or changed; returns the rest of the gap.

        `compacted` says whether the log cleaner may have removed records there.
        """
        missing = [record for record in gap.missing if not self._moved_forward(record)]
        extra = [record for record in gap.extra if not self._moved_back(record)]
        missing, extra = self._swapped(missing, extra)
        left = Gap([], [])
        for record, copy in zip(missing, extra, strict=False):
            if are_related(record, copy, compacted=compacted):
                self._note_change(record, copy)
            else:
                left.missing.append(record)
                left.extra.append(copy)
        paired = min(len(missing), len(extra))
        return Gap(left.missing + missing[paired:], left.extra + extra[paired:])

    def add_moved(self, offset: int, copied_to: int) -> None:
        """Note an equal record that should have the same offset, and those behind it that are as far off."""
        if copied_to - offset != self._shift:
            self._shift = copied_to - offset
            detail = (
                f"from here on {abs(self._shift)} {'behind' if self._shift > 0 else 'before'} the source's"
            )
            self._note(Difference(OFFSET, offset, copied_to, detail))

    def add_missing(self, record: Record) -> None:
        self._missing.setdefault(record.key, []).append(record)
        self._counted()

    def add_extra(self, record: Record) -> None:
        before = self._recent.offset_of(record.key)
        if before is not None and before < self._source.unread:
            self._add_extra(record, f"a second copy of source offset {before}")
        elif self._rules.producer_id is not None and record.producer_id == self._rules.producer_id:
            self._add_extra(record, "written by the mirror, but the source does not have it")
        else:
            self.foreign += 1
            self._foreign[record.key] = record
            if len(self._foreign) > _FOREIGN_KEPT_MAX:
                self._foreign.popitem(last=False)

    def _add_extra(self, record: Record, why: str) -> None:
        self._extra.setdefault(record.key, []).append((record, why))
        self._counted()

    def _moved_forward(self, record: Record) -> bool:
        """Whether the target had it too early."""
        key = record.key
        if key in self._foreign:
            copy = self._foreign.pop(key)
            self.foreign -= 1
        elif key in self._extra:
            copy, _ = _pop(self._extra, key)
        else:
            return False
        self._note_order(record, copy)
        return True

    def _moved_back(self, copy: Record) -> bool:
        """Whether it was missing where it should have been."""
        if copy.key not in self._missing:
            return False
        self._note_order(_pop(self._missing, copy.key), copy)
        return True

    def _swapped(self, missing: list[Record], extra: list[Record]) -> tuple[list[Record], list[Record]]:
        copies: dict[RecordKey, list[Record]] = {}
        for copy in extra:
            copies.setdefault(copy.key, []).append(copy)
        left, taken = [], set()
        for record in missing:
            if record.key in copies:
                copy = _pop(copies, record.key)
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


def _pop(of: dict[RecordKey, list[T]], key: RecordKey) -> T:
    found = of[key].pop(0)
    if not of[key]:
        del of[key]
    return found


def _place(difference: Difference) -> int:
    source, target = difference.source_offset, difference.target_offset
    return source if source is not None else target if target is not None else 0


def are_related(source: Record, target: Record, *, compacted: bool) -> bool:
    """Whether one may be an altered copy of the other, not another record altogether.

    A compacted topic has many records of one key: there the time must be the same as well.
    """
    before, after = _body(source), _body(target)
    same_key = before.key == after.key and before.key is not None
    same_time = source.timestamp == target.timestamp and source.timestamp != 0
    if compacted:
        return same_key and same_time
    return same_key or same_time or (before.value == after.value and bool(before.value))


def are_nearly_equal(source: Record, target: Record) -> bool:
    """Whether they differ in one part only."""
    return len(list(changes(source, target))) == 1


def changes(source: Record, target: Record) -> Iterator[tuple[str, str]]:
    """List the parts that differ: name, and values on both sides."""
    before, after = _body(source), _body(target)
    if before.key != after.key:
        yield "key", _became(before.key, after.key)
    if before.value != after.value:
        yield "value", _became(before.value, after.value)
    if before.headers != after.headers:
        yield "headers", f"{_headers(before.headers)} became {_headers(after.headers)}"
    if source.timestamp != target.timestamp:
        yield "timestamp", f"{source.timestamp} became {target.timestamp}"


def preview(record: Record) -> str:
    body = _body(record)
    headers = f", headers {_headers(body.headers)}" if body.headers else ""
    return f"key {_shown(body.key)}, value {_shown(body.value)}{headers}, timestamp {record.timestamp}"


def _body(record: Record) -> RecordBody:
    with naming_offset(record.offset):
        return read_body(record.body)


def _became(before: bytes | None, after: bytes | None) -> str:
    return f"{_shown(before)} became {_shown(after)}"


def _headers(headers: Sequence[tuple[bytes, bytes | None]]) -> str:
    shown = ", ".join(f"{_text(name)}={_shown(value)}" for name, value in headers[:3])
    return f"[{shown}{', …' if len(headers) > 3 else ''}]"


def _shown(data: bytes | None) -> str:
    if data is None:
        return "null"
    cut = f"… ({len(data)} bytes)" if len(data) > _SHOWN_BYTES else ""
    return f"{_text(data[:_SHOWN_BYTES])}{cut}"


def _text(data: bytes) -> str:
    """Quote UTF-8 as a string, anything else as Python's bytes literal."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return repr(data)
    return repr(text)
