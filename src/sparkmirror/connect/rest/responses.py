"""Builds the REST API's responses: Connect's objects as JSON, fields in Java's order, and its errors."""

import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from starlette.responses import Response

from sparkmirror.connect.validation import KAFKA_VERSION, connector_class
from sparkmirror.domain.connect import (
    ConnectError,
    ConnectorConfig,
    ConnectorInfo,
    ConnectorOffset,
    ConnectorStatus,
    Status,
)
from sparkmirror.metrics.compression import gzipped, takes_gzip
from sparkmirror.metrics.looks import VerifyLook

_JSON: Final = "application/json"
_PHRASES: Final = {HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Content Too Large"}
_encoded: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

Metrics = Callable[[], tuple[str, bytes]]
"""Returns content type and body of `/metrics`."""


def json_response(content: object, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return encoded_response(json_bytes(content), status)


def encoded_response(content: bytes, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Respond with JSON from `json_bytes`."""
    return Response(content, status, media_type=_JSON)


def empty_response(status: HTTPStatus) -> Response:
    return Response(status_code=status)


def json_bytes(content: object) -> bytes:
    """Encode without spaces. Half a surrogate pair, which Java may have stored, becomes `?`, as in Java."""
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


Json = dict[str, Any]

_OF_VERIFICATION: Final = ("began_at_ms", "ended_at_ms", "progress", "error", "result")
_SOURCE: Final = "source"
_UNKNOWN: Final = "unknown"


def connector_type(config: ConnectorConfig) -> str:
    """`unknown` for connectors of other classes, which a Java worker may have left in the config topic."""
    return _SOURCE if connector_class(config.get("connector.class", "")) is not None else _UNKNOWN


def connector_info(info: ConnectorInfo) -> Json:
    return {
        "name": info.name,
        "config": dict(info.config),
        "tasks": [_task_id(info.name, task) for task in range(info.tasks)],
        "type": connector_type(info.config),
    }


def connector_state(status: ConnectorStatus, kind: str) -> Json:
    return {
        "name": status.name,
        "connector": _state(status.connector),
        "tasks": [task_state(task, status.tasks[task]) for task in sorted(status.tasks)],
        "type": kind,
    }


def task_state(task: int, status: Status) -> Json:
    return {"id": task, **_state(status)}


def _state(status: Status) -> Json:
    state: Json = {"state": status.state.value, "worker_id": status.worker_id}
    if status.trace:
        state["trace"] = status.trace
    # The plugin's version (KIP-891); all plugins here have the same.
    state["version"] = KAFKA_VERSION
    return state


def task_infos(name: str, configs: Sequence[ConnectorConfig]) -> list[Json]:
    return [{"id": _task_id(name, task), "config": dict(config)} for task, config in enumerate(configs)]


def _task_id(name: str, task: int) -> Json:
    return {"connector": name, "task": task}


def active_topics(name: str, topics: Sequence[str]) -> Json:
    return {name: {"topics": list(topics)}}


def connector_offsets(offsets: Sequence[ConnectorOffset]) -> Json:
    return {
        "offsets": [{"partition": dict(item.partition), "offset": _offset(item.offset)} for item in offsets]
    }


def _offset(offset: Mapping[str, object] | None) -> Json | None:
    return None if offset is None else dict(offset)


def message(text: str) -> Json:
    return {"message": text}


def verification(look: VerifyLook | None) -> dict[str, Any]:
    """`result` is what `sparkmirror verify -o json` prints."""
    if look is None:
        return {"state": "none", **dict.fromkeys(_OF_VERIFICATION)}
    ended_at_ms = None if look.ended_at is None else int(look.ended_at * 1000)
    result = json.loads(look.json) if look.json else None
    known = (int(look.began_at * 1000), ended_at_ms, look.progress, look.error, result)
    ended = "ended" if look.error is None else "failed"
    return {
        "state": "running" if look.ended_at is None else ended,
        **dict(zip(_OF_VERIFICATION, known, strict=True)),
    }


def metrics_response(metrics: Metrics, accepted_encoding: str | None) -> Response:
    """The page, compressed for clients that take that."""
    content_type, body = metrics()
    headers = {"Content-Type": content_type, "Vary": "Accept-Encoding"}
    if takes_gzip(accepted_encoding):
        body = gzipped(body)
        headers["Content-Encoding"] = "gzip"
    return Response(body, headers=headers)
