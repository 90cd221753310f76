"""Parses the REST API's settings from a worker's properties: listeners, advertised URL, TLS and headers."""

import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sparkmirror.config.definitions import Definition, Values
from sparkmirror.config.properties import Properties
from sparkmirror.config.worker_options import WORKER
from sparkmirror.connect.rest.browsers import EXPECTED_RULE, HeaderRule, header_rules
from sparkmirror.connect.rest.login_settings import HOW_TO_AUTHENTICATE, LoginSettings, login_settings
from sparkmirror.connect.rest.tls import RestTls, rest_tls
from sparkmirror.domain.errors import ConfigError
from sparkmirror.policies.java_regex import JavaPattern, compile_list

HTTP: Final = "http"
HTTPS: Final = "https"
_LISTENER: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_PORT_MAX: Final = 65535


_OPTIONS: Final = Definition(
    WORKER[name]
    for name in (
        "listeners",
        "admin.listeners",
        "rest.advertised.host.name",
        "rest.advertised.port",
        "rest.advertised.listener",
        "access.control.allow.origin",
        "access.control.allow.methods",
        "response.http.headers.config",
        "topic.tracking.enable",
        "topic.tracking.allow.reset",
        "rest.allowed.hosts",
        "ui.actions",
    )
)


class Listener(NamedTuple):
    """An address to listen on. An empty host means all addresses; port 0 any free one."""

    protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.protocol}://{host}:{self.port}"


class TopicTracking(NamedTuple):
    """`topic.tracking.enable` and `topic.tracking.allow.reset` (KIP-558)."""

    enabled: bool = True
    reset_allowed: bool = True


class Advertised(NamedTuple):
    """The configured parts of this worker's URL for others; None where the listener's apply."""

    protocol: str | None = None
    host: str | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class RestSettings:
    listeners: tuple[Listener, ...] = (Listener(HTTP, "", 8083),)
    admin_listeners: tuple[Listener, ...] | None = None
    """The listeners that serve `/admin`: None if `listeners` do, empty if it is not served."""
    advertised: Advertised = field(default_factory=Advertised)
    tls: RestTls | None = None
    """TLS of listeners and of requests to other workers; None without https."""
    admin_tls: RestTls | None = None
    allowed_origins: JavaPattern | None = None
    allowed_methods: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    """Names in URLs by which clients may address this worker, besides its own."""
    header_rules: tuple[HeaderRule, ...] = ()
    topic_tracking: TopicTracking = field(default_factory=TopicTracking)
    logins: LoginSettings = field(default_factory=LoginSettings)
    ui_actions: bool = False
    """Whether pages may change connectors although nobody logs in."""

    @property
    def pages_may_act(self) -> bool:
        """Whether the pages change connectors: for administrators, or for all users of this machine."""
        return self.logins.are_required or self.ui_actions

    @property
    def open_listeners(self) -> tuple[Listener, ...]:
        """The listeners that everybody who reaches this machine can use without a login."""
        if self.logins.are_required:
            return ()
        served = [(self.listeners, self.tls), (self.admin_listeners or (), self.admin_tls)]
        return tuple(
            listener
            for listeners, tls in served
            for listener in listeners
            if not (_is_local(listener.host) or _asks_for_certificates((listener,), tls))
        )

    @property
    def own_hosts(self) -> frozenset[str]:
        """The names under which this worker listens or is advertised, and those that are allowed."""
        listeners = (*self.listeners, *(self.admin_listeners or ()))
        configured = (*self.allowed_hosts, self.advertised.host or "", *(each.host for each in listeners))
        return frozenset((*configured, socket.gethostname()))


def rest_settings(worker: Properties, environment: Mapping[str, str] | None = None) -> RestSettings:
    """Raises ConfigError."""
    values = _OPTIONS.parse(worker)
    listeners = _listeners(worker, values, "listeners")
    if not listeners:
        raise worker.error("listeners", "At least one URL is expected, ex: http://localhost:8080")
    admin = None if values["admin.listeners"] is None else _listeners(worker, values, "admin.listeners")
    advertised = _advertised(worker, values, listeners)
    tls = _tls(worker, "listeners.https.", listeners, advertised.protocol)
    acts = values.boolean("ui.actions")
    if acts and not all(_is_local(listener.host) for listener in listeners):
        reason = "needs listeners of this machine alone, as http://localhost:8083; or logins instead"
        raise worker.error("ui.actions", reason)
    admin_tls = _tls(worker, "admin.listeners.https.", admin or ())
    return RestSettings(
        listeners=listeners,
        admin_listeners=admin,
        advertised=advertised,
        tls=tls,
        admin_tls=admin_tls,
        allowed_origins=_origins(worker, values),
        allowed_methods=_items(values, "access.control.allow.methods"),
        allowed_hosts=values.strings("rest.allowed.hosts"),
        header_rules=_rules(worker, values),
        topic_tracking=TopicTracking(
            values.boolean("topic.tracking.enable"), values.boolean("topic.tracking.allow.reset")
        ),
        ui_actions=acts,
        logins=login_settings(
            worker,
            environment or {},
            has_certificates=_asks_for_certificates(listeners, tls)
            and _asks_for_certificates(admin or (), admin_tls),
        ),
    )


