"""Logins to the REST API: by password, token and certificate, with the roles that they give."""

import base64
import http.server
import itertools
import json
import logging
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import urllib3

from sparkmirror.clusters.ports import HOST
from sparkmirror.config.properties import Properties
from sparkmirror.config.worker_options import BASIC_AUTHENTICATION
from sparkmirror.connect.logger_levels import LogLevels
from sparkmirror.connect.rest.app import Node, routes
from sparkmirror.connect.rest.authentication import OF_A_USER
from sparkmirror.connect.rest.dispatch import Endpoint
from sparkmirror.connect.rest.rest_settings import RestSettings, rest_settings
from sparkmirror.domain.errors import ConfigError
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.view import making
from tests.rest.safe_answers import ask_any
from tests.support.certificates import Identity, authority, issued
from tests.support.memory_herder import MemoryHerder
from tests.support.rest_logins import CONFIG, MIA, MODULE, OPS, SECRET, basic
from tests.support.rest_requests import Answer, Request, ask
from tests.support.rest_serving import server, serving
from tests.support.tokens import AUDIENCE, ISSUER, jwks_file, token

ENDS_WITHIN_S: Final = 60.0


@pytest.fixture
def users(tmp_path: Path) -> dict[str, str]:
    """The settings of a worker with two users, of which one may only read."""
    (tmp_path / "users").write_text("ops=right\nmia=s\\u00fc\\u00df\n")
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(f'KafkaConnect {{ {MODULE} required file="{tmp_path}/users"; }};')
    return {
        "rest.extension.classes": BASIC_AUTHENTICATION[0],
        "java.security.auth.login.config": str(jaas),
        "rest.admin.users": "ops; CN=ops,O=Example",
    }


def rest(worker: dict[str, str], **environment: str) -> RestSettings:
    return rest_settings(Properties({"listeners": f"http://{HOST}:0"} | worker), environment)


def asked(url: str, verb: str, path: str, login: str | None = None, body: Any = None) -> Answer:
    headers = {} if login is None else {"Authorization": login}
    if body is not None:
        headers["Content-Type"] = "application/json"
    text = None if body is None else json.dumps(body).encode()
    return ask(url, Request(verb, path, text, headers))


def paths() -> list[tuple[str, str]]:
    """Each verb of each path that is served."""
    node = Node(MemoryHerder(), LogLevels(), lambda: ("text/plain", b"up 1\n"), any_view())
    found = []
    for route in itertools.chain(*routes(node, rest({}))):
        verbs = route.endpoint.verbs if isinstance(route.endpoint, Endpoint) else {"GET", "HEAD"}  # a page
        verbs = {*verbs, "POST"} if route.path == "/ui/act" else verbs
        path = route.path.replace("{page}", "overview").replace("{file}", "style.css")
        found += [(verb, path.replace("{", "").replace("}", "")) for verb in sorted(verbs)]
    return found


def any_view() -> CurrentView:
    return CurrentView(lambda: making.Node("leader", "1.0"), list)


def test_without_a_login_every_request_is_refused(users: dict[str, str]) -> None:
    with serving(MemoryHerder(), rest(users), lambda: ("text/plain", b"up 1\n"), view=any_view()) as url:
        for verb, path in [*paths(), ("GET", "/nothing"), ("POST", "/connectors/x/tasks/0")]:
            answer = asked(url, verb, path)
            assert answer.status == 401, (verb, path)
            assert answer.headers["Www-Authenticate"].startswith('Basic realm="')
            if verb != "HEAD":
                assert answer.message() == "User cannot access the resource."


@pytest.mark.parametrize(
    "login",
    [
        basic("ops", "wrong"),
        basic("ops", ""),
        basic("nobody", "right"),
        basic("", "right"),
        basic("ops", "right "),
        "Basic",
        "Basic ???",
        f"Basic {base64.b64encode(b'ops').decode()}",
        f"Basic {base64.b64encode(b'ops:' + bytes([255])).decode()}",
        OPS.replace("Basic", "Bearer"),
    ],
)
def test_wrong_credentials_are_refused(users: dict[str, str], login: str) -> None:
    with serving(MemoryHerder(), rest(users)) as url:
        assert asked(url, "GET", "/", login).status == 401
        assert asked(url, "GET", "/", OPS.replace("Basic", "bAsIc")).status == 200


