"""Runs the handlers of one path of the API, and checks requests around them.

HEAD is added to GET; other verbs are refused (405), as are bodies that are not declared as JSON (415). An
unexpected error is logged under a number, which is all that the client learns of it (500).
"""

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparkmirror.connect.rest.authentication import READING, login_of
from sparkmirror.connect.rest.responses import error_response, http_error
from sparkmirror.domain.connect import ConnectError

logger = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]

_JSON: Final = "application/json"


class Endpoint:
    """An ASGI application for one path."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = dict(handlers)
        if "GET" in handlers:
            self._handlers["HEAD"] = handlers["GET"]

    @property
    def verbs(self) -> frozenset[str]:
        return frozenset(self._handlers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = await self._response(request)
        if request.method not in READING:
            user = login_of(scope).user
            by = "" if user is None else f" by {user!r}"
            path = quote(scope["path"])
            logger.info("%s %s%s: %d", request.method, path, by, response.status_code)
        await response(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        try:
            return await self._handler(request)(request)
        except ConnectError as error:
            return error_response(error)
        except TimeoutError:
            return error_response(ConnectError(HTTPStatus.INTERNAL_SERVER_ERROR, "Request timed out"))
        except ClientDisconnect:
            return error_response(ConnectError(HTTPStatus.BAD_REQUEST, "The client left within its request"))
        except Exception as error:  # noqa: BLE001 - the log has it
            return _unexpected(request.scope, error)

    def _handler(self, request: Request) -> Handler:
        handler = self._handlers.get(request.method)
        if handler is None:
            raise http_error(HTTPStatus.METHOD_NOT_ALLOWED)
        if _has_body(request) and _media_type(request) != _JSON:
            raise http_error(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        return handler


class CaughtErrors:
    """Responds to an unexpected error around the endpoints as they do: the server would with a text."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def send_noting(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, send_noting)
        except Exception as error:
            if has_begun:
                raise
            await _unexpected(scope, error)(scope, receive, send)


def _unexpected(scope: Scope, error: Exception) -> Response:
    number = secrets.token_hex(4)
    path = quote(scope["path"])
    logger.error("%s %s failed, error %s", scope["method"], path, number, exc_info=error)
    message = f"Unexpected error {number}: see the worker's log"
    return error_response(ConnectError(HTTPStatus.INTERNAL_SERVER_ERROR, message))


def _has_body(request: Request) -> bool:
    length = request.headers.get("content-length", "0")
    return length != "0" or "transfer-encoding" in request.headers


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
