"""The tables of `sparkmirror top`, driven by keys as a terminal sends them."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from sparkmirror.cli.commands.top.app import TopApp
from sparkmirror.cli.commands.top.tables import KINDS, Json, sorted_by, table_of
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.printable import printable
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.ui.mirror_response import asked_of
from sparkmirror.view.making import Node, view_of
from sparkmirror.view.view_json import view_json
from tests.support.mirror_looks import HOSTILE, behind, everything, look, source

WAIT_S: Final = 60.0


class Mirror:
    """Answers as `GET /mirror` does; `looks` and `error` may be changed at will."""

    def __init__(self) -> None:
        self.looks: list[ConnectorLook] = everything()
        self.error: SparkmirrorError | None = None

    def asked(self, parameters: Mapping[str, str]) -> Json:
        if self.error is not None:
            raise self.error
        view = view_of(Node("node-1", "1.0"), self.looks, 1000.0)
        content: Json = json.loads(json.dumps(view_json(view, asked_of(parameters))))
        return content


class Terminal:
    def __init__(self, app: TopApp, pilot: Pilot[None]) -> None:
        self._app = app
        self.press = pilot.press
        self._pause = pilot.pause

    @property
    def is_running(self) -> bool:
        return self._app.is_running

    @property
    def head(self) -> str:
        return str(self._app.query_one("#head", Static).content)

    @property
    def titles(self) -> list[str]:
        return [str(it.label) for it in self._app.query_one(DataTable).columns.values()]

    def column(self, title: str) -> list[str]:
        table = self._app.query_one(DataTable)
        at = [it.rstrip(" ▲▼") for it in self.titles].index(title)
        return [str(table.get_row_at(row)[at]) for row in range(table.row_count)]

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not holds():
                await self._pause(0.02)


def driven(mirror: Mirror, steps: Callable[[Terminal], Awaitable[None]], flow: str | None = "a->b") -> None:
    async def drive() -> None:
        app = TopApp(mirror.asked, flow, every_s=0.1)
        async with app.run_test(size=(200, 60)) as pilot:
            terminal = Terminal(app, pilot)
            await terminal.until(lambda: "node-1" in terminal.head)
            await steps(terminal)

    asyncio.run(drive())


def test_keys_choose_what_is_listed_worst_first() -> None:
    async def steps(terminal: Terminal) -> None:
        assert "a->b  action required  lag unknown  5,000 records/s  5 MB/s\n" in terminal.head
        assert "no answer from archive" in terminal.head
        assert "53 topics" in terminal.head
        assert terminal.column("topic")[:2] == ["orders", "errors"]
        for key, title, first in (("p", "topic", "orders"), ("g", "group", None), ("e", "about", None)):
            await terminal.press(key)
            await terminal.until(lambda title=title: title in [it.rstrip(" ▲▼") for it in terminal.titles])  # type: ignore[misc]
            assert first is None or terminal.column(title)[0] == first
        assert "2023-11-14 22:13:20" in terminal.column("time (UTC)")
        await terminal.press("f")
        await terminal.until(lambda: "b->a  caught up" in terminal.head)

    driven(Mirror(), steps)


def test_what_a_start_waits_for_is_told() -> None:
    mirror = Mirror()
    mirror.looks = [source(partitions=None, waits_for="b")]

    async def steps(terminal: Terminal) -> None:
        assert "a->b  starting  lag unknown\nwaits for b\n" in terminal.head

    driven(mirror, steps)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_a_key_ends_it_as_in_any_other_top(key: str) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.press(key)
        await terminal.until(lambda: not terminal.is_running)

    driven(Mirror(), steps)


def test_answers_that_take_longer_than_a_look_lasts_are_shown() -> None:
    """Looks come each 0.1 s here."""

    class SlowMirror(Mirror):
        def asked(self, parameters: Mapping[str, str]) -> Json:
            time.sleep(0.3)
            return super().asked(parameters)

    async def steps(terminal: Terminal) -> None:
        await terminal.press("p")
        await terminal.until(lambda: "topic" in terminal.titles and "partition" in terminal.titles)

    driven(SlowMirror(), steps)


def test_rows_are_sorted_by_their_numbers_and_turned() -> None:
    mirror = Mirror()
    lags = {"a": 9, "b": 1000, "c": 70}
    mirror.looks = [source(*(behind(name, 0, lag, 1) for name, lag in lags.items()))]

    async def steps(terminal: Terminal) -> None:
        await terminal.press("s", "s")
        await terminal.until(lambda: "lag ▲" in terminal.titles)
        assert terminal.column("lag") == ["9", "70", "1,000"]
        await terminal.press("r")
        await terminal.until(lambda: "lag ▼" in terminal.titles)
        assert terminal.column("topic") == ["b", "c", "a"]

    driven(mirror, steps)


def test_a_filter_leaves_names_that_contain_it() -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.press("/", *"clicks.0", "enter")
        await terminal.until(lambda: "10 topics with clicks.0" in terminal.head)
        assert set(terminal.column("topic")) == {f"clicks.0{number}" for number in range(10)}
        await terminal.press("escape")
        await terminal.until(lambda: "53 topics" in terminal.head)

    driven(Mirror(), steps)


def test_what_fails_is_said_over_the_last_tables_and_goes() -> None:
    mirror = Mirror()

    async def steps(terminal: Terminal) -> None:
        mirror.error = SparkmirrorError("no server responds")
        await terminal.until(lambda: terminal.head == "no server responds")
        assert terminal.column("topic")[0] == "orders"
        mirror.error = None
        await terminal.until(lambda: "53 topics" in terminal.head)
        mirror.looks = []
        await terminal.until(lambda: "no flow runs here" in terminal.head)
        assert terminal.column("topic") == []

    driven(mirror, steps)


def test_a_look_at_kafka_that_fails_is_said_and_goes() -> None:
    mirror = Mirror()
    error = "look at the mirror failed: east: no broker answers"

    async def steps(terminal: Terminal) -> None:
        mirror.looks = [source(look("orders"), unread=error)]
        await terminal.until(lambda: error in terminal.head)
        assert terminal.column("topic") == ["orders"]
        mirror.looks = [source(look("orders"))]
        await terminal.until(lambda: error not in terminal.head)

    driven(mirror, steps)


def test_names_are_shown_and_never_read_as_markup() -> None:
    mirror = Mirror()
    names = (*HOSTILE, "[bold red]x[/]", "[/]", "[@click=app.quit]y[/]")
    mirror.looks = [source(*(look(name) for name in names))]

    async def steps(terminal: Terminal) -> None:
        await terminal.until(lambda: len(terminal.column("topic")) == len(names))
        assert set(terminal.column("topic")) == {printable(name) for name in names}

    driven(mirror, steps)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_what_is_unknown_sorts_apart_from_0(kind: Any) -> None:
    (flow,) = Mirror().asked({"flow": "a->b", "size": "1000", **kind.parameters})["flows"]
    table = table_of(kind, flow)
    assert len(table.rows) == table.total
    for number in range(len(kind.columns)):
        rows = sorted_by(table, number, reverse=False)
        unknown = [row.cells[number].text == "unknown" for row in rows if row.cells[number].order[0] == 0]
        assert all(unknown)
        assert sorted_by(table, number, reverse=True)[0].cells[number].order == rows[-1].cells[number].order
