"""Compares pictures of pages with committed ones, coarsely: a grid of how light each part of a page is.

It shows a page that lost its styles, a table, a column or its colours, and not which fonts a machine has.
`PICTURES=write` writes those of now instead: look at them before they are committed.
"""

import base64
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from playwright.sync_api import Page

FILE: Final = Path(__file__).with_name("pictures.json")
_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+/"
"""The lightness of a cell, from black to white."""
_COLUMNS: Final = 32
_ROWS_MAX: Final = 48
_NEAR: Final = 3
_OTHERS_MAX: Final = 0.03
_HEIGHT_MAX: Final = 0.02
_GRID: Final = """async ([data, columns, rowsMax]) => {
    const blob = await (await fetch("data:image/png;base64," + data)).blob();
    const whole = await createImageBitmap(blob);
    const rows = Math.max(1, Math.min(rowsMax, Math.round(columns * whole.height / whole.width)));
    const options = { resizeWidth: columns, resizeHeight: rows, resizeQuality: "high" };
    const context = new OffscreenCanvas(columns, rows).getContext("2d");
    context.drawImage(await createImageBitmap(blob, options), 0, 0);
    const rgba = context.getImageData(0, 0, columns, rows).data;
    const light = [];
    for (let at = 0; at < rgba.length; at += 4) {
        light.push(Math.floor((0.2126 * rgba[at] + 0.7152 * rgba[at + 1] + 0.0722 * rgba[at + 2]) / 4));
    }
    return [whole.height, light];
}"""


class Picture(NamedTuple):
    """A row of the grid is a text; `height` is that of the page in pixels."""

    height: int
    rows: Sequence[str]


class Pictures:
    """Holds the committed pictures and those that were taken. `blank` is a page to compute in."""

    def __init__(self, blank: Page) -> None:
        self._blank = blank
        self._known = _read()
        self._taken: dict[str, Picture] = {}

    def compare(self, name: str, png: bytes) -> None:
        """Raises AssertionError with what is other."""
        height, light = self._blank.evaluate(
            _GRID, [base64.b64encode(png).decode("ascii"), _COLUMNS, _ROWS_MAX]
        )
        text = "".join(_ALPHABET[value] for value in light)
        rows = [text[at : at + _COLUMNS] for at in range(0, len(text), _COLUMNS)]
        self._taken[name] = Picture(height, rows)
        if not is_writing():
            _compare(name, self._known.get(name), self._taken[name])

    def end(self) -> None:
        if is_writing():
            pictures = {
                name: picture._asdict() for name, picture in sorted({**self._known, **self._taken}.items())
            }
            FILE.write_text(json.dumps(pictures, indent=0) + "\n", encoding="ascii")


def is_writing() -> bool:
    return os.environ.get("PICTURES") == "write"


def _read() -> Mapping[str, Picture]:
    if not FILE.exists():
        return {}
    return {name: Picture(**fields) for name, fields in json.loads(FILE.read_text(encoding="ascii")).items()}


def _compare(name: str, known: Picture | None, now: Picture) -> None:
    assert known is not None, f"{name} is not among the committed pictures: PICTURES=write adds it"
    is_as_high = abs(now.height - known.height) <= _HEIGHT_MAX * known.height
    assert is_as_high, f"{name} is {now.height} pixels high, and was {known.height}"
    pairs = zip("".join(known.rows), "".join(now.rows), strict=False)
    others = [at for at, (a, b) in enumerate(pairs) if abs(_ALPHABET.index(a) - _ALPHABET.index(b)) > _NEAR]
    places = [f"row {at // _COLUMNS} column {at % _COLUMNS}" for at in others[:5]]
    size = _COLUMNS * len(known.rows)
    assert len(others) <= _OTHERS_MAX * size, f"{name} differs in {len(others)} of {size} parts: {places}"
