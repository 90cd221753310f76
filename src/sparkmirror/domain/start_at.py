"""Reads where a flow begins (`start.at`): a place, a time, or a duration before its first start. Pure."""

import re
from datetime import UTC, datetime
from typing import Final, NamedTuple

from sparkmirror.domain.client_settings import OffsetReset, StartTime

_PLACES: Final = {"earliest": OffsetReset.EARLIEST, "latest": OffsetReset.LATEST}
_DURATION: Final = re.compile(r"P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_UNITS_S: Final = (86_400, 3_600, 60, 1)


class StartAt(NamedTuple):
    """`time` is set where `reset` is TIME."""

    reset: OffsetReset
    time: StartTime | None = None


def parse_start_at(text: str) -> StartAt:
    """Raises ValueError with what is allowed."""
    if (place := _PLACES.get(text)) is not None:
        return StartAt(place)
    if text.startswith("P"):
        return StartAt(OffsetReset.TIME, StartTime(before_ms=_duration_ms(text)))
    return StartAt(OffsetReset.TIME, StartTime(at_ms=_time_ms(text)))


def _duration_ms(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        raise ValueError(_ALLOWED)
    counts = [int(count or 0) for count in found.groups()]
    return sum(count * unit_s for count, unit_s in zip(counts, _UNITS_S, strict=True)) * 1000


def _time_ms(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(_ALLOWED) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return int(found.timestamp() * 1000)


_ALLOWED: Final = (
    "must be earliest, latest, a time as 2026-01-31T12:00:00Z, or a duration before the first start as P7D "
    "or PT6H"
)
