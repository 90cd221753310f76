"""Decides what a mirrored partition does next: `step` takes an event, and returns a state and instructions.

What fetching, producing, resuming, transactions and limits report about a partition arrives here as an event;
`Instructions` carries out what follows. TABLE has every pair of phase and event that can occur, any other
raises. The diagram in `docs/design/partition-states.md` is rendered from it.

Pure.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from sparkmirror.copy.copy_state import CopyState, Phase
from sparkmirror.copy.partition_events import (
    BufferFree,
    BufferFull,
    BufferNeeded,
    Diverged,
    Do,
    Drained,
    Event,
    Fenced,
    FetchFailed,
    FetchWorks,
    Instruction,
    LimitReached,
    LimitsChanged,
    LookUp,
    LookUpFailed,
    MarkersFailed,
    Note,
    OffsetMismatch,
    OutOfRange,
    PositionRead,
    PositionUnreadable,
    RenewalDue,
    Resolve,
    Resolved,
    ResolveFailed,
    ResumeReason,
    SequenceLost,
    SetTimer,
    SourceBatchFailed,
    SourceBatchSkipped,
    SourceIncident,
    SourceRecreated,
    StartFrom,
    Stop,
    TargetBatchFailed,
    TargetBatchSkipped,
    TargetRecreated,
    TimerExpired,
    TransactionFailed,
    TransactionLost,
    TransactionRecovered,
    WriteFailed,
    WritePossible,
    WritersKnown,
    WritersUnknown,
    WriteWorks,
)
from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.errors import KafkaError

_EXPLAINED_WITHIN: Final = 12
"""So many looks at the target's log come before a refused sequence is sent again. They take 36 s: what
another attempt wrote shows once followers have it, and brokers wait 30 s for slow ones
(`replica.lag.time.max.ms`)."""

UNREACHABLE: Final = Backoff(0.2, 5.0)
USER_NEEDED: Final = Backoff(1.0, 30.0)
"""For what only a user can fix: tried again all the same, so that the partition then continues by itself."""


class Next(NamedTuple):
    state: CopyState
    instructions: tuple[Instruction, ...] = ()


Act = Callable[[CopyState, Any, float], Next]


class Transition(NamedTuple):
    """Where an event leads, and what it changes. `act` leaves the phase to `step`."""

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
    deadline = next((do.deadline for do in instructions if isinstance(do, SetTimer)), None)
    if transition.to is state.phase and deadline is None:
        return Next(changed, instructions)
    entered = replace(changed, phase=transition.to, deadline=deadline)
    return Next(entered, (*_left_behind(state, event), *instructions))


def _left_behind(state: CopyState, event: Event) -> Iterator[Instruction]:
    """Ends what the phase that is left has under way."""
    if state.deadline is not None and not isinstance(event, TimerExpired):
        yield Do.CANCEL_TIMER
    if state.phase is Phase.RESOLVING and not isinstance(event, Resolved | ResolveFailed):
        yield Do.CANCEL_RESOLVE
    if state.phase is Phase.LOOKING_UP and not isinstance(event, WritersKnown):
        yield Do.CANCEL_LOOK_UP


# what events change


def _do(*instructions: Instruction) -> Act:
    """Changes nothing but the phase."""
    return lambda state, _, __: Next(state, instructions)


def _position_read(state: CopyState, event: PositionRead, _: float) -> Next:
    return _resolve(state, ResumeReason(event.position, is_stored=True))


def _resolve(state: CopyState, reason: ResumeReason, *first: Instruction) -> Next:
    return Next(replace(state, reason=reason, attempts=0), (*first, Resolve(reason)))


def _resolve_again(state: CopyState, _: Event, __: float) -> Next:
    is_distrusted = state.reason.is_distrusted and state.attempts < _EXPLAINED_WITHIN
    return Next(state, (Resolve(state.reason._replace(is_distrusted=is_distrusted)),))


def _resolved(state: CopyState, event: Resolved, _: float) -> Next:
    return Next(replace(state, fetch_error=None, write_error=None), (StartFrom(event.start),))


def _resolve_failed(state: CopyState, event: ResolveFailed, now: float) -> Next:
    backoff = UNREACHABLE if event.error.retriable else USER_NEEDED
    attempts = state.attempts + 1
    deadline = now + backoff.delay_s(attempts, event.randomness)
    # What both logs say now is newer than why they were looked at; where they can't be read nothing is.
    write_error = state.write_error if event.error.retriable else None
    failed = replace(state, fetch_error=event.error, write_error=write_error, attempts=attempts)
    return Next(failed, (SetTimer(deadline),))


def _throttle(state: CopyState, event: LimitReached, now: float) -> Next:
    return Next(state, (Do.PAUSE_FETCH, SetTimer(now + event.throttle_s)))


def _look_up(state: CopyState, event: WritersUnknown, _: float) -> Next:
    return Next(state, (Do.PAUSE_FETCH, LookUp(event.producer_ids)))


def _writers_known(state: CopyState, event: WritersKnown, _: float) -> Next:
    notes = () if event.unseen is None else (Note(event.unseen),)
    return Next(state, (*notes, Do.FETCH_NEXT))


def _drain(state: CopyState, event: SourceIncident | RenewalDue, _: float) -> Next:
    match event:
        case OutOfRange():
            reason = ResumeReason(is_gone=True)
        case Diverged(at, epoch):
            reason = ResumeReason(diverged_at=at, diverging_epoch=epoch)
        case SourceBatchSkipped(letter):
            reason = ResumeReason(skipped=letter)
        case SourceRecreated():
            reason = ResumeReason()
        case RenewalDue():
            reason = ResumeReason(renews=True)
    return Next(replace(state, reason=reason), (Do.PAUSE_FETCH, Do.AWAIT_DRAINED))


def _drained(state: CopyState, _: Event, __: float) -> Next:
    return _resolve(state, state.reason)


def _claim_again(state: CopyState, event: SequenceLost | MarkersFailed, _: float) -> Next:
    failed = replace(state, write_error=event.error)
    reason = ResumeReason(is_distrusted=isinstance(event, SequenceLost))
    return _resolve(failed, reason, Do.DISCARD, Do.PAUSE_FETCH)


def _target_recreated(state: CopyState, _: Event, __: float) -> Next:
    return _resolve(state, ResumeReason(), Do.DISCARD, Do.PAUSE_FETCH)


def _target_batch_skipped(state: CopyState, event: TargetBatchSkipped, _: float) -> Next:
    return _resolve(state, ResumeReason(skipped=event.letter), Do.DISCARD, Do.PAUSE_FETCH)


def _mismatched(state: CopyState, event: OffsetMismatch, _: float) -> Next:
    """What is in flight arrives all the same; nothing more is sent."""
    reason = ResumeReason(taken=event.taken)
    failed = replace(state, reason=reason, write_error=KafkaError(event.incident.text))
    return Next(failed, (Note(event.incident), Do.PAUSE_FETCH, Do.FREE_BUFFER, Do.AWAIT_DRAINED))


def _fenced(state: CopyState, event: Fenced, now: float) -> Next:
    """The position is another task's, unless that ends soon: it is read again after a pause."""
    stop = Do.DISCARD, Do.FORGET_POSITION, Do.PAUSE_FETCH
    return Next(replace(state, write_error=event.error), (*stop, SetTimer(now + event.pause_s)))


