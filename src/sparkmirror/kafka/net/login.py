"""Logs in to a broker, and again before the session ends (KIP-43, KIP-152, KIP-368).

`Login.steps` only says what to ask next, so that a blocking connection and a loop take the same steps.
"""

import random
from collections.abc import Generator, Hashable, Mapping
from typing import Any, Final, NamedTuple

from kafka.net.sasl.abc import SaslMechanism
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthenticationError, ConfigError
from sparkmirror.domain.sasl import AWS_MSK_IAM, GSSAPI, OAUTHBEARER
from sparkmirror.kafka.net.sasl_mechanisms import forget_token, mechanism_of
from sparkmirror.security.refusals import Refusals

_AUTHENTICATE: Final = 36
_AUTHENTICATE_MAX: Final = 2
_UNSUPPORTED_MECHANISM: Final = 33

_REFUSALS: Final = Refusals()
_KEPT_ELSEWHERE: Final = (AWS_MSK_IAM, GSSAPI)
"""The same settings may stand for other credentials the next time, and no account is locked."""

LOGIN_ID: Final = 0x7FFFFFFF
"""The correlation id of a login's requests: others may be in flight when it begins. Java reserves it, too."""


class Ask(NamedTuple):
    """A request of a login."""

    request: Any
    response_class: Any
    version: int


Steps = Generator[Ask, Any, float | None]
"""Takes each response; returns how long the session lasts in seconds, None for as long as the connection."""


class Login:
    """The login of one connection. `host` is the broker's, as it is connected to."""

    def __init__(self, settings: ConnectionSettings, host: str, address: str) -> None:
        assert settings.sasl is not None, "settings with a login have its settings"
        self._settings = self._sasl = settings.sasl
        self._host = host
        self._at = f"{settings.cluster}: {address}"
        self._has_succeeded = False

    def steps(self, versions: Mapping[int, Any]) -> Steps:
        """Begin a login; this blocks until a token is there, if one is needed. Raises AuthenticationError.

        After a refusal that is the same error at once for 1 to 30 s, in all connections with these settings.
        """
        try:
            self._sasl = self._settings.current()
        except ConfigError as error:
            raise self._error(str(error)) from error
        if not self._has_succeeded:  # an open session's renewal waits for nobody
            _REFUSALS.require_none(self._key)
        try:
            mechanism = mechanism_of(self._sasl, self._host)
        except AuthenticationError as error:
            raise self._error(str(error)) from error
        return self._steps(mechanism, versions)

    def _steps(self, mechanism: SaslMechanism, versions: Mapping[int, Any]) -> Steps:
        name = self._sasl.mechanism
        answer = yield Ask(SaslHandshakeRequest(mechanism=name), SaslHandshakeResponse, 1)
        if answer.error_code == _UNSUPPORTED_MECHANISM:
            offered = ", ".join(sorted(answer.mechanisms)) or "no mechanism"
            raise self._error(
                f"does not offer {name} but {offered}: set sasl.mechanism to one that it offers"
            )
        if answer.error_code:
            raise self._error(f"refused the login with error {answer.error_code}")
        version = min(_AUTHENTICATE_MAX, versions[_AUTHENTICATE].high if _AUTHENTICATE in versions else 0)
        session_ms = 0
        while not mechanism.is_done():
            request = SaslAuthenticateRequest(auth_bytes=mechanism.auth_bytes())
            answer = yield Ask(request, SaslAuthenticateResponse, version)
            if answer.error_code:
                raise self._refused(answer.error_message or "")
            session_ms = answer.session_lifetime_ms if version else 0
            self._take(mechanism, bytes(answer.auth_bytes))
        if not mechanism.is_authenticated():
            raise self._refused("")
        self._has_succeeded = True
        _REFUSALS.accepted(self._key)
        return session_ms / 1000 if session_ms > 0 else None

    def _take(self, mechanism: SaslMechanism, answer: bytes) -> None:
        try:
            mechanism.receive(answer)
        except AuthenticationError as error:
            raise self._error(str(error)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise self._error(f"sent what is no answer of {self._sasl.mechanism}") from error

    def _refused(self, said: str) -> AuthenticationError:
        forget_token(self._sasl)
        who = f" of {self._sasl.username}" if self._sasl.username else ""
        text = f" ({said.splitlines()[0]})" if said else ""
        error = self._error(f"refused the login{who} by {self._sasl.mechanism}{text}: {self._remedy}")
        if self._sasl.mechanism not in _KEPT_ELSEWHERE:
            _REFUSALS.refused(self._key, str(error))
        return error

    @property
    def _key(self) -> Hashable:
        return self._at, self._sasl

    @property
    def _remedy(self) -> str:
        if self._sasl.mechanism == AWS_MSK_IAM:
            return "check the policy of its AWS identity, which needs kafka-cluster:Connect, and the clock"
        if self._sasl.mechanism == OAUTHBEARER:
            return "check what issues the token, and the clocks"
        return "check sasl.jaas.config"

    def _error(self, text: str) -> AuthenticationError:
        return AuthenticationError(f"{self._at} {text}")


def renewal_s(session_s: float) -> float:
    """Return in how many seconds to log in again: some time before the end, not all clients at once."""
    return session_s * random.uniform(0.75, 0.85)
