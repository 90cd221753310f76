from collections.abc import Collection
from importlib.metadata import version
from math import inf, nan

from prometheus_client.parser import text_string_to_metric_families

from sparkmirror.domain.ids import Alias, ConnectorName, Flow
from sparkmirror.metrics import exposition
from sparkmirror.metrics.compression import takes_gzip
from sparkmirror.metrics.exposition import Heads
from sparkmirror.metrics.family import Family
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


def test_clients_that_take_gzip_are_known() -> None:
    texts = (None, "", "br", "gzip;q=0", "*", "GZIP")
    assert [takes_gzip(text) for text in texts] == [False] * 4 + [True] * 2