def _fenced_at_stop(state: CopyState, event: Fenced, _: float) -> Next:
    return Next(replace(state, write_error=event.error), (Do.DISCARD, Do.FORGET_POSITION))


def _fail_reading(state: CopyState, event: SourceBatchFailed, now: float) -> Next:
    failed = replace(state, fetch_error=event.error, failures=state.failures + 1)
    return Next(failed, (Do.PAUSE_FETCH, _retry(failed, event.randomness, now)))


def _fail_writing(state: CopyState, event: TargetBatchFailed, now: float) -> Next:
    failed = replace(state, write_error=event.error, failures=state.failures + 1)
    return Next(failed, (Do.DISCARD, Do.PAUSE_FETCH, _retry(failed, event.randomness, now)))


def _block(state: CopyState, event: BufferNeeded, now: float) -> Next:
    failed = replace(state, failures=state.failures + 1)
    return Next(failed, (Do.PAUSE_FETCH, Do.FREE_BUFFER, _retry(failed, event.randomness, now)))


def _retry(state: CopyState, randomness: float, now: float) -> SetTimer:
    return SetTimer(now + USER_NEEDED.delay_s(state.failures, randomness))


def _note_fetch_error(
    state: CopyState, event: FetchFailed | PositionUnreadable | LookUpFailed, _: float
) -> Next:
    return Next(replace(state, fetch_error=event.error))


