"""Serves the pages below `/ui/`: whole, as parts, and as streams of parts.

Where another node has the view, `run` gets its response, so every node serves every page, and parts come
from that node too.
"""

import json
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Final

import anyio.to_thread
from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from sparkmirror.domain.connect import ConnectError
from sparkmirror.domain.quantities import clock_time
from sparkmirror.ui.actions import Actions, OnceTokens, action_of, form_of, require_own_page
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.ui.html import act_page, error_page, page, part, plan_page
from sparkmirror.ui.page_looks import PAGES, PageLook, look_of, looks_of, looks_query, query
from sparkmirror.ui.plans import Plans
from sparkmirror.ui.static_files import static_response
from sparkmirror.ui.streams import TOGETHER_MAX, Part, Streams
from sparkmirror.view.flows import MirrorView

logger = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]
Run = Callable[[Request, Callable[[], Response]], Awaitable[Response]]
"""Returns the action's response, or that of the node that has the view. Raises ConnectError, TimeoutError."""

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
}
_GZIP_LEVEL: Final = 5
_QUERY_MAX: Final = 1000
_NO_ACTIONS: Final = "These pages may change nothing: that needs a login as an administrator, or ui.actions"

_NO_PAGE: Final = "There is no such page"
_NO_RESULT: Final = "The result holds parts of records: only who may act from these pages gets it"


async def run_here(_request: Request, action: Callable[[], Response]) -> Response:
    """Answer in the process that has the view."""
    return await anyio.to_thread.run_sync(action)


class PagesResource:
    """`actions` is None where the pages can only be read, `plans` where no flow can be planned."""

    def __init__(
        self, view: CurrentView, run: Run, actions: Actions | None = None, plans: Plans | None = None
    ) -> None:
        self._plans = plans
        self._view = view
        self._run = run
        self._actions = actions
        self._forms = OnceTokens()
        self._streams: Streams[_Wanted] = Streams(self._made)

    def routes(self) -> list[Route]:
        served = {
            "/ui": self._index,
            "/ui/plan": self._plan,
            "/ui/verified": self._verified,
            "/ui/parts": self._parts,
            "/ui/{page}": self._page,
            "/ui/live/{page}": self._live,
            "/ui/static/{file}": _static,
        }
        acting = _Served(self._act, ("GET", "HEAD", "POST"))
        return [
            Route("/ui/act", acting),
            *(
                Route(path, GZipMiddleware(_Served(handler), compresslevel=_GZIP_LEVEL))
                for path, handler in served.items()
            ),
        ]

    async def _index(self, request: Request) -> Response:
        is_relayed = "forward" in request.query_params
        if not is_relayed and not request.scope["raw_path"].endswith(b"/"):
            return RedirectResponse("ui/")  # links of pages are relative: a proxy may add a prefix
        return await self._whole(request, PageLook("overview"))

    async def _page(self, request: Request) -> Response:
        return await self._whole(request, _look(request))

    async def _plan(self, request: Request) -> Response:
        look = look_of("plan", request.query_params)
        return await self._response(request, look, partial(self._planned, look))

    def _planned(self, look: PageLook) -> Response:
        if self._plans is None:
            raise ConnectError(HTTPStatus.NOT_FOUND, "There is nothing to plan")
        return HTMLResponse(plan_page(look, self._plans.lines(look.flow, self._connector(look)), time.time()))

    async def _verified(self, request: Request) -> Response:
        """The result of the last comparison, as a file."""
        if not self._may_act(request):
            raise ConnectError(HTTPStatus.FORBIDDEN, _NO_RESULT)
        look = look_of("verify", request.query_params)
        is_junit = request.query_params.get("format") == "junit"
        return await self._response(request, look, partial(self._result, look, is_junit=is_junit))

    def _result(self, look: PageLook, *, is_junit: bool) -> Response:
        flow = self._view.get().flow(look.flow)
        made = None if flow is None else flow.verify
        if made is None or not made.json:
            raise ConnectError(HTTPStatus.NOT_FOUND, "There is no result of a comparison of this flow here")
        name, kind = ("verify.xml", "application/xml") if is_junit else ("verify.json", "application/json")
        content = made.junit if is_junit else made.json
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(content.encode("utf-8", "replace"), media_type=kind, headers=headers)

    def _connector(self, look: PageLook) -> str:
        """The source connector that is meant. Raises ConnectError, NotLeaderError."""
        flow = self._view.get().flow(look.flow)
        names = [it.name for it in flow.connectors if it.kind == "source"] if flow is not None else []
        if not names or look.name not in ("", *names):
            raise ConnectError(HTTPStatus.NOT_FOUND, f"Flow {look.flow} has no such source connector")
        return look.name or names[0]

    async def _whole(self, request: Request, look: PageLook) -> Response:
        made = partial(self._rendered, look, may_act=self._may_act(request))
        return await self._response(request, look, made)

    async def _response(self, request: Request, look: PageLook, made: Callable[[], Response]) -> Response:
        try:
            return await self._run(request, made)
        except ConnectError as error:
            return HTMLResponse(error_page(look, str(error)), error.status)
        except TimeoutError:
            return HTMLResponse(error_page(look, "The leader did not respond in time"), 504)

    def _may_act(self, request: Request) -> bool:
        return self._actions is not None and self._actions.are_allowed(request)

    async def _act(self, request: Request) -> Response:
        if self._actions is None or not self._may_act(request):
            raise ConnectError(HTTPStatus.FORBIDDEN, _NO_ACTIONS)
        if request.method != "POST":
            look, action = look_of("act", request.query_params), action_of(request.query_params)
            token = self._forms.make(_purpose(request, action.name, look.name))
            return HTMLResponse(act_page(look, action, token))
        require_own_page(request)
        form = await form_of(request)
        look = PageLook("act", form.flow, form.connector)
        try:
            form.require_typed()
            self._forms.take(form.token, _purpose(request, form.action.name, form.connector))
            await self._actions.act(request, form.action.name, form.connector)
        except ConnectError as error:
            return HTMLResponse(error_page(look, str(error)), error.status)
        except TimeoutError:
            return HTMLResponse(error_page(look, "The leader did not respond in time"), 504)
        shown = "verify" if form.action.name == "verify" else "connectors"
        return RedirectResponse(f"{shown}?{query(form.flow)}", HTTPStatus.SEE_OTHER)

    def _rendered(self, look: PageLook, *, may_act: bool) -> Response:
        try:
            return HTMLResponse(page(self._view.get(), look, may_act=may_act))
        except LookupError as error:
            return HTMLResponse(error_page(look, str(error.args[0])), HTTPStatus.NOT_FOUND)

    async def _parts(self, request: Request) -> Response:
        """List what one user looks at."""
        looks = looks_of(request.query_params.multi_items())[:TOGETHER_MAX]
        made = partial(self._rendered_parts, looks, may_act=self._may_act(request))
        try:
            return await self._run(request, made)
        except (ConnectError, TimeoutError) as error:
            status = error.status if isinstance(error, ConnectError) else HTTPStatus.GATEWAY_TIMEOUT
            return Response(str(error), status, media_type="text/plain")

    def _rendered_parts(self, looks: Sequence[PageLook], *, may_act: bool) -> Response:
        view = self._view.get()
        at = clock_time(view.made_at)
        return _PartsResponse([_part_of(view, at, look, may_act=may_act) for look in looks])

    async def _live(self, request: Request) -> Response:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        if request.method == "HEAD":
            return Response(media_type="text/event-stream", headers=headers)
        look = _look(request)
        # A user sees what that user may see: the leader checks it again. URLs have a longest length.
        alone = look if len(look.query) > _QUERY_MAX else None
        user = request.headers.get("authorization"), self._may_act(request), alone
        events = self._streams.events(_Wanted(look, user, request))
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    async def _made(self, wanted: Sequence["_Wanted"]) -> Sequence[Part]:
        """Make the parts in one request, which another node may answer."""
        sent = {"path": "/ui/parts", "query_string": looks_query(it.look for it in wanted).encode()}
        response = await _answered(self._parts, Request({**wanted[0].request.scope, **sent}))
        if isinstance(response, _PartsResponse):
            return response.parts
        text = bytes(response.body).decode("utf-8", "replace")
        if response.status_code == HTTPStatus.OK:
            return [Part(*fields) for fields in json.loads(text)]
        if response.status_code == HTTPStatus.INTERNAL_SERVER_ERROR and len(wanted) > 1:
            return [made for it in wanted for made in await self._made([it])]  # one hides no others
        is_text = not response.headers["Content-Type"].startswith("text/html")
        trouble = _message(text) if is_text else "An unexpected error: see the log"
        return [Part("", trouble=trouble)] * len(wanted)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """`request` is that of the first who looks at it."""

    look: PageLook
    user: Hashable
    request: Request = field(compare=False)


