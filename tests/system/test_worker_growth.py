"""Deleted connectors leave no threads or sockets in the worker's process."""

from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from sparkmirror.clusters import LocalCluster
from tests.support.waiting import await_value
from tests.system.connect_node import (
    HEARTBEAT,
    ConnectNode,
    connector_config,
    group_properties,
    running_nodes,
)

SOME = 5
"""Warm-up rounds, after which the process has opened everything that it opens once."""
COUNT = 20
"""The number of connectors. Each has a thread, and a connection after its first heartbeat."""
ALLOWED = 3
"""A margin for the API's thread pool and idle connections."""
TIMEOUT_S = 90.0


class Held(NamedTuple):
    threads: int
    sockets: int

    @classmethod
    def by(cls, process: psutil.Process) -> "Held":
        return cls(process.num_threads(), len(process.net_connections("all")))

    def is_within(self, most: "Held") -> bool:
        return self.threads <= most.threads and self.sockets <= most.sockets

    def plus(self, more: int) -> "Held":
        return Held(self.threads + more, self.sockets + more)


@pytest.fixture(scope="module")
def config(target_cluster: LocalCluster) -> dict[str, str]:
    return connector_config(HEARTBEAT, ("ga", target_cluster), ("gb", target_cluster))


def test_deleted_connectors_leave_no_threads_or_sockets(
    tmp_path: Path, target_cluster: LocalCluster, config: dict[str, str]
) -> None:
    with running_nodes(tmp_path, group_properties(target_cluster, "growth-test"), 1) as (node,):
        node.await_answers()
        node.await_log("Spark runs on")
        process = psutil.Process(node.jvm().ppid())
        come_and_go(node, process, names("first", SOME), config, Held(0, 0))
        before = Held.by(process)
        come_and_go(node, process, names("second", COUNT), config, before.plus(COUNT - ALLOWED))
        await_value(
            lambda: Held.by(process).is_within(before.plus(ALLOWED)),
            TIMEOUT_S,
            lambda: f"{before} grew to {Held.by(process)}\n{node.log_text()}",
        )
        node.stop()


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{number}" for number in range(count)]


def come_and_go(
    node: ConnectNode, process: psutil.Process, names: list[str], config: dict[str, str], least: Held
) -> None:
    """Create, reconfigure and delete all connectors. While they run, they must have at least `least`."""
    for interval in ("2", "1"):
        for name in names:
            node.put(name, {**config, "emit.heartbeats.interval.seconds": interval})
    for name in names:
        node.await_states(name, "RUNNING", "RUNNING")
    await_value(lambda: least.is_within(Held.by(process)), TIMEOUT_S, lambda: f"{Held.by(process)}")
    for name in names:
        assert node.ask("DELETE", f"/connectors/{name}").status == 204
    await_value(
        lambda: all(node.ask("GET", f"/connectors/{name}/status").status == 404 for name in names),
        TIMEOUT_S,
        node.log_text,
    )
