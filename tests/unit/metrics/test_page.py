import gzip
from collections.abc import Collection, Iterator
from http.client import HTTPConnection
from importlib.metadata import version
from math import inf, nan
from socket import create_connection

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Alias, ConnectorName, Flow
from sparkmirror.metrics import exposition
from sparkmirror.metrics.compression import takes_gzip
from sparkmirror.metrics.exposition import Heads
from sparkmirror.metrics.families import Family
from sparkmirror.metrics.metrics_server import CONNECTIONS_MAX, MetricsServer
from sparkmirror.metrics.page import Metrics, Page
from sparkmirror.metrics.readings import ConnectorReading, HeartbeatReading, NodeReading

FLOW = Flow(Alias("a"), Alias("b"))


def heartbeats(connector: str, count: int) -> HeartbeatReading:
    return HeartbeatReading(FLOW, ConnectorName(connector), {0: "running"}, count, None)


def samples(page: Page) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page[1].decode())
        for sample in family.samples
    }


def test_prometheus_can_parse_the_page() -> None:
    page = Metrics(lambda: [heartbeats("a->b.beat", 3)]).page()
    assert page[0].startswith("text/plain; version=0.0.4")
    read = samples(page)
    assert read["kafka_connect_worker_connector_count", frozenset()] == 1
    labels = {"source": "a", "target": "b", "connector": '"a->b.beat"'}
    assert read["sparkmirror_heartbeats_total", frozenset(labels.items())] == 3
    assert read["sparkmirror_build_info", frozenset({("version", version("sparkmirror"))})] == 1
    assert read["process_cpu_seconds_total", frozenset()] > 0


def test_a_node_tells_who_leads_and_what_is_assigned() -> None:
    node = NodeReading("connect-1", "http://a:8083", is_leader=True, is_rebalancing=False)
    read = samples(Metrics(lambda: [heartbeats("beat", 3)], node=lambda: node).page())
    assert read["sparkmirror_leader", frozenset({("leader", "http://a:8083")})] == 1
    of = frozenset({("clientId", "connect-1"), ("clientid", "connect-1")})
    assert read["kafka_connect_coordinator_assigned_connectors", of] == 1
    assert read["kafka_connect_coordinator_assigned_tasks", of] == 1
    assert read["kafka_connect_worker_rebalance_rebalancing", frozenset()] == 0


def test_special_values_are_written_as_prometheus_writes_them() -> None:
    family = Family("x", "h\\\n", ("l",), [(('a"\\\n',), nan), (("b",), inf), (("c",), -inf), (("d",), 1)])
    assert exposition.page([Heads().written(family)]) == (
        "# HELP x h\\\\\\n\n# TYPE x gauge\n"
        'x{l="a\\"\\\\\\n"} NaN\nx{l="b"} +Inf\nx{l="c"} -Inf\nx{l="d"} 1\n'
    )


def test_frequent_requests_share_a_page() -> None:
    asked = []
    now = 100.0

    def readings() -> Collection[ConnectorReading]:
        asked.append(1)
        return ()

    served = Metrics(readings, clock=lambda: now)
    first = served.page()
    now += 0.5
    assert served.page() == first
    assert len(asked) == 1
    now += 0.5
    served.page()
    assert len(asked) == 2


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    made = MetricsServer("127.0.0.1", 0, lambda: ("text/plain", b"one 1\n"))
    yield made
    made.close()


def ask(server: MetricsServer, method: str, path: str) -> tuple[int, str | None, bytes]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request(method, path)
    response = connection.getresponse()
    answer = response.status, response.getheader("Content-Type"), response.read()
    connection.close()
    return answer


def test_the_server_serves_one_path(server: MetricsServer) -> None:
    assert ask(server, "GET", "/metrics") == (200, "text/plain", b"one 1\n")
    assert ask(server, "GET", "/metrics?name[]=one") == (200, "text/plain", b"one 1\n")
    assert ask(server, "HEAD", "/metrics") == (200, "text/plain", b"")
    assert ask(server, "GET", "/")[0] == 404
    assert ask(server, "POST", "/metrics")[0] == 501


def test_pages_are_compressed_for_who_takes_gzip(server: MetricsServer) -> None:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", "/metrics", headers={"Accept-Encoding": "deflate, gzip;q=0.5"})
    response = connection.getresponse()
    assert response.getheader("Content-Encoding") == "gzip"
    assert gzip.decompress(response.read()) == b"one 1\n"
    connection.close()
    assert [takes_gzip(text) for text in (None, "", "br", "gzip;q=0", "*", "GZIP")] == [False] * 4 + [
        True
    ] * 2


def test_a_taken_port_is_an_error_that_names_the_option(server: MetricsServer) -> None:
    with pytest.raises(
        SparkmirrorError, match=rf"port {server.port}: Address already in use.*--metrics-port"
    ):
        MetricsServer("127.0.0.1", server.port, lambda: ("", b""))


def test_an_unknown_host_is_an_error() -> None:
    with pytest.raises(SparkmirrorError, match=r"can't be served at no\.such\.host\.invalid"):
        MetricsServer("no.such.host.invalid", 0, lambda: ("", b""))


def test_without_a_host_every_address_is_served() -> None:
    server = MetricsServer("", 0, lambda: ("text/plain", b"one 1\n"))
    try:
        assert ask(server, "GET", "/metrics")[0] == 200
    finally:
        server.close()


def test_silent_clients_are_disconnected_and_others_served() -> None:
    server = MetricsServer("127.0.0.1", 0, lambda: ("text/plain", b"one 1\n"), client_timeout_s=0.1)
    try:
        silent = [create_connection(("127.0.0.1", server.port)) for _ in range(CONNECTIONS_MAX + 4)]
        for each in silent:
            each.settimeout(10)
            assert each.recv(1) == b""  # disconnected, at once or after the time-out
            each.close()
        assert ask(server, "GET", "/metrics")[0] == 200
    finally:
        server.close()


def test_a_failed_page_is_logged_and_the_next_one_is_served(caplog: pytest.LogCaptureFixture) -> None:
    pages: Iterator[Page | Exception] = iter([ZeroDivisionError("a bug"), ("text/plain", b"one 1\n")])

    def page() -> Page:
        made = next(pages)
        if isinstance(made, Exception):
            raise made
        return made

    server = MetricsServer("127.0.0.1", 0, page)
    try:
        with pytest.raises(ConnectionError):
            ask(server, "GET", "/metrics")
        assert "the metrics page could not be rendered" in caplog.text
        assert ask(server, "GET", "/metrics")[0] == 200
    finally:
        server.close()
