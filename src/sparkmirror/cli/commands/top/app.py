"""Shows a mirror's tables in a terminal, again each second; keys choose, sort and filter."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Input, Static
from textual.worker import Worker, get_current_worker

from sparkmirror.cli.commands.top.tables import (
    EVENTS,
    GROUPS,
    PARTITIONS,
    ROWS_MAX,
    TOPICS,
    Cell,
    Json,
    Kind,
    Row,
    Table,
    sorted_by,
    table_of,
)
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.printable import printable
from sparkmirror.domain.quantities import counted
from sparkmirror.ui.numbers import duration, rate, size
from sparkmirror.view.words import CALM

Ask = Callable[[Mapping[str, str]], Json]
"""Answers as `GET /mirror` does. Raises SparkmirrorError, and LookupError for a flow that is gone."""

_EVERY_S: Final = 1.0
_STYLES: Final = {
    "action required": "bold red",
    "stalled": "red",
    "retrying": "yellow",
    "throttled": "yellow",
    "falling behind": "yellow",
    "caught up": "green",
    "promoted": "green",
}


class TopApp(App[None]):
    """`ask` is called in a thread."""

    CSS = """
    #head { height: auto; padding: 0 1; }
    #filter { display: none; }
    DataTable { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("t", "show('topics')", "topics"),
        Binding("p", "show('partitions')", "partitions"),
        Binding("g", "show('groups')", "groups"),
        Binding("e", "show('events')", "events"),
        Binding("f", "next_flow", "next flow"),
        Binding("s", "sort", "sort"),
        Binding("r", "turn", "reverse"),
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("escape", "unfilter", "no filter"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, ask: Ask, flow: str | None = None, every_s: float = _EVERY_S) -> None:
        super().__init__()
        self._ask = ask
        self._flow = flow
        self._every_s = every_s
        self._kind: Kind = TOPICS
        self._matching = ""
        self._column: int | None = None
        self._reverse = False
        self._table = Table((), None)
        self._shown: tuple[Any, ...] = ()
        self._looking: Worker[None] | None = None

    def compose(self) -> ComposeResult:
        yield Static("reading …", id="head", markup=False)
        yield Input(placeholder="a part of the names; Enter keeps it, Escape drops it", id="filter")
        yield DataTable(cursor_type="row", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        self.query_one(DataTable).focus()
        self.set_interval(self._every_s, self._look_again)
        self.look()

    def _look_again(self) -> None:
        """Ask again once the previous answer has arrived: it may take longer than the interval."""
        if self._looking is None or self._looking.is_finished:
            self.look()

    def look(self) -> None:
        self._looking = self._look()

    @work(thread=True, exclusive=True)
    def _look(self) -> None:
        """Ask in a thread, since asking takes time; an answer that a later one has overtaken is dropped."""
        worker, asked = get_current_worker(), (self._kind, self._flow, self._matching)
        try:
            content, flow = self._answer(*asked)
        except (SparkmirrorError, OSError) as error:
            if not worker.is_cancelled:
                self.call_from_thread(self._say, str(error))
            return
        if not worker.is_cancelled:
            self.call_from_thread(self._take, asked, content, flow)

    def _answer(self, kind: Kind, wanted: str | None, matching: str) -> tuple[Json, Json | None]:
        """Ask for the mirror and the list of the shown flow; None where there is no flow."""
        everything = self._ask({})
        names = _names(everything)
        if not names:
            return everything, None
        flow = wanted if wanted in names else names[0]
        asked = {"flow": flow, "size": str(ROWS_MAX), "matching": matching, **kind.parameters}
        try:
            (found,) = self._ask(asked)["flows"]
        except LookupError as error:
            raise SparkmirrorError(str(error)) from error
        return everything, found

    @property
    def _is_shown(self) -> bool:
        """Whether the tables are on the screen: an answer may still come while the terminal is given back."""
        return bool(self.query("#head"))

    def _say(self, trouble: str) -> None:
        """Show trouble above the last tables, which stay."""
        if not self._is_shown:
            return
        self.query_one("#head", Static).update(Text(printable(trouble), "bold red"))

    def _take(self, asked: tuple[Kind, str | None, str], content: Json, flow: Json | None) -> None:
        """An answer to what is not asked any more, since a key was pressed, is dropped."""
        if not self._is_shown or asked != (self._kind, self._flow, self._matching):
            return
        kind = self._kind
        self._flow = None if flow is None else _name(flow)
        self._table = Table((), None) if flow is None else table_of(kind, flow)
        self.query_one("#head", Static).update(_head(content, flow, kind, self._table, self._matching))
        self._draw()

    def _draw(self) -> None:
        """Draw what has changed; the cursor stays on its row."""
        rows = sorted_by(self._table, self._column, reverse=self._reverse)
        shown = (self._kind, self._column, self._reverse, rows)
        if shown == self._shown:
            return
        table = self.query_one(DataTable)
        if self._shown[:3] != shown[:3]:
            table.clear(columns=True)
            for number, column in enumerate(self._kind.columns):
                mark = " ▼" if number == self._column and self._reverse else ""
                mark = " ▲" if number == self._column and not self._reverse else mark
                table.add_column(f"{column.title}{mark}")
        before = _row_at(self._shown[3] if self._shown else (), table.cursor_row)
        table.clear()
        for row in rows:
            table.add_row(*map(_cell, row.cells, self._kind.columns))
        self._shown = shown
        at = next((number for number, row in enumerate(rows) if row.name == before), table.cursor_row)
        table.move_cursor(row=at, animate=False)

    # keys

    def action_show(self, title: str) -> None:
        self._kind = {it.title: it for it in (TOPICS, PARTITIONS, GROUPS, EVENTS)}[title]
        self._column, self._reverse = None, False
        self.look()

    def action_next_flow(self) -> None:
        self._next_flow()

    @work(thread=True)
    def _next_flow(self) -> None:
        try:
            names = _names(self._ask({}))
        except (SparkmirrorError, OSError) as error:
            self.call_from_thread(self._say, str(error))
            return
        at = names.index(self._flow) if self._flow in names else -1
        self._flow = names[(at + 1) % len(names)] if names else None
        self.call_from_thread(self.look)

    def action_sort(self) -> None:
        """Sort by the next column; after the last one, keep the answer's order."""
        column = -1 if self._column is None else self._column
        self._column = column + 1 if column + 1 < len(self._kind.columns) else None
        self._draw()

    def action_turn(self) -> None:
        self._reverse = not self._reverse
        self._draw()

    def action_filter(self) -> None:
        field = self.query_one("#filter")
        field.display = True
        self.screen.set_focus(field)  # at once: the keys that follow are its text

    def action_unfilter(self) -> None:
        field = self.query_one("#filter", Input)
        field.value = ""
        field.display = False
        self.query_one(DataTable).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._matching = event.value
        self.look()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        self.query_one(DataTable).focus()


def _names(content: Json) -> list[str]:
    return [_name(it) for it in content["flows"]]


def _name(flow: Json) -> str:
    return f"{flow['source']}->{flow['target']}"


def _row_at(rows: Sequence[Row], number: int) -> str | None:
    return rows[number].name if 0 <= number < len(rows) else None


def _cell(cell: Cell, column: Any) -> Text:
    """Return a cell as Text: a string would be read as markup."""
    return Text(cell.text, _STYLES.get(cell.text, ""), justify="right" if column.is_number else "left")


def _errors(flow: Json) -> list[str]:
    """Return the error of the worst thing, and those of connectors, such as why no news arrives."""
    errors = [flow["state"]["error"], *(it["state"]["error"] for it in flow["connectors"])]
    return list(dict.fromkeys(error for error in errors if error))


def _figures(flow: Json) -> str:
    """The lag and the speed, as far as they are known."""
    records, age_s = flow["lag_records"], flow["lag_seconds"]
    lag = "unknown" if records is None else counted(records, "record")
    found = [f"lag {lag}" if age_s is None else f"lag {lag}, {duration(age_s)}"]
    if flow["records_per_second"] is not None:
        found.append(f"{rate(flow['records_per_second'])} records/s")
    if flow["bytes_per_second"] is not None:
        found.append(f"{size(flow['bytes_per_second'])}/s")
    return "  ".join(found)


def _head(content: Json, flow: Json | None, kind: Kind, table: Table, matching: str) -> Text:
    at = datetime.fromtimestamp(content["made_at_ms"] / 1000, UTC).strftime("%H:%M:%S UTC")
    head = Text(f"{printable(content['node'])}  {at}  ")
    away = [it["alias"] for it in content["clusters"] if it["answers"] is False]
    if away:
        head.append(f"no answer from {printable(', '.join(away))}  ", "bold red")
    if flow is None:
        return head.append("no flow runs here")
    state = flow["state"]
    head.append(f"\n{printable(_name(flow))}  ", "bold")
    head.append(state["word"], _STYLES.get(state["word"], ""))
    head.append(f"  {_figures(flow)}")
    errors = _errors(flow)
    for error in errors:
        head.append(f"\n{printable(error)}", "red")
    if not errors and state["advice"] and state["word"] not in CALM:
        head.append(f"\n{printable(state['advice'])}")
    total = "unknown" if table.total is None else f"{table.total:,}"
    some = f"{len(table.rows):,} of " if table.total is not None and table.total > len(table.rows) else ""
    having = f" with {printable(matching)}" if matching else ""
    return head.append(f"\n{some}{total} {kind.title}{having}")
