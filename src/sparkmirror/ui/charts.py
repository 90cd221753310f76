"""Draws the last hour of a flow as paths of SVG. Where nothing is known the line is broken. Pure."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from sparkmirror.metrics.flow_history import EVERY_S, KEPT_S, HistoryPoint

WIDTH: Final = 180
HEIGHT: Final = 28
_GAP_S: Final = 3 * EVERY_S


class Spark(NamedTuple):
    """A line and its numbers. `now` and `most` are None where there is no known point."""

    path: str
    now: float | None
    most: float | None


def spark(history: Sequence[HistoryPoint], value: Callable[[HistoryPoint], float | None]) -> Spark:
    values = [known for point in history if (known := value(point)) is not None]
    most = max(values, default=None)
    now = value(history[-1]) if history and history[-1].ago_s < _GAP_S else None
    return Spark(" ".join(_path(history, value, most or 1.0)), now, most)


def plot_points(history: Sequence[HistoryPoint], made_at: float) -> list[list[float | None]]:
    """Return times in epoch seconds, seconds behind and records/s; a gap has a point without values."""
    times: list[float | None] = []
    lags: list[float | None] = []
    rates: list[float | None] = []
    before = KEPT_S
    for point in history:
        if times and before - point.ago_s > _GAP_S:
            for values, value in ((times, round(made_at - before) + 1), (lags, None), (rates, None)):
                values.append(value)
        times.append(round(made_at - point.ago_s))
        lags.append(None if point.lag_s is None else round(point.lag_s, 1))
        rates.append(round(point.record_rate, 1))
        before = point.ago_s
    return [times, lags, rates]


def _path(
    history: Sequence[HistoryPoint], value: Callable[[HistoryPoint], float | None], most: float
) -> Iterator[str]:
    before: float | None = None
    for point in history:
        known = value(point)
        if known is None:
            before = None
            continue
        x = WIDTH * (1 - point.ago_s / KEPT_S)
        y = HEIGHT - 1 - (HEIGHT - 2) * known / most
        is_apart = before is None or before - point.ago_s > _GAP_S
        yield f"{'M' if is_apart else 'L'}{x:.1f} {y:.1f}"
        before = point.ago_s
