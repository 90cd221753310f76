"""What Java's workers send each other: `POST /connectors/{c}/tasks` and `PUT /connectors/{c}/fence`.

Here the leader runs every connector, so it plans and fences tasks itself and no node asks another for it.
Whoever asks nevertheless is held to the signature first, as in Java.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from starlette.requests import Request

from sparkmirror.connect.rest.answers import Answer
from sparkmirror.connect.rest.herder import Herder
from sparkmirror.connect.rest.json_bodies import read_body
from sparkmirror.connect.rest.signatures import require_signature
from sparkmirror.domain.connect import ConnectError

_NOT_NEEDED: Final = "The leader of this group plans and fences tasks itself, on no other worker's request"


class InternalRequests:
    def __init__(self, herder: Herder, accepted_algorithms: Sequence[str]) -> None:
        self._herder = herder
        self._accepted = accepted_algorithms

    async def refuse(self, request: Request) -> Answer:
        body = await read_body(request)
        require_signature(request.headers, body, self._herder.session_key(), self._accepted)
        raise ConnectError(HTTPStatus.CONFLICT, _NOT_NEEDED)
