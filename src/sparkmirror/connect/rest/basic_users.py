"""Checks basic authentication as Connect's BasicAuthSecurityRestExtension does with PropertyFileLoginModule.

The files have a line `user=password` for each user. Java reads each once; here it is read again when it
changes. In Java an empty file admits everybody; here it is refused.
"""

import base64
import binascii
import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from sparkmirror.config.properties import read_regular_properties
from sparkmirror.connect.rest.authentication import InvalidLoginError, Role, Scheme, User
from sparkmirror.domain.errors import ConfigError
from sparkmirror.security.file_version import file_version

logger = logging.getLogger(__name__)

_UNKNOWN: Final = secrets.token_hex()
"""The password of users that there are not: they take as long to refuse as others."""


class _Named(NamedTuple):
    user: str
    password: str


class PasswordFile:
    """The users of a properties file, as it is now. Raises ConfigError when it can't be used at the start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._version = file_version(path)
        self._passwords = _read(path)

    def passwords(self) -> Mapping[str, str]:
        """Return passwords by user. While a changed file can't be read, its previous content counts."""
        version = file_version(self._path)
        if version != self._version:
            self._version = version
            try:
                self._passwords = _read(self._path)
            except ConfigError as error:
                logger.warning("the changed file can't be used, what it had before is: %s", error)
        return self._passwords


class BasicUsers:
    """A login is right if one of the files has this user with this password."""

    def __init__(self, files: Sequence[PasswordFile], role_of: Callable[[str], Role]) -> None:
        self._files = tuple(files)
        self._role_of = role_of

    def scheme(self) -> Scheme:
        return Scheme('Basic realm="Kafka Connect", charset="UTF-8"', _name_of, self._check)

    async def _check(self, text: str) -> User:
        named = _parsed(text)
        if named is None:
            raise InvalidLoginError("the header is not base64 of user:password")
        known = [file.passwords().get(named.user) for file in self._files]
        # No short cut: how long it takes tells nothing.
        right = [_is_same(named.password, password) for password in known]
        if not any(right):
            raise InvalidLoginError("wrong password, or no such user")
        return User(named.user, self._role_of(named.user))


def _is_same(given: str, password: str | None) -> bool:
    digests = [
        hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        for text in (given, password or _UNKNOWN)
    ]
    return hmac.compare_digest(*digests) and password is not None


def _name_of(text: str) -> str:
    named = _parsed(text)
    return "" if named is None else named.user


def _parsed(text: str) -> _Named | None:
    try:
        user, colon, password = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return _Named(user, password) if user and colon else None


def _read(path: Path) -> Mapping[str, str]:
    found = dict(read_regular_properties(path))
    if not found:
        raise ConfigError(str(path), None, "has no user: a line for each is expected, user=password")
    return found
