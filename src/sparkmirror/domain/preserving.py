"""Defines how offsets are preserved: how long that may take, and what to do where it can't be done."""

from enum import Enum
from typing import Annotated, Final, NamedTuple

from sparkmirror.domain.option_fields import FromOption


class OnGap(Enum):
    """`offsets.gap`: a gap is so long that filling it takes longer than a beginning may take."""

    WAIT = "wait"
    """Say it, and fill it."""
    STOP = "stop"
    """Stop the partition until a person decides."""


class OnMismatch(Enum):
    """`offsets.on.mismatch`: the target's log can't get its source's offsets."""

    STOP = "stop"
    """Stop the partition until a person decides."""
    CONTINUE_TRANSLATED = "continue-translated"
    """Copy it as any other, until the target topic is made anew."""


class Preserving(NamedTuple):
    """What copy tasks need to know of it."""

    fill_timeout_s: Annotated[float, FromOption("offsets.preserve.fill.timeout.ms")] = 900.0
    on_gap: Annotated[OnGap, FromOption("offsets.gap")] = OnGap.WAIT
    on_mismatch: Annotated[OnMismatch, FromOption("offsets.on.mismatch")] = OnMismatch.STOP


DEFAULT_PRESERVING: Final = Preserving()
