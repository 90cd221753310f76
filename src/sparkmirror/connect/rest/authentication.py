"""Authenticates requests and checks what their users may do.

A handler asks `login_of(request.scope)`. Where the API authenticates at all, every path needs a login, but
those of `rest.open.paths`.

Failed logins are counted by client address and user, so that passwords can't be guessed by trying. Each count
goes down with time. Where it is full, every login is refused unseen: of the same user from the same address
after a few failures, of an address after many. Other addresses are not affected: a stranger locks nobody out
who has another address.
"""

import ipaddress
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparkmirror.connect.rest.responses import error_response
from sparkmirror.domain.connect import ConnectError

logger = logging.getLogger(__name__)

READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
PEER_NAME: Final = "peer_name"
"""The key in a connection's state of the distinguished name of the client's certificate."""

_CHECKED_AGAIN_S: Final = 1.0
"""Within a response that is sent in parts."""
_LOGIN: Final = "sparkmirror.login"
_REFUSED: Final = "User cannot access the resource."
"""The text of Java's filter."""


class Role(Enum):
    """A viewer may only read, and sees no secrets."""

    VIEWER = "viewer"
    ADMIN = "admin"


class User(NamedTuple):
    name: str
    role: Role | None
    """The role is None for a user without any right."""


class Login(NamedTuple):
    """The user of a request; `user` is None where no login was needed.

    `is_required` is whether the API authenticates at all; where it doesn't, everybody is an administrator.
    """

    user: str | None
    role: Role
    is_required: bool


class InvalidLoginError(Exception):
    """The credentials are wrong, or can't be checked now; `str()` is for the log and holds none of them."""


class Credentials(NamedTuple):
    """The two words of an Authorization header."""

    scheme: str
    text: str


@dataclass(frozen=True, slots=True)
class Scheme:
    """A way to log in. Failures count for what `name_of` returns; `check` raises InvalidLoginError."""

    challenge: str
    name_of: Callable[[str], str]
    check: Callable[[str], Awaitable[User]]


@dataclass(frozen=True, slots=True)
class Logins:
    """The logins that an API accepts; `schemes` by their names in lower case."""

    schemes: Mapping[str, Scheme]
    open_paths: Collection[str] = ()
    user_of_certificate: Callable[[str], User] | None = None
    """Returns the user for the name in a certificate; None where a certificate alone is no login."""

    @property
    def are_required(self) -> bool:
        return bool(self.schemes) or self.user_of_certificate is not None


def login_of(scope: Scope) -> Login:
    """Return the login of a request; each request that reaches a handler has one."""
    login = scope[_LOGIN]
    assert isinstance(login, Login)
    return login


class Authentication:
    def __init__(self, app: ASGIApp, logins: Logins, failed: "FailedLogins") -> None:
        self._app = app
        self._logins = logins
        self._failed = failed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            login = await self._login(scope)
            _require_right(login, scope["method"])
        except _RefusedError as refusal:
            response = error_response(ConnectError(refusal.status, refusal.message))
            for name, value in refusal.headers:
                response.headers.append(name, value)
            await response(scope, receive, send)
        else:
            sent = self._while_logged_in(scope, send) if login.is_required else send
            await self._app({**scope, _LOGIN: login}, receive, sent)

    def _while_logged_in(self, scope: Scope, send: Send) -> Send:
        """A stream ends with its login: when a token expires, a password changes, a user is removed."""
        checked_at, has_ended = time.monotonic(), False

        async def sent(message: Message) -> None:
            nonlocal checked_at, has_ended
            if has_ended:
                return  # the server tells the application that the client is gone
            if message.get("more_body") and time.monotonic() - checked_at >= _CHECKED_AGAIN_S:
                try:
                    _require_right(await self._login(scope), scope["method"])
                except _RefusedError:
                    has_ended, message = True, {"type": "http.response.body", "more_body": False}
                checked_at = time.monotonic()
            await send(message)

        return sent

    async def _login(self, scope: Scope) -> Login:
        if not self._logins.are_required:
            return Login(None, Role.ADMIN, is_required=False)
        credentials = _credentials(Headers(scope=scope).get("authorization", ""))
        scheme = self._logins.schemes.get(credentials.scheme)
        if scheme is not None:
            return _with_role(await self._checked(scheme, credentials.text, _address(scope)))
        peer = scope.get("state", {}).get(PEER_NAME)
        if self._logins.user_of_certificate is not None and peer is not None:
            return _with_role(self._logins.user_of_certificate(peer))
        if scope["path"] in self._logins.open_paths and scope["method"] in READING:
            return Login(None, Role.VIEWER, is_required=True)
        raise self._unauthorized()

    async def _checked(self, scheme: Scheme, text: str, address: str) -> User:
        name = scheme.name_of(text)
        wait_s = self._failed.wait_s(address, name)
        if wait_s > 0:
            message = f"Too many failed logins; try again in {wait_s} s"
            raise _RefusedError(HTTPStatus.TOO_MANY_REQUESTS, message, (("Retry-After", str(wait_s)),))
        try:
            user = await scheme.check(text)
        except InvalidLoginError as error:
            self._failed.note(address, name)
            logger.warning("a login of %r from %s failed: %s", name, address, error)
            raise self._unauthorized() from None
        self._failed.forget(address, name)
        return user

    def _unauthorized(self) -> "_RefusedError":
        challenges = tuple(("WWW-Authenticate", scheme.challenge) for scheme in self._logins.schemes.values())
        return _RefusedError(HTTPStatus.UNAUTHORIZED, _REFUSED, challenges)


