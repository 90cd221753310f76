"""Signatures of what workers send each other (KIP-507): a MAC over the body, by the group's session key."""

import base64
import binascii
import hmac
from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Final

from sparkmirror.connect.rest.errors import bad_request
from sparkmirror.domain.connect import ConnectError

SIGNATURE_HEADER: Final = "X-Connect-Authorization"
ALGORITHM_HEADER: Final = "X-Connect-Request-Signature-Algorithm"

_DIGESTS: Final = {
    "hmacmd5": "md5",
    "hmacsha1": "sha1",
    "hmacsha224": "sha224",
    "hmacsha256": "sha256",
    "hmacsha384": "sha384",
    "hmacsha512": "sha512",
}
"""By Java's names for them, which it takes in any case."""
_UNSUPPORTED: Final = (
    "This worker does not support the '{algorithm}' key signing algorithm used by other workers. This worker "
    "is currently configured to use: [{accepted}]. Check that all workers' configuration files permit the "
    "same set of signature algorithms, and correct any misconfigured worker and restart it."
)
_NO_KEY: Final = (
    "This worker is still starting up and has not been able to read a session key from the config topic yet"
)


def is_known_algorithm(name: str) -> bool:
    return name.lower() in _DIGESTS


def signature(key: bytes, algorithm: str, body: bytes) -> bytes:
    return hmac.digest(key, body, _DIGESTS[algorithm.lower()])


def require_signature(
    headers: Mapping[str, str], body: bytes, key: bytes | None, accepted: Collection[str]
) -> None:
    """Raises ConnectError, in Java's words, unless the body is signed with the key, by an accepted way."""
    algorithm, encoded = headers.get(ALGORITHM_HEADER), headers.get(SIGNATURE_HEADER)
    if algorithm is None or encoded is None:
        raise bad_request("Internal request missing required signature")
    if not is_known_algorithm(algorithm):
        raise bad_request(f"Algorithm {algorithm} not available")
    try:
        said = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise bad_request(str(error)) from None
    if algorithm not in accepted:
        raise bad_request(_UNSUPPORTED.format(algorithm=algorithm, accepted=", ".join(accepted)))
    if key is None:
        raise ConnectError(HTTPStatus.SERVICE_UNAVAILABLE, _NO_KEY)
    if not hmac.compare_digest(signature(key, algorithm, body), said):
        raise ConnectError(HTTPStatus.FORBIDDEN, "Internal request contained invalid signature.")
