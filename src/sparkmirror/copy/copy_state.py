"""Defines the state of a mirrored partition; `partition_states` has the transitions. Pure."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from sparkmirror.copy.partition_events import ResumeReason
from sparkmirror.domain.errors import SparkmirrorError

_UNKNOWN: Final = ResumeReason()


class Phase(Enum):
    """The phases of a partition. Only COPYING fetches."""

    WAITING = "waiting"
    """The stored position is being read."""
    RESOLVING = "resolving"
    """`Resumption` looks up where to start. Nothing is outstanding."""
    RETRYING = "retrying"
    """A start was not found; a timer runs."""
    COPYING = "copying"
    THROTTLED = "throttled"
    """The topic's rate limit is reached; a timer runs."""
    BACKPRESSURED = "backpressured"
    """The partition is too far ahead of its acknowledgements."""
    BLOCKED = "blocked"
    """The target took nothing while other partitions needed the buffer: what was never sent is dropped, a
    timer runs."""
    LOOKING_UP = "looking up"
    """The next batch's producer id is unknown, and looked up."""
    DRAINING = "draining"
    """The partition resumes, for a reason from the source, when outstanding batches are acknowledged."""
    FENCED = "fenced"
    """Another task writes under a newer epoch; a timer runs."""
    FAILED = "failed"
    """A batch can't be copied until a user fixes it; a timer runs."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class CopyState:
    """The state of one mirrored partition. `deadline` is when its timer expires, None while none runs.

    `failures` counts since the last acknowledgement, `attempts` those of the current resumption.
    """

    phase: Phase = Phase.WAITING
    reason: ResumeReason = _UNKNOWN
    fetch_error: SparkmirrorError | None = None
    write_error: SparkmirrorError | None = None
    failures: int = 0
    attempts: int = 0
    deadline: float | None = None

    @property
    def error(self) -> SparkmirrorError | None:
        return self.write_error or self.fetch_error


def is_undisturbed(state: CopyState) -> bool:
    """Whether an acknowledgement is no event."""
    return state.phase is Phase.COPYING and state.write_error is None and not state.failures
