"""Makes the settings of clients that log in by AWS_MSK_IAM to a broker behind `iam_front`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import pytest

from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.network import Transport
from sparkmirror.kafka.net.transport import SocketNetwork
from tests.support.iam_front import ACCESS_KEY, MSK_HOST, SECRET_KEY, Verifier, iam_front
from tests.support.secured_broker import FRONT, SecuredBroker

SESSION_S: Final = 1.5
_IAM: Final = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "AWS_MSK_IAM"}


class _MskNetwork(SocketNetwork):
    """Knows the address of MSK's name."""

    def connect(self, host: str, port: int, settings: ConnectionSettings) -> Transport:
        return super().connect(HOST if host == MSK_HOST else host, port, settings)


def iam(broker: SecuredBroker, options: str = "") -> ConnectionSettings:
    """`options` are those of the login module."""
    jaas = {"sasl.jaas.config": f"software.amazon.msk.auth.iam.IAMLoginModule required {options};"}
    return replace(broker.settings(FRONT, _IAM | jaas, host=MSK_HOST), network=_MskNetwork())


@contextmanager
def msk(broker: SecuredBroker, ahead_s: float = 0.0) -> Iterator[Verifier]:
    """Serve a broker whose clock is ahead of this machine's."""
    verifier = Verifier({ACCESS_KEY: SECRET_KEY}, ahead_s)
    with iam_front(broker.ports[FRONT], broker.ports["MSK"], verifier, SESSION_S):
        yield verifier


def sign_as(
    monkeypatch: pytest.MonkeyPatch, access_key: str = ACCESS_KEY, secret_key: str = SECRET_KEY
) -> None:
    """Sign with these credentials of AWS from now on."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret_key)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