class _PartsResponse(Response):
    """Parts for the streams of this node; where another node has asked for them, they are sent as JSON."""

    def __init__(self, parts: Sequence[Part]) -> None:
        super().__init__()
        self.parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Names may hold half a surrogate pair: as an escape it is JSON still.
        await Response(json.dumps(self.parts), media_type="application/json")(scope, receive, send)


def _part_of(view: MirrorView, at: str, look: PageLook, *, may_act: bool) -> Part:
    if look.page not in PAGES:
        return Part("", trouble=_NO_PAGE)
    try:
        return Part(part(view, look, may_act=may_act), at)
    except LookupError as error:
        return Part("", trouble=str(error.args[0]))


def _look(request: Request) -> PageLook:
    name = request.path_params["page"]
    if name not in PAGES:
        raise ConnectError(HTTPStatus.NOT_FOUND, _NO_PAGE)
    return look_of(name, request.query_params)


def _message(text: str) -> str:
    """Return the text of an error of ours, or of the REST API's shape."""
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text


def _purpose(request: Request, action: str, connector: str) -> Hashable:
    return action, connector, request.headers.get("authorization")


async def _static(request: Request) -> Response:
    return static_response(request, request.path_params["file"])


class _Served:
    """Runs a handler for some verbs, and adds the headers that pages need."""

    def __init__(self, handler: Handler, verbs: Collection[str] = ("GET", "HEAD")) -> None:
        self._handler = handler
        self._verbs = verbs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message["headers"]))
                headers.update(_HEADERS)
                headers.setdefault("Cache-Control", "no-store")
                message = {**message, "headers": headers.raw}
            await send(message)

        response = await self._response(Request(scope, receive))
        await response(scope, receive, send_with_headers)

    async def _response(self, request: Request) -> Response:
        if request.method not in self._verbs:
            return Response("Pages can be read only", 405, headers={"Allow": ", ".join(self._verbs)})
        return await _answered(self._handler, request)


async def _answered(handler: Handler, request: Request) -> Response:
    """An unexpected error is logged under a number, which is all that the client learns of it."""
    try:
        return await handler(request)
    except ConnectError as error:
        return HTMLResponse(error_page(PageLook("overview"), str(error)), error.status)
    except Exception:
        number = secrets.token_hex(4)
        logger.exception("%s %s failed, error %s", request.method, request.scope["path"], number)
        message = f"Unexpected error {number}: see the log of the mirror"
        return HTMLResponse(error_page(PageLook("overview"), message), HTTPStatus.INTERNAL_SERVER_ERROR)