def _clear_fetch_error(state: CopyState, _: Event, __: float) -> Next:
    return Next(replace(state, fetch_error=None))


def _note_write_error(state: CopyState, event: WriteFailed, _: float) -> Next:
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


def _note_transaction_error(state: CopyState, event: TransactionFailed, _: float) -> Next:
    needs_user = state.write_error is not None and not state.write_error.retriable
    return Next(state if needs_user else replace(state, write_error=event.error))


def _clear_transaction_error(state: CopyState, event: TransactionRecovered, _: float) -> Next:
    return Next(replace(state, write_error=None) if state.write_error is event.error else state)


# the table

_Row = Mapping[type, Transition]


def _row(phase: Phase, stays: Mapping[type, Act], moves: _Row | None = None) -> _Row:
    """`stays` keep the phase; what every phase takes is added."""
    anywhere = {
        FetchFailed: Transition(phase, _note_fetch_error),
        WriteFailed: Transition(phase, _note_write_error),
        WriteWorks: Transition(phase, _clear_write_error),
        WritePossible: Transition(phase, _clear_passing_write_error),
        LimitsChanged: Transition(phase, _do()),
        TransactionFailed: Transition(phase, _note_transaction_error),
        TransactionRecovered: Transition(phase, _clear_transaction_error),
        TransactionLost: Transition(Phase.WAITING, _do(Do.DISCARD, Do.FORGET_POSITION, Do.PAUSE_FETCH)),
        Stop: Transition(Phase.STOPPED, _do(Do.PAUSE_FETCH)),
    }
    return {**anywhere, **{event: Transition(phase, act) for event, act in stays.items()}, **(moves or {})}


_REPORTED_AGAIN: Final[Mapping[type, Act]] = dict.fromkeys(
    (OutOfRange, Diverged, SourceRecreated, SourceBatchSkipped, RenewalDue), _do()
)
"""Only a partition that is copied takes notice of these; they are reported again."""

_OUTSTANDING: Final[_Row] = {
    TargetBatchFailed: Transition(Phase.FAILED, _fail_writing),
    TargetBatchSkipped: Transition(Phase.RESOLVING, _target_batch_skipped),
    SequenceLost: Transition(Phase.RESOLVING, _claim_again),
    MarkersFailed: Transition(Phase.RESOLVING, _claim_again),
    OffsetMismatch: Transition(Phase.DRAINING, _mismatched),
    Fenced: Transition(Phase.FENCED, _fenced),
    TargetRecreated: Transition(Phase.RESOLVING, _target_recreated),
}
"""What may befall batches that were handed to the writer."""

_FREES_BUFFER: Final[_Row] = {BufferNeeded: Transition(Phase.BLOCKED, _block)}

