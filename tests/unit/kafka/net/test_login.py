"""Errors of refused logins that no broker of the tests can refuse."""

import pytest
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthenticationError
from sparkmirror.domain.sasl import AwsLogin, SaslSettings
from sparkmirror.kafka.net.login import Login

HOST = "b-1.mirror.abc.c2.kafka.eu-central-1.amazonaws.com"


def test_iam_that_denies_is_told_with_what_the_policy_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    sasl = SaslSettings("AWS_MSK_IAM", aws=AwsLogin())
    settings = ConnectionSettings(((HOST, 9098),), alias="near", sasl=sasl)
    steps = Login(settings, HOST, f"{HOST}:9098").steps({})
    steps.send(None)
    steps.send(SaslHandshakeResponse(error_code=0, mechanisms=["AWS_MSK_IAM"]))
    with pytest.raises(AuthenticationError) as error:
        steps.send(SaslAuthenticateResponse(error_code=58, error_message="Access denied", auth_bytes=b""))
    assert str(error.value) == (
        f"near: {HOST}:9098 refused the login by AWS_MSK_IAM (Access denied): check the policy of its AWS "
        "identity, which needs kafka-cluster:Connect, and the clock"
    )
