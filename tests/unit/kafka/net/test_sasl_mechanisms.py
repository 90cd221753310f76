"""Mechanisms of a login, where kafka-python's differ from Java's clients or can be compared with others."""

import datetime as dt
import json
import sys
import time

import pytest
from botocore.auth import SigV4QueryAuth  # type: ignore[import-untyped]
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
from botocore.credentials import Credentials  # type: ignore[import-untyped]
from kafka.net.sasl.msk import AwsMskIamClient

from sparkmirror.domain.errors import AuthenticationError
from sparkmirror.domain.sasl import AwsLogin, KerberosLogin, SaslSettings
from sparkmirror.kafka.net.sasl_mechanisms import mechanism_of, region_of

HOST = "b-1.mirror.abc.c2.kafka.eu-central-1.amazonaws.com"


def test_scram_escapes_the_name_and_marks_tokens() -> None:
    scram = mechanism_of(SaslSettings("SCRAM-SHA-256", "a,b=c", "x", is_token=True), HOST)
    first = scram.auth_bytes()
    assert first.startswith(b"n,,n=a=2Cb=3Dc,r=")
    assert first.endswith(b",tokenauth=true")


def test_scram_refuses_a_server_that_asks_for_few_iterations() -> None:
    scram = mechanism_of(SaslSettings("SCRAM-SHA-512", "a", "x"), HOST)
    nonce = scram.auth_bytes().partition(b"r=")[2]
    with pytest.raises(AuthenticationError, match="asks for 1 iterations"):
        scram.receive(b"r=" + nonce + b"server,s=c2FsdA==,i=1")


def test_a_renewed_scram_login_salts_the_password_no_more() -> None:
    """Others wait for a renewal. With many iterations, the first login takes a while."""

    def cpu_s(password: str) -> float:
        scram = mechanism_of(SaslSettings("SCRAM-SHA-512", "a", password), HOST)
        nonce = scram.auth_bytes().partition(b"r=")[2]
        began = time.thread_time()
        scram.receive(b"r=" + nonce + b"server,s=c2FsdA==,i=100000")
        return time.thread_time() - began

    assert cpu_s("first") > 10 * cpu_s("first")
    assert cpu_s("second") > 10 * cpu_s("first")


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (HOST, "eu-central-1"),
        ("boot-x.c1.kafka-serverless.us-east-1.amazonaws.com", "us-east-1"),
        ("b-1.x.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("b-1-public.x.kafka.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
    ],
)
def test_the_region_is_in_the_host_name(host: str, region: str) -> None:
    assert region_of(host) == region


@pytest.mark.parametrize("host", ["localhost", "kafka", "10.0.0.1", "b-1.kafka.example.com"])
def test_a_host_name_without_a_region_is_refused(host: str) -> None:
    with pytest.raises(AuthenticationError, match="has no AWS region"):
        region_of(host)


@pytest.mark.parametrize("token", [None, "a/session+token=="])
def test_aws_signs_alike(token: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signature is the one that AWS's own signer makes for the same time."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a/secret+key")
    if token is None:
        monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    else:
        monkeypatch.setenv("AWS_SESSION_TOKEN", token)
    message = json.loads(mechanism_of(SaslSettings("AWS_MSK_IAM", aws=AwsLogin()), HOST).auth_bytes())
    signer = SigV4QueryAuth(
        Credentials("AKIDEXAMPLE", "a/secret+key", token), "kafka-cluster", "eu-central-1", expires=900
    )
    request = AWSRequest("GET", f"https://{HOST}/", params={"Action": "kafka-cluster:Connect"})
    signed_at = dt.datetime.strptime(message["x-amz-date"], "%Y%m%dT%H%M%SZ")  # noqa: DTZ007 - as botocore
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: signed_at)
    signer.add_auth(request)
    assert request.url.endswith(f"X-Amz-Signature={message['x-amz-signature']}")


@pytest.mark.parametrize(
    ("token", "signature"),
    [
        (None, "c8e0705a3bb48ba9096ea532521564fae09a00a063b37a742fe7aad6164c3731"),
        ("a/session+token==", "11d3b6bae929464709c4ee7dea47424fddb6dda44e9257498a0363aba478b2f7"),
    ],
)
def test_the_signature_of_a_fixed_time_is_the_official_signer_s(token: str | None, signature: str) -> None:
    """Recorded from aws-msk-iam-sasl-signer-python 1.0.2, which signs for the host of a whole region."""
    client = AwsMskIamClient(
        "kafka.eu-central-1.amazonaws.com", "AKIDEXAMPLE", "a/secret+key", "eu-central-1", token
    )
    client.datestamp, client.timestamp = "20260102", "20260102T030405Z"
    assert json.loads(client.first_message())["x-amz-signature"] == signature


def test_without_its_library_gssapi_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(
        AuthenticationError, match=r"GSSAPI needs gssapi: pip install 'sparkmirror\[gssapi\]'"
    ):
        mechanism_of(SaslSettings("GSSAPI", kerberos=KerberosLogin("kafka")), "h")
