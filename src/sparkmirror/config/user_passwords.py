"""The file of `sync.users`: who is to be created on the target, and with which passwords: never shown."""

from collections.abc import Mapping
from pathlib import Path

from sparkmirror.config.properties import HIDDEN, Properties, read_properties
from sparkmirror.config.providers import PREFIX as PROVIDERS
from sparkmirror.config.providers import configured_providers, resolved
from sparkmirror.domain.errors import ConfigError


def user_names(file: str) -> frozenset[str]:
    """Raises ConfigError, naming the file, when it can't be read."""
    return frozenset(_users(read_properties(Path(file))))


def user_passwords(file: str, environment: Mapping[str, str]) -> Mapping[str, str]:
    """By user. Placeholders are those of providers that the file itself configures.

    Raises ConfigError, without values, for what can't be read or resolved, and for an empty password.
    """
    properties = read_properties(Path(file))
    try:
        users = resolved(_users(properties), configured_providers(properties, environment))
    except ConfigError as error:
        # What stands beside a placeholder, or instead of it, may be a password.
        raise ConfigError(f"{file}: {error.key}", HIDDEN, error.reason) from None
    empty = sorted(user for user, password in users.items() if not password)
    if empty:
        raise ConfigError(f"{file}: {', '.join(empty)}", None, "the password is empty")
    return dict(users)


def _users(properties: Properties) -> Properties:
    return properties.where(lambda key: not key.startswith(PROVIDERS))
