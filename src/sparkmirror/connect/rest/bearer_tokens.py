"""Checks signed tokens (RFC 7519, RFC 6750) of one issuer: signature, issuer, audience, life, roles."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jwt

from sparkmirror.connect.rest.authentication import InvalidLoginError, Role, Scheme, User
from sparkmirror.connect.rest.public_keys import PublicKeys

logger = logging.getLogger(__name__)

_ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""Those with a public key: with `none` anybody signs, and with HMAC whoever can verify."""
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
