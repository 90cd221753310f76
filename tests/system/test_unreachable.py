"""Unreachable clusters at the start, during the copy and at the stop."""

import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters import ClusterSpec, LocalCluster
from sparkmirror.clusters.cluster_state import ClusterState, NodeState
from sparkmirror.clusters.ports import HOST, ReservedPort
from tests.support.broker_data import append, create_topic, keyed, numbered
from tests.support.metrics_page import Page, page_of
from tests.support.mirror import STOP_TIMEOUT_S, Mirror, running_mirror
from tests.support.waiting import await_value
from tests.system.dual_run import Sides

OUT: Final = "unreachable.out"
BACK: Final = "unreachable.back"
FLOWS: Final = ("near->late", "late->near")
METRICS: Final = ("--metrics-port", f"{HOST}:0")
NEAR_TO_LATE: Final = {"source": "near", "target": "late"}
COME_UP_TIMEOUT_S: Final = 60
"""The longest back-off is 30 s."""
AT_ONCE: Final = timedelta(seconds=5)
"""It takes 30 ms, and more beside other tests; Spark is not awaited."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """A mirror between `near`, which runs, `late`, which starts later, and `mute`, which never responds."""

    near: LocalCluster
    late: LocalCluster
    mirror: Mirror

    def await_copies(self, count: int) -> None:
        """Wait for all records in both directions, once and in order."""
        for cluster, topic in ((self.late, f"near.{OUT}"), (self.near, f"late.{BACK}")):
            await_value(
                lambda cluster=cluster, topic=topic: len(keyed(cluster, topic)) >= count,  # type: ignore[misc]
                COME_UP_TIMEOUT_S,
                lambda topic=topic: f"{topic} is not complete\n{self.mirror.log_text()}",  # type: ignore[misc]
            )
            assert keyed(cluster, topic) == numbered(count)


@pytest.fixture(scope="module")
def clusters(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    folder = tmp_path_factory.mktemp("unreachable")
    with ExitStack() as stack:
        late = stack.enter_context(cluster_to_start_later(folder, stack))
        mute = stack.enter_context(socket.create_server((HOST, 0)))
        create_topic(sides.source.bootstrap_servers, OUT)
        properties = {
            "clusters": "near, late, mute",
            "near.bootstrap.servers": sides.source.bootstrap_servers,
            "late.bootstrap.servers": late.bootstrap_servers,
            "mute.bootstrap.servers": f"{HOST}:{mute.getsockname()[1]}",
            "near->late.enabled": "true",
            "near->late.topics": OUT,
            "late->near.enabled": "true",
            "late->near.topics": BACK,
            "near->mute.enabled": "true",
            "near->mute.topics": OUT,
            "refresh.topics.interval.seconds": "1",
            "heartbeats.replication.enabled": "false",
        }
        mirror = stack.enter_context(running_mirror(folder / "mirror", properties, *METRICS))
        yield Clusters(sides.source, late, mirror)


def cluster_to_start_later(folder: Path, stack: ExitStack) -> LocalCluster:
    """Reserve a port for a cluster that is started later."""
    port = ReservedPort()
    stack.callback(port.release)
    spec = ClusterSpec("late", settings={"broker.session.timeout.ms": "1500"}, heap_mb=256)
    state = replace(ClusterState.new(spec), nodes=(NodeState(port.number),))
    return LocalCluster(state, folder / "late")


def clock(line: str) -> datetime:
    moment = " ".join(line.split(maxsplit=2)[:2])
    return datetime.strptime(moment, "%Y-%m-%d %H:%M:%S.%f")  # noqa: DTZ007 - only differences count


def test_unreachable_cluster_is_reported_at_once(clusters: Clusters) -> None:
    began = clock(clusters.mirror.await_log("flows: "))
    for flow in FLOWS:
        line = clusters.mirror.await_log(
            rf"\[{flow} .*can't connect to {clusters.late.bootstrap_servers}: .*refused"
        )
        assert clock(line) - began < AT_ONCE


def test_unreachable_cluster_is_retried_with_growing_delays(clusters: Clusters) -> None:
    said = [
        clock(clusters.mirror.await_log(rf"\[near->late Mirror.*retrying in {delay} s")) for delay in (1, 2)
    ]
    assert timedelta(seconds=0.9) < said[1] - said[0] < timedelta(seconds=2)


def test_mirroring_starts_once_the_cluster_is_up(clusters: Clusters) -> None:
    clusters.late.launch()
    append(clusters.near, OUT, numbered(100))
    clusters.late.await_answers()
    create_topic(clusters.late.bootstrap_servers, BACK)
    append(clusters.late, BACK, numbered(100))
    clusters.await_copies(100)


def test_cluster_that_does_not_respond_is_reported(clusters: Clusters) -> None:
    assert "near->mute" in clusters.mirror.await_log("did not answer in time; retrying", timeout_s=15)


def test_mirroring_continues_after_a_broker_restart(clusters: Clusters) -> None:
    page = page_of(clusters.mirror)
    await_value(  # a partition that has never reported has no lag either
        lambda: page.one("sparkmirror_lag_seconds", **NEAR_TO_LATE) is not None,
        COME_UP_TIMEOUT_S,
        lambda: "no report was read",
    )
    clusters.late.kill_broker(0)
    append(clusters.near, OUT, numbered(100, first=100))
    clusters.mirror.await_log(
        rf"\[late->near\] {BACK}-0 RETRYING: .*{clusters.late.bootstrap_servers}", timeout_s=15
    )
    clusters.mirror.await_log(r"\[near->late\] late does not answer: .*refused", timeout_s=15)
    assert_outage_is_shown(page)
    clusters.late.start_broker(0)
    append(clusters.late, BACK, numbered(100, first=100))
    clusters.await_copies(200)
    clusters.mirror.await_log(rf"\[late->near\] {BACK}-0 is copied again", timeout_s=15)
    clusters.mirror.await_log(r"\[near->late\] late answers again after", timeout_s=15)


def assert_outage_is_shown(page: Page) -> None:
    """Nobody knows what the target has: the lag in seconds grows, and no partition counts as running."""

    def shown() -> dict[str, float | None]:
        up = {
            alias: page.one("sparkmirror_cluster_up", **NEAR_TO_LATE, cluster=alias)
            for alias in ("near", "late")
        }
        states = {
            state: page.one("sparkmirror_partitions", **NEAR_TO_LATE, state=state)
            for state in ("running", "unknown")
        }
        return {**up, **states, "lag": page.one("sparkmirror_lag_records", **NEAR_TO_LATE)}

    expected = {"near": 1.0, "late": 0.0, "running": 0.0, "unknown": 1.0, "lag": None}
    await_value(lambda: shown() == expected, COME_UP_TIMEOUT_S, lambda: f"{shown()}, not {expected}")
    before = page.one("sparkmirror_lag_seconds", **NEAR_TO_LATE)
    assert before is not None
    assert before > 0.0
    await_value(
        lambda: (page.one("sparkmirror_lag_seconds", **NEAR_TO_LATE) or 0.0) > before + 1.0,
        COME_UP_TIMEOUT_S,
        lambda: f"still {before}",
    )


def test_mirror_stops_in_time_without_its_target(clusters: Clusters) -> None:
    clusters.late.kill_broker(0)
    append(clusters.near, OUT, numbered(100, first=200))
    began = time.monotonic()
    clusters.mirror.send(signal.SIGTERM)
    assert clusters.mirror.wait(STOP_TIMEOUT_S) == 0
    # A task that can't write its last positions stops after some seconds.
    clusters.mirror.assert_nothing_left(within_s=began + STOP_TIMEOUT_S - time.monotonic())
    said = clusters.mirror.log_text()
    assert re.search(r"\[near->late \S+] the stop record can't be written", said)
    assert re.search(r"\[late->near \S+] stopped; the last positions are written", said)
    assert "Traceback" not in said
