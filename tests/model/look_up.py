"""Finds where an attempt continues, from records of attempts, the stored position and the target's log."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from tests.model.incidents import DOUBLED, EVERYTHING, TARGET_LOST, UNCERTAIN
from tests.model.rules import Find, Rules
from tests.model.source_log import is_record
from tests.model.state import (
    CLOSED,
    NOTHING,
    OPEN,
    End,
    Entry,
    Incident,
    Position,
    Record,
    Source,
    Target,
    Task,
    offset_of,
)
from tests.model.target_log import is_data

NEWEST: Final = 10**6
"""The source's newest leader epoch, in a mutant."""


class Start(NamedTuple):
    """`offset` is the source's next one, read in leader epoch `epoch`."""

    offset: int
    epoch: int
    incidents: tuple[Incident, ...] = ()


class _Known(NamedTuple):
    """The certain acknowledgements of an attempt: all that follows is behind this target offset."""

    end: End
    target_end: int


def last_of(records: tuple[Record, ...], writer: int) -> Record | None:
    """The attempt that began last before this one."""
    return next((record for record in reversed(records) if record.writer < writer and record.ends), None)


def is_newest(position: Position | None, last: Record, *, is_stored: bool) -> bool:
    """Whether no other attempt can have stored a newer position than the one that is known."""
    if position is None or position.writer != last.writer:
        return False
    return not is_stored or (last.stage == CLOSED and position.offset == last.ends[-1].offset)


def start_of(rules: Rules, target: Target, end: int, task: Task, last: Record) -> Start:
    """Return the start behind what the attempt before has written; the target's log ends at `end`.

    Where the own marker stands in place of what was acknowledged, that is lost.
    """
    position, marker = task.position, task.marker if rules.proves_marker else NOTHING
    if position is not None and position.writer != last.writer and not rules.attempts_decide:
        return Start(position.offset, position.epoch)
    known = _known_end(rules, last, position)
    if rules.find is Find.BY_COUNT:
        last = last._replace(ends=last.ends[:1])
    looked = _Looked(None)
    if last.stage != CLOSED or end != known.target_end or marker >= target.start:
        looked = _looked_up(rules, target, end, end if marker == NOTHING else marker, last, known)
    found, incidents = looked.end, [*doubled(looked.late)]
    if found is None:
        is_short = known.end.records > 0 and target.start <= marker < known.target_end
    else:
        is_short = found.records < known.end.records
    following = known.end if found is None or is_short else found
    if is_short or looked.is_dense or end < known.target_end:
        incidents.append((TARGET_LOST, 0, following.offset))
    elif looked.is_vague and last.stage == OPEN:
        incidents.append((UNCERTAIN, following.offset, EVERYTHING))
    return Start(following.offset, following.epoch if rules.records_epochs else NEWEST, tuple(incidents))


class _Looked(NamedTuple):
    """The end behind what the target has of an attempt, None where it has nothing that is not acknowledged.

    What is `late` comes twice. `is_dense` says that records stand in the place of others that were lost,
    `is_vague` that more may have been written where the log has expired.
    """

    end: End | None
    late: tuple[Entry, ...] = ()
    is_dense: bool = False
    is_vague: bool = False


def _looked_up(rules: Rules, target: Target, end: int, fenced: int, last: Record, known: _Known) -> _Looked:
    at, found = _last_end(target, last, fenced)
    if not rules.counts_offsets:
        return _Looked(found, is_vague=found is None and known.target_end < target.start)
    records = (known.end if found is None else found).records
    walked = _walked(target, end, last, known)
    is_dense = walked.is_short
    if found is not None and not walked.late:
        is_dense = is_dense or at - known.target_end < found.records - known.end.records
    if walked.late or walked.records > records:  # also behind the marker, if in order
        found = _end_behind(last.ends, walked.records)
    return _Looked(found, walked.late, is_dense, walked.is_vague)


def _known_end(rules: Rules, last: Record, position: Position | None) -> _Known:
    recorded = _recorded(rules, last)
    stored = _stored(last, position)
    return recorded if stored is None or stored.end.records < recorded.end.records else stored


