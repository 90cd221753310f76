"""Settings of a client as they are written, with placeholders: read again each time they are needed.

So a password may change where it is kept, and a Spark job brings along where that is, not the password.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from sparkmirror.config.client_options import ADMIN
from sparkmirror.config.definitions import Type, Values
from sparkmirror.config.jaas import parse_jaas
from sparkmirror.config.properties import Properties, Provider, is_sensitive
from sparkmirror.config.providers import resolved
from sparkmirror.config.sasl_settings import JAAS, sasl_settings
from sparkmirror.config.tls_settings import tls_settings
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.sasl import SaslSettings
from sparkmirror.domain.tls import TlsSettings

_SASL: Final = "sasl."
_TLS: Final = "ssl."
_SECRETS: Final = frozenset(option.name for option in ADMIN if option.type is Type.PASSWORD)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class _Written:
    """Settings of one client as they were written, and what their placeholders are resolved with."""

    settings: tuple[tuple[str, str], ...]
    providers: Mapping[str, Provider] = field(compare=False)
    roots: tuple[str, ...] = ()

    def read(self, parse: Callable[[Properties, Values], T]) -> T:
        properties = self._resolved(self.providers)
        return parse(properties, ADMIN.parse(properties))

    def without_placeholders(self) -> Properties:
        """Return the settings as if all that is kept elsewhere were empty."""
        return self._resolved(dict.fromkeys(self.providers, _Nothing()))

    def _resolved(self, providers: Mapping[str, Provider]) -> Properties:
        return resolved(Properties(dict(self.settings)).confined(self.roots), providers)


@dataclass(frozen=True, slots=True, repr=False)
class KeptLogin:
    """The `sasl.*` settings of one client."""

    written: _Written

    @property
    def holds_secrets(self) -> bool:
        """Whether a secret is written beside the placeholders, or instead of one.

        The login itself can't be asked: without what is kept elsewhere there may be none.
        """
        written = self.written.without_placeholders()
        secrets = {key: text for key, text in written.items() if key in _SECRETS and text.strip()}
        jaas = secrets.pop(JAAS, None)
        return bool(secrets) or (jaas is not None and _has_secret(jaas))

    def read(self) -> SaslSettings:
        """Read the settings as they are now. Raises ConfigError."""
        return self.written.read(sasl_settings)


@dataclass(frozen=True, slots=True, repr=False)
class KeptTls:
    """The `ssl.*` settings of one client."""

    written: _Written

    @property
    def holds_secrets(self) -> bool:
        """Whether a password or a key is written beside the placeholders, or instead of one."""
        try:
            written = self.written.without_placeholders()
            return tls_settings(written, ADMIN.parse(written)).holds_secrets
        except ConfigError:
            return True  # what is written can't be told from what is not

    def read(self) -> TlsSettings:
        """Read the settings as they are now. Raises ConfigError."""
        return self.written.read(tls_settings)


class _Nothing:
    """A provider whose every value is empty."""

    def value(self, path: str, key: str) -> str:
        del path, key
        return ""


def _has_secret(jaas: str) -> bool:
    try:
        options = parse_jaas(jaas).options
    except ValueError:
        return True  # what is written can't be told from what is not
    return any(is_sensitive(name) and text for name, text in options.items())


def login_of(properties: Properties, login: SaslSettings) -> SaslSettings:
    """`login` as it was just read from these properties; one that reads itself if they have placeholders."""
    written = _written(properties.starting(_SASL))
    return login if written is None else SaslSettings(login.mechanism, kept=KeptLogin(written))


def tls_of(properties: Properties, tls: TlsSettings) -> TlsSettings:
    """The same for TLS."""
    written = _written(properties.starting(_TLS))
    return tls if written is None else TlsSettings(kept=KeptTls(written))


def _written(own: Properties) -> _Written | None:
    providers = own.providers
    if not providers:
        return None
    return _Written(tuple(sorted(own.as_written().items())), providers, own.roots(*own))
