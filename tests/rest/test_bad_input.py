"""Malformed, slow and oversized requests to the REST API get Connect's errors or are disconnected.

Afterwards other clients are served and no connection is left.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final
from urllib.parse import urlsplit

import psutil
import pytest

from sparkmirror.connect.rest.connections import Limits
from sparkmirror.connect.rest.requests import BODY_BYTES_MAX
from tests.support.memory_herder import MemoryHerder
from tests.support.rest_requests import Answer, Request, ask
from tests.support.rest_serving import TimeLimits, serving
from tests.support.waiting import await_value

JSON: Final = {"Content-Type": "application/json"}
PUT: Final = b"PUT /connectors/x/config HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
CONFIG: Final = b"""{"connector.class": "MirrorHeartbeat",
    "source.cluster.alias": "a", "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "a:1", "target.cluster.bootstrap.servers": "b:1"}"""
ANSWERED_S: Final = 10.0


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(MemoryHerder()) as started:
        yield started


@contextmanager
def serving_with(limits: Limits) -> Iterator[str]:
    """A server that still serves other clients when the test has ended."""
    with serving(MemoryHerder(), limits=TimeLimits(limits)) as started:
        yield started
        assert ask(started, Request("GET", "/")).status == 200


@pytest.fixture(autouse=True)
def nothing_is_left(url: str) -> Iterator[None]:
    """After the test no socket or thread is left, and the next client is served."""
    ask(url, Request("GET", "/"))
    before = _held()
    yield
    assert ask(url, Request("GET", "/")).status == 200
    await_value(lambda: _held() <= before, ANSWERED_S, lambda: f"{before} became {_held()}")


def _held() -> int:
    return len(psutil.Process().net_connections())


def connected(url: str) -> socket.socket:
    at = urlsplit(url)
    connection = socket.create_connection((at.hostname, at.port), ANSWERED_S)
    connection.settimeout(ANSWERED_S)
    return connection


def response_to(url: str, *parts: bytes) -> bytes:
    """Send and read everything until the connection is closed."""
    with closing(connected(url)) as connection:
        for part in parts:
            connection.sendall(part)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize(
    "line",
    [
        b"GET\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
        b"POST /connectors HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 20_000,
        b"GET /" + b"x" * 20_000,
    ],
)
def test_anything_but_http_gets_a_400(url: str, line: bytes) -> None:
    answer = response_to(url, line)
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_body_over_the_limit_is_refused(url: str) -> None:
    head = PUT + b"Content-Length: " + str(1 << 40).encode() + b"\r\n\r\n"
    with closing(connected(url)) as connection:
        connection.sendall(head)
        # What is sent behind a refusal would reset the connection, perhaps before the response is read.
        connection.sendall(b"[" * (BODY_BYTES_MAX + 1))
        answer = _response(connection)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"error_code":413' in answer


def _response(connection: socket.socket) -> bytes:
    """A whole response that has a JSON object."""
    connection.settimeout(ANSWERED_S)
    answer = b""
    while not answer.endswith(b"}"):
        more = connection.recv(65536)
        assert more, answer
        answer += more
    return answer


def test_a_body_at_the_limit_is_read(url: str) -> None:
    body = b'{"a": "' + b"x" * (BODY_BYTES_MAX - 9) + b'"}'
    answer = ask(url, Request("PUT", "/connectors/x/config", body, JSON))
    assert answer.status == 400
    assert "contains no connector type" in answer.message()


@pytest.mark.parametrize("part", [b"", b"GET", PUT, PUT + b"Content-Length: 99\r\n\r\n{"])
def test_the_connection_of_a_client_that_leaves_within_its_request_is_closed(url: str, part: bytes) -> None:
    with closing(connected(url)) as connection:
        client = connection.getsockname()
        connection.sendall(part)
        await_value(lambda: _is_served(client), ANSWERED_S, lambda: "the server did not accept")
    await_value(lambda: not _is_served(client), ANSWERED_S, lambda: "the server kept its end")
    assert ask(url, Request("GET", "/connectors/x")).status == 404


def test_pipelined_requests_are_all_served(url: str) -> None:
    one = b"GET /connectors HTTP/1.1\r\nHost: x\r\n"
    answer = response_to(url, *[one + b"\r\n"] * 50, one + b"Connection: close\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 ") == 51


@pytest.mark.parametrize("host", [b"", b"[", b"a b", b"a/b?c#d", b"x" * 9000, b"\xff", b"a:b:c"])
def test_a_malformed_host_header_does_no_harm(url: str, host: bytes) -> None:
    """The header is used in the Location of a created connector."""
    head = PUT.replace(b"/x/", b"/of-a-host/").replace(b"Host: x", b"Host: " + host)
    answer = response_to(
        url, head + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(CONFIG) + CONFIG
    )
    assert answer.startswith((b"HTTP/1.1 201 ", b"HTTP/1.1 400 ", b"HTTP/1.1 403 "))
    assert ask(url, Request("DELETE", "/connectors/of-a-host")).status in (204, 404)


def test_a_request_in_single_bytes_is_served(url: str) -> None:
    text = b"GET /connectors HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert response_to(url, *(bytes([byte]) for byte in text)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("said", [b"", b"GET / HT", PUT, PUT + b"Content-Length: 5\r\n\r\n{"])
def test_a_client_with_an_incomplete_request_is_disconnected(said: bytes) -> None:
    with (
        serving_with(Limits(kept_idle_s=0, request_complete_s=0.2)) as url,
        closing(connected(url)) as connection,
    ):
        connection.sendall(said)
        assert _ended(connection)


@pytest.mark.parametrize("requests", [1000, 5000])
def test_a_client_that_does_not_receive_its_responses_is_disconnected(requests: int) -> None:
    """Also if the client has sent more than was read, which resets the connection."""
    one = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
    with serving_with(Limits(response_received_s=0.5)) as url, closing(connected(url)) as connection:
        connection.sendall(one * requests)
        assert connection.recv(1) == b"H"
        client = connection.getsockname()
        await_value(lambda: not _is_served(client), ANSWERED_S, lambda: "the server kept its end")


def _is_served(client: tuple[str, int]) -> bool:
    """Whether the server in this process has its end of the client's connection open."""
    return any(end.raddr == client for end in psutil.Process().net_connections())


def _ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_three_hundred_clients_at_once_are_served(url: str) -> None:
    answers: list[Answer] = []
    clients = [
        threading.Thread(target=lambda: answers.append(ask(url, Request("GET", "/connectors"))))
        for _ in range(300)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert [answer.status for answer in answers] == [200] * 300
