"""The REST API's server: listeners, added headers, forwarding and errors."""

import logging
import re
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http import HTTPStatus
from typing import Final

import pytest

from sparkmirror.client.connect_rest import Access, ConnectRest
from sparkmirror.clusters.ports import HOST, ReservedPort
from sparkmirror.config.properties import Properties
from sparkmirror.connect.rest.connections import Limits
from sparkmirror.connect.rest.rest_settings import rest_settings
from sparkmirror.connect.rest.server import RestServer
from sparkmirror.domain.connect import ConnectError, Health, State
from sparkmirror.domain.errors import ConfigError
from tests.support.memory_herder import MemoryHerder
from tests.support.rest_requests import Answer, Request, ask
from tests.support.rest_serving import TimeLimits, server, serving, settings
from tests.support.waiting import await_value

WAIT_S: Final = 30.0
JSON: Final = {"Content-Type": "application/json"}
HEARTBEAT: Final = b"""{"name": "hb", "config": {"connector.class": "MirrorHeartbeat", "tasks.max": 1,
    "source.cluster.alias": "a", "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "a:1", "target.cluster.bootstrap.servers": "b:1"}}"""


def get(url: str, path: str, **headers: str) -> Answer:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return ask(url, Request("GET", path, headers=sent))


def error(answer: Answer) -> tuple[int, str]:
    content = answer.json()
    assert content["error_code"] == answer.status
    return answer.status, content["message"]


@pytest.mark.parametrize(
    ("health", "status", "said"),
    [
        (Health(started=False, healthy=False, message="reading"), 503, "starting"),
        (Health(started=True, healthy=False, message="stuck"), 500, "unhealthy"),
        (Health(started=True, healthy=True, message="fine"), 200, "healthy"),
    ],
)
def test_health_reports_the_herders_state(health: Health, status: int, said: str) -> None:
    herder = MemoryHerder()
    herder.now = health
    with serving(herder) as url:
        answer = get(url, "/health")
        assert (answer.status, answer.json()) == (status, {"status": said, "message": health.message})


def test_metrics_are_served_if_configured() -> None:
    with serving(MemoryHerder(), metrics=lambda: ("text/plain; version=0.0.4", b"up 1\n")) as url:
        answer = get(url, "/metrics", Accept="text/plain")
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/plain; version=0.0.4")
        assert answer.body == b"up 1\n"
    with serving(MemoryHerder()) as url:
        assert error(get(url, "/metrics")) == (404, "HTTP 404 Not Found")


def test_the_openapi_document_and_its_page_are_served() -> None:
    with serving(MemoryHerder()) as url:
        api = get(url, "/openapi.json").json()
        assert api["paths"]["/connectors/{connector}/status"]["get"]["operationId"] == "getConnectorStatus"
        page = get(url, "/docs", Accept="text/html")
        assert page.headers["Content-Type"].startswith("text/html")
        # The page loads nothing from other servers.
        assert b"http://" not in page.body
        assert b"https://" not in page.body


def test_admin_endpoints_can_have_their_own_listeners() -> None:
    with server(MemoryHerder(), settings(admin_listeners=f"http://{HOST}:0")) as started:
        main, admin = started.urls
        assert get(main, "/connectors").status == 200
        assert get(main, "/admin/loggers").status == 404
        assert get(admin, "/admin/loggers").status == 200
        assert get(admin, "/connectors").status == 404


def test_admin_endpoints_can_be_disabled() -> None:
    with serving(MemoryHerder(), settings(admin_listeners="")) as url:
        assert get(url, "/admin/loggers/root").status == 404


@pytest.mark.parametrize("scope", ["worker", "cluster"])
def test_a_logger_with_an_endless_name_is_refused(scope: str) -> None:
    herder = MemoryHerder()
    with serving(herder) as url:
        name = "a." * 1000
        level = Request("PUT", f"/admin/loggers/{name}?scope={scope}", b'{"level": "info"}', JSON)
        assert error(ask(url, level)) == (400, "The name of a logger has at most 255 characters.")
    assert not herder.log_levels


def test_topic_tracking_can_be_disabled() -> None:
    with serving(MemoryHerder(), settings(topic_tracking_enable="false")) as url:
        assert error(get(url, "/connectors/x/topics")) == (403, "Topic tracking is disabled.")
        reset = ask(url, Request("PUT", "/connectors/x/topics/reset"))
        assert error(reset) == (403, "Topic tracking is disabled.")
    with serving(MemoryHerder(), settings(topic_tracking_allow_reset="false")) as url:
        assert get(url, "/connectors/x/topics").status == 200
        reset = ask(url, Request("PUT", "/connectors/x/topics/reset"))
        assert error(reset) == (403, "Topic tracking reset is disabled.")


