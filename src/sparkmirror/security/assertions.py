"""Makes the signed JWT with which a client asks an issuer for tokens (RFC 7523, KIP-1139)."""

import json
import uuid
from typing import Any, Final

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from sparkmirror.domain.errors import AuthenticationError
from sparkmirror.domain.sasl import Assertion
from sparkmirror.files import NamedFile

_BYTES_MAX: Final = 1 << 20


def assertion_of(settings: Assertion, now: float) -> str:
    """A ready one from its file, or one made and signed now. Raises AuthenticationError without a secret."""
    if settings.file is not None:
        return _read(settings.file, settings.roots).decode("ascii", "replace").strip()
    template = _template(settings)
    seconds = int(now)
    times = {"iat": seconds, "exp": seconds + settings.expires_s, "nbf": seconds - settings.valid_before_s}
    claims = dict(settings.claims) | template.get("payload", {}) | times
    if settings.has_id:
        claims["jti"] = str(uuid.uuid4())
    return _signed(settings, claims, template.get("header", {}))


def _template(settings: Assertion) -> dict[str, dict[str, Any]]:
    if settings.template_file is None:
        return {}
    try:
        found = json.loads(_read(settings.template_file, settings.roots))
    except ValueError as error:
        raise AuthenticationError(f"the template {settings.template_file} is no JSON") from error
    if not isinstance(found, dict) or not all(isinstance(part, dict) for part in found.values()):
        raise AuthenticationError(f"the template {settings.template_file} has no header and payload")
    return found


def _signed(settings: Assertion, claims: dict[str, Any], header: dict[str, Any]) -> str:
    file = settings.key_file
    assert file is not None, "without a ready assertion there is a key"
    password = None if settings.passphrase is None else settings.passphrase.encode()
    try:
        key: Any = load_pem_private_key(_read(file, settings.roots), password)
        return jwt.encode(claims, key, settings.algorithm, header)
    except (ValueError, TypeError, UnsupportedAlgorithm, jwt.PyJWTError) as error:
        remedy = "check it, and the passphrase and algorithm of sasl.oauthbearer.assertion"
        text = f"the private key {file} can't be used with {settings.algorithm}: {remedy}"
        raise AuthenticationError(text) from error


def _read(file: str, roots: tuple[str, ...]) -> bytes:
    try:
        return NamedFile(file, roots).read(_BYTES_MAX)
    except OSError as error:
        raise AuthenticationError(f"the file {file} can't be read: {error.strerror}") from error
