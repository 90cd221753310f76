"""The properties that hold in every state, and those that hold once a task has copied everything."""

from collections.abc import Iterator

from tests.model import source_log
from tests.model.incidents import explains_change, explains_double, explains_missing, without_cause
from tests.model.state import COPY, Entry, Faults, State, Target, epoch_of, offset_of
from tests.model.target_log import is_data


def violation(before: State, state: State, allowed: Faults) -> str | None:
    """Return a violation in any state; `allowed` are the faults that could happen from the beginning.

    The state `before` is judged already: of what the step left alone nothing new can be said.
    """
    is_same_target = state.target is before.target
    has_same_incidents = state.incidents is before.incidents
    if is_same_target and has_same_incidents:
        if state.network is not before.network:
            return _number_with_two_meanings(state) or _position_ahead(state, allowed)
        return None if state.position is before.position else _position_ahead(state, allowed)
    return (
        _number_with_two_meanings(state)
        or _unexplained_double(state)
        or _position_ahead(state, allowed)
        or (None if has_same_incidents else _false_alarm(state, allowed))
    )


def final_violation(before: State, state: State, allowed: Faults) -> str | None:
    """When a task has just finished."""
    return violation(before, state, allowed) or _missing(state, allowed) or _silent_change_of_history(state)


def repeating_violation(state: State, allowed: Faults, *, is_final: bool) -> str | None:
    """Return a violation where records may come twice; `is_final` when a task has just finished."""
    found = _number_with_two_meanings(state) or _position_ahead(state, allowed)
    return found or (_missing(state, allowed) if is_final else None)


def _number_with_two_meanings(state: State) -> str | None:
    meanings: dict[tuple[int, int], int] = {}
    for entry in state.target.log:
        if (
            is_data(entry)
            and meanings.setdefault((entry.writer, entry.sequence), entry.record) != entry.record
        ):
            return f"sequence {entry.sequence} of {entry.writer} stands for two records"
    for _, batch in state.network:
        for sequence, record in enumerate(batch.records, batch.sequence):
            if meanings.setdefault((batch.writer, sequence), record) != record:
                return f"sequence {sequence} of {batch.writer} stands for two records"
    return None


def _unexplained_double(state: State) -> str | None:
    """But for what a leader should have refused, which the protocol can only notice, and not in all places.

    And but for what was written in the place of lost records, and not acknowledged, where nothing finds it.
    """
    target = state.target
    records = [entry.record for entry in target.log if entry.sequence >= 0]
    if len(set(records)) == len(records):
        return None
    out_of_sight = _out_of_sight(state)
    first: dict[int, int] = {}
    for offset, entry in enumerate(target.log):
        if not is_data(entry):
            continue
        before = first.setdefault(entry.record, offset)
        is_known = entry.record in target.let_in or explains_double(state.incidents, offset_of(entry.record))
        if before < offset and before not in out_of_sight and not is_known:
            return (
                f"record {entry.record} is on the target twice, at {before} and {offset}, without an incident"
            )
    return None


def _out_of_sight(state: State) -> set[int]:
    """Whether a target that lost records had others in their place, which have expired since."""
    target, begins = state.target, dict(state.target.begins)
    return {
        offset
        for offset, entry in enumerate(target.log[: target.start])
        if target.lost or offset < begins.get(entry.writer, 0)
    }


def _position_ahead(state: State, allowed: Faults) -> str | None:
    """Whether a position is ahead of what was acknowledged and is on the target, unless that lost it."""
    position, target = state.position, state.target
    if position is None or not position.sequence or target.lost or position.target_end <= target.start:
        return None
    last = position.writer, position.sequence - 1
    there = target.log[: min(position.target_end, target.high_watermark)]
    if any((entry.writer, entry.sequence) == last for entry in there):
        return None
    return f"the position names sequence {last[1]} of {last[0]}, which is not on the target"


def _false_alarm(state: State, allowed: Faults) -> str | None:
    kind = without_cause(state.incidents, allowed, state.faults)
    return kind and f"an incident {kind}, and nothing of that kind has happened"


def _missing(state: State, allowed: Faults) -> str | None:
    """Every record of the source's present log, in order; also those that expired after they could be copied.

    What the target lost where its log has expired since would be gone by now in any case. It is not missed
    before something else stands in its place, nor if that is a marker, a foreign record, one that was let in,
    or one of an attempt that had begun behind it; nor where a hole shows only beside what has expired. And
    nobody can know of what was written after an unclean election of the source, if it expired before the next
    Fetch.
    """
    target, source = state.target, state.source
    begins = dict(target.begins)
    written = [entry.record for entry in target.log if is_data(entry)]
    there, in_order = set(written), iter(written)
    others = {
        offset
        for offset, entry in enumerate(target.log)
        if not is_data(entry) or entry.record in target.let_in or begins.get(entry.writer, 0) > offset
    }
    gone = {record for record, at in target.lost if not target.start <= at < len(target.log) or at in others}
    was_cut = state.faults.cut < allowed.cut
    for record in source_log.records(source):
        if record in gone or explains_missing(state.incidents, offset_of(record)):
            continue
        if record not in there:
            if any(offset_of(record) in hole for hole in _hidden_holes(target)):
                continue
            if was_cut and epoch_of(record) and offset_of(record) < source.start:
                continue
            return f"record {record} is not on the target, without an incident"
        if record not in in_order:
            return f"record {record} is not in order on the target"
    return None


def _hidden_holes(target: Target) -> Iterator[range]:
    """Source offsets that a writer left out right before the first of its records that has not expired.

    Which of its sequences stood before that can't be seen: others' entries may have had their offsets, or
    that record itself, which a leader that forgot has taken twice.
    """
    expired: dict[int, list[Entry]] = {}
    for entry in target.log[: target.start]:
        if is_data(entry):
            expired.setdefault(entry.writer, []).append(entry)
    met: set[int] = set()
    for entry in target.log[target.start :] if target.start else ():
        if not is_data(entry) or entry.writer in met:
            continue
        met.add(entry.writer)
        before = [each for each in expired.get(entry.writer, ()) if each.sequence < entry.sequence]
        last = before[-1] if before else None
        if entry.sequence > (0 if last is None else last.sequence + 1):
            yield range(0 if last is None else offset_of(last.record) + 1, offset_of(entry.record))


def _silent_change_of_history(state: State) -> str | None:
    """Records that the source no longer has are before others: an operator should know.

    But for what a leader should have refused, as with doubles, for what is told as perhaps written twice, and
    for what another attempt writes, which tells it by its next Fetch.
    """
    source, target = state.source, state.target
    copying = {task.writer for task in state.tasks if task.phase == COPY}
    for entry in target.log[target.start :]:
        if not is_data(entry) or entry.writer in copying:
            continue
        if entry.record in target.let_in or offset_of(entry.record) < source.start:
            continue
        offset = offset_of(entry.record)
        is_gone = offset >= len(source.log) or source_log.epoch_at(source, offset) != epoch_of(entry.record)
        if not is_gone or explains_change(state.incidents, offset):
            continue
        if not explains_double(state.incidents, offset):
            return f"record {entry.record} is on the target, the source has lost it, without an incident"
    return None
