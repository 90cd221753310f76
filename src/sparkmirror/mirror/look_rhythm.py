"""Foresees the next look of somebody who looks regularly: what is read right before it is new."""

from typing import Final

_BEFORE_S: Final = 0.15
"""The time reserved for reading new records; enough also for a distant cluster."""
_APART_MAX_S: Final = 3.0
_APART_MIN_S: Final = 0.5


class LookRhythm:
    """Times are of any one clock, in seconds. One thread looks, another one reads."""

    def __init__(self) -> None:
        self._looks: tuple[float, float] | None = None

    def note(self, now: float) -> None:
        """Somebody looks. Two looks at the same thing in one moment are one."""
        last = self._looks[1] if self._looks else float("-inf")
        if now - last >= _APART_MIN_S:
            self._looks = last, now

    def read_in_s(self, now: float) -> float | None:
        """When to read next, None while nobody looks regularly."""
        if self._looks is None:
            return None
        before, last = self._looks
        apart_s = last - before
        if apart_s > _APART_MAX_S or now - last > 2 * apart_s:
            return None
        due = last + apart_s - _BEFORE_S
        while due <= now:
            due += apart_s
        return due - now
