"""A look at many partitions at once: columns to compute with, and the look at one partition when asked for.

Sums over thousands of partitions are made once a second of their columns; what is shown is a page of them.
Pure.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar, overload

import numpy as np
import numpy.typing as npt

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.looks import CUT_OFF_AFTER_S, Latencies, PartitionLook
from sparkmirror.storage.progress import PartitionProgress, PartitionState

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]

T = TypeVar("T")

NAN: Final = float("nan")
NOT_REPORTED: Final = 0.0
PROMOTED: Final = -1.0
_STATES: Final = tuple(PartitionState)
CODES: Final[Mapping[PartitionState, float]] = {state: at for at, state in enumerate(_STATES, 1)}
_STANDBY: Final = CODES[PartitionState.STANDBY]


class Columns(NamedTuple):
    """Has a column for each field of `PartitionLook`, with a number for each partition, NaN for None.

    `state` is in `CODES`, NOT_REPORTED or PROMOTED. `lag` and `lag_s` are those of the last report, the lag
    by `known_lag`: what is known of them now is in `lags_of`. `moved_s` and `closed` are those of its motion.
    """

    task: Numbers
    state: Numbers
    is_silent: Numbers
    is_stalled: Numbers
    record_rate: Numbers
    byte_rate: Numbers
    lag: Numbers
    lag_s: Numbers
    error_for_s: Numbers
    quiet_since: Numbers
    moved_s: Numbers
    closed: Numbers
    slack_s: Numbers
    source_throttled: Numbers
    target_throttled: Numbers


class Rows(Sequence[T]):
    """Makes the value of a row when it is asked for."""

    __slots__ = ("_make", "_rows")

    def __init__(self, rows: Sequence[int] | Indices, make: Callable[[int], T]) -> None:
        self._rows = rows
        self._make = make

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...

    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        if isinstance(at, slice):
            return [self._make(int(row)) for row in self._rows[at]]
        return self._make(int(self._rows[at]))

    def __iter__(self) -> Iterator[T]:
        """Faster than by numbers, as a sequence is otherwise."""
        return map(self._make, map(int, self._rows))


class PartitionTable(Rows[PartitionLook]):
    """`sources` is the same list, not only an equal one, as long as the same partitions are looked at."""

    __slots__ = ("columns", "latencies", "report", "sources")

    def __init__(
        self,
        sources: Sequence[TopicPartition],
        columns: Columns,
        look: Callable[[int], PartitionLook],
        report: Callable[[int], PartitionProgress | None],
        latencies: Callable[[], Iterator[Latencies]],
    ) -> None:
        super().__init__(range(len(sources)), look)
        self.sources = sources
        self.columns = columns
        self.report = report
        self.latencies = latencies
        """The latencies of partitions that have some."""

    def of(self, rows: Sequence[int]) -> "PartitionTable":
        """Return a table of some of its rows."""
        return table_of([self[row] for row in rows])


def table_of(looks: Sequence[PartitionLook]) -> PartitionTable:
    """A table of looks that are there already."""
    if isinstance(looks, PartitionTable):
        return looks
    numbers = np.array([_numbers(look) for look in looks], np.float64).reshape(
        len(looks), len(Columns._fields)
    )
    return PartitionTable(
        [look.source for look in looks],
        Columns(*numbers.T),
        looks.__getitem__,
        lambda row: looks[row].report,
        lambda: (look.latencies for look in looks if look.latencies is not None),
    )


def known_lag(report: PartitionProgress | None, *, is_silent: bool = False) -> int | None:
    """Return the records to copy by a report: none of those that the opposite flow has copied.

    None instead of 0 where it has an error, or its task `is_silent`: that may not know of newer records.
    """
    if report is None:
        return None
    if report.state is PartitionState.STANDBY:
        return 0
    return None if (is_silent or report.error is not None) and not report.lag else report.lag


class Lags(NamedTuple):
    """The records that a flow is to copy of each partition, and the age of the oldest; NaN where unknown."""

    records: Numbers
    seconds: Numbers


def lags_of(partitions: Columns, report_age_s: Numbers | float, is_away: Flags | bool) -> Lags:
    """Tell the lag as it is shown everywhere; `is_away`: the source does not answer.

    While no report is read, or the source is away, it is unknown; so it is where a task that knew of no
    missing record is silent. In an outage it grows by the clock: records that came since then may not be on
    the target.
    """
    stands_by = partitions.state == _STANDBY
    cut_off = is_cut_off(report_age_s)
    is_doubtful = (partitions.is_silent > 0) & (partitions.lag == 0) & ~stands_by
    seconds = np.where(stands_by, 0.0, partitions.lag_s)
    return Lags(
        np.where(is_doubtful | cut_off | is_away, NAN, partitions.lag),
        np.where(cut_off, np.fmax(seconds, report_age_s), seconds),
    )


def is_cut_off(report_age_s: Numbers | float) -> Flags:
    """Tell whether no report was read for too long, or ever (NaN)."""
    age_s = np.asarray(report_age_s, np.float64)
    return np.isnan(age_s) | (age_s > CUT_OFF_AFTER_S)


def _numbers(look: PartitionLook) -> tuple[float, ...]:
    moved_s, closed = (None, None) if look.motion is None else look.motion
    of = Columns._fields
    values = {
        **{name: getattr(look, name) for name in of if name in PartitionLook._fields},
        "state": _state(look),
        "lag": known_lag(look.report) if look.promotion is None else 0,
        "moved_s": moved_s,
        "closed": closed,
    }
    return tuple(NAN if values[name] is None else float(values[name]) for name in of)


def _state(look: PartitionLook) -> float:
    if look.promotion is not None:
        return PROMOTED
    return NOT_REPORTED if look.report is None else CODES[look.report.state]
