"""The REST API gives the same responses as a real Java Connect worker.

Status, headers and bodies are compared; ids, times and host names are masked. Intended differences, mostly
where Java answers a client's error with 500, are listed in `rest_cases`, and Java's must still differ.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from sparkmirror.clusters import LocalCluster
from tests.support.mirror import START_TIMEOUT_S
from tests.support.rest_requests import Answer, Request, ask, ask_until
from tests.support.waiting import await_value
from tests.system.connect_node import group_properties, running_nodes
from tests.system.java_mm2 import ConnectWorker, connect_worker
from tests.system.rest_cases import Case, cases

_CONVERTER: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
_CASES: Final = cases()


@pytest.fixture(scope="module")
def bootstrap(target_cluster: LocalCluster) -> str:
    return target_cluster.bootstrap_servers


@pytest.fixture(scope="module")
def java_url(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    stores = {
        f"{store}.storage.{key}": value
        for store in ("config", "offset", "status")
        for key, value in (("topic", f"rest-cases-{store}"), ("replication.factor", "1"))
    }
    properties = {
        **stores,
        "bootstrap.servers": bootstrap,
        "group.id": "rest-cases",
        "key.converter": _CONVERTER,
        "value.converter": _CONVERTER,
        "offset.flush.interval.ms": "1000",
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
    }
    with connect_worker(tmp_path_factory.mktemp("java"), properties) as worker:
        await_value(lambda: _is_up(worker), START_TIMEOUT_S, worker.log_text)
        yield worker.url


@pytest.fixture(scope="module")
def our_url(target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    properties = group_properties(target_cluster, "rest-ours")
    with running_nodes(tmp_path_factory.mktemp("ours"), properties, 1) as (node,):
        node.await_answers()
        yield node.url


@pytest.fixture(scope="module")
def answers(java_url: str, our_url: str, bootstrap: str) -> Sequence[tuple[Answer, Answer]]:
    """Responses of Java and sparkmirror to each case."""
    with ThreadPoolExecutor(2) as pool:
        of_java = pool.submit(_asked, java_url, bootstrap, [case.java_until or case.until for case in _CASES])
        of_ours = pool.submit(_asked, our_url, bootstrap, [case.until for case in _CASES])
    return list(zip(of_java.result(), of_ours.result(), strict=True))


def _asked(url: str, bootstrap: str, enough: Sequence[Callable[[Answer], bool]]) -> list[Answer]:
    requests = [case.request.with_bootstrap(bootstrap) for case in _CASES]
    return [ask_until(url, request, until) for request, until in zip(requests, enough, strict=True)]


def _is_up(worker: ConnectWorker) -> bool:
    try:
        return ask(worker.url, Request("GET", "/health")).status == 200
    except OSError:
        assert worker.is_alive(), worker.log_text()
        return False


@pytest.mark.parametrize("number", range(len(_CASES)), ids=[f"{at}-{case}" for at, case in enumerate(_CASES)])
def test_response_equals_javas(answers: Sequence[tuple[Answer, Answer]], number: int) -> None:
    java, ours = answers[number]
    case: Case = _CASES[number]
    if case.ours is None:
        assert ours.comparable(case.reduce) == java.comparable(case.reduce)
    else:
        assert java.status != ours.status or java.message() != ours.message()
        assert ours.status == case.ours
        assert ours.is_well_formed()
