"""Compares a partition with its mirror, record by record: count, order, key, value, headers, timestamp.

Batches of equal bytes are not opened. Where the sides part, the nearest place where they meet again is
looked for, and what lies before it is explained: a record is missing, extra, changed or out of order; or
somebody else wrote it; or it can't be compared, because one side has lost it by retention or compaction.
"""

from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from sparkmirror.domain.comparison_side import Record, Side, SourceSide, Span, same_bytes
from sparkmirror.domain.comparison_words import are_related, changes, preview
from sparkmirror.domain.record_batch import FetchedBatch
from sparkmirror.domain.record_body import read_body, read_key

MISSING, EXTRA, ORDER = "missing", "extra", "order"

_LOOKAHEAD_MIN = 16
_LOOKAHEAD_MAX = 50_000
_LOOKAHEAD_BYTES_MAX = 16 << 20
"""How far apart, on one side, the places where two logs part and meet again may be."""
_DIFFERENCES_MAX = 1_000
"""A partition with more of them is not worth reading on."""
_SHOWN_MAX = 10
_LOOSE_MAX = 10_000
_AWAITED_MAX = 1_000_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rules:
    """How to judge what is found on one side only."""

    timestamps: bool = True
    """False where the target's broker stamps its own."""
    producer_id: int | None = None
    """Whose records on the target are certainly the mirror's."""
    source_lost_beginning: bool = False
    """Retention has been at the source: the target may begin with older records."""
    target_lost_beginning: bool = False
    """The same of the target, or the mirror began in the middle of the source."""
    source_is_compacted: bool = False
    target_is_compacted: bool = False
    target_end_is_known: bool = True
    """Whether the target's span ends with the copy of the source's last record, or just somewhere behind."""

    @property
    def is_compacted(self) -> bool:
        return self.source_is_compacted or self.target_is_compacted