def test_a_viewer_reads_without_secrets_and_changes_nothing(
    users: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with serving(MemoryHerder(), rest(users), view=any_view()) as url:
        assert asked(url, "PUT", "/connectors/x/config", OPS, CONFIG).status == 201
        for verb, path in paths():
            request = Request(verb, path.replace("/connector/", "/x/"), None, {"Authorization": MIA})
            answer = ask_any(url, request)
            assert SECRET not in answer.body.decode(), (verb, path)
            if path.endswith(("/ui/act", "/ui/verified", "/verify")):
                # The form of a change; a comparison's result, which holds parts of records.
                assert answer.status in ({403, 200} if verb == "OPTIONS" else {403}), (verb, path)
            elif verb in {"GET", "HEAD", "OPTIONS"}:
                assert answer.status not in {401, 403}, (verb, path)
            else:
                assert answer.status == 403, (verb, path)
                assert answer.message() == "mia may only read; an administrator may do this"
        for path in ("", "/x", "/x/config", "/x/tasks", "?expand=info", "?expand=info&expand=status"):
            assert SECRET not in asked(url, "GET", f"/connectors{path}", MIA).body.decode(), path
        assert asked(url, "GET", "/connectors/x/config", OPS).json() == {**CONFIG, "name": "x"}
        shown = asked(url, "GET", "/connectors/x/config", MIA).json()
        assert shown["target.cluster.ssl.keystore.password"] == "[hidden]"
        assert shown["transforms.x.registry"] == "https://[hidden]@registry.example"
        assert shown["source.cluster.bootstrap.servers"] == "a:1"
    assert "PUT /connectors/x/config by 'ops': 201" in caplog.text


def test_forwarded_requests_bring_the_users_login_along(users: dict[str, str]) -> None:
    with serving(MemoryHerder(), rest(users)) as leader:
        with serving(MemoryHerder(leads=False, leader_url=leader), rest(users)) as url:
            assert asked(url, "PUT", "/connectors/x/config", OPS, CONFIG).status == 201
            assert asked(url, "PUT", "/connectors/x/config", MIA, CONFIG).status == 403
        assert asked(leader, "GET", "/connectors", OPS).json() == ["x"]


def test_changed_users_count_at_once_and_a_broken_file_does_not(
    users: dict[str, str], tmp_path: Path
) -> None:
    with serving(MemoryHerder(), rest(users)) as url:
        assert asked(url, "GET", "/", basic("new", "p")).status == 401
        (tmp_path / "next").write_text("new=p\n")
        (tmp_path / "next").replace(tmp_path / "users")
        assert asked(url, "GET", "/", basic("new", "p")).status == 200
        assert asked(url, "GET", "/", OPS).status == 401
        (tmp_path / "users").write_text("")
        assert asked(url, "GET", "/", basic("new", "p")).status == 200
        (tmp_path / "users").unlink()
        assert asked(url, "GET", "/", basic("new", "p")).status == 200


def test_guessing_is_refused_for_a_while(users: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    with serving(MemoryHerder(), rest(users)) as url:
        for number in range(OF_A_USER.failures):
            assert asked(url, "GET", "/", basic("ops", f"guess{number}")).status == 401
        answer = asked(url, "GET", "/", OPS)
        assert answer.status == 429
        assert 0 < int(answer.headers["Retry-After"]) <= 6
        assert asked(url, "GET", "/", MIA).status == 200
        assert asked(url, "GET", "/", basic("x\x1b[2J\ny", "p")).status == 401
    assert "a login of 'ops' from 127.0.0.1 failed: wrong password, or no such user" in caplog.text
    assert "\x1b" not in caplog.text
    assert "guess1" not in caplog.text


def test_chosen_paths_can_be_read_without_a_login(users: dict[str, str]) -> None:
    opened = rest({**users, "rest.open.paths": "/health,/metrics"})
    with serving(MemoryHerder(), opened, lambda: ("text/plain", b"up 1\n")) as url:
        assert asked(url, "GET", "/health").status == 200
        assert asked(url, "HEAD", "/metrics").status == 200
        assert asked(url, "GET", "/health/").status == 200
        for verb in ("POST", "PUT", "PATCH", "DELETE"):
            assert asked(url, verb, "/health").status == 401, verb
        assert asked(url, "GET", "/").status == 401
        assert asked(url, "GET", "/health", basic("ops", "wrong")).status == 401


def test_listeners_for_administrators_need_the_same_login(users: dict[str, str]) -> None:
    with server(MemoryHerder(), rest({**users, "admin.listeners": f"http://{HOST}:0"})) as started:
        _, admin = started.urls
        assert asked(admin, "GET", "/admin/loggers").status == 401
        assert asked(admin, "GET", "/admin/loggers", OPS).status == 200
        level = {"level": "INFO"}
        assert asked(admin, "PUT", "/admin/loggers/x", MIA, level).status == 403


@pytest.mark.parametrize(
    ("jaas", "said"),
    [
        (None, "java.security.auth.login.config, or KAFKA_OPTS=-D"),
        ("Client { a.B required; };", "has no entry KafkaConnect with a login module"),
        ("KafkaConnect { com.example.Ldap required; };", "names com.example.Ldap, and only"),
        (f"KafkaConnect {{ {MODULE} required; }};", "lacks the option file"),
        (f'KafkaConnect {{ {MODULE} required file="/nowhere/users"; }};', "/nowhere/users: No such file"),
        (f'KafkaConnect {{ {MODULE} required file="/dev/null"; }};', "is not a regular file"),
        (f'KafkaConnect {{ {MODULE} required file="EMPTY"; }};', "has no user"),
        ("KafkaConnect {", "lacks the brace"),
    ],
)
def test_without_usable_users_nothing_is_served(tmp_path: Path, jaas: str | None, said: str) -> None:
    settings = {"rest.extension.classes": "BasicAuthSecurityRestExtension"}
    if jaas is not None:
        (tmp_path / "empty").write_text("# nobody\n")
        (tmp_path / "jaas").write_text(jaas.replace("EMPTY", f"{tmp_path}/empty"))
        settings["java.security.auth.login.config"] = str(tmp_path / "jaas")
    with pytest.raises(ConfigError) as raised, serving(MemoryHerder(), rest(settings)):
        pass
    assert said in str(raised.value)


def test_the_jaas_file_of_kafka_opts_is_taken(users: dict[str, str]) -> None:
    file = users.pop("java.security.auth.login.config")
    opts = f"-Xmx1g -Djava.security.auth.login.config={file} -Da=b"
    with serving(MemoryHerder(), rest(users, KAFKA_OPTS=opts)) as url:
        assert asked(url, "GET", "/", OPS).status == 200
        assert asked(url, "GET", "/").status == 401


@pytest.fixture
def issuer(tmp_path: Path) -> dict[str, str]:
    return {
        "rest.oauthbearer.jwks.endpoint.url": jwks_file(tmp_path),
        "rest.oauthbearer.expected.issuer": ISSUER,
        "rest.oauthbearer.expected.audience": AUDIENCE,
    }


def test_tokens_log_in_beside_passwords(users: dict[str, str], issuer: dict[str, str]) -> None:
    with serving(MemoryHerder(), rest(users | issuer)) as url:
        assert asked(url, "PUT", "/connectors/x/config", f"Bearer {token('admin')}", CONFIG).status == 201
        viewer = f"bearer {token('viewer')}"
        assert asked(url, "GET", "/connectors/x", viewer).status == 200
        assert SECRET not in asked(url, "GET", "/connectors/x", viewer).body.decode()
        assert asked(url, "DELETE", "/connectors/x", viewer).status == 403
        nothing = asked(url, "GET", "/connectors/x", f"Bearer {token()}")
        assert (nothing.status, nothing.message()) == (403, "mia has no role here")
        assert asked(url, "GET", "/connectors/x", f"Bearer {token('admin', aud='x')}").status == 401
        assert asked(url, "GET", "/connectors/x", OPS).status == 200


def test_a_token_needs_an_issuer_and_an_audience(issuer: dict[str, str]) -> None:
    for missing in ("expected.issuer", "expected.audience"):
        key = f"rest.oauthbearer.{missing}"
        with pytest.raises(ConfigError, match=f"{key}: must be set"):
            rest({name: value for name, value in issuer.items() if name != key})


def test_keys_over_https_are_those_of_whom_the_trust_store_knows(
    tmp_path: Path, issuer: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    own, foreign = authority("ca"), authority("other")
    (tmp_path / "ca.pem").write_text(own.certificate_pem())
    trusted = {
        "rest.oauthbearer.ssl.truststore.type": "PEM",
        "rest.oauthbearer.ssl.truststore.location": str(tmp_path / "ca.pem"),
    }
    admin = f"Bearer {token('admin')}"
    for trust, status in ((own, 200), (foreign, 401)):
        with keys_over_https(tmp_path, issued(trust, "issuer", HOST)) as keys:
            worker = issuer | trusted | {"rest.oauthbearer.jwks.endpoint.url": keys}
            with serving(MemoryHerder(), rest(worker)) as url:
                assert asked(url, "GET", "/connectors", admin).status == status
    assert "CERTIFICATE_VERIFY_FAILED" in caplog.text


@contextmanager
def keys_over_https(folder: Path, identity: Identity) -> Iterator[str]:
    """The URL of the issuer's public keys."""
    (folder / "issuer.pem").write_text(identity.key_pem() + identity.certificate_pem())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "issuer.pem")
    serve = partial(QuietFiles, directory=str(folder))
    with http.server.ThreadingHTTPServer((HOST, 0), serve) as answering:
        answering.socket = context.wrap_socket(answering.socket, server_side=True)
        threading.Thread(target=answering.serve_forever, daemon=True).start()
        yield f"https://{HOST}:{answering.server_port}/jwks.json"
        answering.shutdown()


class QuietFiles(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_a_stream_ends_with_its_login(users: dict[str, str], issuer: dict[str, str], tmp_path: Path) -> None:
    """Whether a token expires or a user is removed; the others continue."""
    worker = users | issuer | {"rest.oauthbearer.clock.skew.seconds": "0"}
    with (
        serving(MemoryHerder(), rest(worker), view=any_view()) as url,
        urllib3.PoolManager(retries=False, timeout=ENDS_WITHIN_S) as pool,
    ):

        def stream(login: str) -> urllib3.BaseHTTPResponse:
            answer = pool.request(
                "GET", f"{url}/ui/live/overview", headers={"Authorization": login}, preload_content=False
            )
            assert answer.status == 200
            return answer

        ops, mia = stream(OPS), stream(MIA)
        expiring = stream(f"Bearer {token('viewer', exp=time.time() + 5)}")
        assert b"event: alive" in until_its_end(expiring)
        (tmp_path / "users").write_text("ops=right\n")
        assert b"event: alive" in until_its_end(mia)
        for _ in range(3):
            assert ops.readline()
        ops.close()


def test_an_open_page_ends_in_order_when_the_worker_stops(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with urllib3.PoolManager(retries=False, timeout=ENDS_WITHIN_S) as pool:
        with serving(MemoryHerder(), view=any_view()) as url:
            page = pool.request("GET", f"{url}/ui/live/overview", preload_content=False)
            assert page.readline() == b"retry: 1000\n"
        with suppress(urllib3.exceptions.HTTPError):  # cut off: a stream has no last byte
            page.read()
    assert caplog.text == ""


def until_its_end(stream: urllib3.BaseHTTPResponse) -> bytes:
    until, received = time.monotonic() + ENDS_WITHIN_S, b""
    for line in stream:
        received += line
        assert time.monotonic() < until, "the stream continues"
    return received


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """`server.pem`, `ops.pem` and `mia.pem` with keys, of the authority in `ca.pem`."""
    own = authority("ca")
    (tmp_path / "ca.pem").write_text(own.certificate_pem())
    for name in ("server", "ops", "mia"):
        each = issued(own, name, HOST)
        (tmp_path / f"{name}.pem").write_text(each.key_pem() + each.certificate_pem())
    return tmp_path


def test_a_client_certificate_is_a_login_with_its_distinguished_name(certificates: Path) -> None:
    settings = {
        "listeners": f"https://{HOST}:0",
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates / "ca.pem"),
        "rest.admin.users": "CN=server;CN=ops",
    }

    def status(url: str, who: str, verb: str) -> int:
        file = str(certificates / f"{who}.pem")
        with urllib3.PoolManager(ca_certs=str(certificates / "ca.pem"), cert_file=file) as pools:
            return pools.request(verb, f"{url}/connectors/x/config", json=CONFIG).status

    with serving(MemoryHerder(), rest(settings)) as url:
        assert status(url, "mia", "PUT") == 403
        assert status(url, "ops", "PUT") == 201
        assert status(url, "mia", "GET") == 200


def test_roles_need_somebody_who_logs_in() -> None:
    with pytest.raises(ConfigError, match=r"rest\.admin\.users: nobody would have to log in"):
        rest({"rest.admin.users": "ops"})
