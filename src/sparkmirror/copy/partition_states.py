"""Decides what a mirrored partition does next: `step` takes an event, and returns a state and instructions.

What fetching, producing, resuming, transactions and limits report about a partition arrives here as an event;
`Instructions` carries out what follows. TABLE has every pair of phase and event that can occur, any other
raises. The diagram in `docs/design/partition-states.md` is rendered from it.

Pure.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from sparkmirror.copy import partition_events as events
from sparkmirror.copy.copy_state import CopyState, Phase
from sparkmirror.copy.partition_events import Do, Event, Instruction, ResumeReason
from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.errors import KafkaError

_EXPLAINED_WITHIN: Final = 12
"""The target's log is looked at this often before a refused sequence is sent again. That takes 36 s: what
another attempt wrote shows once followers have it, and brokers wait 30 s for slow ones
(`replica.lag.time.max.ms`)."""

UNREACHABLE: Final = Backoff(0.2, 5.0)
USER_NEEDED: Final = Backoff(1.0, 30.0)
"""The waits where only a user can help: the partition then continues by itself."""


class Next(NamedTuple):
    state: CopyState
    instructions: tuple[Instruction, ...] = ()


Act = Callable[[CopyState, Any, float], Next]


class Transition(NamedTuple):
    """The phase that an event leads to, and the change it makes. `act` leaves the phase to `step`."""

    to: Phase
    act: Act


class ImpossibleEventError(RuntimeError):
    """A bug: what was reported can't happen in this phase."""


def step(state: CopyState, event: Event, now: float) -> Next:
    """The next state, and what must be done, in that order."""
    transition = TABLE[state.phase].get(type(event))
    if transition is None:
        raise ImpossibleEventError(f"{type(event).__name__} while {state.phase.value}")
    changed, instructions = transition.act(state, event, now)
    deadline = next((do.deadline for do in instructions if isinstance(do, events.SetTimer)), None)
    if transition.to is state.phase and deadline is None:
        return Next(changed, instructions)
    entered = replace(changed, phase=transition.to, deadline=deadline)
    return Next(entered, (*_left_behind(state, event), *instructions))


def _left_behind(state: CopyState, event: Event) -> Iterator[Instruction]:
    """Ends what the phase that is left has under way."""
    if state.deadline is not None and not isinstance(event, events.TimerExpired):
        yield Do.CANCEL_TIMER
    if state.phase is Phase.RESOLVING and not isinstance(event, events.Resolved | events.ResolveFailed):
        yield Do.CANCEL_RESOLVE
    if state.phase is Phase.LOOKING_UP and not isinstance(event, events.WritersKnown):
        yield Do.CANCEL_LOOK_UP


# what events change


def _do(*instructions: Instruction) -> Act:
    """Changes nothing but the phase."""
    return lambda state, _, __: Next(state, instructions)


def _position_read(state: CopyState, event: events.PositionRead, _: float) -> Next:
    return _resolve(state, ResumeReason(event.position, is_stored=True))


def _resolve(state: CopyState, reason: ResumeReason, *first: Instruction) -> Next:
    return Next(replace(state, reason=reason, attempts=0), (*first, events.Resolve(reason)))


def _resolve_again(state: CopyState, _: Event, __: float) -> Next:
    is_distrusted = state.reason.is_distrusted and state.attempts < _EXPLAINED_WITHIN
    return Next(state, (events.Resolve(state.reason._replace(is_distrusted=is_distrusted)),))


def _resolved(state: CopyState, event: events.Resolved, _: float) -> Next:
    return Next(replace(state, fetch_error=None, write_error=None), (events.StartFrom(event.start),))


def _resolve_failed(state: CopyState, event: events.ResolveFailed, now: float) -> Next:
    backoff = UNREACHABLE if event.error.retriable else USER_NEEDED
    attempts = state.attempts + 1
    deadline = now + backoff.delay_s(attempts, event.randomness)
    # What both logs say now is newer than why they were looked at; where they can't be read nothing is.
    write_error = state.write_error if event.error.retriable else None
    failed = replace(state, fetch_error=event.error, write_error=write_error, attempts=attempts)
    return Next(failed, (events.SetTimer(deadline),))


def _throttle(state: CopyState, event: events.LimitReached, now: float) -> Next:
    return Next(state, (Do.PAUSE_FETCH, events.SetTimer(now + event.throttle_s)))


