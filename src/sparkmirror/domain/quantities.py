"""Writes numbers, sizes and times for people."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

_MINUTE_S: Final = 60.0
_HOUR_S: Final = 3600.0
_DAY_S: Final = 86400.0


def counted(number: int, word: str) -> str:
    """Count things whose plural is regular: `1 task`, `2 tasks`."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def as_size(number: float) -> str:
    """Bytes, in units of a thousand, as networks and Kafka's own documents count."""
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1000:
            return f"{number:,.0f} {unit}" if unit == "B" else f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:,.1f} TB"


def as_time(seconds: float) -> str:
    if seconds < _MINUTE_S:
        return f"{max(1, round(seconds))} s"
    if seconds < _HOUR_S:
        return f"{seconds / _MINUTE_S:.0f} min"
    if seconds < _DAY_S:
        return f"{seconds / _HOUR_S:.1f} h"
    return f"{seconds / _DAY_S:.1f} days"


def as_ago(age_s: float) -> str:
    """An age by this machine's clock; negative where another's clock is ahead."""
    if age_s <= -1:
        return f"{-age_s:,.0f} s in the future by this machine's clock"
    return f"{max(0.0, age_s):,.0f} s ago"


def clock_time(epoch_s: float) -> str:
    return datetime.fromtimestamp(round(epoch_s), UTC).strftime("%H:%M:%S UTC")


def as_date(epoch_s: float) -> str:
    return datetime.fromtimestamp(int(epoch_s), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def some_of(names: Sequence[str], most: int = 5) -> str:
    """A few of several names, and how many more there are."""
    shown = ", ".join(names[:most])
    more = len(names) - most
    return f"{shown} and {more:,} more" if more > 0 else shown
