"""`sparkmirror watch` shows what breaks of Java's mirror, with a state and a remedy, until it is repaired.

No part of `make test`; `check_pages.py` says what it needs. It starts four brokers of its own, and takes ten
minutes: a partition of Java's counts as stalled after three.
`python -m pytest tests/browser/check_broken_java_mirror.py`.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import javaproperties
import pytest
from playwright.sync_api import Page

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST
from sparkmirror.clusters.processes import start_process
from tests.browser.check_broken_mirror import (
    CALM,
    GONE,
    LED,
    REFUSED,
    Broken,
    broken_clusters,
    properties,
)
from tests.browser.check_pages import Complaints, await_true
from tests.browser.chromium import chromium
from tests.support.broker_data import append, configure, create_topic, delete_topic, numbered
from tests.support.mirror import COMMAND
from tests.support.waiting import await_value
from tests.system.java_mm2 import dedicated

WITHIN_S: Final = 120.0
"""It is looked at every 5 s, and Java takes its time."""
STALLED_WITHIN_S: Final = 300.0


class JavaMirror:
    """Java's MirrorMaker 2 of one file, which can be started again."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._running = ExitStack()

    def start(self) -> None:
        self.kill()
        self._running.enter_context(dedicated(self._file, self._file.with_name("java.log")))

    def kill(self) -> None:
        self._running.close()


class Watched(Broken):
    def __init__(self, source: LocalCluster, target: LocalCluster, page: Page, java: JavaMirror) -> None:
        super().__init__(source, target, page)
        self.java = java


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("java")
    with ExitStack() as opened:
        source, target = opened.enter_context(broken_clusters(folder))
        file, log = folder / "mm2.properties", folder / "watch.log"
        of_java = {
            **properties(source, target),
            "config.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "target.offset.flush.interval.ms": "1000",
            "emit.heartbeats.enabled": "true",
            "offset-syncs.topic.location": "target",  # no leader of the source but that of a mirrored topic
        }
        file.write_text(javaproperties.dumps(of_java), encoding="ascii")
        java = JavaMirror(file)
        opened.callback(java.kill)
        java.start()
        watch = start_process([[COMMAND, "watch", str(file), "--http", f"{HOST}:0"]], log, outlives_us=False)
        opened.callback(watch.kill)

        def address() -> str | None:
            return log.read_text().partition("pages are at ")[2].partition("\n")[0] or None

        url = await_value(address, WITHIN_S, log.read_text)
        browser = opened.enter_context(chromium())
        page = browser.new_page()
        complaints = Complaints(page, url)
        page.goto(url)
        yield Watched(source, target, page, java)
        assert complaints.found == []


def test_a_leader_that_is_lost(watched: Watched) -> None:
    watched.await_well(WITHIN_S)
    watched.source.kill_broker(2)
    said = "the source's end can't be read", "does the broker that leads it run?"
    watched.await_seen(LED, "unknown", *said, within_s=WITHIN_S)
    assert watched.text_of(CALM) == ""
    watched.source.start_broker(2)
    watched.await_well(WITHIN_S)


def test_a_topic_that_is_deleted(watched: Watched) -> None:
    watched.await_well(WITHIN_S)
    delete_topic(watched.source, GONE)
    watched.await_seen(
        GONE, "unknown", "its topic was deleted on the source: nothing to do", within_s=WITHIN_S
    )
    watched.await_well(WITHIN_S)
    assert "3 topics" in watched.flow()
    create_topic(watched.source.bootstrap_servers, GONE)
    append(watched.source, GONE, numbered(3))
    await_true(lambda: "4 topics" in watched.flow(), WITHIN_S, watched.page)
    watched.await_well(WITHIN_S)


def test_a_target_whose_broker_is_killed(watched: Watched) -> None:
    watched.await_well(WITHIN_S)
    watched.target.kill_broker(0)
    watched.await_seen("cluster target", "unknown", "target does not answer since ", within_s=WITHIN_S)
    await_true(lambda: watched.text_of(CALM) == "", WITHIN_S, watched.page)
    watched.target.start_broker(0)
    watched.await_well(WITHIN_S)


def test_a_task_that_has_failed(watched: Watched) -> None:
    """Java's task ends at a record that the target refuses; its connector runs on, and writes heartbeats."""
    watched.await_well(WITHIN_S)
    append(watched.source, REFUSED, [(b"large", b"x" * 5000)])
    watched.await_seen(REFUSED, "stalled", "that of Java's worker, has the reason", within_s=STALLED_WITHIN_S)
    configure(watched.target, f"source.{REFUSED}", {"max.message.bytes": "1000000"})
    watched.java.start()
    watched.await_well(WITHIN_S)
