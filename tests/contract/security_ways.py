"""The ways in which a client reaches the secured broker, and a copy from one to another."""

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import TopicPartition
from tests.contract.copying import Bench, connected, running
from tests.contract.msk_clients import iam, msk, sign_as
from tests.support.secured_broker import UNSECURED, SecuredBroker, login

WAYS: Final[Mapping[str, Callable[[SecuredBroker], ConnectionSettings]]] = {
    "PLAINTEXT": lambda broker: broker.settings("PLAINTEXT", {}),
    "SSL": lambda broker: broker.settings("TLS", broker.trusting),
    "client certificate": lambda broker: broker.settings("MUTUAL", broker.known),
    "PLAIN": lambda broker: broker.settings("LOGIN", login("PLAIN")),
    "SCRAM-SHA-256": lambda broker: broker.settings("LOGIN", login("SCRAM-SHA-256")),
    "SCRAM-SHA-512": lambda broker: broker.settings("LOGIN", login("SCRAM-SHA-512")),
    "SCRAM over TLS": lambda broker: broker.settings(
        "SAFE", {**login("SCRAM-SHA-512"), **broker.trusting, "security.protocol": "SASL_SSL"}
    ),
    "OAUTHBEARER": lambda broker: broker.settings("LOGIN", UNSECURED),
    "AWS_MSK_IAM": iam,
}
"""All but GSSAPI, which `check_kerberos.py` has."""
NAMES: Final = tuple(WAYS)


def copy_between(
    source: str, target: str, secured: SecuredBroker, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raises AssertionError unless all records are there, in order and unchanged."""
    sign_as(monkeypatch)
    topic = f"from-{source}-to-{target}".replace(" ", "-")
    bench.create(topic)
    expected = bench.source_has(topic, 100)
    plan = connected(bench.plan(TopicPartition(topic, 0)), WAYS[source](secured), WAYS[target](secured))
    with msk(secured) as verifier, running(plan):
        bench.await_copied(topic, expected)
    assert bool(verifier.accepted) == ("AWS_MSK_IAM" in (source, target))