def _listeners(worker: Properties, values: Values, key: str) -> tuple[Listener, ...]:
    return tuple(_listener(worker, key, text) for text in values.strings(key))


def _listener(worker: Properties, key: str, text: str) -> Listener:
    match = _LISTENER.fullmatch(text)
    if match is None:
        raise worker.error(key, "Listener doesn't have the right format (protocol://hostname:port).")
    protocol, host, port = match[1].lower(), match[2], int(match[3])
    if protocol not in (HTTP, HTTPS):
        raise worker.error(key, 'Listener protocol must be either "http" or "https".')
    if not 0 <= port <= _PORT_MAX:
        given = worker.quoted(key, str(port))
        raise worker.error(key, f"A port is a number from 0 to {_PORT_MAX}, not {given}.")
    return Listener(protocol, host, port)


def _advertised(worker: Properties, values: Values, listeners: tuple[Listener, ...]) -> Advertised:
    host, port = values["rest.advertised.host.name"], values["rest.advertised.port"]
    protocol = values["rest.advertised.listener"]
    if protocol is None:
        return Advertised(None, str(host) if host else None, port if isinstance(port, int) else None)
    protocol = str(protocol).lower()
    if protocol not in {listener.protocol for listener in listeners}:
        raise worker.error("rest.advertised.listener", "There is no listener of this protocol.")
    return Advertised(protocol, str(host) if host else None, port if isinstance(port, int) else None)


def _tls(
    worker: Properties, prefix: str, listeners: tuple[Listener, ...], advertised: str | None = None
) -> RestTls | None:
    if advertised != HTTPS and all(listener.protocol == HTTP for listener in listeners):
        return None
    return rest_tls(worker, prefix)


def _asks_for_certificates(listeners: tuple[Listener, ...], tls: RestTls | None) -> bool:
    """Whether nobody connects to one of the listeners without a certificate."""
    if not listeners:
        return True
    is_private = all(listener.protocol == HTTPS for listener in listeners)
    return is_private and tls is not None and tls.client_auth == "required"


def _is_local(host: str) -> bool:
    """Whether only this machine reaches the address, or the name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _items(values: Values, key: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in values.string(key).split(",") if item.strip())


def _origins(worker: Properties, values: Values) -> JavaPattern | None:
    key = "access.control.allow.origin"
    origins = [".*" if origin == "*" else origin for origin in _items(values, key)]
    try:
        return compile_list(origins, key) if origins else None
    except ConfigError as error:
        reason = "not a pattern that can be used" if worker.hides(key) else error.reason
        raise worker.error(key, reason) from None


def _rules(worker: Properties, values: Values) -> tuple[HeaderRule, ...]:
    key = "response.http.headers.config"
    try:
        return header_rules(values.string(key))
    except ValueError as error:
        raise worker.error(key, EXPECTED_RULE if worker.hides(key) else str(error)) from None


_OPEN = frozenset({"", "PLAINTEXT"})


def exposure(worker: Properties, rest: RestSettings) -> str | None:
    """Return a warning with the open listeners and the remedy; None if none is open, or Kafka is open too."""
    protocol = worker.get("security.protocol", "").strip().upper()
    if protocol in _OPEN or not rest.open_listeners:
        return None
    listeners = ", ".join(map(str, rest.open_listeners))
    remedy = f"{HOW_TO_AUTHENTICATE[0].upper()}{HOW_TO_AUTHENTICATE[1:]}"
    return (
        f"Kafka asks for {protocol}, but the REST API at {listeners} is open: everybody who reaches it can"
        f" change what is mirrored, with this worker's rights. {remedy}. Or listen on this"
        " machine only: listeners=http://localhost:8083"
    )
