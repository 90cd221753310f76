"""Where an attempt continues: the runs, and the target read back up to the attempt's own marker."""

from typing import NamedTuple

from tests.model.incidents import DOUBLED, EVERYTHING, RUNS_LOST, TARGET_LOST, UNCERTAIN
from tests.model.rules import Find, Rules
from tests.model.source_log import epoch_at, is_record
from tests.model.state import (
    NOTHING,
    RADIX,
    Attempt,
    Entry,
    Incident,
    Lineage,
    Position,
    Run,
    Source,
    Target,
    epoch_of,
    offset_of,
)
from tests.model.target_log import is_data


class Start(NamedTuple):
    lineage: Lineage
    """Of what is on the target; copying continues at its end."""
    incidents: tuple[Incident, ...] = ()


class Floor(NamedTuple):
    """The part of the source known to be on the target unread, and the target offset behind it."""

    lineage: Lineage
    begin: int
    leader: int
    """The target's leader epoch of what stood before that offset."""


class Known(NamedTuple):
    """What an attempt has read before it decides."""

    rules: Rules
    target: Target
    marker: int
    """The offset of its own marker: nobody before it writes behind that."""
    runs: list[Run]
    own: list[Run]
    """Those of the newest attempt before."""
    position: Position | None

    @property
    def data(self) -> list[Entry]:
        return [entry for entry in self.target.log[self.target.start : self.marker] if is_data(entry)]


def start_of(rules: Rules, source: Source, target: Target, attempt: Attempt) -> Start:
    runs = [run for run in attempt.runs if run.writer < attempt.writer]
    newest = max((run.writer for run in runs), default=0)
    own = [run for run in runs if run.writer == newest]
    position = attempt.position
    if position is not None and position.writer >= attempt.writer:
        position = None
    known = Known(rules, target, attempt.marker, runs, own, position)
    if _lacks_runs(known, newest):
        return _without_runs(known)
    if not own:
        return Start(Lineage())
    if position is not None and position.writer != newest and rules.own_positions_only:
        known = known._replace(position=None)
    return _resumed(known, source)


def _lineage_before(known: Known, writer: int, sequence: int) -> Lineage:
    """Of everything before the record that `sequence` stands for, or would.

    A start behind batches that got lost may show that the source was truncated before them.
    """
    run = [run for run in known.runs if run.writer == writer and run.sequence <= sequence][-1]
    lineage = run.lineage
    if run.sequence != sequence:
        lineage = lineage.read(run.epoch, run.offset + sequence - run.sequence)
    if known.rules.heeds_newer_starts:
        for newer in known.runs:
            if newer.has_diverged and (newer.writer, newer.sequence) > (writer, sequence):
                lineage = lineage.agreed(newer.lineage)
    return lineage


def _resumed(known: Known, source: Source) -> Start:
    if _has_lost_records(known):
        return _behind_truncation(known)
    if known.position is not None and known.position.target_end > known.marker:
        # a fenced attempt went on, as the leader had forgotten its producer
        known = known._replace(position=None)
    floor = _floor(known)
    if known.rules.find is Find.BY_CONTENT:
        return _matched(known, source, floor)
    return _read_back(known, floor)


def _floor(known: Known) -> Floor:
    first, position = known.own[0], known.position
    if position is None:
        return Floor(_lineage_before(known, first.writer, 0), first.marker + 1, first.leader)
    is_own = position.writer == first.writer
    lineage = _lineage_before(known, first.writer, position.sequence + 1) if is_own else _lineage_of(position)
    return Floor(lineage, position.target_end, position.leader)


def _read_back(known: Known, floor: Floor) -> Start:
    rules, own = known.rules, known.own
    entries = known.target.log[max(floor.begin, known.target.start) : known.marker]
    late = _doubled([entry for entry in entries if is_data(entry) and entry.writer < own[0].writer])
    copied = [entry.sequence for entry in entries if is_data(entry) and entry.writer == own[0].writer]
    if copied:
        if rules.find is Find.BY_COUNT:
            known = known._replace(runs=[run for run in own if run.epoch != NOTHING][:1])
        return Start(_lineage_before(known, own[0].writer, copied[-1] + 1), late)
    is_trusted = known.position is not None and not (rules.exact_positions_only and rules.own_positions_only)
    if is_trusted or _is_all_visible(known.target, floor):
        return Start(floor.lineage, late)
    return Start(floor.lineage, (*late, (UNCERTAIN, floor.lineage.end, EVERYTHING)))


