"""Errors as Connect answers them: `{"error_code": 404, "message": "Connector x not found"}`."""

from http import HTTPStatus

from sparkmirror.connect.rest.answers import Answer, json_answer
from sparkmirror.domain.connect import ConnectError


def error_answer(error: ConnectError) -> Answer:
    answer = json_answer({"error_code": error.status.value, "message": str(error)}, error.status)
    if error.status is HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        # What is still to come of the body is not waited for.
        answer.headers["Connection"] = "close"
    return answer


def http_error(status: HTTPStatus) -> ConnectError:
    """An error without words of its own, as JAX-RS words it."""
    return ConnectError(status, f"HTTP {status.value} {_PHRASES.get(status, status.phrase)}")


def bad_request(message: str) -> ConnectError:
    return ConnectError(HTTPStatus.BAD_REQUEST, message)


_PHRASES = {HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Content Too Large"}
