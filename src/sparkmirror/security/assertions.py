"""Makes the signed JWT with which a client asks an issuer for tokens (RFC 7523, KIP-1139)."""

import base64
import json
import uuid
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from sparkmirror.domain.errors import AuthenticationError
from sparkmirror.domain.sasl import Assertion

_BYTES_MAX: Final = 1 << 20
_ES256_BYTES: Final = 32


def assertion_of(settings: Assertion, now: float) -> str:
    """A ready one from its file, or one made and signed now. Raises AuthenticationError without a secret."""
    if settings.file is not None:
        return _read(settings.file).decode("ascii", "replace").strip()
    template = _template(settings)
    seconds = int(now)
    header = template.get("header", {}) | {"alg": settings.algorithm, "typ": "JWT"}
    times = {"iat": seconds, "exp": seconds + settings.expires_s, "nbf": seconds - settings.valid_before_s}
    claims = dict(settings.claims) | template.get("payload", {}) | times
    if settings.has_id:
        claims["jti"] = str(uuid.uuid4())
    signed = f"{encoded(header)}.{encoded(claims)}"
    return f"{signed}.{_base64(_signature(settings, signed.encode()))}"


def encoded(content: object) -> str:
    """A part of a JWT."""
    return _base64(json.dumps(content, separators=(",", ":")).encode())


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _template(settings: Assertion) -> dict[str, dict[str, Any]]:
    if settings.template_file is None:
        return {}
    try:
        found = json.loads(_read(settings.template_file))
    except ValueError as error:
        raise AuthenticationError(f"the template {settings.template_file} is no JSON") from error
    if not isinstance(found, dict) or not all(isinstance(part, dict) for part in found.values()):
        raise AuthenticationError(f"the template {settings.template_file} has no header and payload")
    return found


def _signature(settings: Assertion, content: bytes) -> bytes:
    file = settings.key_file
    assert file is not None, "without a ready assertion there is a key"
    password = None if settings.passphrase is None else settings.passphrase.encode()
    try:
        key = load_pem_private_key(_read(file), password)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        reason = "check it and sasl.oauthbearer.assertion.private.key.passphrase"
        raise AuthenticationError(f"the private key {file} can't be used: {reason}") from error
    match settings.algorithm, key:
        case "RS256", rsa.RSAPrivateKey():
            return key.sign(content, padding.PKCS1v15(), SHA256())
        case "ES256", ec.EllipticCurvePrivateKey(key_size=256):
            # A JWT has both numbers as they are, where X.509 has them in DER (RFC 7518, 3.4).
            numbers = decode_dss_signature(key.sign(content, ec.ECDSA(SHA256())))
            return b"".join(number.to_bytes(_ES256_BYTES) for number in numbers)
        case _:
            raise AuthenticationError(f"the private key {file} is not one for {settings.algorithm}")


def _read(file: str) -> bytes:
    """A file that may be a user's choice: no device, and at most 1 MiB."""
    path = Path(file)
    try:
        if not path.is_file() or path.stat().st_size > _BYTES_MAX:
            raise AuthenticationError(f"the file {file} is missing, or no regular file of up to 1 MiB")
        return path.read_bytes()
    except OSError as error:
        raise AuthenticationError(f"the file {file} can't be read") from error
