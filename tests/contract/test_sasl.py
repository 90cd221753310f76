"""Logins at a real broker: every mechanism, sessions that end, and errors of refused logins."""

import base64
import http.server
import json
import logging
import math
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

import confluent_kafka as confluent
import pytest

from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.errors import AuthenticationError, DisconnectedError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.sasl import TokenSource
from sparkmirror.kafka.cluster import Cluster, read_metadata
from sparkmirror.kafka.net.raw_requests import Api
from sparkmirror.kafka.wire.primitives import INT32, Reader
from sparkmirror.security.tokens import Tokens
from tests.contract.copying import Bench, ProgressReports, connected, remote, running
from tests.support.broker_data import numbered, records
from tests.support.certificates import issued, write
from tests.support.secured_broker import (
    LOGIN_PASSWORD,
    ODD_USER,
    SESSION_S,
    UNSECURED,
    USER,
    SecuredBroker,
    add_scram_users,
    login,
    oauth,
)
from tests.support.waiting import await_value

SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
SHORTEST_WAIT_S: Final = 0.8
ENDS_WITHIN_S: Final = 60.0
"""Far longer than what is awaited takes."""
GAP_MAX_S: Final = 0.1
"""More than records have to wait without logins."""
WINDOWS_MAX: Final = 5
PAUSE_S: Final = 0.005
CREATE_TOKEN: Final = Api(38, "CreateDelegationToken", 1, 1, 2)
APPENDED: Final = {"message.timestamp.type": "LogAppendTime"}


def known_brokers(secured: SecuredBroker, properties: Mapping[str, str], listener: str = "LOGIN") -> int:
    return len(read_metadata(secured.settings(listener, properties), []).brokers)


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM])
def test_name_and_password(secured: SecuredBroker, mechanism: str) -> None:
    assert known_brokers(secured, login(mechanism)) == 1


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_escapes_the_name(secured: SecuredBroker, mechanism: str) -> None:
    assert known_brokers(secured, login(mechanism, ODD_USER)) == 1


def delegation_token(secured: SecuredBroker) -> tuple[str, str]:
    """A new one's id and HMAC, in base64. It is the user's who is logged in."""

    def read(reader: Reader, _: int) -> tuple[str, str]:
        reader.at -= INT32.size  # this response has its throttle time at its end
        assert reader.int16() == 0
        owner = reader.string(), reader.string()
        assert owner == ("User", USER)
        reader.unpack(struct.Struct(">qqq"))  # the times of its life
        token_id, code = reader.string(), reader.unpack(INT32)[0]
        assert token_id is not None
        return token_id, base64.b64encode(reader.data[reader.at : reader.at + code]).decode()

    with closing(Cluster(secured.settings("LOGIN", login("PLAIN")))) as cluster:
        return cluster.call("make a token", CREATE_TOKEN, lambda _: struct.pack(">iq", 0, -1), read)


@pytest.mark.parametrize("mechanism", SCRAM)
def test_a_delegation_token_is_a_login(secured: SecuredBroker, mechanism: str) -> None:
    settings = login(mechanism, *delegation_token(secured))
    with pytest.raises(AuthenticationError):
        known_brokers(secured, settings)
    settings["sasl.jaas.config"] = settings["sasl.jaas.config"].replace(";", ' tokenauth="true";')
    await_value(lambda: is_accepted(secured, settings), ENDS_WITHIN_S, lambda: "the token is refused")


def test_login_over_tls(secured: SecuredBroker) -> None:
    safe = {**login("PLAIN"), **secured.trusting, "security.protocol": "sasl_ssl"}
    assert known_brokers(secured, safe, "SAFE") == 1


def test_token_that_is_not_signed(secured: SecuredBroker) -> None:
    assert known_brokers(secured, UNSECURED) == 1


def unsecured_token() -> str:
    return Tokens().token(TokenSource(subject="alice"))


