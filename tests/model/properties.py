"""The properties that hold in every state, and those that hold once an attempt has copied everything."""

from tests.model import source_log
from tests.model.incidents import explains_double, explains_missing, has_changed_history, without_cause
from tests.model.state import NOTHING, Faults, State, epoch_of, offset_of
from tests.model.target_log import is_data


def violation(state: State, allowed: Faults) -> str | None:
    """In any state; `allowed` are the faults that could happen from the beginning."""
    return (
        _number_with_two_meanings(state)
        or _unexplained_double(state, allowed, is_final=False)
        or _position_ahead(state, allowed)
        or _false_alarm(state, allowed)
    )


def final_violation(state: State, allowed: Faults) -> str | None:
    """When an attempt has just finished."""
    return (
        violation(state, allowed)
        or _unexplained_double(state, allowed, is_final=True)
        or _missing(state, allowed)
        or _silent_change_of_history(state)
    )


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


def _unexplained_double(state: State, allowed: Faults, *, is_final: bool) -> str | None:
    """Where a leader forgets producers, a fenced batch may get in: its incident follows later.

    There is none while it is not replicated, or if it expires unseen.
    An older history of the source that returns brings records that were copied when it was there before.
    """
    for record, late in _doubles(state):
        if explains_double(state.incidents, offset_of(record)):
            continue
        is_seen = state.target.start <= late < state.target.high_watermark
        if late != NOTHING and allowed.forget and not (is_final and is_seen):
            continue
        if state.faults.revive < allowed.revive and has_changed_history(state.incidents):
            continue
        return f"record {record} is on the target twice, without an incident"
    return None


def _doubles(state: State) -> list[tuple[int, int]]:
    """Records that are on the target twice, and the offset where a fenced attempt wrote one of the two."""
    first: dict[int, int] = {}
    doubles = []
    newest = 0
    for offset, entry in enumerate(state.target.log):
        newest = max(newest, entry.writer)
        if not is_data(entry):
            continue
        late = offset if entry.writer < newest else NOTHING
        if entry.record in first:
            late = max(late, first[entry.record])
            doubles.append((entry.record, late))
        first[entry.record] = late
    return doubles


def _position_ahead(state: State, allowed: Faults) -> str | None:
    position, target = state.position, state.target
    if position is None or position.target_end <= target.start or state.faults.truncate < allowed.truncate:
        return None
    at = position.target_end - 1
    if at >= target.high_watermark or target.log[at].record != position.record:
        return f"the position names record {position.record}, which is not at {at}"
    return None


def _false_alarm(state: State, allowed: Faults) -> str | None:
    kind = without_cause(state.incidents, allowed, state.faults)
    return kind and f"an incident {kind}, and nothing of that kind has happened"


def _missing(state: State, allowed: Faults) -> str | None:
    """Every record of the source's present log, in order; also those that expired after they could be copied.

    What the target lost where its log has expired since would be gone by now in any case. And no attempt
    can know of records that an unclean election put there instead, if they expired before the next fetch.
    """
    written = [entry.record for entry in state.target.log if is_data(entry)]
    there, in_order = set(written), iter(written)
    gone = {record for record, at in state.target.lost if at < state.target.start}
    for record in source_log.records(state.source):
        offset = offset_of(record)
        if record in gone or explains_missing(state.incidents, offset):
            continue
        if record not in there:
            if offset < state.source.start and _is_out_of_sight(state, allowed, there, record):
                continue
            return f"record {record} is not on the target, without an incident"
        if record not in in_order:
            return f"record {record} is not in order on the target"
    return None


def _is_out_of_sight(state: State, allowed: Faults, there: set[int], record: int) -> bool:
    """Whether the place of the record was read while another history stood there, and nobody looked since."""
    if epoch_of(record) <= state.looked and state.faults.revive == allowed.revive:
        return False
    read = [
        (offset_of(other), epoch_of(other)) for other in (*there, *(lost for lost, _ in state.target.lost))
    ]
    read += [(run.offset - 1, run.lineage.claim) for run in state.runs]
    read += [(attempt.lineage.end - 1, attempt.lineage.claim) for attempt in state.attempts]
    return any(offset >= offset_of(record) and epoch != epoch_of(record) for offset, epoch in read)


def _silent_change_of_history(state: State) -> str | None:
    """Records that the source no longer has stand before others: somebody should know."""
    if state.incidents:
        return None
    source = state.source
    for entry in state.target.log:
        if not is_data(entry) or offset_of(entry.record) < source.start:
            continue
        offset = offset_of(entry.record)
        if offset >= len(source.log) or source_log.epoch_at(source, offset) != epoch_of(entry.record):
            return f"record {entry.record} is on the target, the source has lost it, without an incident"
    return None
