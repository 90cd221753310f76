"""Names what can happen to a mirrored partition, and what `partition_states` then asks for. Pure."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import UNKNOWN_LOGS, LogIdentity
from sparkmirror.domain.incidents import Incident
from sparkmirror.offsets.offset_runs import Run
from sparkmirror.storage.attempts import Attempt
from sparkmirror.storage.dead_letters import DeadLetter
from sparkmirror.storage.positions import Position


class ResumeReason(NamedTuple):
    """Why a partition starts, or resumes, and from what is known of it."""

    position: Position | None = None
    """The stored or last position; if it is None, `auto.offset.reset` decides."""
    is_gone: bool = False
    """The offset after the position is not in the source any more."""
    diverged_at: int | None = None
    """The offset from which the source has other records than those that were read: see `Diverged`."""
    diverging_epoch: int = -1
    is_distrusted: bool = False
    """Offsets are preserved, and a broker refused the sequence that follows the position: its log may say why
    as soon as followers have it."""
    skipped: DeadLetter | None = None
    """The batch that ends with the position is left out."""
    is_stored: bool = False
    """The position was read from its topic, and another attempt may have written a newer one since."""
    is_settled: bool = False
    """Everything that this attempt has sent is answered: it may continue."""
    taken: int | None = None
    """Offsets are preserved, and the target has a marker where the record of this offset belongs."""
    renews: bool = False
    """The attempt must not continue: its producer epoch is old, and another one is claimed."""


class Start(NamedTuple):
    """The start of a partition: `position` is the next upstream offset to copy.

    `incidents` are to be reported. `logs` are those that it is about. `run` ends right before it, if what is
    there of it is known.
    """

    position: int
    producer: ProducerState
    incidents: tuple[Incident, ...] = ()
    logs: LogIdentity = UNKNOWN_LOGS
    run: Run | None = None
    attempt: Attempt | None = None
    """The attempt that begins here; None where the one before continues, or none is recorded."""
    marker: int | None = None
    """The target offset of the attempt's marker, if it needed one and that may be read."""
    claimed: ProducerId | None = None
    """The epoch of the markers that fill gaps; None where offsets aren't preserved."""
    log_start: int = 0
    """The start of the target's log, if offsets are preserved."""
    keeps_all: bool = False
    """Records of the opposite flow are copied too, since it is promoted: no cycle is possible."""


# events. `randomness`, a number in [0, 1), is for the jitter of a retry


@dataclass(frozen=True, slots=True)
class PositionRead:
    position: Position | None


@dataclass(frozen=True, slots=True)
class PositionUnreadable:
    """The stored position can't be read; it is read again."""

    error: SparkmirrorError


@dataclass(frozen=True, slots=True)
class Resolved:
    start: Start


@dataclass(frozen=True, slots=True)
class ResolveFailed:
    error: SparkmirrorError
    randomness: float


@dataclass(frozen=True, slots=True)
class TimerExpired: ...


@dataclass(frozen=True, slots=True)
class BufferFull:
    """The partition has more bytes outstanding than it may."""


@dataclass(frozen=True, slots=True)
class BufferFree:
    """Enough of them are acknowledged."""


@dataclass(frozen=True, slots=True)
class BufferNeeded:
    """Other partitions of the task need the buffer, and the target takes nothing of this one."""

    randomness: float


@dataclass(frozen=True, slots=True)
class LimitReached:
    throttle_s: float


@dataclass(frozen=True, slots=True)
class LimitsChanged: ...


@dataclass(frozen=True, slots=True)
class WritersUnknown:
    producer_ids: Collection[int]


@dataclass(frozen=True, slots=True)
class WritersKnown:
    unseen: Incident | None = None
    """Why they could not be looked up, and pass for others."""


@dataclass(frozen=True, slots=True)
class LookUpFailed:
    """The producer ids can't be looked up; it is tried again."""

    error: SparkmirrorError


@dataclass(frozen=True, slots=True)
class OutOfRange: ...


@dataclass(frozen=True, slots=True)
class Diverged:
    """`epoch` is the leader epoch of what is before that offset."""

    at: int
    epoch: int = -1


@dataclass(frozen=True, slots=True)
class SourceRecreated: ...


@dataclass(frozen=True, slots=True)
class RenewalDue:
    """The attempt has lasted long enough; it is reported again until another one has begun."""


@dataclass(frozen=True, slots=True)
class SourceBatchFailed:
    """The next batch can't be copied, or must not be."""

    error: SparkmirrorError
    randomness: float


@dataclass(frozen=True, slots=True)
class SourceBatchSkipped:
    letter: DeadLetter


@dataclass(frozen=True, slots=True)
class FetchFailed:
    """The reader retries by itself."""

    error: SparkmirrorError


@dataclass(frozen=True, slots=True)
class FetchWorks: ...