def test_configured_headers_are_on_every_response() -> None:
    wanted = settings(response_http_headers_config="set X-Frame-Options:DENY, setDate X-Now:0")
    with serving(MemoryHerder(), wanted) as url:
        for path in ("/", "/nothing", "/connectors/%zz"):
            answer = get(url, path)
            assert answer.headers["X-Frame-Options"] == "DENY"
            assert answer.headers["X-Now"].endswith("GMT")


def test_allowed_origins_get_cross_origin_headers() -> None:
    allowed = settings(
        access_control_allow_origin=r"https://a\.example,https://.*\.b\.example",
        access_control_allow_methods="GET,PUT",
    )
    with serving(MemoryHerder(), allowed) as url:
        answer = get(url, "/", Origin="https://x.b.example")
        assert answer.headers["Access-Control-Allow-Origin"] == "https://x.b.example"
        assert answer.headers["Vary"] == "Origin"
        assert "Access-Control-Allow-Origin" not in get(url, "/", Origin="https://a.example.evil").headers
        asked = {"Origin": "https://a.example", "Access-Control-Request-Method": "PUT"}
        preflight = ask(url, Request("OPTIONS", "/connectors/x/config", headers=asked))
        assert preflight.status == 200
        assert preflight.headers["Access-Control-Allow-Methods"] == "GET, PUT"


