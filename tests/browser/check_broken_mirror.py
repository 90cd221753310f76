"""A real mirror's page shows within seconds what breaks, with a state and a remedy, until it is repaired.

No part of `make test`; `check_pages.py` says what it needs. It starts four brokers of its own.
`python -m pytest tests/browser/check_broken_mirror.py`.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import NewTopic
from playwright.sync_api import Page

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.cluster_state import ClusterSpec
from tests.browser.check_pages import Complaints, await_true
from tests.browser.chromium import chromium
from tests.support.broker_data import admin, append, configure, create_topic, delete_topic, numbered
from tests.support.mirror import REPLICATION, running_mirror
from tests.support.topic_reader import await_leaders

WITHIN_S: Final = 60.0
"""Enough for a busy machine; brokers notice that one is gone after 1.5 s, clients after a few seconds."""
LED, REFUSED, GONE, CALM = "seen.led", "seen.refused", "seen.gone", "seen.calm"
LATER: Final = "seen.later"
SESSION: Final = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "500"}
BROKER: Final = {**SESSION, "auto.create.topics.enable": "false"}
"""Java's consumer would make a topic again that was deleted."""


class Broken:
    def __init__(self, source: LocalCluster, target: LocalCluster, page: Page) -> None:
        self.source = source
        self.target = target
        self.page = page

    def text_of(self, name: str) -> str:
        """Return the text of a thing in the list of what is not well, empty if it is not there."""
        return next((text for text in self.needs() if name in text), "")

    def needs(self) -> list[str]:
        texts: list[str] = self.page.locator("li.need").all_inner_texts()
        return texts

    def await_seen(self, name: str, *texts: str, within_s: float = WITHIN_S) -> None:
        await_true(lambda: all(text in self.text_of(name) for text in texts), within_s, self.page)

    def await_well(self, within_s: float = WITHIN_S) -> None:
        await_true(lambda: self.needs() == [] and "caught up" in self.flow(), within_s, self.page)

    def flow(self) -> str:
        return " ".join(self.page.locator("#flow-1").all_inner_texts())


@contextmanager
def broken_clusters(folder: Path) -> Iterator[tuple[LocalCluster, LocalCluster]]:
    """A source of three brokers, whose broker 2 leads `LED` and no other topic, and a target of one."""
    trio = ClusterSpec("trio", brokers=3, settings=BROKER, heap_mb=192)
    single = ClusterSpec("single", settings=SESSION, heap_mb=256)
    with (
        LocalCluster.start(trio, folder / "source") as source,
        LocalCluster.start(single, folder / "target") as target,
    ):
        prepare(source, target)
        yield source, target


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broken]:
    folder = tmp_path_factory.mktemp("broken")
    with ExitStack() as opened:
        source, target = opened.enter_context(broken_clusters(folder))
        mirror = opened.enter_context(
            running_mirror(folder / "mirror", properties(source, target), "--http", "127.0.0.1:0")
        )
        browser = opened.enter_context(chromium())
        url = mirror.await_log("pages are at http://").rpartition(" ")[2]
        page = browser.new_page()
        complaints = Complaints(page, url)
        page.goto(url)
        yield Broken(source, target, page)
        assert complaints.found == []
        mirror.stop()


def prepare(source: LocalCluster, target: LocalCluster) -> None:
    leaders = {topic: 2 if topic == LED else 1 for topic in (LED, REFUSED, GONE, CALM)}
    made = [
        NewTopic(topic, num_partitions=1, replica_assignment=[[broker]]) for topic, broker in leaders.items()
    ]
    client = admin(source)  # a closed client would cancel the requests
    for future in client.create_topics(made).values():
        future.result(30)
    await_leaders(source.bootstrap_servers, dict.fromkeys(leaders, 1))
    create_topic(target.bootstrap_servers, f"source.{REFUSED}", config={"max.message.bytes": "1000"})
    for topic in leaders:
        append(source, topic, numbered(10))


def properties(source: LocalCluster, target: LocalCluster) -> dict[str, str]:
    return {
        **REPLICATION,
        "clusters": "source, target",
        "source.bootstrap.servers": source.bootstrap_servers,
        "target.bootstrap.servers": target.bootstrap_servers,
        "source->target.enabled": "true",
        "source->target.topics": r"seen\..*",
        "refresh.topics.interval.seconds": "15",
        "sync.topic.configs.enabled": "false",
        "heartbeats.replication.enabled": "false",
    }


def test_a_record_that_the_target_refuses(broken: Broken) -> None:
    broken.await_well()
    append(broken.source, REFUSED, [(b"large", b"x" * 5000)])
    broken.await_seen(REFUSED, "action required", "raise max.message.bytes", "it is retried periodically")
    configure(broken.target, f"source.{REFUSED}", {"max.message.bytes": "1000000"})
    broken.await_well()


def test_a_leader_that_is_lost(broken: Broken) -> None:
    broken.await_well()
    broken.source.kill_broker(2)
    broken.await_seen(LED, "retrying", "LEADER_NOT_AVAILABLE", "it continues when the error has passed")
    assert "no broker answers" not in " ".join(broken.needs())
    broken.source.start_broker(2)
    broken.await_well()


def test_a_topic_that_is_deleted(broken: Broken) -> None:
    """Until the topics are looked at again, its task reports an error; then it is no part of the flow."""
    broken.await_well()
    create_topic(broken.source.bootstrap_servers, LATER)
    # They have just been looked at: there are seconds until the next time.
    await_true(lambda: "5 topics" in broken.flow(), WITHIN_S, broken.page)
    delete_topic(broken.source, GONE)
    broken.await_seen(GONE, "retrying", "it continues when the error has passed")
    broken.await_well()
    assert "4 topics" in broken.flow()
    create_topic(broken.source.bootstrap_servers, GONE)
    await_true(lambda: "5 topics" in broken.flow(), WITHIN_S, broken.page)
    broken.await_well()


def test_a_target_whose_broker_is_killed(broken: Broken) -> None:
    broken.await_well()
    broken.target.kill_broker(0)
    broken.await_seen("cluster target", "unknown", "target does not answer since ", "it is asked every 2 s")
    await_true(lambda: len(broken.needs()) == 1, WITHIN_S, broken.page)
    await_true(lambda: "topics of source->target" in broken.needs()[0], WITHIN_S, broken.page)
    broken.target.start_broker(0)
    broken.await_well()
