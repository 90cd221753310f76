"""Defines how offsets are preserved: how long that may take, and what to do where it can't be done."""

from enum import Enum
from typing import Annotated, Final, NamedTuple

from sparkmirror.domain.ids import Flow
from sparkmirror.domain.option_fields import FromOption

MARKERS_PER_S: Final = 500.0
"""The rate in one partition, one marker after the other; measured on a warm broker: 370 to 1,050."""
DIRECT_MARKERS_PER_S: Final = 1_000.0
"""The same, written directly: 260 of gaps of one offset, 1,100 of gaps of 4, 12,000 of long ones.

`python -m bench.preserved` measures it.
"""
FILLER_BYTES: Final = 0.82
"""The compressed size of an offset that is filled; a broker may make it less."""
MARKER_BYTES: Final = 78
"""The size in the log; a cleaner leaves the header, 61 bytes."""
LONG_GAP_S: Final = 10.0
"""A gap that takes longer is reported as an incident."""
REFUSED: Final = "offsets can't be preserved"
"""The beginning of errors that say why a target's log can't have its source's offsets."""


def waits_for_failback(opposite: Flow) -> str:
    """Say that the source of a flow is a copy, which the opposite one has written."""
    return f"{opposite} has copied it from {opposite.source}: it waits for a failback"


def waits_for_report(opposite: Flow) -> str:
    """Say that it is not known yet whether the source of a flow is a copy by the opposite one."""
    return f"it waits for the first position that {opposite} reports, which may have copied it"


class OnGap(Enum):
    """`offsets.gap`: a gap is so long that filling it takes longer than a beginning may take."""

    WAIT = "wait"
    """Report it, and fill it."""
    STOP = "stop"
    """Stop the partition until a user acts."""


class OnMismatch(Enum):
    """`offsets.on.mismatch`: the target's log can't get its source's offsets."""

    STOP = "stop"
    """Stop the partition until a user acts."""
    CONTINUE_TRANSLATED = "continue-translated"
    """Copy it as any other, until the target topic is recreated."""


class Preserving(NamedTuple):
    """Holds the settings of `offsets.preserve` that copy tasks need."""

    fill_timeout_s: Annotated[float, FromOption("offsets.preserve.fill.timeout.ms")] = 900.0
    on_gap: Annotated[OnGap, FromOption("offsets.gap")] = OnGap.WAIT
    on_mismatch: Annotated[OnMismatch, FromOption("offsets.on.mismatch")] = OnMismatch.STOP

    def stops_at(self, gap_s: float) -> bool:
        """Whether a gap that takes so long to fill stops the partition."""
        return self.on_gap is OnGap.STOP and gap_s > self.fill_timeout_s

    @property
    def continues_translated(self) -> bool:
        """Whether a mismatch stops no partition."""
        return self.on_mismatch is OnMismatch.CONTINUE_TRANSLATED


DEFAULT_PRESERVING: Final = Preserving()
