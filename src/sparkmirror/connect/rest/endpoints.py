"""One path of the API: its handlers by verb, and what JAX-RS does around them.

HEAD and OPTIONS come by themselves. Other verbs are refused (405), so are bodies that claim to be no JSON
(415) and clients that take none (406); what nobody foresaw is logged and answered with 500.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sparkmirror.connect.rest.answers import Answer
from sparkmirror.connect.rest.errors import error_answer, http_error
from sparkmirror.domain.connect import ConnectError

logger = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Answer]]

_JSON: Final = "application/json"
_ACCEPTED: Final = frozenset({"", _JSON, "application/*", "*/*", "*"})
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Endpoint:
    """An ASGI application for one path. `consumes_json` and `produces_json` are JAX-RS's annotations."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        *,
        consumes_json: bool = True,
        produces_json: bool = True,
    ) -> None:
        self._handlers = dict(handlers)
        if "GET" in handlers:
            self._handlers["HEAD"] = handlers["GET"]
        self._handlers["OPTIONS"] = self._options
        self._consumes_json = consumes_json
        self._produces_json = produces_json

    @property
    def verbs(self) -> frozenset[str]:
        return frozenset(self._handlers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        answer = await self._answer(request)
        if request.method not in _READING:
            logger.info("%s %s: %d", request.method, scope["path"], answer.status_code)
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Answer:
        try:
            handler = self._negotiated(request)
            return await handler(request)
        except ConnectError as error:
            return error_answer(error)
        except TimeoutError:
            return error_answer(ConnectError(HTTPStatus.INTERNAL_SERVER_ERROR, "Request timed out"))
        except ClientDisconnect:
            return error_answer(ConnectError(HTTPStatus.BAD_REQUEST, "The client left within its request"))
        except Exception as error:
            logger.exception("%s %s failed", request.method, request.scope["path"])
            return error_answer(ConnectError(HTTPStatus.INTERNAL_SERVER_ERROR, str(error) or repr(error)))

    def _negotiated(self, request: Request) -> Handler:
        handler = self._handlers.get(request.method)
        if handler is None:
            raise http_error(HTTPStatus.METHOD_NOT_ALLOWED)
        if request.method != "OPTIONS":
            if self._consumes_json and not _is_json(request):
                raise http_error(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
            if self._produces_json and not _takes_json(request):
                raise http_error(HTTPStatus.NOT_ACCEPTABLE)
        return handler

    async def _options(self, _request: Request) -> Answer:
        verbs = sorted(self._handlers)
        return Response(", ".join(verbs), media_type="text/plain", headers={"Allow": ",".join(verbs)})


def _is_json(request: Request) -> bool:
    """A body of an unsaid type isn't."""
    said = request.headers.get("content-type")
    if said is None:
        return not _has_body(request)
    return _media_type(said) == _JSON


def _has_body(request: Request) -> bool:
    length = request.headers.get("content-length", "0")
    return length != "0" or "transfer-encoding" in request.headers


def _takes_json(request: Request) -> bool:
    said = request.headers.getlist("accept")
    return not said or any(_media_type(item) in _ACCEPTED for line in said for item in line.split(","))


def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()