def _look_up(state: CopyState, event: events.WritersUnknown, _: float) -> Next:
    return Next(state, (Do.PAUSE_FETCH, events.LookUp(event.producer_ids)))


def _writers_known(state: CopyState, event: events.WritersKnown, _: float) -> Next:
    notes = () if event.unseen is None else (events.Note(event.unseen),)
    return Next(state, (*notes, Do.FETCH_NEXT))


def _drain(state: CopyState, event: events.SourceIncident | events.RenewalDue, _: float) -> Next:
    match event:
        case events.OutOfRange():
            reason = ResumeReason(is_gone=True)
        case events.Diverged(at, epoch):
            reason = ResumeReason(diverged_at=at, diverging_epoch=epoch)
        case events.SourceBatchSkipped(letter):
            reason = ResumeReason(skipped=letter)
        case events.SourceRecreated():
            reason = ResumeReason()
        case events.RenewalDue():
            reason = ResumeReason(renews=True)
    return Next(replace(state, reason=reason), (Do.PAUSE_FETCH, Do.AWAIT_DRAINED))


def _drained(state: CopyState, _: Event, __: float) -> Next:
    return _resolve(state, state.reason)


def _claim_again(state: CopyState, event: events.SequenceLost | events.MarkersFailed, _: float) -> Next:
    failed = replace(state, write_error=event.error)
    reason = ResumeReason(is_distrusted=isinstance(event, events.SequenceLost))
    return _resolve(failed, reason, Do.DISCARD, Do.PAUSE_FETCH)


def _target_recreated(state: CopyState, _: Event, __: float) -> Next:
    return _resolve(state, ResumeReason(), Do.DISCARD, Do.PAUSE_FETCH)


def _target_batch_skipped(state: CopyState, event: events.TargetBatchSkipped, _: float) -> Next:
    return _resolve(state, ResumeReason(skipped=event.letter), Do.DISCARD, Do.PAUSE_FETCH)


def _mismatched(state: CopyState, event: events.OffsetMismatch, _: float) -> Next:
    """Send nothing more. Batches in flight arrive all the same."""
    reason = ResumeReason(taken=event.taken)
    failed = replace(state, reason=reason, write_error=KafkaError(event.incident.text))
    return Next(failed, (events.Note(event.incident), Do.PAUSE_FETCH, Do.FREE_BUFFER, Do.AWAIT_DRAINED))


def _fenced(state: CopyState, event: events.Fenced, now: float) -> Next:
    """The position is another task's, unless that ends soon: it is read again after a pause."""
    stop = Do.DISCARD, Do.FORGET_POSITION, Do.PAUSE_FETCH
    return Next(replace(state, write_error=event.error), (*stop, events.SetTimer(now + event.pause_s)))


def _fenced_at_stop(state: CopyState, event: events.Fenced, _: float) -> Next:
    return Next(replace(state, write_error=event.error), (Do.DISCARD, Do.FORGET_POSITION))


def _fail_reading(state: CopyState, event: events.SourceBatchFailed, now: float) -> Next:
    failed = replace(state, fetch_error=event.error, failures=state.failures + 1)
    return Next(failed, (Do.PAUSE_FETCH, _retry(failed, event.randomness, now)))


def _fail_writing(state: CopyState, event: events.TargetBatchFailed, now: float) -> Next:
    failed = replace(state, write_error=event.error, failures=state.failures + 1)
    return Next(failed, (Do.DISCARD, Do.PAUSE_FETCH, _retry(failed, event.randomness, now)))


def _block(state: CopyState, event: events.BufferNeeded, now: float) -> Next:
    failed = replace(state, failures=state.failures + 1)
    return Next(failed, (Do.PAUSE_FETCH, Do.FREE_BUFFER, _retry(failed, event.randomness, now)))


def _retry(state: CopyState, randomness: float, now: float) -> events.SetTimer:
    return events.SetTimer(now + USER_NEEDED.delay_s(state.failures, randomness))


def _note_fetch_error(
    state: CopyState, event: events.FetchFailed | events.PositionUnreadable | events.LookUpFailed, _: float
) -> Next:
    return Next(replace(state, fetch_error=event.error))


def _clear_fetch_error(state: CopyState, _: Event, __: float) -> Next:
    return Next(replace(state, fetch_error=None))


def _note_write_error(state: CopyState, event: events.WriteFailed, _: float) -> Next:
    return Next(replace(state, write_error=event.error))


