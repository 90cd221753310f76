from pathlib import Path

import pytest
from urllib3 import HTTPConnectionPool, HTTPResponse, PoolManager
from urllib3.connection import HTTPConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
)

from sparkmirror.client.connect_rest import (
    Access,
    ConnectBusyError,
    ConnectRefusedError,
    ConnectRest,
    ConnectUnreachableError,
)
from tests.support.rest_answers import Answering, answer, in_turn, raw, refusal

URL = "http://connect:8083"
STATUS = {"name": "msc", "connector": {"state": "RUNNING", "worker_id": "w:1"}, "tasks": [], "type": "source"}


class Time:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds


def rest(http: Answering, time: Time | None = None, access: Access | None = None) -> ConnectRest:
    time = time or Time()
    return ConnectRest(access or Access(URL), http=http, clock=lambda: time.now_s, sleep=time.sleep)


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("mm2-msc", "mm2-msc"),
        ("a/b", "a%2Fb"),
        ("a b?c#d%2F", "a%20b%3Fc%23d%252F"),
        ("ü→", "%C3%BC%E2%86%92"),
        ("..", "%2E%2E"),
        (".", "%2E"),
        ("+;=&", "%2B%3B%3D%26"),
    ],
)
def test_a_name_is_one_segment_of_a_path(name: str, segment: str) -> None:
    http = in_turn(answer(200, STATUS))
    rest(http).status(name)
    assert http.asked[0].path == f"/connectors/{segment}/status"


@pytest.mark.parametrize(
    "busy",
    [
        refusal(409, "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"),
        refusal(409, "Cannot complete request momentarily due to no known leader URL"),
        refusal(500, "Request cannot be completed because a rebalance is expected"),
        refusal(503, "The worker is starting"),
    ],
)
def test_a_request_to_a_busy_worker_is_retried(busy: HTTPResponse) -> None:
    time = Time()
    http = in_turn(busy, answer(200, STATUS))
    assert rest(http, time).status("msc")["connector"]["state"] == "RUNNING"
    assert len(http.asked) == 2
    assert len(time.slept) == 1


def test_retries_of_a_busy_worker_end_after_a_minute() -> None:
    time = Time()
    http = Answering(lambda _: refusal(409, "no known leader URL"))
    with pytest.raises(ConnectBusyError, match=r"^409 Conflict: no known leader URL$"):
        rest(http, time).pause("msc")
    assert 50 < time.now_s <= 60
    assert 15 < len(http.asked) < 60


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (refusal(404, "Connector msc not found"), "404 Not Found: Connector msc not found"),
        (refusal(500, "Request timed out"), "500 Internal Server Error: Request timed out"),
        (raw(502, b"<html>a proxy's page"), "502 Bad Gateway"),
        (raw(599, b"[1]"), "599"),
        (raw(302, b""), "302 Found"),
    ],
)
def test_a_refusal_is_raised_with_status_and_message_and_not_retried(given: HTTPResponse, said: str) -> None:
    http = in_turn(given)
    with pytest.raises(ConnectRefusedError) as caught:
        rest(http).put("msc", {})
    assert str(caught.value) == said
    assert caught.value.status == given.status


def test_an_error_without_a_message_gets_a_likely_cause() -> None:
    with pytest.raises(ConnectRefusedError, match=r"^401 Unauthorized: .*--password-file, or --token-file"):
        rest(in_turn(raw(401, b""))).connectors()
    with pytest.raises(ConnectRefusedError, match=r"^400 Bad Request: Java's workers accept no names with /"):
        rest(in_turn(raw(400, b"<html>"))).status("a/b")


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (NewConnectionError(HTTPConnection("connect"), "refused"), "does a Connect worker run there"),
        (NameResolutionError("connect", HTTPConnection("connect"), OSError()), "unknown host"),  # type: ignore[arg-type] # a gaierror is one
        (ConnectTimeoutError(), "no connection within 5 s; check the URL"),
        (ReadTimeoutError(HTTPConnectionPool("connect"), "/", ""), "no response within 95 s"),
        (
            SSLError("self-signed certificate"),
            "self-signed certificate; are --ca, --cert and --key the right",
        ),
        (ProtocolError("Connection aborted."), "the request may have been executed"),
    ],
)
def test_a_failed_connection_is_raised_with_the_url_and_advice(error: Exception, advice: str) -> None:
    with pytest.raises(ConnectUnreachableError) as caught:
        rest(in_turn(error)).connectors()
    assert str(caught.value).startswith(f"{URL}: ")
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        raw(200, b"<html>", "text/html"),
        raw(200, b""),
        answer(200, ["msc"]),
        answer(200, {"error": "of another service"}),
        answer(200, {**STATUS, "connector": {}}),
        answer(200, {**STATUS, "tasks": [{"id": 0, "state": None}]}),
        raw(200, b"[" * 100_000),
    ],
)
def test_a_server_that_is_no_connect_worker_is_an_error(given: HTTPResponse) -> None:
    with pytest.raises(ConnectUnreachableError, match=r"is it a Connect REST API\?$"):
        rest(in_turn(given)).status("msc")


def test_a_token_is_sent_in_the_header_and_shown_nowhere() -> None:
    http = in_turn(answer(200, []))
    access = Access(URL, token="t0ken")
    rest(http, access=access).connectors()
    assert http.asked[0].headers["Authorization"] == "Bearer t0ken"
    assert "t0ken" not in repr(access)


def test_a_password_is_sent_in_the_header_and_shown_nowhere() -> None:
    http = in_turn(answer(200, []))
    access = Access(URL, "ops", "pässword")
    rest(http, access=access).connectors()
    assert http.asked[0].headers["Authorization"] == "Basic b3BzOnDDpHNzd29yZA=="
    assert "pässword" not in repr(access)


def test_a_restart_sends_only_the_flags_that_are_set() -> None:
    http = in_turn(answer(204), answer(202, STATUS))
    rest(http).restart("msc")
    rest(http).restart("msc", include_tasks=True, only_failed=True)
    assert [asked.path for asked in http.asked] == [
        "/connectors/msc/restart",
        "/connectors/msc/restart?includeTasks=true&onlyFailed=true",
    ]


def test_a_put_sends_the_settings_as_json() -> None:
    http = in_turn(answer(201, {"name": "msc"}))
    is_new, info = rest(http).put("msc", {"topics": "ö"})
    assert (is_new, info["name"]) == (True, "msc")
    (asked,) = http.asked
    assert (asked.method, asked.path, asked.body) == ("PUT", "/connectors/msc/config", {"topics": "ö"})
    assert asked.headers["Content-Type"] == "application/json"


def test_tls_uses_the_configured_certificates() -> None:
    access = Access("https://connect", ca=Path("ca.pem"), cert=Path("me.pem"), key=Path("me.key"))
    pool = ConnectRest(access)._http
    assert isinstance(pool, PoolManager)
    kept = {key: pool.connection_pool_kw[key] for key in ("ca_certs", "cert_file", "key_file", "cert_reqs")}
    assert kept == {
        "ca_certs": "ca.pem",
        "cert_file": "me.pem",
        "key_file": "me.key",
        "cert_reqs": "CERT_REQUIRED",
    }
