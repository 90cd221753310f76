"""Answers `GET /mirror`, the view as JSON by the parameters of the URL, and `GET /health` of a mirror."""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus

from starlette.responses import Response

from sparkmirror.domain.connect import ConnectError
from sparkmirror.ui.page_looks import look_of
from sparkmirror.view.flows import MirrorView
from sparkmirror.view.view_json import SIZE, SIZE_MAX, Asked, view_json
from sparkmirror.view.words import are_healthy


def mirror_response(view: MirrorView, parameters: Mapping[str, str]) -> Response:
    """Raises ConnectError for a flow or topic that is not there."""
    try:
        content = view_json(view, asked_of(parameters))
    except LookupError as error:
        raise ConnectError(HTTPStatus.NOT_FOUND, str(error.args[0])) from error
    # Names may hold half a surrogate pair: as an escape it is JSON still.
    return Response(json.dumps(content, separators=(",", ":")), media_type="application/json")


def health_response(view: MirrorView) -> Response:
    """Answer as a Connect worker does (KIP-1017), by what the flows do: 200, 503 or 500, and their words."""
    is_healthy = are_healthy(it.state.word for it in view.flows)
    if is_healthy:
        status, code = "healthy", HTTPStatus.OK
    elif is_healthy is None:
        status, code = "starting", HTTPStatus.SERVICE_UNAVAILABLE
    else:
        status, code = "unhealthy", HTTPStatus.INTERNAL_SERVER_ERROR
    content = {"status": status, "message": "\n".join(view.words) or "No flow runs."}
    return Response(json.dumps(content), code, media_type="application/json")


def ill_flows(view: MirrorView) -> Sequence[str]:
    """Return a line for each flow that is not well."""
    return [text for it, text in zip(view.flows, view.words, strict=True) if not are_healthy([it.state.word])]


def asked_of(parameters: Mapping[str, str]) -> Asked:
    """Parse the parameters; invalid ones are ignored."""
    look = look_of("mirror", parameters)

    def flag(key: str) -> bool:
        return parameters.get(key, "").lower() == "true"

    return Asked(
        look.flow or None,
        parameters.get("topic") or None,
        look.matching,
        look.number,
        groups=flag("groups"),
        partitions=flag("partitions"),
        events=flag("events"),
        migrations=flag("migrations"),
        size=_size(parameters.get("size", "")),
    )


def _size(text: str) -> int:
    return min(max(1, int(text)), SIZE_MAX) if text.isdecimal() and len(text) < 7 else SIZE