def _clear_write_error(state: CopyState, _: Event, __: float) -> Next:
    return Next(replace(state, write_error=None, failures=0))


def _unblock(state: CopyState, _: Event, __: float) -> Next:
    return Next(replace(state, write_error=None, failures=0), (Do.FETCH_NEXT,))


def _clear_passing_write_error(state: CopyState, _: Event, __: float) -> Next:
    is_passing = state.write_error is not None and state.write_error.retriable
    return Next(replace(state, write_error=None) if is_passing else state)


def _unblock_if_possible(state: CopyState, event: Event, now: float) -> Next:
    return Next(_clear_passing_write_error(state, event, now).state, (Do.FETCH_NEXT,))


def _note_incident(state: CopyState, event: events.IncidentFound, _: float) -> Next:
    return Next(state, (events.Note(event.incident, repeats=True),))


def _distrust(state: CopyState, event: events.LastEntryLost, _: float) -> Next:
    notes = () if event.overwritten is None else (events.Note(event.overwritten, repeats=True),)
    return Next(state, (*notes, Do.DISTRUST))


def _note_transaction_error(state: CopyState, event: events.TransactionFailed, _: float) -> Next:
    needs_user = state.write_error is not None and not state.write_error.retriable
    return Next(state if needs_user else replace(state, write_error=event.error))


def _clear_transaction_error(state: CopyState, event: events.TransactionRecovered, _: float) -> Next:
    return Next(replace(state, write_error=None) if state.write_error is event.error else state)


# the table

_Row = Mapping[type, Transition]


def _row(phase: Phase, stays: Mapping[type, Act], moves: _Row | None = None) -> _Row:
    """`stays` keep the phase; what every phase takes is added."""
    anywhere = {
        events.FetchFailed: Transition(phase, _note_fetch_error),
        events.WriteFailed: Transition(phase, _note_write_error),
        events.WriteWorks: Transition(phase, _clear_write_error),
        events.WritePossible: Transition(phase, _clear_passing_write_error),
        events.LimitsChanged: Transition(phase, _do()),
        events.IncidentFound: Transition(phase, _note_incident),
        events.LastEntryLost: Transition(phase, _distrust),
        events.TransactionFailed: Transition(phase, _note_transaction_error),
        events.TransactionRecovered: Transition(phase, _clear_transaction_error),
        events.TransactionLost: Transition(
            Phase.WAITING, _do(Do.DISCARD, Do.FORGET_POSITION, Do.PAUSE_FETCH)
        ),
        events.Stop: Transition(Phase.STOPPED, _do(Do.PAUSE_FETCH)),
    }
    return {**anywhere, **{event: Transition(phase, act) for event, act in stays.items()}, **(moves or {})}


_REPORTED_AGAIN: Final[Mapping[type, Act]] = dict.fromkeys(
    (
        events.OutOfRange,
        events.Diverged,
        events.SourceRecreated,
        events.SourceBatchSkipped,
        events.RenewalDue,
    ),
    _do(),
)
"""Events that only a partition that is copied takes notice of; they are reported again."""

_OUTSTANDING: Final[_Row] = {
    events.TargetBatchFailed: Transition(Phase.FAILED, _fail_writing),
    events.TargetBatchSkipped: Transition(Phase.RESOLVING, _target_batch_skipped),
    events.SequenceLost: Transition(Phase.RESOLVING, _claim_again),
    events.MarkersFailed: Transition(Phase.RESOLVING, _claim_again),
    events.OffsetMismatch: Transition(Phase.DRAINING, _mismatched),
    events.Fenced: Transition(Phase.FENCED, _fenced),
    events.TargetRecreated: Transition(Phase.RESOLVING, _target_recreated),
}
"""Events of batches that were handed to the writer."""

_FREES_BUFFER: Final[_Row] = {events.BufferNeeded: Transition(Phase.BLOCKED, _block)}

