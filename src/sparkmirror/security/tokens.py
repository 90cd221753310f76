"""Fetches OAuth tokens, and keeps each until most of its life is over. Blocks."""

import base64
import json
import threading
import time
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import jwt

from sparkmirror.domain.errors import AuthenticationError
from sparkmirror.domain.sasl import TokenSource
from sparkmirror.security.assertions import assertion_of
from sparkmirror.security.refusals import Refusals
from sparkmirror.security.tls_context import ClientContexts

_TIMEOUT_S: Final = 10.0
_REFRESH_AFTER: Final = 0.8
"""The share of a token's life: the default of `sasl.login.refresh.window.factor`."""
_DEFAULT_LIFE_S: Final = 300.0
_BYTES_MAX: Final = 1 << 20
_JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_CONTEXTS: Final = ClientContexts()


class _Kept(NamedTuple):
    token: str
    until: float


class Tokens:
    """Thread-safe. How long a token lives is measured by a clock that nobody sets."""

    def __init__(self) -> None:
        self._kept: dict[TokenSource, _Kept] = {}
        self._refusals = Refusals()
        self._lock = threading.Lock()

    def token(self, source: TokenSource) -> str:
        """Return a valid token. Raises AuthenticationError, which holds no secret.

        Where none could be fetched the issuer is asked again after 1 to 30 s, for all clients together.
        """
        with self._lock:
            now = time.monotonic()
            kept = self._kept.get(source)
            if kept is None or kept.until <= now:
                self._refusals.require_none(source)
                token, life_s = self._fetched(source)
                kept = self._kept[source] = _Kept(token, now + life_s * _REFRESH_AFTER)
            return kept.token

    def forget(self, source: TokenSource) -> None:
        """A broker has refused its token: the next login needs another one."""
        with self._lock:
            self._kept.pop(source, None)

    def _fetched(self, source: TokenSource) -> tuple[str, float]:
        try:
            fetched = _fetched(source, time.time())
        except AuthenticationError as error:
            self._refusals.refused(source, str(error))
            raise
        self._refusals.accepted(source)
        return fetched


def _fetched(source: TokenSource, now: float) -> tuple[str, float]:
    """The token and the seconds for which it is valid; `now` is in seconds since 1970, as in a token."""
    if source.url is None:
        return _unsecured(source, now), source.lifetime_s
    if urlsplit(source.url).scheme.lower() == "file":
        return _of_file(source.url), 0.0  # read at each login: who writes it renews it
    return _of_endpoint(source, source.url, now)


def _unsecured(source: TokenSource, now: float) -> str:
    """A token without a signature, as `OAuthBearerUnsecuredLoginCallbackHandler` makes it."""
    claims: dict[str, object] = {"sub": source.subject, "iat": now, "exp": now + source.lifetime_s}
    if source.scope is not None:
        claims["scope"] = source.scope.split()
    return jwt.encode(claims, "", "none")


def _of_file(url: str) -> str:
    file = Path(unquote(urlsplit(url).path))
    try:
        if not file.is_file() or file.stat().st_size > _BYTES_MAX:
            raise AuthenticationError(f"the token file {file} is missing, or no regular file of up to 1 MiB")
        token = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise AuthenticationError(f"the token file {file} can't be read") from error
    if not token or any(char <= " " for char in token):
        raise AuthenticationError(f"the token file {file} holds no token")
    return token


def _of_endpoint(source: TokenSource, url: str, now: float) -> tuple[str, float]:
    """Ask an endpoint, by client credentials (RFC 6749, 4.4) or an assertion (RFC 7523, 2.1)."""
    import urllib3  # noqa: PLC0415 - no other client of executors needs it

    fields, headers = _request(source, now)
    context = None if source.tls is None else _CONTEXTS.context_of(source.tls)
    try:
        with urllib3.PoolManager(retries=False, timeout=_TIMEOUT_S, ssl_context=context) as pools:
            answer = pools.request("POST", url, fields=fields, encode_multipart=False, headers=headers)
            content = answer.data
    except urllib3.exceptions.HTTPError as error:
        raise AuthenticationError(f"the token endpoint {url} can't be reached") from error
    if answer.status != 200:
        raise AuthenticationError(f"the token endpoint {url} refused the client with status {answer.status}")
    return _parsed(url, content)


def _request(source: TokenSource, now: float) -> tuple[dict[str, str], dict[str, str]]:
    """Return the request's fields and headers."""
    scope = {} if source.scope is None else {"scope": source.scope}
    accept = {"Accept": "application/json"}
    if source.assertion is not None:
        assertion = assertion_of(source.assertion, now)
        return {"grant_type": _JWT_BEARER, "assertion": assertion, **scope}, accept
    login = base64.b64encode(f"{source.client_id}:{source.client_secret}".encode()).decode()
    return {"grant_type": "client_credentials", **scope}, {"Authorization": f"Basic {login}", **accept}


def _parsed(url: str, content: bytes) -> tuple[str, float]:
    try:
        found: Any = json.loads(content)
        token = found["access_token"]
        life_s = float(found.get("expires_in", _DEFAULT_LIFE_S))
    except (ValueError, TypeError, KeyError) as error:
        raise AuthenticationError(f"the token endpoint {url} answered no access_token") from error
    if not isinstance(token, str) or not token:
        raise AuthenticationError(f"the token endpoint {url} answered no access_token")
    return token, life_s
