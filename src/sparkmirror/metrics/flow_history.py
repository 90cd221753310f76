"""Keeps the last hour of a flow's totals, a point each ten seconds; none while reports can't be read.

Pure.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

EVERY_S: Final = 10.0
KEPT_S: Final = 3600.0


class Totals(NamedTuple):
    """`lag` and `lag_s` are None where that of some partition is not known."""

    records: int
    bytes: int
    lag: int | None
    lag_s: float | None


class HistoryPoint(NamedTuple):
    """`ago_s` before the look that it is part of. Rates are per second, since the point before.

    Bytes are None where nobody reports them.
    """

    ago_s: float
    record_rate: float
    byte_rate: float | None
    lag: int | None
    lag_s: float | None


class _Noted(NamedTuple):
    at: float
    passed_s: float
    records: int
    bytes: int
    totals: Totals


class FlowHistory:
    """Keeps the totals of an hour. Times are of any one clock, in seconds. Not thread-safe."""

    def __init__(self) -> None:
        self._noted: deque[_Noted] = deque(maxlen=int(KEPT_S / EVERY_S))

    def is_due(self, now: float) -> bool:
        return not self._noted or now - self._noted[-1].at >= EVERY_S

    def note(self, totals: Totals, now: float) -> None:
        if not self._noted:
            self._noted.append(_Noted(now, 0.0, 0, 0, totals))
            return
        last = self._noted[-1]
        records, copied = totals.records - last.totals.records, totals.bytes - last.totals.bytes
        self._noted.append(_Noted(now, now - last.at, records, copied, totals))

    def points(self, now: float) -> Sequence[HistoryPoint]:
        """The oldest first; the first of a process has nothing before it, and is left out."""
        return [
            HistoryPoint(now - at, records / passed_s, copied / passed_s, totals.lag, totals.lag_s)
            for at, passed_s, records, copied, totals in self._noted
            if passed_s > 0 and now - at <= KEPT_S
        ]