TABLE: Final[Mapping[Phase, _Row]] = {
    Phase.WAITING: _row(
        Phase.WAITING,
        {**_REPORTED_AGAIN, events.PositionUnreadable: _note_fetch_error},
        {events.PositionRead: Transition(Phase.RESOLVING, _position_read)},
    ),
    Phase.RESOLVING: _row(
        Phase.RESOLVING,
        {**_REPORTED_AGAIN, events.TargetRecreated: _do()},
        {
            events.Resolved: Transition(Phase.COPYING, _resolved),
            events.ResolveFailed: Transition(Phase.RETRYING, _resolve_failed),
            events.Fenced: Transition(Phase.FENCED, _fenced),
        },
    ),
    Phase.RETRYING: _row(
        Phase.RETRYING,
        {**_REPORTED_AGAIN, events.TargetRecreated: _do()},
        {
            events.TimerExpired: Transition(Phase.RESOLVING, _resolve_again),
            events.Fenced: Transition(Phase.FENCED, _fenced),
        },
    ),
    Phase.COPYING: _row(
        Phase.COPYING,
        {events.FetchWorks: _clear_fetch_error},
        {
            **_OUTSTANDING,
            **_FREES_BUFFER,
            **dict.fromkeys(_REPORTED_AGAIN, Transition(Phase.DRAINING, _drain)),
            events.BufferFull: Transition(Phase.BACKPRESSURED, _do(Do.PAUSE_FETCH)),
            events.LimitReached: Transition(Phase.THROTTLED, _throttle),
            events.WritersUnknown: Transition(Phase.LOOKING_UP, _look_up),
            events.SourceBatchFailed: Transition(Phase.FAILED, _fail_reading),
        },
    ),
    Phase.THROTTLED: _row(
        Phase.THROTTLED,
        _REPORTED_AGAIN,
        {
            **_OUTSTANDING,
            **_FREES_BUFFER,
            events.TimerExpired: Transition(Phase.COPYING, _do(Do.FETCH_NEXT)),
            events.LimitsChanged: Transition(Phase.COPYING, _do(Do.FETCH_NEXT)),
        },
    ),
    Phase.BACKPRESSURED: _row(
        Phase.BACKPRESSURED,
        _REPORTED_AGAIN,
        {
            **_OUTSTANDING,
            **_FREES_BUFFER,
            events.BufferFree: Transition(Phase.COPYING, _do(Do.FETCH_WHEN_FREE)),
        },
    ),
    Phase.BLOCKED: _row(
        Phase.BLOCKED,
        {**_REPORTED_AGAIN, events.BufferNeeded: _do(Do.FREE_BUFFER)},
        {
            **_OUTSTANDING,
            events.WriteWorks: Transition(Phase.COPYING, _unblock),
            events.WritePossible: Transition(Phase.COPYING, _unblock_if_possible),
            events.TimerExpired: Transition(Phase.COPYING, _do(Do.FETCH_NEXT)),
        },
    ),
    Phase.LOOKING_UP: _row(
        Phase.LOOKING_UP,
        {**_REPORTED_AGAIN, events.LookUpFailed: _note_fetch_error, events.BufferNeeded: _do(Do.FREE_BUFFER)},
        {**_OUTSTANDING, events.WritersKnown: Transition(Phase.COPYING, _writers_known)},
    ),
    # What discards batches also ends the draining: its reason may count on them, as a skip does, and the next
    # fetch reports it again.
    Phase.DRAINING: _row(
        Phase.DRAINING,
        _REPORTED_AGAIN,
        {
            **_OUTSTANDING,
            **_FREES_BUFFER,
            events.OffsetMismatch: Transition(Phase.DRAINING, _do(Do.FREE_BUFFER)),
            events.Drained: Transition(Phase.RESOLVING, _drained),
        },
    ),
    Phase.FENCED: _row(
        Phase.FENCED, _REPORTED_AGAIN, {events.TimerExpired: Transition(Phase.WAITING, _do(Do.READ_POSITION))}
    ),
    Phase.FAILED: _row(
        Phase.FAILED,
        {**_REPORTED_AGAIN, events.BufferNeeded: _do(Do.FREE_BUFFER)},
        {**_OUTSTANDING, events.TimerExpired: Transition(Phase.COPYING, _do(Do.FETCH_NEXT))},
    ),
    Phase.STOPPED: _row(
        Phase.STOPPED,
        {
            **_REPORTED_AGAIN,
            **dict.fromkeys(
                (
                    events.TargetBatchFailed,
                    events.TargetBatchSkipped,
                    events.SequenceLost,
                    events.TargetRecreated,
                ),
                _do(Do.DISCARD),
            ),
            events.OffsetMismatch: _do(),
            events.Fenced: _fenced_at_stop,
            events.TransactionLost: _do(),
            events.Stop: _do(),
        },
    ),
}