@pytest.mark.parametrize(
    ("verb", "path", "headers"),
    [
        ("GET", "/connectors", {"Host": "page.example:8083"}),
        ("GET", "/connectors", {"Host": "[::1"}),
        ("POST", "/connectors/x/restart", {"Origin": "https://page.example"}),
        ("POST", "/connectors/x/restart", {"Origin": "null"}),
        ("POST", "/connectors/x/restart", {"Sec-Fetch-Site": "cross-site"}),
        ("PUT", "/connectors/x/pause", {"Host": "page.example", "Origin": "http://page.example"}),
        ("PUT", "/admin/loggers/root", {"Origin": "http://localhost.page.example"}),
    ],
)
def test_requests_of_other_sites_pages_are_refused(verb: str, path: str, headers: dict[str, str]) -> None:
    with serving(MemoryHerder()) as url:
        status, message = error(ask(url, Request(verb, path, headers=headers)))
        assert status == 403
        assert "rest.allowed.hosts" in message or "access.control.allow.origin" in message


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "connect:8083"},
        {"Host": "[::1]:8083"},
        {"Host": "connect-api.kafka.svc:8083"},
        {"Host": "LISTED.example"},
        {"Host": "outside.example."},
        {"Host": "localhost:8083", "Origin": "http://localhost:8083", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "https://a.example", "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_requests_by_known_names_and_of_allowed_origins_are_served(headers: dict[str, str]) -> None:
    known = settings(
        rest_allowed_hosts="other.example, listed.example",
        rest_advertised_host_name="outside.example",
        access_control_allow_origin=r"https://a\.example",
    )
    with server(MemoryHerder(), known) as started:
        paused = ask(started.urls[0], Request("PUT", "/connectors/x/pause", headers=headers))
        assert paused.status == 404, "there is no connector x"


def test_all_names_can_be_allowed() -> None:
    with serving(MemoryHerder(), settings(rest_allowed_hosts="*")) as url:
        assert get(url, "/", Host="page.example").status == 200


def test_browsers_run_nothing_but_what_the_page_of_the_api_holds() -> None:
    with serving(MemoryHerder()) as url:
        for path in ("/", "/nothing", "/docs"):
            headers = get(url, path).headers
            assert headers["X-Content-Type-Options"] == "nosniff"
            policy = headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'; ")
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert ("script-src 'sha256-" in policy) == (path == "/docs")


def test_a_connection_too_many_is_refused() -> None:
    with serving(MemoryHerder(), limits=TimeLimits(Limits(connections_max=1))) as url:
        assert get(url, "/").status == 503


def test_port_in_use_is_an_error() -> None:
    port = ReservedPort()
    try:
        taken = rest_settings(Properties({"listeners": f"http://{HOST}:{port.number}"}))
        with server(MemoryHerder(), taken):
            second = RestServer(taken)
            with pytest.raises(ConfigError, match="listeners: Can't listen there") as raised:
                second.bind()
            assert str(port.number) in str(raised.value)
    finally:
        port.release()


def test_a_server_can_be_stopped_at_any_time_and_closes_everything() -> None:
    threads = threading.active_count()
    never_bound = RestServer(settings())
    never_bound.stop()
    never_started = RestServer(settings())
    never_started.bind()
    never_started.stop()
    with serving(MemoryHerder()) as url:
        get(url, "/connectors/x/offsets")
    with pytest.raises(ConnectionRefusedError):
        get(url, "/")
    # Threads of the pool end a moment later.
    await_value(lambda: threading.active_count() <= threads, 10, lambda: str(threading.enumerate()))


def test_the_advertised_url_follows_the_settings() -> None:
    named = settings(rest_advertised_host_name="outside", rest_advertised_port="80")
    with server(MemoryHerder(), named) as started:
        assert started.advertised_url == "http://outside:80/"
    everywhere = rest_settings(Properties({"listeners": "http://:0"}))
    with server(MemoryHerder(), everywhere) as started:
        host = started.advertised_url.removeprefix("http://").partition(":")[0]
        assert host not in ("", "0.0.0.0", "[")
        port = started.advertised_url.rstrip("/").rpartition(":")[2]
        assert get(f"http://{HOST}:{port}", "/").status == 200


class FailingHerder(MemoryHerder):
    def connectors(self) -> Sequence[str]:
        raise ZeroDivisionError("surprise")


def test_an_unexpected_error_is_a_500_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    with serving(FailingHerder()) as url, caplog.at_level(logging.ERROR):
        status, message = error(get(url, "/connectors"))
        assert status == 500
        assert "surprise" not in message, "it may hold a secret"
        number = re.fullmatch(r"Unexpected error (\w{8}): see the worker's log", message)
        assert number
        assert get(url, "/").status == 200
    assert f"GET /connectors failed, error {number[1]}" in caplog.text
    assert "ZeroDivisionError: surprise" in caplog.text


class SlowHerder(MemoryHerder):
    def connectors(self) -> Sequence[str]:
        raise TimeoutError


def test_a_request_that_takes_too_long_is_a_500_as_javas() -> None:
    with serving(SlowHerder()) as url:
        assert error(get(url, "/connectors")) == (500, "Request timed out")


def test_changes_are_logged_and_reads_are_not(caplog: pytest.LogCaptureFixture) -> None:
    with serving(MemoryHerder()) as url, caplog.at_level(logging.INFO):
        ask(url, Request("POST", "/connectors", HEARTBEAT, JSON))
        get(url, "/connectors/hb/status")
        ask(url, Request("DELETE", "/connectors/hb"))
    logged = [
        record.getMessage() for record in caplog.records if record.name == "sparkmirror.connect.rest.dispatch"
    ]
    assert logged == ["POST /connectors: 201", "DELETE /connectors/hb: 204"]


class BlockingHerder(MemoryHerder):
    """A herder whose changes block until the test releases them."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.free = threading.Event(), threading.Event()

    def delete(self, name: str) -> None:
        self.asked.set()
        self.free.wait()
        raise ConnectError(HTTPStatus.NOT_FOUND, name)


def test_reads_do_not_wait_for_changes() -> None:
    herder = BlockingHerder()
    with serving(herder) as url:
        answers: list[Answer] = []
        waiting = [
            threading.Thread(target=lambda: answers.append(ask(url, Request("DELETE", "/connectors/x"))))
            for _ in range(100)
        ]
        for thread in waiting:
            thread.start()
        for _ in range(20):
            assert get(url, "/connectors").status == 200
        herder.free.set()
        for thread in waiting:
            thread.join()
    assert [answer.status for answer in answers] == [404] * 100


# requests for the leader


def test_a_request_for_the_leader_is_forwarded() -> None:
    leader = MemoryHerder()
    with (
        serving(leader) as leader_url,
        serving(MemoryHerder(leads=False, leader_url=f"{leader_url}/")) as url,
    ):
        created = ask(url, Request("POST", "/connectors", HEARTBEAT, JSON))
        assert (created.status, created.json()["name"]) == (201, "hb")
        assert created.headers["Location"] == f"{url}/connectors/hb"
        assert list(leader.connectors()) == ["hb"]
        restarted = ask(url, Request("POST", "/connectors/hb/restart?includeTasks=true"))
        assert restarted.json()["tasks"][0]["state"] == "RESTARTING"
        again = ask(url, Request("POST", "/connectors", HEARTBEAT, JSON))
        assert error(again) == (409, "Connector hb already exists")
        level = Request("PUT", "/admin/loggers/a.b?scope=cluster", b'{"level": "info"}', JSON)
        assert ask(url, level).status == 204
        assert leader.log_levels == [("a.b", "info")]
        assert ask(url, Request("PUT", "/connectors/hb/stop")).status == 204
        assert ask(url, Request("DELETE", "/connectors/hb/offsets")).status == 200
        assert ask(url, Request("DELETE", "/connectors/hb")).status == 204
        assert list(leader.connectors()) == []


def test_names_with_special_characters_are_forwarded_unchanged() -> None:
    leader = MemoryHerder()
    with serving(leader) as leader_url, serving(MemoryHerder(leads=False, leader_url=leader_url)) as url:
        config = HEARTBEAT.partition(b'"config": ')[2][:-1]
        put = Request("PUT", "/connectors/a%2D%3Eb%20%C3%A9%25%3F+/config", config, JSON)
        assert ask(url, put).status == 201
    assert list(leader.connectors()) == ["a->b é%?+"]


CONFIG: Final = HEARTBEAT.partition(b'"config": ')[2][:-1]
CHANGES: Final = [
    ("PUT", "/config"),
    ("PUT", "/pause"),
    ("POST", "/restart"),
    ("PUT", "/stop"),
    ("DELETE", "/offsets"),
    ("DELETE", ""),
]


def answers_of(name: str, *, asks_leader: bool) -> tuple[list[tuple[int, bytes]], list[tuple[str, State]]]:
    """Return the answers to each change, and what they left of other connectors."""
    leader = MemoryHerder()
    with (
        serving(leader) as leader_url,
        serving(MemoryHerder(leads=False, leader_url=leader_url)) as follower_url,
    ):
        for known in (".", "..", "offsets", "pause", "connectors"):
            ask(leader_url, Request("PUT", f"/connectors/{known}/config", CONFIG, JSON))
        url = leader_url if asks_leader else follower_url
        answers = [
            ask(url, Request(method, f"/connectors/{name}{path}", CONFIG if path == "/config" else b"", JSON))
            for method, path in CHANGES
        ]
    states = [(known, leader.status(known).connector.state) for known in leader.connectors()]
    return [(answer.status, answer.body) for answer in answers], states


@pytest.mark.parametrize("name", [".", "..", "...", "%2e", "a%2Fb", "%252E", ".;x", "a//b", "./", "%5C.."])
def test_a_forwarded_change_does_what_it_does_at_the_leader(name: str) -> None:
    assert answers_of(name, asks_leader=False) == answers_of(name, asks_leader=True)


def test_connectors_with_the_name_of_a_path_segment_are_reached_through_any_worker() -> None:
    leader = MemoryHerder()
    with (
        serving(leader) as leader_url,
        serving(MemoryHerder(leads=False, leader_url=leader_url)) as url,
        closing(ConnectRest(Access(url))) as client,
    ):
        for name in (".", "offsets"):
            assert ask(url, Request("PUT", f"/connectors/{name}/config", CONFIG, JSON)).status == 201
            assert ask(url, Request("PUT", f"/connectors/{name}/stop")).status == 204
        assert ask(url, Request("DELETE", "/connectors/./offsets")).status == 200
        assert leader.connectors() == [".", "offsets"]
        client.delete(".")
        assert leader.connectors() == ["offsets"]


def test_change_without_a_leader_is_a_409() -> None:
    with serving(MemoryHerder(leads=False), limits=TimeLimits(leader_found_s=0.2)) as url:
        status, message = error(ask(url, Request("PUT", "/connectors/hb/pause")))
        assert status == 409
        assert message.startswith("Cannot complete request momentarily due to no known leader URL")


def test_change_waits_for_the_election_of_a_leader() -> None:
    herder = MemoryHerder(leads=False)
    with serving(herder) as url, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, url, Request("POST", "/connectors", HEARTBEAT, JSON))
        with pytest.raises(TimeoutError):
            asked.result(0.5)
        herder.leads = True
        assert asked.result().status == 201


def test_a_forwarded_request_fails_when_the_leader_changes() -> None:
    leader = BlockingHerder()
    with serving(leader) as leader_url, ThreadPoolExecutor(1) as pool:
        follower = MemoryHerder(leads=False, leader_url=leader_url)
        with serving(follower) as url:
            asked = pool.submit(ask, url, Request("DELETE", "/connectors/hb"))
            assert leader.asked.wait(WAIT_S)
            follower.leader_url = "http://another:8083/"
            assert error(asked.result()) == (
                409,
                "The leader was lost meanwhile; whether the request was met is not known",
            )
        leader.free.set()


def test_forwarding_in_a_circle_ends_with_a_409() -> None:
    one, other = MemoryHerder(leads=False), MemoryHerder(leads=False)
    with serving(one) as one_url, serving(other) as other_url:
        one.leader_url, other.leader_url = other_url, one_url
        assert error(ask(one_url, Request("DELETE", "/connectors/hb"))) == (
            409,
            "Cannot complete request because of a conflicting operation (e.g. worker rebalance)",
        )


def test_an_unreachable_leader_is_an_error() -> None:
    with serving(MemoryHerder()) as gone:
        pass
    with serving(MemoryHerder(leads=False, leader_url=gone)) as url:
        status, message = error(ask(url, Request("DELETE", "/connectors/hb")))
        assert status == 500
        assert message.startswith("IO Error trying to forward REST request:")
