"""Records are copied from and to a broker by every security protocol and mechanism but GSSAPI.

`check_kerberos.py` has that one. How one side is secured does not depend on the other: each is tried on both
sides, not each pair.
"""

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
NAMES: Final = tuple(WAYS)


@pytest.mark.parametrize(("source", "target"), list(zip(NAMES, (*NAMES[1:], NAMES[0]), strict=True)))
def test_records_are_copied(
    secured: SecuredBroker,
    secured_bench: Bench,
    source: str,
    target: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sign_as(monkeypatch)
    topic = f"from-{source.replace(' ', '-')}"
    secured_bench.create(topic)
    expected = secured_bench.source_has(topic, 100)
    plan = connected(
        secured_bench.plan(TopicPartition(topic, 0)), WAYS[source](secured), WAYS[target](secured)
    )
    with msk(secured) as verifier, running(plan):
        secured_bench.await_copied(topic, expected)
    assert bool(verifier.accepted) == ("AWS_MSK_IAM" in (source, target))
