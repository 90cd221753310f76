"""Settings of a client as they are written, with placeholders: read again each time they are needed.

So a password may change where it is kept, and a Spark job brings along where that is, not the password.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sparkmirror.config.client_options import ADMIN
from sparkmirror.config.properties import Properties, Provider
from sparkmirror.config.providers import resolved
from sparkmirror.config.sasl_settings import sasl_settings
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.sasl import SaslSettings

_PREFIX: Final = "sasl."


@dataclass(frozen=True, slots=True, repr=False)
class KeptLogin:
    """The `sasl.*` settings of one client, and what their placeholders are resolved with."""

    written: tuple[tuple[str, str], ...]
    providers: Mapping[str, Provider] = field(compare=False)

    @property
    def holds_secrets(self) -> bool:
        """Whether a secret is written beside the placeholders, or instead of one."""
        nothing = dict.fromkeys(self.providers, _Nothing())
        try:
            return self._read(nothing).holds_secrets
        except ConfigError:
            return False  # without what is kept elsewhere there is no login

    def read(self) -> SaslSettings:
        """As they are now. Raises ConfigError."""
        return self._read(self.providers)

    def _read(self, providers: Mapping[str, Provider]) -> SaslSettings:
        properties = resolved(Properties(dict(self.written)), providers)
        return sasl_settings(properties, ADMIN.parse(properties))


class _Nothing:
    """A provider whose every value is empty."""

    def value(self, path: str, key: str) -> str:
        del path, key
        return ""


def login_of(properties: Properties, login: SaslSettings) -> SaslSettings:
    """`login` as it was just read from these properties; one that reads itself if they have placeholders."""
    own = properties.starting(_PREFIX)
    providers = own.providers
    if not providers:
        return login
    kept = KeptLogin(tuple(sorted(own.as_written().items())), providers)
    return SaslSettings(login.mechanism, kept=kept)