def _recorded(rules: Rules, last: Record) -> _Known:
    if last.stage == CLOSED:
        return _Known(last.ends[-1], last.begin)
    if last.acknowledged is None or not rules.records_acknowledged:
        return _Known(last.ends[0], last.begin)
    records, target_end = last.acknowledged
    return _Known(_end_behind(last.ends, records), target_end)


def _stored(last: Record, position: Position | None) -> _Known | None:
    """Return the stored position; None if it is another attempt's, or older than an acknowledged end."""
    if position is None or position.writer != last.writer or position.sequence < last.ends[0].records:
        return None
    return _Known(End(position.sequence, position.offset, position.epoch), position.target_end)


def _last_end(target: Target, last: Record, end: int) -> tuple[int, End | None]:
    """The target offset and the end behind the attempt's last batch in the log, None where there is none."""
    begin = target.start if end < last.begin else max(target.start, last.begin)
    for offset in range(min(end, len(target.log)) - 1, begin - 1, -1):
        entry = target.log[offset]
        if is_data(entry) and entry.writer == last.writer:
            return offset + 1, _end_behind(last.ends, entry.sequence + 1)
    return begin, None


class _Walked(NamedTuple):
    """`records` precede what is `late`, which only a leader that forgot has taken.

    These are older attempts' batches, and of the last one those repeated, behind a hole or behind the marker.
    `is_short` says that its batches stand in the place of records that were acknowledged, `is_vague` that
    they do not say what had the offsets before the log's start.
    """

    records: int
    late: tuple[Entry, ...] = ()
    is_short: bool = False
    is_vague: bool = False


def _walked(target: Target, end: int, last: Record, known: _Known) -> _Walked:
    records, has_hole, late = known.end.records, False, list[Entry]()
    expired = max(target.start - known.target_end, 0)
    before = None if expired else _unacknowledged_before(target, end, last, known)
    is_vague = expired > 0
    if before is not None:
        records = before
    for entry in target.log[max(known.target_end, target.start) : end]:
        if not is_data(entry) or entry.writer > last.writer:
            continue
        ahead = entry.sequence - records
        if entry.writer == last.writer and 0 <= ahead <= expired and not has_hole:
            is_vague = is_vague and (not expired or ahead < expired)
            records, expired = entry.sequence + 1, 0
            continue
        has_hole = has_hole or (entry.writer == last.writer and ahead > 0)
        late.append(entry)
    return _Walked(records, tuple(late), before is not None, is_vague)


def _unacknowledged_before(target: Target, end: int, last: Record, known: _Known) -> int | None:
    """The sequence behind what stands before the offset where it should begin.

    Records were lost there, or a leader that forgot has taken a batch without the one before.
    """
    for entry in reversed(target.log[target.start : min(known.target_end, end)]):
        if is_data(entry) and entry.writer == last.writer and entry.first >= known.end.records:
            return entry.sequence + 1
    return None


def doubled(late: Sequence[Entry]) -> tuple[Incident, ...]:
    """An incident of what fenced attempts have written, in whole batches."""
    if not late:
        return ()
    first = min(offset_of(entry.record) - (entry.sequence - entry.first) for entry in late)
    return ((DOUBLED, first, max(offset_of(entry.record) for entry in late) + 1),)


def _end_behind(ends: tuple[End, ...], records: int) -> End:
    before = [end for end in ends if end.records <= records]
    if not before:  # older than what was acknowledged: records are lost
        return End(0, ends[0].offset, NOTHING)
    return before[-1].after(records)


def matched(source: Source, target: Target, end: int, position: Position | None) -> Start:
    """A mutant. All records look the same: each on the target is taken for the next that the source has."""
    begin, offset, epoch = (0, 0, NOTHING)
    if position is not None:
        begin, offset, epoch = position.target_end, position.offset, position.epoch
    entries = target.log[max(begin, target.start) : min(end, target.stamped)]
    count = sum(1 for entry in entries if is_data(entry))
    left = [at for at in range(max(offset, source.start), len(source.log)) if is_record(source.log[at])]
    there = left[:count]
    return Start(there[-1] + 1, source.log[there[-1]]) if there else Start(offset, epoch)