def test_token_of_a_file(secured: SecuredBroker, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{unsecured_token()}\n")
    assert known_brokers(secured, oauth("", token_endpoint_url=file.as_uri())) == 1


@contextmanager
def issuer(
    status: int = 200,
    keys: ssl.SSLContext | None = None,
    token: Callable[[], str] = unsecured_token,
) -> Iterator[tuple[str, list[tuple[str | None, str]]]]:
    """A token endpoint, with these keys over TLS.

    Yields the endpoint's URL, and the Authorization header and body of each request.
    """
    asked: list[tuple[str | None, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append((self.headers["Authorization"], body))
            answer = json.dumps({"access_token": token(), "expires_in": 3600}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer((HOST, 0), Handler) as server:
        if keys is not None:
            server.socket = keys.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        scheme = "http" if keys is None else "https"
        yield f"{scheme}://{HOST}:{server.server_port}/token", asked
        server.shutdown()


def test_token_of_an_endpoint_is_fetched_once(secured: SecuredBroker) -> None:
    with issuer() as (url, asked):
        settings = oauth('clientId="me" clientSecret="hush" scope="mirror"', token_endpoint_url=url)
        for _ in range(2):
            assert known_brokers(secured, settings) == 1
    assert asked == [("Basic bWU6aHVzaA==", "grant_type=client_credentials&scope=mirror")]


def test_token_of_an_endpoint_by_an_assertion_over_tls(secured: SecuredBroker, tmp_path: Path) -> None:
    """The endpoint's certificate is trusted by `ssl.*` of the login module's options, as in Java."""
    keys, key_file = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), tmp_path / "key.pem"
    identity = issued(secured.authority, "issuer", HOST)
    certificate = write(tmp_path / "issuer.pem", identity.key_pem() + identity.certificate_pem())
    keys.load_cert_chain(certificate)
    key_file.write_text(identity.key_pem())
    assertion = {
        "jwt_retriever_class": "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever",
        "assertion_algorithm": "ES256",
        "assertion_private_key_file": str(key_file),
        "assertion_claim_iss": "mirror",
        "scope": "kafka",
    }
    trusted = f'ssl.truststore.type="PEM" ssl.truststore.location="{secured.folder / "authority.pem"}"'
    with issuer(keys=keys) as (url, asked):
        assert known_brokers(secured, oauth(trusted, token_endpoint_url=url, **assertion)) == 1
        with pytest.raises(AuthenticationError, match="can't be reached"):
            known_brokers(secured, oauth("", token_endpoint_url=url, **assertion))
    ((authorization, body),) = asked
    fields = dict(parse_qsl(body))
    assert authorization is None
    assert fields["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert fields["scope"] == "kafka"
    assert fields["assertion"].count(".") == 2


def test_refusal_of_an_endpoint_is_told_without_the_secret(secured: SecuredBroker) -> None:
    with issuer(401) as (url, _):
        settings = oauth('clientId="me" clientSecret="hush"', token_endpoint_url=url)
        with pytest.raises(AuthenticationError, match="refused the client with status 401") as error:
            known_brokers(secured, settings)
    assert str(error.value).startswith("near: ")
    assert "hush" not in str(error.value)


def test_a_refused_token_is_not_used_again(secured: SecuredBroker) -> None:
    """The token was revoked: its life is not over yet. All clients together ask as often as one."""
    expired = Tokens().token(TokenSource(subject="alice", lifetime_s=-60))
    issued = [expired]
    with issuer(token=lambda: issued[-1]) as (url, asked):
        settings = oauth('clientId="me" clientSecret="hush"', token_endpoint_url=url)
        began = time.monotonic()
        for _ in range(10):
            with pytest.raises(AuthenticationError, match="check what issues the token, and the clocks"):
                known_brokers(secured, settings)
        assert len(asked) <= 1 + (time.monotonic() - began) / SHORTEST_WAIT_S
        issued.append(unsecured_token())
        before = len(asked)
        await_value(lambda: is_accepted(secured, settings), ENDS_WITHIN_S, lambda: f"{len(asked)} tokens")
        assert len(asked) == before + 1


def is_accepted(secured: SecuredBroker, settings: Mapping[str, str]) -> bool:
    try:
        return known_brokers(secured, settings) == 1
    except AuthenticationError:
        return False


def test_a_wrong_password_is_told(secured: SecuredBroker) -> None:
    for mechanism in ("PLAIN", *SCRAM):
        with pytest.raises(AuthenticationError) as error:
            known_brokers(secured, login(mechanism, password="wrong word"))
        text = str(error.value)
        where = f"near: {HOST}:{secured.ports['LOGIN']}"
        assert text.startswith(f"{where} refused the login of alice by {mechanism} (")
        assert text.endswith(": check sasl.jaas.config")
        assert "wrong word" not in text


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM])
def test_the_library_s_debug_log_holds_no_password(
    secured: SecuredBroker, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert known_brokers(secured, login(mechanism)) == 1
    for form in (LOGIN_PASSWORD, repr(LOGIN_PASSWORD)[1:-1], LOGIN_PASSWORD.encode().hex()):
        assert form not in caplog.text


def test_mechanisms_that_are_offered_are_told(secured: SecuredBroker) -> None:
    properties = {**login("SCRAM-SHA-256"), **secured.trusting, "security.protocol": "SASL_SSL"}
    with pytest.raises(AuthenticationError) as error:
        known_brokers(secured, properties, "SAFE")
    assert "does not offer SCRAM-SHA-256 but PLAIN, SCRAM-SHA-512: set sasl.mechanism" in str(error.value)


def test_aws_needs_the_host_names_of_msk(secured: SecuredBroker) -> None:
    module = "software.amazon.msk.auth.iam.IAMLoginModule required;"
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": module,
    }
    with pytest.raises(AuthenticationError, match=f"the name {HOST} has no AWS region"):
        known_brokers(secured, properties)


def test_plaintext_at_a_port_that_wants_a_login_is_told(secured: SecuredBroker) -> None:
    for listener, properties, wanted in (
        ("LOGIN", {}, "SASL_PLAINTEXT"),
        ("SAFE", secured.trusting, "SASL_SSL"),
    ):
        with pytest.raises(DisconnectedError) as error:
            known_brokers(secured, properties, listener)
        assert str(error.value).endswith(f"If it wants a login, set security.protocol={wanted}")


def test_a_blocking_client_logs_in_again_before_its_session_ends(secured: SecuredBroker) -> None:
    cluster = Cluster(secured.settings("SHORT", login("SCRAM-SHA-512")))
    try:
        opened, since = cluster.connection(), time.monotonic()
        until = since + ENDS_WITHIN_S
        while time.monotonic() < since + 2 * SESSION_S:
            assert time.monotonic() < until, "no connection outlived a session"
            assert cluster.brokers("test")
            time.sleep(0.1)
            if cluster.connection() is not opened:  # the machine was too busy to log in again in time
                opened, since = cluster.connection(), time.monotonic()
    finally:
        cluster.close()


def refused(cluster: Cluster, user: str) -> bool:
    """Whether a request is not sent, since the session can't be renewed."""
    try:
        cluster.brokers("test")
    except AuthenticationError as error:
        return f"refused the login of {user}" in str(error)
    return False


def test_a_blocking_client_continues_when_a_refused_renewal_is_mended(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    user, secrets = "renewed", tmp_path / "secrets"
    add_scram_users(secured.cluster.bootstrap_servers, user, password="right")
    secrets.write_text("password = right\n")
    cluster = Cluster(
        secured.settings("SHORT", login("SCRAM-SHA-512", user, f"${{file:{secrets}:password}}"))
    )
    try:
        assert cluster.brokers("test")
        secrets.write_text("password = wrong\n")
        await_value(lambda: refused(cluster, user), ENDS_WITHIN_S, lambda: "the login was not renewed")
        secrets.write_text("password = right\n")
        assert cluster.brokers("test")
    finally:
        cluster.close()


def test_a_copy_begins_when_a_refused_login_is_mended(secured: SecuredBroker, secured_bench: Bench) -> None:
    topic, user = "mended", "late"
    secured_bench.create(topic)
    expected = secured_bench.source_has(topic, 10)
    plain = secured_bench.plan(TopicPartition(topic, 0))
    source = secured.settings("LOGIN", login("SCRAM-SHA-512", user))
    watch = ProgressReports(secured_bench)
    try:
        with running(replace(plain, consumer=replace(plain.consumer, connection=source), offset_syncs=None)):
            report = watch.await_progress(topic, lambda seen: seen.error is not None)
            assert "refused the login of late by SCRAM-SHA-512" in str(report.error)
            add_scram_users(secured.cluster.bootstrap_servers, user)
            await_value(
                lambda: secured_bench.copied(topic) == expected, ENDS_WITHIN_S, lambda: "nothing is copied"
            )
            watch.await_progress(topic, lambda seen: seen.error is None and seen.records == 10)
    finally:
        watch.close()


def test_a_new_password_on_disk_is_used_without_a_restart(
    secured: SecuredBroker, secured_bench: Bench, tmp_path: Path
) -> None:
    """Sessions of the source end every 3 s, so the former password is of no use soon."""
    topic, user, secrets = "rotated", "rotated", tmp_path / "secrets"
    secured_bench.create(topic)
    plain = secured_bench.plan(TopicPartition(topic, 0))

    def change(password: str) -> None:
        add_scram_users(secured.cluster.bootstrap_servers, user, password=password)
        secrets.write_text(f"password = {password}\n")

    change("first")
    source = secured.settings("SHORT", login("SCRAM-SHA-512", user, f"${{file:{secrets}:password}}"))
    plan = replace(plain, consumer=replace(plain.consumer, connection=source), offset_syncs=None)
    with running(plan):
        secured_bench.await_copied(topic, secured_bench.source_has(topic, 10))
        change("second")
        until = time.monotonic() + 2 * SESSION_S
        while time.monotonic() < until:
            secured_bench.await_copied(topic, secured_bench.source_has(topic, 10))
    with pytest.raises(AuthenticationError):
        known_brokers(secured, login("SCRAM-SHA-512", user, "first"), "SHORT")


def test_a_copy_continues_without_a_gap_while_sessions_end(
    secured: SecuredBroker, secured_bench: Bench
) -> None:
    """With fetches that wait and produce requests in flight; nothing is lost, nothing twice.

    Each window has a login of every connection. Beside it, the same is copied without logins: what the
    machine holds up, it holds up in both. A login holds up in each window, so the best one counts.
    """
    source = secured.settings("SHORT", UNSECURED)
    target = secured.settings("SHORT", login("SCRAM-SHA-512"))
    plain = secured.settings("PLAINTEXT", {})
    plans = {}
    for topic, ends in {"sessions": (source, target), "no-sessions": (plain, plain)}.items():
        secured_bench.create(topic, source_config=APPENDED, target_config=APPENDED)
        plans[topic] = connected(secured_bench.plan(TopicPartition(topic, 0)), *ends)
    gaps: list[float] = []
    with running(plans["sessions"]), running(plans["no-sessions"]):
        for topic in plans:
            secured_bench.await_copied(topic, secured_bench.source_has(topic, 1))
        written = 1
        while len(gaps) < WINDOWS_MAX and min(gaps, default=math.inf) > GAP_MAX_S:
            first = written
            written += append_slowly(secured, list(plans), first, SESSION_S)
            for topic in plans:
                secured_bench.await_copied(topic, numbered(written))
            by_login, without = (longest_delay(secured, topic, first + 1) for topic in plans)
            gaps.append(by_login - without)
            # The figures that the limit is for.
            print(f"{by_login * 1000:.0f} ms, {without * 1000:.0f} ms without logins")  # noqa: T201
    assert min(gaps) <= GAP_MAX_S
    assert LOGIN_PASSWORD not in repr(plans)


def append_slowly(broker: SecuredBroker, topics: Sequence[str], first: int, seconds: float) -> int:
    """A record each PAUSE_S to each topic; how many there were."""
    producer = confluent.Producer({"bootstrap.servers": broker.cluster.bootstrap_servers, "linger.ms": 0})
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        ((key, value),) = numbered(1, first + count)
        for topic in topics:
            producer.produce(topic, value, key)
        if count == 0:
            assert producer.flush(ENDS_WITHIN_S) == 0  # it connects, and its first records wait for that
        producer.poll(PAUSE_S)
        count += 1
    assert producer.flush(ENDS_WITHIN_S) == 0
    return count


def longest_delay(secured: SecuredBroker, topic: str, first: int) -> float:
    """From the source's log to the target's, in seconds. How long the producer takes is left out."""
    there, here = (
        [record.timestamp()[1] for record in records(secured.cluster, name)][first:]
        for name in (topic, remote(topic))
    )
    return max(end - begin for begin, end in zip(there, here, strict=True)) / 1000
