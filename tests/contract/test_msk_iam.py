"""AWS_MSK_IAM to a broker behind a verifier of its signatures: sessions, refusals, clocks that differ."""

import time
from typing import Final

import pytest

from sparkmirror.domain.errors import AuthenticationError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.cluster import read_metadata
from tests.contract.copying import Bench, connected, running
from tests.contract.msk_clients import SESSION_S, iam, msk, sign_as
from tests.support.iam_front import ACCESS_KEY, MSK_HOST
from tests.support.secured_broker import FRONT, SecuredBroker

MINUTES: Final = 60.0


def test_a_copy_goes_on_while_sessions_end(
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
