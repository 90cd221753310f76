"""The URL that a container's health check asks, and what it makes of the answer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from sparkmirror.container import health
from sparkmirror.container.health import health_url, option

WORKER = "/c.properties"


@pytest.mark.parametrize(
    ("words", "url"),
    [
        (("run", "--http", "127.0.0.1:8080", "f"), "http://127.0.0.1:8080/health"),
        (("run", "--http", "127.0.0.1:8080", "f", "--http", "9000"), "http://127.0.0.1:9000/health"),
        (("run", "f", "--http=0.0.0.0:9000"), "http://127.0.0.1:9000/health"),
        (("run", "--http", "[::]:9000", "f"), "http://[::1]:9000/health"),
        (("run", "--http", "10.0.0.1:9000", "f"), "http://10.0.0.1:9000/health"),
        (("run", "f"), None),
        (("run", "--http", "0", "f"), None),
        (("run", "--http", "nonsense", "f"), None),
        (("watch", "f"), "http://127.0.0.1:8080/health"),
        (("verify", "f"), None),
        ((), None),
    ],
)
def test_where_a_mirror_is_asked(words: tuple[str, ...], url: str | None) -> None:
    assert health_url(words, lambda _: None) == url


@pytest.mark.parametrize(
    ("listeners", "url"),
    [
        (None, "http://127.0.0.1:8083/health"),
        ("http://:9083", "http://127.0.0.1:9083/health"),
        ("HTTPS://0.0.0.0:8443,http://:8083", "https://127.0.0.1:8443/health"),
        ("http://node-1:8083", "http://node-1:8083/health"),
        ("${file:/f:listeners}", None),
    ],
)
def test_where_a_worker_is_asked(listeners: str | None, url: str | None) -> None:
    files = {WORKER: listeners}
    assert health_url(("worker", WORKER), files.get) == url
    assert health_url(("worker", "--master", "local[2]", "-v", "--log-format=json", WORKER), files.get) == url


def test_the_last_value_of_an_option_counts() -> None:
    assert option(["a", "--x", "1", "--x=2"], "--x") == "2"
    assert option(["a", "--x"], "--x") is None
    assert option([], "--x") is None


@contextmanager
def _answering(status: int, body: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/health"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "code", "said"),
    [
        (200, '{"status":"healthy","message":"A->B: caught up"}', 0, "200 A->B: caught up"),
        (
            503,
            '{"status":"starting","message":"The mirror is still starting up."}',
            1,
            "503 The mirror is still",
        ),
        (500, "no JSON", 1, "500 no JSON"),
    ],
)
def test_only_200_is_healthy(  # noqa: PLR0917 - one value for each column
    status: int,
    body: str,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with _answering(status, body) as url:
        health.place().write_text(url)
        assert health.main() == code
    assert capsys.readouterr().out.startswith(said)


def test_nobody_who_listens_is_unhealthy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with _answering(200, "{}") as url:
        pass
    health.place().write_text(url)
    assert health.main() == 1
    assert "refused" in capsys.readouterr().out


@pytest.mark.parametrize(("noted", "code"), [(health.NOTHING_SERVED, 0), ("", 1), (None, 1)])
def test_only_a_command_that_has_started_is_healthy_where_it_serves_nothing(
    noted: str | None, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if noted is not None:
        health.place().write_text(noted)
    assert health.main() == code
