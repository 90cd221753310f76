"""Writes numbers for people. What is unknown is written as that, and never as 0. Pure."""

from math import isfinite
from typing import Final

from sparkmirror.domain.quantities import as_size

UNKNOWN: Final = "unknown"

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def count(number: float | None) -> str:
    """`1,234,567`."""
    return UNKNOWN if number is None else f"{number:,.0f}"


def duration(seconds: float | None) -> str:
    """`0.4 s`, `12 s`, `3 min 20 s`, `5 h 3 min`, `2 d 4 h`."""
    if seconds is None or not isfinite(seconds):
        return UNKNOWN
    if seconds < 9.95:
        return "0 s" if seconds == 0 else f"{seconds:.1f} s"
    whole = round(seconds)
    for unit, name, part, part_name in ((_DAY, "d", _HOUR, "h"), (_HOUR, "h", _MINUTE, "min")):
        if whole >= unit:
            return f"{whole // unit} {name} {whole % unit // part} {part_name}"
    return f"{whole // _MINUTE} min {whole % _MINUTE} s" if whole >= 2 * _MINUTE else f"{whole} s"


def ago(age_s: float | None) -> str:
    """Write an age by this machine's clock: it is negative where another's clock is ahead."""
    if age_s is not None and age_s <= -1:
        return f"{duration(-age_s)} in the future"
    return UNKNOWN if age_s is None else f"{duration(max(0.0, age_s))} ago"


def rate(per_second: float | None) -> str:
    """Records per second; `0.4` rather than 0 for few."""
    if per_second is None:
        return UNKNOWN
    return f"{per_second:.1f}" if 0 < per_second < 10 else f"{per_second:,.0f}"


def size(number: float | None) -> str:
    """`812 B`, `3.4 MB`."""
    return UNKNOWN if number is None else as_size(number)


def latencies(median_and_high: tuple[float | None, float | None]) -> str:
    """`0.7 ms, 45 ms`; without records there are none, which is not unknown."""
    median, high = median_and_high
    return "no records" if median is None or high is None else f"{_latency(median)}, {_latency(high)}"


def _latency(ms: float) -> str:
    if ms >= 1000:
        return duration(ms / 1000)
    return f"{ms:.1f} ms" if ms < 10 else f"{ms:.0f} ms"