class _RefusedError(Exception):
    def __init__(self, status: HTTPStatus, message: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers


def _require_right(login: Login, method: str) -> None:
    if login.role is Role.VIEWER and method not in READING:
        raise _RefusedError(HTTPStatus.FORBIDDEN, f"{login.user} may only read; an administrator may do this")


def _with_role(user: User) -> Login:
    if user.role is None:
        raise _RefusedError(HTTPStatus.FORBIDDEN, f"{user.name} has no role here")
    return Login(user.name, user.role, is_required=True)


def _credentials(header: str) -> Credentials:
    scheme, _, text = header.partition(" ")
    return Credentials(scheme.lower(), text.strip(" "))


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return "unknown" if client is None else str(client[0])


_COUNTS_MAX: Final = 10_000
"""The most counts that are kept; beyond, the one that was raised longest ago is dropped."""
_IPV6_SITE: Final = 64
"""Bits of an IPv6 address that a network is given; its hosts choose the others as they like."""


class Limit(NamedTuple):
    """Failures that are free, and the seconds until one of them is forgotten."""

    failures: int
    forgotten_after_s: float


OF_A_USER: Final = Limit(10, 6.0)
OF_AN_ADDRESS: Final = Limit(200, 0.5)


class _Count(NamedTuple):
    failures: float
    at: float


class FailedLogins:
    """Belongs to one thread."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._counts: OrderedDict[tuple[str, str | None], _Count] = OrderedDict()

    def wait_s(self, address: str, user: str) -> int:
        """Whole seconds until the user may try to log in from there; 0: now."""
        waits = [
            (self._failures(key, limit) + 1 - limit.failures) * limit.forgotten_after_s
            for key, limit in _keys(address, user)
        ]
        return max(0, math.ceil(max(waits)))

    def note(self, address: str, user: str) -> None:
        """Count a failed login."""
        for key, limit in _keys(address, user):
            self._counts[key] = _Count(self._failures(key, limit) + 1, self._now())
            self._counts.move_to_end(key)
        while len(self._counts) > _COUNTS_MAX:
            self._counts.popitem(last=False)

    def forget(self, address: str, user: str) -> None:
        """Reset the count of a user who logged in; the count of the address stays."""
        self._counts.pop((_site(address), user), None)

    def _failures(self, key: tuple[str, str | None], limit: Limit) -> float:
        count = self._counts.get(key)
        if count is None:
            return 0.0
        return max(0.0, count.failures - (self._now() - count.at) / limit.forgotten_after_s)


def _keys(address: str, user: str) -> tuple[tuple[tuple[str, str | None], Limit], ...]:
    site = _site(address)
    return ((site, user), OF_A_USER), ((site, None), OF_AN_ADDRESS)


def _site(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_SITE), strict=False))
