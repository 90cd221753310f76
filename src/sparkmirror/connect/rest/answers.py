"""What goes back to a client: JSON as Connect writes it, or nothing."""

import json
from http import HTTPStatus
from typing import Final

from starlette.responses import Response

Answer = Response

_JSON: Final = "application/json"
_encoded: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_answer(content: object, status: HTTPStatus = HTTPStatus.OK) -> Answer:
    return Response(json_bytes(content), status, media_type=_JSON)


def empty_answer(status: HTTPStatus) -> Answer:
    return Response(status_code=status)


def json_bytes(content: object) -> bytes:
    """Without spaces. Half a surrogate pair, which Java may have stored, is a question mark, as in Java."""
    return _encoded(content).encode("utf-8", "replace")
