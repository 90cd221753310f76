"""Parses how users log in to the REST API, from a worker's properties, and makes what checks them."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from sparkmirror.config.client_options import SSL
from sparkmirror.config.definitions import Definition, Values
from sparkmirror.config.jaas import parse_jaas_file
from sparkmirror.config.kept_settings import tls_of
from sparkmirror.config.properties import Properties, read_text
from sparkmirror.config.tls_settings import tls_settings
from sparkmirror.config.worker_options import (
    ADMIN_USERS,
    BASIC_AUTHENTICATION,
    EXTENSIONS,
    EXTENSIONS_PACKAGE,
    JAAS_FILE,
    OPEN_PATHS,
    TOKENS,
    WORKER,
)
from sparkmirror.connect.rest.authentication import Logins, Role, Scheme, User
from sparkmirror.connect.rest.basic_users import BasicUsers, PasswordFile
from sparkmirror.connect.rest.bearer_tokens import BearerTokens, PublicKeys, TokenRules, fetcher
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.tls import TlsSettings

_MODULE: Final = f"{EXTENSIONS_PACKAGE}PropertyFileLoginModule"
_ENTRIES: Final = ("KafkaConnect", "other")
"""The entry of a JAAS file, and the one that Java takes where the first is missing."""
_SYSTEM_PROPERTY: Final = f"-D{JAAS_FILE}="
HOW_TO_AUTHENTICATE: Final = (
    f"set {EXTENSIONS}={BASIC_AUTHENTICATION[0]}, or {TOKENS}jwks.endpoint.url, or ssl.client.auth=required"
    " with https listeners only; see docs/security.md"
)
_EVERYBODY: Final = "*"
_URL: Final = f"{TOKENS}jwks.endpoint.url"

_OPTIONS: Final = Definition(
    option
    for option in WORKER
    if option.name in (EXTENSIONS, ADMIN_USERS, OPEN_PATHS, JAAS_FILE) or option.name.startswith(TOKENS)
)


@dataclass(frozen=True, slots=True)
class Issuer:
    """The issuer of accepted tokens, and where its keys are."""

    url: str
    rules: TokenRules
    tls: TlsSettings


@dataclass(frozen=True, slots=True)
class LoginSettings:
    """`admins` None: everybody who logs in by a password or a certificate."""

    password_files: tuple[Path, ...] = ()
    issuer: Issuer | None = None
    by_certificate: bool = False
    """Whether a client certificate alone is a login."""
    admins: frozenset[str] | None = None
    open_paths: frozenset[str] = frozenset()

    @property
    def are_required(self) -> bool:
        return bool(self.password_files) or self.issuer is not None or self.by_certificate


def login_settings(
    worker: Properties, environment: Mapping[str, str], *, has_certificates: bool
) -> LoginSettings:
    """`has_certificates`: no connection is made without a client certificate. Raises ConfigError."""
    values = _OPTIONS.parse(worker)
    files = _password_files(worker, values, environment) if values.strings(EXTENSIONS) else ()
    issuer = _issuer(worker, values)
    admins = frozenset(name.strip() for name in values.string(ADMIN_USERS).split(";")) - {""}
    settings = LoginSettings(
        files,
        issuer,
        has_certificates and not files and issuer is None,
        None if _EVERYBODY in admins else admins,
        frozenset(values.strings(OPEN_PATHS)),
    )
    if settings.admins is not None and not settings.are_required:
        reason = f"nobody would have to log in: {HOW_TO_AUTHENTICATE}"
        raise worker.error(ADMIN_USERS, reason)
    return settings


def accepted_logins(settings: LoginSettings) -> Logins:
    """Reads the password files. Raises ConfigError."""
    role_of = partial(_role_of, settings.admins)
    schemes: dict[str, Scheme] = {}
    if settings.password_files:
        files = [PasswordFile(path) for path in settings.password_files]
        schemes["basic"] = BasicUsers(files, role_of).scheme()
    if settings.issuer is not None:
        keys = PublicKeys(fetcher(settings.issuer.url, _URL, settings.issuer.tls))
        schemes["bearer"] = BearerTokens(settings.issuer.rules, keys).scheme()
    of_certificate = (lambda name: User(name, role_of(name))) if settings.by_certificate else None
    return Logins(schemes, settings.open_paths, of_certificate)


def _role_of(admins: frozenset[str] | None, user: str) -> Role:
    return Role.ADMIN if admins is None or user in admins else Role.VIEWER


def _password_files(worker: Properties, values: Values, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the files that the login modules of the JAAS file name."""
    named = values[JAAS_FILE] or _of_kafka_opts(environment)
    if not named:
        reason = (
            f"needs a JAAS file: set {JAAS_FILE}, or KAFKA_OPTS={_SYSTEM_PROPERTY}FILE in the environment"
        )
        raise worker.error(EXTENSIONS, reason)
    try:
        entries = parse_jaas_file(read_text(Path(str(named))))
    except ValueError as error:
        raise ConfigError(JAAS_FILE, named, str(error)) from error
    modules = next((entries[name] for name in _ENTRIES if name in entries), None)
    if not modules:
        raise ConfigError(JAAS_FILE, named, f"has no entry {_ENTRIES[0]} with a login module")
    for module in modules:
        if module.module != _MODULE:
            raise ConfigError(JAAS_FILE, named, f"names {module.module}, and only {_MODULE} is supported")
        if not module.options.get("file", "").strip():
            raise ConfigError(JAAS_FILE, named, f"lacks the option file of {_MODULE}")
    return tuple(Path(module.options["file"]) for module in modules)


def _of_kafka_opts(environment: Mapping[str, str]) -> str | None:
    try:
        words = shlex.split(environment.get("KAFKA_OPTS", ""))
    except ValueError:
        return None
    found = [word.removeprefix(_SYSTEM_PROPERTY) for word in words if word.startswith(_SYSTEM_PROPERTY)]
    # `==` instead of `=` means for Java that no other file counts; there is none here.
    return re.sub("^=", "", found[-1]) if found else None


def _issuer(worker: Properties, values: Values) -> Issuer | None:
    url = values[_URL]
    if not url:
        return None
    for name in ("expected.issuer", "expected.audience"):
        if not values[f"{TOKENS}{name}"]:
            reason = f"must be set beside {_URL}: tokens for others would be taken otherwise"
            raise ConfigError(f"{TOKENS}{name}", None, reason)
    store = worker.under(TOKENS).starting("ssl.")
    rules = TokenRules(
        issuer=values.string(f"{TOKENS}expected.issuer"),
        audiences=values.strings(f"{TOKENS}expected.audience"),
        skew_s=values.integer(f"{TOKENS}clock.skew.seconds"),
        user_claim=values.string(f"{TOKENS}sub.claim.name"),
        roles_claim=values.string(f"{TOKENS}roles.claim.name"),
        admin_roles=frozenset(values.strings(f"{TOKENS}admin.roles")),
        viewer_roles=frozenset(values.strings(f"{TOKENS}viewer.roles")),
    )
    tls = tls_of(store, tls_settings(store, SSL.parse(store)))
    fetcher(str(url), _URL, tls)  # refuses what can't be used
    return Issuer(str(url), rules, tls)
