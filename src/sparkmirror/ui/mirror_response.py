"""Answers `GET /mirror`: the view as JSON, by the parameters of the URL."""

import json
from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import Response

from sparkmirror.domain.connect import ConnectError
from sparkmirror.ui.looks import look_of
from sparkmirror.view.values import MirrorView
from sparkmirror.view.view_json import Asked, view_json


def mirror_response(view: MirrorView, parameters: Mapping[str, str]) -> Response:
    """Raises ConnectError for a flow or topic that is not there."""
    look = look_of("mirror", parameters)
    asked = Asked(
        look.flow or None,
        parameters.get("topic") or None,
        look.matching,
        look.number,
        groups=parameters.get("groups", "").lower() == "true",
    )
    try:
        content = view_json(view, asked)
    except LookupError as error:
        raise ConnectError(HTTPStatus.NOT_FOUND, str(error.args[0])) from error
    # Names may hold half a surrogate pair: as an escape it is JSON still.
    return Response(json.dumps(content, separators=(",", ":")), media_type="application/json")
