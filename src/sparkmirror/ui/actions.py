"""Forms that change what connectors do: a page that asks, and one use for each form that was asked for."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol
from urllib.parse import parse_qsl

from starlette.requests import Request

from sparkmirror.domain.connect import ConnectError
from sparkmirror.domain.network import authority_of

_BODY_BYTES_MAX: Final = 10_000
_VALID_FOR_S: Final = 600.0
_FORMS_MAX: Final = 1000


_VERIFY: Final = (
    "It compares every record that was copied, on both clusters, as sparkmirror verify does: in one process "
    "beside the mirror, at a low priority. Both clusters are read, and nothing is changed."
)


class Action(NamedTuple):
    """`stops` data: then the connector's name must be typed."""

    name: str
    stops: bool
    tells: str


ACTIONS: Final = {
    it.name: it
    for it in (
        Action("pause", stops=True, tells="It stops copying and keeps its tasks until it is resumed."),
        Action("resume", stops=False, tells="It continues where it was."),
        Action("stop", stops=True, tells="It stops copying and gives its tasks up until it is resumed."),
        Action("verify", stops=False, tells=_VERIFY),
        Action("restart", stops=False, tells="It and all its tasks start again where they are."),
    )
}


class Actions(Protocol):
    """Carries actions out, as the REST API does."""

    def are_allowed(self, request: Request) -> bool:
        """Return whether the sender of the request may act."""
        ...

    async def act(self, request: Request, action: str, connector: str) -> None:
        """Raises ConnectError and TimeoutError."""
        ...


class Form(NamedTuple):
    """Holds what was sent. `typed` is what the user typed as the connector's name."""

    action: Action
    flow: str
    connector: str
    token: str
    typed: str

    def require_typed(self) -> None:
        """Raises ConnectError where the name is needed, and is not this one."""
        if self.action.stops and self.typed != self.connector:
            raise ConnectError(HTTPStatus.BAD_REQUEST, "What was typed is not the connector's name")


class OnceTokens:
    """Makes tokens that are good once, for one action, for ten minutes. One event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._made: OrderedDict[str, tuple[Hashable, float]] = OrderedDict()

    def make(self, purpose: Hashable) -> str:
        token = secrets.token_urlsafe(24)
        self._made[token] = purpose, self._clock()
        if len(self._made) > _FORMS_MAX:
            self._made.popitem(last=False)
        return token

    def take(self, token: str, purpose: Hashable) -> None:
        """Raises ConnectError."""
        made_for, at = self._made.pop(token, (None, 0.0))
        if made_for != purpose or self._clock() - at > _VALID_FOR_S:
            text = "This form was sent already, is older than 10 minutes, or was made by another node"
            raise ConnectError(HTTPStatus.CONFLICT, f"{text}: ask for it again")


def action_of(parameters: Mapping[str, str]) -> Action:
    """Raises ConnectError."""
    action = ACTIONS.get(parameters.get("action", ""))
    if action is None:
        raise ConnectError(HTTPStatus.NOT_FOUND, "There is no such action")
    return action


async def form_of(request: Request) -> Form:
    """Raises ConnectError for whatever is no form of ours."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _BODY_BYTES_MAX:
            raise ConnectError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The form is too large")
    try:
        sent = dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict"))
    except UnicodeDecodeError:
        raise ConnectError(HTTPStatus.BAD_REQUEST, "The form is not encoded as forms are") from None
    texts = (sent.get(key, "") for key in ("flow", "name", "token", "typed"))
    return Form(action_of(sent), *texts)


def require_own_page(request: Request) -> None:
    """A browser says where a form comes from. Raises ConnectError where that is no page of ours."""
    origin = request.headers.get("origin")
    if origin is None:
        is_own = request.headers.get("sec-fetch-site") == "same-origin"
    else:
        is_own = authority_of(origin) == request.headers.get("host", "").lower()
    if not is_own:
        text = "Forms are taken from these pages only; programs use the REST API"
        raise ConnectError(HTTPStatus.FORBIDDEN, text)
