"""The first thing that a mirror shows in an outage is its cause; clusters are in memory, tasks threads."""

import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from html import unescape
from typing import Final
from urllib.request import urlopen

import pytest

from sparkmirror.cli.http_server import Address, serve_pages
from sparkmirror.cli.main import main
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.metrics.page import Metrics
from sparkmirror.mirror.dedicated import MirrorMaker
from sparkmirror.settings.configured import configured_flow
from sparkmirror.spark.session import Session
from tests.memory.server import MemoryServer, serving
from tests.support.broker_data import append, create_topic, numbered
from tests.support.mirror import one_way
from tests.support.threaded_spark import ThreadedSpark
from tests.support.waiting import await_value

pytestmark = pytest.mark.memory

WAIT_S: Final = 60.0
_NEED: Final = re.compile(r'<li class="need.*?</li>', re.DOTALL)
_TAG: Final = re.compile(r"<[^>]*>")


class NoSpark(ThreadedSpark):
    """Never comes up."""

    def session(self) -> "Future[Session]":
        return Future()


@dataclass
class Shown:
    """A mirror with its pages, and its clusters."""

    url: str
    source: MemoryServer
    target: MemoryServer

    def needs(self) -> list[str]:
        with urlopen(f"{self.url}/ui/") as page:
            found = _NEED.findall(page.read().decode())
        return [" ".join(unescape(_TAG.sub(" ", it)).split()) for it in found]

    def first(self) -> str:
        return next(iter(self.needs()), "")

    def error(self) -> str:
        with urlopen(f"{self.url}/mirror") as answer:
            state = json.load(answer)["state"]
        return f"{state['word']}: {state['error'] or state['advice']}"

    def await_first(self, *parts: str) -> None:
        await_value(lambda: all(part in self.first() for part in parts), WAIT_S, lambda: f"{self.needs()}")

    def status(self, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
        code = main(["status", self.url])
        return code, capsys.readouterr().out.splitlines()[0]


@contextmanager
def shown(spark: ThreadedSpark | None = None, **more: str) -> Iterator[Shown]:
    """Run the flow A->B of the topic `orders`, and a flow back that only emits heartbeats."""
    with ExitStack() as stack:
        source, target = (stack.enter_context(serving(f"id of {name}")) for name in ("A", "B"))
        create_topic(source.bootstrap_servers, "orders")
        append(source, "orders", numbered(100))
        usual = {
            "sync_topic_acls_enabled": "false",
            "emit_checkpoints_interval_seconds": "1",
            "refresh_topics_interval_seconds": "1",
            "emit_heartbeats_enabled": "true",
        }
        properties = one_way(source, target, "orders.*", **{**usual, **more})
        flows = [configured_flow(flow) for flow in MirrorMakerConfig(Properties(properties)).flows()]
        mirror = MirrorMaker(flows, (spark or ThreadedSpark()).as_demanded())
        server = serve_pages(mirror, Metrics(mirror.readings), Address("127.0.0.1", 0), flows)
        stack.callback(server.stop)
        stack.callback(mirror.close)
        mirror.start()
        waiting = threading.Thread(target=mirror.wait, daemon=True)
        waiting.start()
        stack.callback(mirror.stop)
        stack.callback(source.come_back)
        stack.callback(target.come_back)
        yield Shown(server.urls[0].rstrip("/"), source, target)


def await_well(it: Shown) -> None:
    await_value(lambda: it.needs() == [] and it.error().startswith("caught up"), WAIT_S, it.error)


def test_a_target_that_is_away(capsys: pytest.CaptureFixture[str]) -> None:
    with shown() as it:
        await_well(it)
        it.target.go_away()
        it.await_first("cluster B", "unknown", "B does not answer since ", "topic of A->B")
        assert len(it.needs()) == 1
        assert it.error().startswith("unknown: B does not answer since ")
        code, line = it.status(capsys)
        assert (code, line.startswith("A->B: unknown: B does not answer since ")) == (2, True)


def test_a_source_that_is_away(capsys: pytest.CaptureFixture[str]) -> None:
    with shown() as it:
        await_well(it)
        it.source.go_away()
        it.await_first("cluster A", "unknown", "A does not answer since ")
        assert len(it.needs()) == 1
        assert it.error().startswith("unknown: A does not answer since ")
        code, line = it.status(capsys)
        assert code == 2
        assert "unknown: A does not answer since " in line
        assert main(["lag", it.url]) == 2
        assert "0 records" not in capsys.readouterr().out


def test_topics_that_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(replication_factor="3") as it:
        for number in range(30):
            create_topic(it.source.bootstrap_servers, f"orders.{number}")
        it.await_first("action required", "and 30 more", "not created")
        assert it.error().startswith("action required: ")
        assert "not created" in it.error()
        code, line = it.status(capsys)
        assert (code, "not created" in line) == (1, True)


def test_a_target_that_throttles(capsys: pytest.CaptureFixture[str]) -> None:
    with shown() as it:
        await_well(it)
        it.target.call(lambda: it.target.cluster.quotas.set(producer=500.0))
        for _ in range(40):
            append(it.source, "orders", [(b"key", b"v" * 2000)] * 5)
        it.await_first("throttled", "by B (")
        assert it.error().startswith("throttled: by B (")
        code, line = it.status(capsys)
        assert (code, line.startswith("A->B: throttled: by B (")) == (0, True)


def test_a_start_that_waits_for_spark(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(NoSpark()) as it:
        it.await_first("starting", "waits for Spark, which starts")
        assert it.error() == "starting: waits for Spark, which starts"
        code, line = it.status(capsys)
        assert (code, line) == (2, "A->B: starting: waits for Spark, which starts")


def test_the_flow_that_only_emits_heartbeats_keeps_no_script_waiting(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with shown() as it:
        assert main(["lag", it.url, "--wait", "--timeout", "60"]) == 0
        out = capsys.readouterr().out
        assert "B->A: only heartbeats\n" in out
        assert "A->B: caught up, 1 partition\n" in out
