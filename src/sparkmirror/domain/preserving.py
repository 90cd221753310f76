"""Defines how offsets are preserved: how long that may take, and what to do where it is long."""

from enum import Enum
from typing import Annotated, Final, NamedTuple

from sparkmirror.domain.option_fields import FromOption


class OnGap(Enum):
    """`offsets.gap`: a gap is so long that filling it takes longer than a beginning may take."""

    WAIT = "wait"
    """Say it, and fill it."""
    STOP = "stop"
    """Stop the partition until a person decides."""


class Preserving(NamedTuple):
    """What copy tasks need to know of it."""

    fill_timeout_s: Annotated[float, FromOption("offsets.preserve.fill.timeout.ms")] = 900.0
    on_gap: Annotated[OnGap, FromOption("offsets.gap")] = OnGap.WAIT


DEFAULT_PRESERVING: Final = Preserving()