class Difference(NamedTuple):
    """`what` is missing, extra, order, or the parts that changed. A side without the record has no offset."""

    what: str
    source_offset: int | None
    target_offset: int | None
    detail: str

    def __str__(self) -> str:
        return (
            f"{self.what}: source offset {_or_none(self.source_offset)}, "
            f"target offset {_or_none(self.target_offset)}: {self.detail}"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Records by what became of them; `differences` are the first few of `counts`, by offset.

    `not_comparable` are those that one side has lost by retention or compaction. When `gave_up` says why,
    the rest was not compared.
    """

    equal: int = 0
    foreign: int = 0
    not_comparable: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()
    gave_up: str | None = None

    @property
    def is_equal(self) -> bool:
        return not self.counts and self.gave_up is None

    def __add__(self, other: "Comparison") -> "Comparison":
        """Of a range and the one that follows it."""
        return Comparison(
            self.equal + other.equal,
            self.foreign + other.foreign,
            self.not_comparable + other.not_comparable,
            dict(Counter(self.counts) + Counter(other.counts)),
            (*self.differences, *other.differences)[:_SHOWN_MAX],
            self.gave_up or other.gave_up,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "equal": self.equal,
            "foreign": self.foreign,
            "not_comparable": self.not_comparable,
            "counts": dict(self.counts),
            "differences": [difference._asdict() for difference in self.differences],
            "gave_up": self.gave_up,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "Comparison":
        """Raises KeyError or TypeError for anything else than `to_json` makes."""
        differences = tuple(Difference(**difference) for difference in told["differences"])
        return cls(**{**told, "differences": differences})


class Log(NamedTuple):
    """What to compare of one side: batches without control batches and aborted records, and which offsets.

    `later` is what follows the span, read only when compaction has to be explained.
    """

    batches: Iterable[FetchedBatch]
    span: Span
    later: Iterable[FetchedBatch] = ()


def compare(source: Log, target: Log, rules: Rules) -> Comparison:
    """Raises CorruptBatchError for a batch that can't be opened."""
    return _Comparing(source, target, rules).run()


class _GaveUpError(Exception):
    """The rest is not worth comparing; the message says why."""


class _Comparing:
    def __init__(self, source: Log, target: Log, rules: Rules) -> None:
        self._logs = source, target
        self._source = SourceSide(source.batches, source.span, timestamps=rules.timestamps)
        self._target = Side(target.batches, target.span, timestamps=rules.timestamps)
        self._rules = rules
        self._equal = self._not_comparable = 0
        self._findings = _Findings(self._source, rules)
        self._cleaned_at_target = _Cleaned()
        self._cleaned_at_source = _Cleaned()

    def run(self) -> Comparison:
        gave_up = None
        try:
            while self._pop_equal() and self._close_gap():
                pass
            self._settle_rest()
            self._settle_cleaned()
        except _GaveUpError as reason:
            gave_up = str(reason)
        found = self._findings
        differences = sorted(found.differences, key=_place)
        return Comparison(
            self._equal,
            found.foreign,
            self._not_comparable,
            dict(Counter(difference.what for difference in differences)),
            tuple(differences[:_SHOWN_MAX]),
            gave_up,
        )

    # what is equal

    def _pop_equal(self) -> bool:
        """Go on as long as both sides hold the same; False when a side ends."""
        source, target = self._source, self._target
        while True:
            self._pop_equal_batches()
            if not (source.has(1) and target.has(1)):
                return False
            ours, theirs = source.opened, target.opened
            while ours and theirs:
                record, copy = ours[0], theirs[0]
                if record.body != copy.body or record.timestamp != copy.timestamp:
                    return True
                if self._rules.is_compacted:
                    self._note_key(record, self._cleaned_at_source, self._cleaned_at_target)
                ours.popleft()
                theirs.popleft()
                self._equal += 1

    def _pop_equal_batches(self) -> None:
        source, target, timestamps = self._source, self._target, self._rules.timestamps
        if self._cleaned_at_source or self._cleaned_at_target:
            return  # keys must be seen
        while (batch := source.whole_batch()) and (copy := target.whole_batch()):
            if not same_bytes(batch, copy, timestamps=timestamps):
                return
            self._equal += batch.header.record_count
            source.pop_batch()
            target.pop_batch()

    # what is not

    def _close_gap(self) -> bool:
        """Explain what lies before the place where the sides meet again; False when they don't."""
        meeting = self._find_meeting()
        if meeting is None:
            return False
        missing, extra = meeting
        self._settle(self._source.take(missing), self._target.take(extra))
        return True

    def _find_meeting(self) -> tuple[int, int] | None:
        """How many records each side has before it; None when there is none up to the end of both."""
        source, target = self._source, self._target
        count = _LOOKAHEAD_MIN
        while True:
            is_all = not (source.has(count) | target.has(count))
            meeting = self._meeting_within(count)
            # What lies beyond this window on one side is farther than what is found that near.
            if meeting is not None and (is_all or sum(meeting) <= count):
                return meeting
            if is_all:
                return None
            if count >= _LOOKAHEAD_MAX or _size(source, count) + _size(target, count) > _LOOKAHEAD_BYTES_MAX:
                if meeting is not None:
                    return meeting
                raise _GaveUpError(
                    f"from source offset {source.opened[0].offset} and target offset "
                    f"{target.opened[0].offset} on, the next {count:,} records have nothing in common"
                )
            count *= 4

    def _meeting_within(self, count: int) -> tuple[int, int] | None:
        places: dict[Hashable, int] = {}
        for at, record in enumerate(islice(self._source.opened, count)):
            places.setdefault(record.content, at)
        best: tuple[int, int] | None = None
        for at, record in enumerate(islice(self._target.opened, count)):
            if best is not None and at > self._distance(best)[0]:
                break
            place = places.get(record.content)
            if place is not None and (best is None or self._distance((place, at)) < self._distance(best)):
                best = place, at
        return best

    def _distance(self, meeting: tuple[int, int]) -> tuple[int, int]:
        return sum(meeting), meeting[0]

    def _settle_rest(self) -> None:
        """One side has ended, or they don't meet again."""
        source, target = self._source, self._target
        while source.has(1) or (self._rules.target_end_is_known and target.has(1)):
            source.has(_LOOKAHEAD_MIN)
            if self._rules.target_end_is_known:
                target.has(_LOOKAHEAD_MIN)
                self._settle(source.take(len(source.opened)), target.take(len(target.opened)))
            else:
                self._settle(source.take(len(source.opened)), [])

    def _settle(self, missing: list[Record], extra: list[Record]) -> None:
        rules = self._rules
        if not self._equal:
            if extra and rules.source_lost_beginning:
                self._not_comparable += len(extra)
                extra = []
            elif missing and rules.target_lost_beginning:
                self._not_comparable += len(missing)
                missing = []
        missing, extra = self._findings.settle(missing, extra)
        for record in missing:
            self._settle_one(record, None)
        for record in extra:
            self._settle_one(None, record)

    def _settle_one(self, record: Record | None, copy: Record | None) -> None:
        """A record that only one side has, unless a change of order comes to light later."""
        rules = self._rules
        if record is not None:
            if rules.is_compacted:
                self._note_key(record, self._cleaned_at_source)
            if rules.target_is_compacted and self._cleaned_at_target.take(record):
                self._not_comparable += 1
            else:
                self._findings.add_missing(record)
        elif copy is not None:
            if rules.is_compacted:
                self._note_key(copy, self._cleaned_at_target)
            if rules.source_is_compacted and self._cleaned_at_source.take(copy):
                self._not_comparable += 1
            else:
                self._findings.add_extra(copy)

    # compaction

    def _note_key(self, record: Record, *cleaned: "_Cleaned") -> None:
        for side in cleaned:
            side.saw(record)

    def _settle_cleaned(self) -> None:
        """The cleaner keeps the last record of every key: who took one for cleaned must find a later one."""
        for cleaned, log, add in (
            (self._cleaned_at_target, self._logs[1], self._findings.add_missing),
            (self._cleaned_at_source, self._logs[0], self._findings.add_extra),
        ):
            later = Side(log.later if cleaned else (), Span(log.span.end, 1 << 62), timestamps=False)
            while cleaned and later.has(1):
                cleaned.saw(later.take(1)[0])
            for record in cleaned.left():
                self._not_comparable -= 1
                add(record)


class _Cleaned:
    """Records that one side lacks and may lack, provided that a later one of the same key follows there."""

    def __init__(self) -> None:
        self._awaiting: dict[bytes, Record] = {}

    def __bool__(self) -> bool:
        return bool(self._awaiting)

    def take(self, record: Record) -> bool:
        """Whether compaction explains it, as far as is known yet."""
        key, value, _ = read_body(record.body)
        if key is None:
            return False
        if value is None:  # the cleaner removes these too, in time, after what they delete
            self._awaiting.pop(key, None)
            return True
        self._awaiting.setdefault(key, record)
        if len(self._awaiting) > _AWAITED_MAX:
            raise _GaveUpError(f"compaction left more than {_AWAITED_MAX:,} keys to explain")
        return True

    def saw(self, record: Record) -> None:
        if self._awaiting:
            self._awaiting.pop(read_key(record.body) or b"", None)

    def left(self) -> list[Record]:
        return list(self._awaiting.values())


class _Findings:
    """Differences so far. One that comes to light in two places, as missing and as extra, is one of order."""

    def __init__(self, source: SourceSide, rules: Rules) -> None:
        self._source = source
        self._rules = rules
        self.foreign = 0
        self._changed: list[Difference] = []
        self._missing: dict[Hashable, list[Record]] = {}
        self._extra: dict[Hashable, list[tuple[Record, str]]] = {}
        self._foreign: OrderedDict[Hashable, Record] = OrderedDict()
        self._count = 0

    @property
    def differences(self) -> list[Difference]:
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
        return [*self._changed, *missing, *extra]

    def settle(self, missing: list[Record], extra: list[Record]) -> tuple[list[Record], list[Record]]:
        """What is left of a gap when what was moved or changed is taken out."""
        missing = [record for record in missing if not self._moved_forward(record)]
        extra = [record for record in extra if not self._moved_back(record)]
        missing, extra = self._swapped(missing, extra)
        pairs = list(zip(missing, extra, strict=False))
        changed = [are_related(*pair, compacted=self._rules.is_compacted) for pair in pairs]
        for (record, copy), is_changed in zip(pairs, changed, strict=True):
            if is_changed:
                parts = list(changes(record, copy))
                what = ", ".join(name for name, _ in parts)
                detail = "; ".join(f"{name} {became}" for name, became in parts)
                self._note(Difference(what, record.offset, copy.offset, detail))
        rest = [pair for pair, is_changed in zip(pairs, changed, strict=True) if not is_changed]
        return (
            [record for record, _ in rest] + missing[len(pairs) :],
            [copy for _, copy in rest] + extra[len(pairs) :],
        )

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
            if len(self._foreign) > _LOOSE_MAX:
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
        copies: dict[Hashable, list[Record]] = {}
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

    def _note_order(self, record: Record, copy: Record) -> None:
        self._note(Difference(ORDER, record.offset, copy.offset, f"out of order: {preview(record)}"))

    def _note(self, difference: Difference) -> None:
        self._changed.append(difference)
        self._counted()

    def _counted(self) -> None:
        self._count += 1
        if self._count > _DIFFERENCES_MAX:
            raise _GaveUpError(f"more than {_DIFFERENCES_MAX:,} differences")


def _pop(of: dict[Hashable, list[T]], content: Hashable) -> T:
    found = of[content].pop(0)
    if not of[content]:
        del of[content]
    return found


def _place(difference: Difference) -> int:
    source, target = difference.source_offset, difference.target_offset
    return source if source is not None else target if target is not None else 0


def _size(side: Side, count: int) -> int:
    return sum(len(record.body) for record in islice(side.opened, count))


def _or_none(offset: int | None) -> str:
    return "-" if offset is None else str(offset)
