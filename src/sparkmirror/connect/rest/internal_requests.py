"""Verifies and refuses the requests that Java's workers send each other (KIP-507).

These are `POST /connectors/{c}/tasks` and `PUT /connectors/{c}/fence`, signed with a MAC over the body by the
group's session key. Here the leader runs every connector, so it plans and fences tasks itself and no node
sends such a request. One that comes is checked for its signature first, as in Java.
"""

import base64
import binascii
import hmac
from collections.abc import Collection, Mapping, Sequence
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from sparkmirror.connect.rest.herder_protocol import Herder
from sparkmirror.connect.rest.request_bodies import read_body
from sparkmirror.connect.rest.responses import bad_request
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
"""By Java's names, which are not case-sensitive."""
_NOT_NEEDED: Final = "The leader of this group plans and fences tasks itself, on no other worker's request"
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
    """Raise ConnectError with Java's message unless the key and an accepted algorithm signed the body."""
    algorithm, encoded = headers.get(ALGORITHM_HEADER), headers.get(SIGNATURE_HEADER)
    if algorithm is None or encoded is None:
        raise bad_request("Internal request missing required signature")
    if not is_known_algorithm(algorithm):
        raise bad_request(f"Algorithm {algorithm} not available")
    try:
        sent = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise bad_request(str(error)) from None
    if algorithm not in accepted:
        raise bad_request(_UNSUPPORTED.format(algorithm=algorithm, accepted=", ".join(accepted)))
    if key is None:
        raise ConnectError(HTTPStatus.SERVICE_UNAVAILABLE, _NO_KEY)
    if not hmac.compare_digest(signature(key, algorithm, body), sent):
        raise ConnectError(HTTPStatus.FORBIDDEN, "Internal request contained invalid signature.")


class InternalRequests:
    def __init__(self, herder: Herder, accepted_algorithms: Sequence[str]) -> None:
        self._herder = herder
        self._accepted = accepted_algorithms

    async def refuse(self, request: Request) -> Response:
        body = await read_body(request)
        require_signature(request.headers, body, self._herder.session_key(), self._accepted)
        raise ConnectError(HTTPStatus.CONFLICT, _NOT_NEEDED)
