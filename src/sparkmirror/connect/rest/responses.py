"""Builds the REST API's responses: JSON as Connect writes it, and errors as Connect reports them."""

import json
from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from sparkmirror.domain.connect import ConnectError

_JSON: Final = "application/json"
_PHRASES: Final = {HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Content Too Large"}
_encoded: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_response(content: object, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return encoded_response(json_bytes(content), status)


def encoded_response(content: bytes, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Of JSON as `json_bytes` returns it."""
    return Response(content, status, media_type=_JSON)


def empty_response(status: HTTPStatus) -> Response:
    return Response(status_code=status)


def json_bytes(content: object) -> bytes:
    """Without spaces. Half a surrogate pair, which Java may have stored, is a question mark, as in Java."""
    return _encoded(content).encode("utf-8", "replace")


def error_response(error: ConnectError) -> Response:
    """Connect's shape for errors: `{"error_code": 404, "message": "Connector x not found"}`."""
    response = json_response({"error_code": error.status.value, "message": str(error)}, error.status)
    if error.status is HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        # The rest of the body is not read.
        response.headers["Connection"] = "close"
    return response


def http_error(status: HTTPStatus) -> ConnectError:
    """An error with JAX-RS's default message for the status."""
    return ConnectError(status, f"HTTP {status.value} {_PHRASES.get(status, status.phrase)}")


def bad_request(message: str) -> ConnectError:
    return ConnectError(HTTPStatus.BAD_REQUEST, message)
