"""Checks signed tokens (RFC 7519, RFC 6750) of one issuer: signature, issuer, audience, life, roles.

The issuer's public keys (JWKS, RFC 7517) come from a URL or a file, and are fetched again as they change.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import jwt
import urllib3

from sparkmirror.config.properties import read_regular_file
from sparkmirror.connect.rest.authentication import InvalidLoginError, Role, Scheme, User
from sparkmirror.domain.errors import ConfigError, SparkmirrorError
from sparkmirror.domain.tls import TlsSettings
from sparkmirror.security.tls_context import ClientContexts

KEPT_S: Final = 3600.0
"""The default of a broker's `sasl.oauthbearer.jwks.endpoint.refresh.ms`."""
RETRY_S: Final = 10.0
"""The time between two fetches for unknown keys: anybody may send a token with any `kid`."""
_TIMEOUT: Final = urllib3.Timeout(connect=3.0, read=5.0)
_BYTES_MAX: Final = 1024 * 1024

Keys = Mapping[str | None, jwt.PyJWK]


class PublicKeys:
    """Belongs to one event loop. Keys that can't be fetched again are kept, and the reason is logged."""

    def __init__(self, fetch: Callable[[], Keys], now: Callable[[], float] = time.monotonic) -> None:
        """`fetch` blocks, and raises SparkmirrorError."""
        self._fetch = fetch
        self._now = now
        self._keys: Keys = {}
        self._fetched_at = -KEPT_S
        self._tried_at = -RETRY_S
        self._fetching: asyncio.Task[None] | None = None

    async def key(self, key_id: str | None) -> jwt.PyJWK | None:
        """Return the key with this id, or the only key for None. Waits only to fetch an unknown key."""
        found = self._known(key_id)
        if found is not None and self._now() - self._fetched_at < KEPT_S:
            return found
        if self._fetching is None and self._now() - self._tried_at >= RETRY_S:
            self._tried_at = self._now()
            self._fetching = asyncio.create_task(self._refresh())
        if found is None and self._fetching is not None:
            await asyncio.shield(self._fetching)
            found = self._known(key_id)
        return found

    def _known(self, key_id: str | None) -> jwt.PyJWK | None:
        if key_id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(key_id)

    async def _refresh(self) -> None:
        try:
            self._keys = await asyncio.to_thread(self._fetch)
            self._fetched_at = self._now()
        except SparkmirrorError as error:
            logger.warning("the public keys for tokens can't be fetched: %s", error)
        finally:
            self._fetching = None


def fetcher(url: str, option: str, tls: TlsSettings | None) -> Callable[[], Keys]:
    """Fetches from `https:` or `file:`; the option is what errors name.

    Raises ConfigError for other URLs, and for stores that can't be read.
    """
    parts = urlsplit(url)
    if parts.scheme.lower() == "file" and parts.netloc in ("", "localhost"):
        return lambda: _keys(read_regular_file(Path(unquote(parts.path))), option)
    if parts.scheme.lower() != "https" or not parts.hostname:
        # A man in the middle who changes an answer would choose the keys.
        raise ConfigError(option, None, "must begin with https:// or file:/")  # it may be kept elsewhere
    contexts = ClientContexts()
    if tls is not None:
        contexts.context_of(tls)

    def fetch() -> Keys:
        context = None if tls is None else contexts.context_of(tls)
        with urllib3.PoolManager(ssl_context=context, retries=False, timeout=_TIMEOUT) as pools:
            return _keys(_downloaded(pools, url), option)

    return fetch


def _downloaded(pools: urllib3.PoolManager, url: str) -> bytes:
    try:
        answer = pools.request("GET", url, preload_content=False, redirect=False)
        try:
            content = answer.read(_BYTES_MAX + 1, decode_content=True)
        finally:
            answer.close()
    except urllib3.exceptions.HTTPError as error:
        raise SparkmirrorError(f"{url} can't be reached: {error}") from error
    if answer.status != 200 or len(content) > _BYTES_MAX:
        raise SparkmirrorError(f"{url} answered with status {answer.status} and {len(content)} bytes")
    return content


def _keys(content: bytes, option: str) -> Keys:
    """Parse a JWKS; return the keys that sign, by id."""
    try:
        keys = jwt.PyJWKSet.from_dict(json.loads(content)).keys
    except (ValueError, AttributeError, TypeError, jwt.PyJWTError) as error:
        raise ConfigError(option, None, f"has no usable set of keys (JWKS): {error}") from error
    return {key.key_id: key for key in keys if key.public_key_use in (None, "sig")}


_ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""Algorithms with a public key: with `none` anybody can sign, and with HMAC everybody who can verify."""
ANY_ROLE: Final = "*"


@dataclass(frozen=True, slots=True)
class TokenRules:
    issuer: str
    audiences: tuple[str, ...]
    skew_s: int
    user_claim: str
    roles_claim: str
    admin_roles: frozenset[str]
    viewer_roles: frozenset[str]


class BearerTokens:
    def __init__(self, rules: TokenRules, keys: PublicKeys) -> None:
        self._rules = rules
        self._keys = keys

    def scheme(self) -> Scheme:
        # Nobody is named before the signature was checked: failures count for the address.
        return Scheme('Bearer realm="Kafka Connect"', lambda _token: "", self._check)

    async def _check(self, token: str) -> User:
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
            key = await self._keys.key(key_id)
            if key is None:
                raise InvalidLoginError("the issuer has no key of the token's kid")
            claims = self._verified(token, key)
        except jwt.PyJWTError as error:
            raise InvalidLoginError(f"the token is not valid: {_reason(error)}") from error
        user = claims.get(self._rules.user_claim)
        if not isinstance(user, str) or not user:
            raise InvalidLoginError(f"the token has no claim {self._rules.user_claim}")
        return User(user, self._role(claims))

    def _verified(self, token: str, key: jwt.PyJWK) -> Mapping[str, Any]:
        return jwt.decode(
            token,
            key,
            algorithms=_ALGORITHMS,
            audience=self._rules.audiences,
            issuer=self._rules.issuer,
            leeway=self._rules.skew_s,
            options={"require": ["exp", "iss", "aud"]},
        )

    def _role(self, claims: Mapping[str, Any]) -> Role | None:
        roles = {ANY_ROLE, *_texts(_claim(claims, self._rules.roles_claim))}
        if roles & self._rules.admin_roles:
            return Role.ADMIN
        return Role.VIEWER if roles & self._rules.viewer_roles else None


def _reason(error: jwt.PyJWTError) -> str:
    """The kind of error and its text, which names claims but holds nothing of the token."""
    return f"{type(error).__name__}" if isinstance(error, jwt.DecodeError) else str(error)


def _claim(claims: Mapping[str, Any], name: str) -> object:
    """The claim of this name, as some issuers have URLs for names; else the one at the end of the path."""
    found: object = claims
    if name in claims:
        return claims[name]
    for part in name.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


def _texts(value: object) -> Sequence[str]:
    if isinstance(value, str):
        return value.split()
    if isinstance(value, list):
        # A role that is called `*` must not stand for every role.
        return [item for item in value if isinstance(item, str)]
    return ()


logger = logging.getLogger(__name__)
