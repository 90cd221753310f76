"""Starts the browser of the checks in this folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def program() -> Path:
    return Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))


@contextmanager
def chromium() -> Iterator["Browser"]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - not there on every machine

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program(), args=["--no-sandbox"])
        try:
            yield started
        finally:
            started.close()