@dataclass(frozen=True, slots=True)
class Drained:
    """Everything that was outstanding is acknowledged."""


@dataclass(frozen=True, slots=True)
class WriteFailed:
    """The writer retries by itself."""

    error: SparkmirrorError


@dataclass(frozen=True, slots=True)
class WriteWorks:
    """A batch was acknowledged."""


@dataclass(frozen=True, slots=True)
class WritePossible:
    """The target partition has a leader, and nothing waits to be sent."""


@dataclass(frozen=True, slots=True)
class TargetBatchFailed:
    """The target refused a batch. The writer dropped it, and all behind it; so for the next four."""

    error: SparkmirrorError
    randomness: float


@dataclass(frozen=True, slots=True)
class TargetBatchSkipped:
    letter: DeadLetter


@dataclass(frozen=True, slots=True)
class SequenceLost:
    error: SparkmirrorError


@dataclass(frozen=True, slots=True)
class MarkersFailed:
    """Control markers for a gap are not in the log, or not replicated, and may come yet: claim again."""

    error: SparkmirrorError


@dataclass(frozen=True, slots=True)
class OffsetMismatch:
    """Offsets are preserved, and a record is at another one than at the source, or would be."""

    incident: Incident
    taken: int | None = None
    """The offset of a record that is not sent, since the target's log is beyond it."""


@dataclass(frozen=True, slots=True)
class Fenced:
    error: SparkmirrorError
    pause_s: float


@dataclass(frozen=True, slots=True)
class TargetRecreated: ...


@dataclass(frozen=True, slots=True)
class LastEntryLost:
    """A new leader of the target lacks the attempt's last entry, and perhaps its fence."""

    overwritten: Incident | None
    """The incident if another entry is in its place."""


@dataclass(frozen=True, slots=True)
class IncidentFound:
    """Something to report; the partition continues."""

    incident: Incident


@dataclass(frozen=True, slots=True)
class TransactionLost:
    """Everything since the last commit is aborted."""


@dataclass(frozen=True, slots=True)
class TransactionFailed:
    """Transactions can't continue now; they are retried."""

    error: SparkmirrorError


@dataclass(frozen=True, slots=True)
class TransactionRecovered:
    error: SparkmirrorError | None
    """The one that is over."""


@dataclass(frozen=True, slots=True)
class Stop: ...


SourceIncident = OutOfRange | Diverged | SourceRecreated | SourceBatchSkipped
Event = (
    SourceIncident
    | PositionRead
    | PositionUnreadable
    | Resolved
    | ResolveFailed
    | TimerExpired
    | BufferFull
    | BufferFree
    | BufferNeeded
    | LimitReached
    | LimitsChanged
    | WritersUnknown
    | WritersKnown
    | LookUpFailed
    | SourceBatchFailed
    | FetchFailed
    | FetchWorks
    | Drained
    | RenewalDue
    | WriteFailed
    | WriteWorks
    | WritePossible
    | TargetBatchFailed
    | TargetBatchSkipped
    | SequenceLost
    | MarkersFailed
    | OffsetMismatch
    | Fenced
    | TargetRecreated
    | LastEntryLost
    | IncidentFound
    | TransactionLost
    | TransactionFailed
    | TransactionRecovered
    | Stop
)


# instructions


class Do(Enum):
    """Instructions without an argument."""

    READ_POSITION = "read the stored position; report PositionRead"
    FETCH_NEXT = "fetch what follows what was taken, unless the buffer is full or a limit is reached"
    FETCH_WHEN_FREE = "the same, as soon as half of the task's buffer is free"
    PAUSE_FETCH = "fetch nothing more"
    AWAIT_DRAINED = "report Drained as soon as nothing is outstanding"
    DISCARD = "go back to the position: the writer has dropped what was outstanding"
    FREE_BUFFER = "drop what was never sent, and go back to it"
    DISTRUST = "the target may have lost the attempt's fence: another attempt must follow, and fence this one"
    FORGET_POSITION = "the position is another task's: store it no more"
    CANCEL_RESOLVE = "the result of Resolve is not wanted any more"
    CANCEL_LOOK_UP = "the result of LookUp is not wanted any more"
    CANCEL_TIMER = "the timer must not expire"


@dataclass(frozen=True, slots=True)
class Resolve:
    """Find the start, from the position as it is now if there is one; report Resolved or ResolveFailed."""

    reason: ResumeReason


@dataclass(frozen=True, slots=True)
class StartFrom:
    start: Start


@dataclass(frozen=True, slots=True)
class LookUp:
    """Find out whose these are; report WritersKnown or LookUpFailed."""

    producer_ids: Collection[int]


@dataclass(frozen=True, slots=True)
class Note:
    """Report it; unless it `repeats`, only if none of its kind was reported."""

    incident: Incident
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Report TimerExpired then."""

    deadline: float


Instruction = Do | Resolve | StartFrom | LookUp | Note | SetTimer
