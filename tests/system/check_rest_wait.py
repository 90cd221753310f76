"""Measures how long clients wait for a worker while it is sent the worst requests that are known.

    python -m pytest -s tests/system/check_rest_wait.py

prints for each request the answer's status, how long it took, and the longest wait of another client. It
needs a quiet machine; where that is busy, compare with the first line, of a worker that is left alone.
"""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import pytest

from sparkmirror.clusters import LocalCluster
from tests.support.rest_requests import Request, ask
from tests.support.slow_requests import JSON, occupying_requests
from tests.system.connect_node import (
    HEARTBEAT,
    ConnectNode,
    connector_config,
    group_properties,
    running_nodes,
)
from tests.system.other_clients import share, waits

ANSWERED_S: Final = 0.1
LARGE: Final = 20
"""Connectors whose configs are as large as they may be."""
ROUNDS: Final = 3


@pytest.fixture(scope="module")
def node(target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectNode]:
    properties = group_properties(target_cluster, "waiting")
    with running_nodes(tmp_path_factory.mktemp("waiting"), properties, 1) as (only,):
        only.await_answers()
        yield only


def requests(cluster: LocalCluster) -> Iterator[tuple[str, Request]]:
    yield from occupying_requests()
    config = connector_config(HEARTBEAT, ("a", cluster), ("b", cluster), enabled="false")
    config |= {f"transforms.x.{number}": "x" * 450 for number in range(1900)}
    for number in range(LARGE):
        body = json.dumps({**config, "name": f"large{number}"}).encode()
        yield (
            f"create a large connector {number}",
            Request("PUT", f"/connectors/large{number}/config", body, JSON),
        )
    for path in (
        "/connectors?expand=info&expand=status",
        "/connectors/large0",
        "/mirror",
        "/ui/",
        "/metrics",
    ):
        yield f"GET {path}", Request("GET", path)
    body = json.dumps(config).encode()
    yield (
        "validate a large connector",
        Request("PUT", "/connector-plugins/MirrorHeartbeatConnector/config/validate", body, JSON),
    )


def test_others_are_answered(node: ConnectNode, target_cluster: LocalCluster) -> None:
    alone = waits(node.url)
    print(f"\nalone: p50 {share(alone, 0.5) * 1000:.1f} ms, longest {alone[-1] * 1000:.1f} ms")  # noqa: T201
    worst: dict[str, float] = {}
    for name, request in requests(target_cluster):
        statuses: list[int] = []

        def send(request: Request = request, statuses: list[int] = statuses) -> None:
            with suppress(ConnectionError):  # answered before the body was read, which it is not
                statuses.append(ask(node.url, request).status)

        took: list[float] = []
        longest: list[float] = []
        for _ in range(ROUNDS):
            before = time.perf_counter()
            longest.append(waits(node.url, send)[-1])
            took.append(time.perf_counter() - before)
        worst[name] = min(longest)
        said = f"{worst[name] * 1000:6.1f} ms waited, {min(took) * 1000:6.1f} ms took"
        print(f"{said}, {sorted(set(statuses))}: {name}")  # noqa: T201
    late = {name: seconds for name, seconds in worst.items() if seconds > ANSWERED_S + alone[-1]}
    assert late == {}
