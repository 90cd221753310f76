"""AWS_MSK_IAM to a broker behind a verifier of its signatures: sessions, refusals, clocks that differ."""

import http.server
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

import pytest

from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.errors import AuthenticationError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.cluster import read_metadata
from tests.contract.copying import Bench, connected, running
from tests.contract.msk_clients import SESSION_S, iam, msk, sign_as
from tests.support.iam_front import ACCESS_KEY, MSK_HOST, SECRET_KEY
from tests.support.secured_broker import FRONT, SecuredBroker

MINUTES: Final = 60.0


def test_a_copy_continues_while_sessions_end(
    secured: SecuredBroker, secured_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_as(monkeypatch)
    topic = "iam-sessions"
    secured_bench.create(topic)
    plan = connected(secured_bench.plan(TopicPartition(topic, 0)), iam(secured), iam(secured))
    with msk(secured) as verifier, running(plan):
        secured_bench.await_copied(topic, secured_bench.source_has(topic, 10))
        logins, until = len(verifier.accepted), time.monotonic() + 2 * SESSION_S
        while time.monotonic() < until:
            secured_bench.await_copied(topic, secured_bench.source_has(topic, 10))
        assert len(verifier.accepted) > logins


ASSUMED: Final = f"""
<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>{ACCESS_KEY}</AccessKeyId><SecretAccessKey>{SECRET_KEY}</SecretAccessKey>
<SessionToken>a/session+token==</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>
</Credentials></AssumeRoleResult></AssumeRoleResponse>
"""


@contextmanager
def security_token_service() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the service's URL, and each request's Authorization header and body, as AWS gets them."""
    asked: list[tuple[str, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append((self.headers["Authorization"], body))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(ASSUMED.encode())

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer((HOST, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{HOST}:{server.server_port}", asked
        server.shutdown()


def test_a_role_is_assumed_with_the_credentials_of_a_profile(
    secured: SecuredBroker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sign_as(monkeypatch, "AKIDOTHER", "other")  # of the environment, which a named profile overrides
    file = tmp_path / "credentials"
    file.write_text("[ops]\naws_access_key_id = AKIDPROFILE\naws_secret_access_key = hush\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    role = "arn:aws:iam::123456789012:role/mirror"
    options = f'awsProfileName="ops" awsRoleArn="{role}" awsRoleSessionName="here" awsStsRegion="eu-west-1"'
    with security_token_service() as (url, asked), msk(secured) as verifier:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", url)
        assert len(read_metadata(iam(secured, options), []).brokers) == 1
        assert set(verifier.accepted) == {ACCESS_KEY}
    for authorization, body in asked:
        assert "Credential=AKIDPROFILE/" in authorization
        assert "/eu-west-1/sts/aws4_request" in authorization
        fields = dict(parse_qsl(body))
        assert (fields["RoleArn"], fields["RoleSessionName"]) == (role, "here")
    assert asked


@pytest.mark.parametrize("minutes", [-4, 0, 14])
def test_a_clock_may_differ_by_some_minutes(
    secured: SecuredBroker, monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    sign_as(monkeypatch)
    with msk(secured, ahead_s=minutes * MINUTES):
        assert len(read_metadata(iam(secured), []).brokers) == 1


@pytest.mark.parametrize(
    ("access_key", "secret_key", "minutes", "said"),
    [
        ("AKIDFOREIGN", "a/secret+key", 0, "Access denied"),
        (ACCESS_KEY, "another", 0, "Invalid signature"),
        (ACCESS_KEY, "a/secret+key", 16, "Signature expired or not yet current"),
        (ACCESS_KEY, "a/secret+key", -6, "Signature expired or not yet current"),
    ],
)
def test_a_refusal_is_one_line(
    secured: SecuredBroker,
    monkeypatch: pytest.MonkeyPatch,
    access_key: str,
    secret_key: str,
    minutes: int,
    said: str,
) -> None:
    sign_as(monkeypatch, access_key, secret_key)
    with msk(secured, ahead_s=minutes * MINUTES), pytest.raises(AuthenticationError) as error:
        read_metadata(iam(secured), [])
    assert str(error.value) == (
        f"near: {MSK_HOST}:{secured.ports[FRONT]} refused the login by AWS_MSK_IAM ({said}): check the "
        "policy of its AWS identity, which needs kafka-cluster:Connect, and the clock"
    )
