"""Shows rates as they change: a live table on a terminal, a plain line every few seconds elsewhere."""

from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sparkmirror.cli.commands.demo.throughput import Rates

_PLAIN_EVERY_S: Final = 4.0
_UNKNOWN: Final = "-"
_CELL_WIDTH: Final = 7  # so that the table does not jump when a number grows
_COLUMNS: Final = ("partitions", "records/s", "MB/s", "offset lag", "p50 ms", "p99 ms")


class Dashboard:
    """A context manager for one display; the last table stays on the screen."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._printed_at: float | None = None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, topics: Iterable[Rates], total: Rates, caption: str, now: float) -> None:
        if self._live is not None:
            self._live.update(rates_table(topics, total, caption), refresh=True)
        elif self._printed_at is None or now - self._printed_at >= _PLAIN_EVERY_S:
            self._printed_at = now
            self._console.print(plain_line(total, caption), highlight=False, markup=False, soft_wrap=True)


def rates_table(topics: Iterable[Rates], total: Rates, caption: str) -> RenderableType:
    table = Table(box=SIMPLE_HEAD, show_footer=True, footer_style="bold")
    table.add_column("topic", footer=total.name)
    for name, footer in zip(_COLUMNS, _cells(total), strict=True):
        table.add_column(name, footer=footer, justify="right", min_width=_CELL_WIDTH)
    for rates in topics:
        table.add_row(rates.name, *_cells(rates))
    return Group(table, Text(caption, style="dim"))


def plain_line(total: Rates, caption: str) -> str:
    _, records, megabytes, lag, p50, p99 = _cells(total)
    return f"{records} records/s, {megabytes} MB/s, lag {lag}, latency p50 {p50} ms, p99 {p99} ms; {caption}"


def _cells(rates: Rates) -> tuple[str, str, str, str, str, str]:
    return (
        str(rates.partitions),
        f"{rates.records_per_s:,.0f}",
        f"{rates.bytes_per_s / 1e6:.2f}",
        _UNKNOWN if rates.lag is None else f"{rates.lag:,}",
        _milliseconds(rates.p50_ms),
        _milliseconds(rates.p99_ms),
    )


def _milliseconds(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:,.1f}"