TABLE: Final[Mapping[Phase, _Row]] = {
    Phase.WAITING: _row(
        Phase.WAITING,
        {**_REPORTED_AGAIN, PositionUnreadable: _note_fetch_error},
        {PositionRead: Transition(Phase.RESOLVING, _position_read)},
    ),
    Phase.RESOLVING: _row(
        Phase.RESOLVING,
        {**_REPORTED_AGAIN, TargetRecreated: _do()},
        {
            Resolved: Transition(Phase.COPYING, _resolved),
            ResolveFailed: Transition(Phase.RETRYING, _resolve_failed),
            Fenced: Transition(Phase.FENCED, _fenced),
        },
    ),
    Phase.RETRYING: _row(
        Phase.RETRYING,
        {**_REPORTED_AGAIN, TargetRecreated: _do()},
        {
            TimerExpired: Transition(Phase.RESOLVING, _resolve_again),
            Fenced: Transition(Phase.FENCED, _fenced),
        },
    ),
    Phase.COPYING: _row(
        Phase.COPYING,
        {FetchWorks: _clear_fetch_error},
        {
            **_OUTSTANDING,
            **_FREES_BUFFER,
            **dict.fromkeys(_REPORTED_AGAIN, Transition(Phase.DRAINING, _drain)),
            BufferFull: Transition(Phase.BACKPRESSURED, _do(Do.PAUSE_FETCH)),
            LimitReached: Transition(Phase.THROTTLED, _throttle),
            WritersUnknown: Transition(Phase.LOOKING_UP, _look_up),
            SourceBatchFailed: Transition(Phase.FAILED, _fail_reading),
        },
    ),
    Phase.THROTTLED: _row(
        Phase.THROTTLED,
        _REPORTED_AGAIN,
        {
            **_OUTSTANDING,
            **_FREES_BUFFER,
            TimerExpired: Transition(Phase.COPYING, _do(Do.FETCH_NEXT)),
            LimitsChanged: Transition(Phase.COPYING, _do(Do.FETCH_NEXT)),
        },
    ),
    Phase.BACKPRESSURED: _row(
        Phase.BACKPRESSURED,
        _REPORTED_AGAIN,
        {**_OUTSTANDING, **_FREES_BUFFER, BufferFree: Transition(Phase.COPYING, _do(Do.FETCH_WHEN_FREE))},
    ),
    Phase.BLOCKED: _row(
        Phase.BLOCKED,
        {**_REPORTED_AGAIN, BufferNeeded: _do(Do.FREE_BUFFER)},
        {
            **_OUTSTANDING,
            WriteWorks: Transition(Phase.COPYING, _unblock),
            WritePossible: Transition(Phase.COPYING, _unblock_if_possible),
            TimerExpired: Transition(Phase.COPYING, _do(Do.FETCH_NEXT)),
        },
    ),
    Phase.LOOKING_UP: _row(
        Phase.LOOKING_UP,
        {**_REPORTED_AGAIN, LookUpFailed: _note_fetch_error, BufferNeeded: _do(Do.FREE_BUFFER)},
        {**_OUTSTANDING, WritersKnown: Transition(Phase.COPYING, _writers_known)},
    ),
    # What discards batches also ends the draining: its reason may count on them, as a skip does, and the next
    # fetch reports it again.
    Phase.DRAINING: _row(
        Phase.DRAINING,
        _REPORTED_AGAIN,
        {
            **_OUTSTANDING,
            **_FREES_BUFFER,
            OffsetMismatch: Transition(Phase.DRAINING, _do(Do.FREE_BUFFER)),
            Drained: Transition(Phase.RESOLVING, _drained),
        },
    ),
    Phase.FENCED: _row(
        Phase.FENCED, _REPORTED_AGAIN, {TimerExpired: Transition(Phase.WAITING, _do(Do.READ_POSITION))}
    ),
    Phase.FAILED: _row(
        Phase.FAILED,
        {**_REPORTED_AGAIN, BufferNeeded: _do(Do.FREE_BUFFER)},
        {**_OUTSTANDING, TimerExpired: Transition(Phase.COPYING, _do(Do.FETCH_NEXT))},
    ),
    Phase.STOPPED: _row(
        Phase.STOPPED,
        {
            **_REPORTED_AGAIN,
            **dict.fromkeys(
                (TargetBatchFailed, TargetBatchSkipped, SequenceLost, TargetRecreated), _do(Do.DISCARD)
            ),
            OffsetMismatch: _do(),
            Fenced: _fenced_at_stop,
            TransactionLost: _do(),
            Stop: _do(),
        },
    ),
}