def _is_all_visible(target: Target, floor: Floor) -> bool:
    """A log that starts right behind that part, under the same leader epoch, has lost nothing else."""
    if floor.begin != target.start:
        return floor.begin > target.start
    return floor.begin < len(target.log) and target.log[floor.begin].leader == floor.leader


def _doubled(late: list[Entry]) -> tuple[Incident, ...]:
    if not late:
        return ()
    offsets = [offset_of(entry.record) for entry in late]
    return ((DOUBLED, min(offsets), max(offsets) + 1),)


# the target has lost records


def _has_lost_records(known: Known) -> bool:
    """Whether something that stood in the log no longer does; what has expired proves nothing."""
    rules, target, _, _, own, position = known
    if position is not None and position.target_end > target.start and rules.proves_position:
        at = position.target_end - 1
        entry = target.log[at] if at < target.high_watermark else None
        return entry is None or (entry.writer, entry.sequence) != (position.writer, position.sequence)
    at = own[0].marker
    if at < target.start or not rules.proves_marker or position is not None:
        return False
    return at >= known.marker or target.log[at] != Entry(own[0].writer, own[0].leader)


def _behind_truncation(known: Known) -> Start:
    """Continue behind the last record that is left. Where none is left, what was acknowledged is given up."""
    data = known.data
    if data:
        writer = max(entry.writer for entry in data)
        last = [entry for entry in data if entry.writer == writer][-1]
        lineage = _lineage_before(known, writer, last.sequence + 1)
        return Start(lineage, ((TARGET_LOST, 0, 0),))
    lineage = _floor(known).lineage
    lost = (TARGET_LOST, 0, lineage.end)
    return Start(lineage, (lost, (UNCERTAIN, lineage.end, EVERYTHING)) if known.target.start else (lost,))


# the run store has lost records


def _lacks_runs(known: Known, newest: int) -> bool:
    """Runs have consecutive numbers; every record and position of ours has a run."""
    if any(run.number != number for number, run in enumerate(known.own)):
        return True
    position = known.position
    if position is not None:
        if position.writer > newest:
            return True
        if position.writer == newest and _contradicts(known.own, position):
            return True
    return any(entry.writer > newest for entry in known.data)


def _contradicts(own: list[Run], position: Position) -> bool:
    run = [run for run in own if run.sequence <= position.sequence][-1]
    return run.epoch * RADIX + run.offset + position.sequence - run.sequence != position.record


def _without_runs(known: Known) -> Start:
    """Continue behind the last record that is known for certain."""
    lineage, writer = Lineage(), 0
    for entry in known.data:
        own = [run for run in known.runs if run.writer == entry.writer]
        if entry.writer >= writer and own and all(run.number == number for number, run in enumerate(own)):
            writer = entry.writer
            lineage = _lineage_before(known, writer, entry.sequence + 1)
    position = known.position
    if position is not None and position.writer >= writer and offset_of(position.record) >= lineage.end:
        lineage = _lineage_of(position)
    return Start(lineage, ((RUNS_LOST, 0, 0), (UNCERTAIN, lineage.end, EVERYTHING)))


def _lineage_of(position: Position) -> Lineage:
    offset = offset_of(position.record)
    return Lineage(offset, ((epoch_of(position.record), offset + 1),))


# a mutant


def _matched(known: Known, source: Source, floor: Floor) -> Start:
    """All records look the same: each on the target is taken for the next that the source still has."""
    target = known.target
    entries = target.log[max(floor.begin, target.start) : min(known.marker, target.stamped)]
    count = sum(1 for entry in entries if is_data(entry))
    offsets = range(max(floor.lineage.end, source.start), len(source.log))
    there = [offset for offset in offsets if is_record(source.log[offset])][:count]
    if not there:
        return Start(floor.lineage)
    return Start(floor.lineage.read(epoch_at(source, there[-1]), there[-1] + 1))
