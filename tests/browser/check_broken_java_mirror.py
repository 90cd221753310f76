"""What breaks of Java's MirrorMaker 2 is seen by `sparkmirror watch`, with its word and what to do, and goes.

No part of `make test`; `check_pages.py` says what it needs. It starts four brokers of its own, and takes a
quarter of an hour: a partition of Java's counts as stalled after 3 minutes.
`python -m pytest tests/browser/check_broken_java_mirror.py`.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import javaproperties
import pytest
from playwright.sync_api import sync_playwright

from sparkmirror.clusters.ports import HOST
from sparkmirror.clusters.processes import start_process
from tests.browser.check_broken_mirror import Broken, broken_clusters, properties
from tests.browser.check_pages import Complaints, chromium
from tests.support.mirror import COMMAND
from tests.support.waiting import await_value
from tests.system.java_mm2 import JavaProcess, dedicated

STALLED_S: Final = 300.0
STARTED_S: Final = 120.0
"""Java lists topics, and makes those on the target."""


class JavaMirror:
    """It can be stopped and started again."""

    def __init__(self, file: Path, folder: Path) -> None:
        self.file = file
        self._folder = folder
        self._starts = 0
        self._running = ExitStack()
        self.java: JavaProcess | None = None

    def start(self) -> None:
        self._starts += 1
        log = self._folder / f"java-{self._starts}.log"
        self.java = self._running.enter_context(dedicated(self.file, log))

    def kill(self) -> None:
        self._running.close()


class Watched(Broken):
    mirror: JavaMirror


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("java")
    with ExitStack() as opened:
        source, target = opened.enter_context(broken_clusters(folder))
        file, log = folder / "mm2.properties", folder / "watch.log"
        settings = {
            **properties(source, target),
            "target.offset.flush.interval.ms": "1000",
            "emit.heartbeats.enabled": "true",
            "producer.delivery.timeout.ms": "20000",
            "producer.request.timeout.ms": "10000",
            "config.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
        }
        file.write_text(javaproperties.dumps(settings), encoding="ascii")
        java = JavaMirror(file, folder)
        opened.callback(java.kill)
        java.start()
        command = [COMMAND, "watch", str(file), "--http", f"{HOST}:0"]
        process = start_process([command], log, outlives_us=False)
        opened.callback(process.kill)
        said = "pages are at "
        url = await_value(
            lambda: log.read_text().partition(said)[2].partition("\n")[0] or None,
            STARTED_S,
            log.read_text,
        )
        browser = chromium(opened.enter_context(sync_playwright()))
        opened.callback(browser.close)
        page = browser.new_page()
        complaints = Complaints(page, url)
        page.goto(url)
        watched = Watched(source, target, page)
        watched.mirror = java
        yield watched
        assert complaints.found == []
