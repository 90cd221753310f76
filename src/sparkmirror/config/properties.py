"""Holds property maps: read from Java properties files, layered by prefix, without ever printing a secret.

A value keeps the key and the line under which it was written. `A.consumer.fetch.max.bytes` ends as the
consumer's `fetch.max.bytes`, but an error about it names the key in the file.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

import javaproperties

from sparkmirror.config.text_files import Text, decoded_properties, java_reading
from sparkmirror.domain.comments import NO_COMMENTS, comment_in, is_part
from sparkmirror.domain.errors import ConfigError
from sparkmirror.files import NamedFile

HIDDEN: Final = "[hidden]"

FILE_BYTES_MAX: Final = 1024 * 1024
"""The largest size of a file that a configuration names."""
_SENSITIVE = re.compile(
    r"password|passphrase|secret|credential|jaas\.config|access.?key|token$"
    r"|user\.info|keystore\.key$|certificate\.chain$|truststore\.certificates$",
    re.IGNORECASE,
)


_USER_INFO: Final = re.compile(r"://[^/?#\s@]*@")
"""The user and password of a URL."""


def without_user_info(value: str) -> str:
    """The text without the users and passwords of its URLs."""
    return _USER_INFO.sub(f"://{HIDDEN}@", value)


def is_sensitive(key: str) -> bool:
    """Whether the value of this key must never be printed. The name of a class is no secret."""
    return _SENSITIVE.search(key) is not None and not key.endswith(".class")


class Provider(Protocol):
    """A source of values that are kept outside of a configuration."""

    def value(self, path: str, key: str) -> str | None:
        """The value, None if there is none. Raises ConfigError, without values, if it can't be read."""


@dataclass(frozen=True, slots=True)
class Property:
    """A value, the key under which it was written, and the text that may be printed for it.

    One that has had placeholders keeps its text, and the providers that resolved them.
    """

    value: str
    origin: str
    shown: str
    text: str | None = None
    providers: Mapping[str, Provider] | None = None
    roots: tuple[str, ...] = ()
    """The folders below which a file that the value names must lie; anywhere without any."""
    line: int | None = None
    """The line of the file; None where the value comes from no properties file."""
    java_reads: str | None = None
    """The text that Java reads, which takes every file for Latin-1; None if it is the same."""
    odd_line: int | None = None
    """The line for which the file was read as Latin-1, of values that have other characters than ASCII."""

    def __repr__(self) -> str:
        return f"Property({self.origin}={self.shown})"


class Properties(Mapping[str, str]):
    """An immutable map of dotted keys to texts. `a | b` lets `b` win."""

    __slots__ = ("_entries",)

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._entries = {key: _written(key, value) for key, value in (values or {}).items()}

    def __getitem__(self, key: str) -> str:
        return self._entries[key].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Properties({{{', '.join(f'{k}={p.shown}' for k, p in self._entries.items())}}})"

    def __or__(self, other: "Properties") -> "Properties":
        return _of(self._entries | other._entries)

    def origin(self, key: str) -> str:
        """The key under which this value was written; the key itself when it is absent."""
        return self._entries[key].origin if key in self._entries else key

    def line(self, key: str) -> int | None:
        """The line of the file where this value was written; None where there is none."""
        return self._entries[key].line if key in self._entries else None

    def written(self, key: str) -> Property:
        """The value with what is known of how it was written."""
        return self._entries[key]

    def error(self, key: str, reason: str) -> ConfigError:
        """An error about the value of `key`, named as it was written and without secrets."""
        entry = self._entries.get(key)
        comment = comment_in(entry.value) if entry is not None and entry.line is not None else ""
        if comment and not self.hides(key) and NO_COMMENTS not in reason:
            reason += f"; {is_part(comment)}"
        return ConfigError(self.origin(key), entry.shown if entry else None, reason, self.line(key))

    def refusal(self, key: str, reason: str) -> ConfigError:
        """An error about the key itself, whatever its value."""
        return ConfigError(self.origin(key), None, reason, self.line(key))

    def hides(self, key: str) -> bool:
        """Whether the value of `key` is a secret or comes from a placeholder: no error may hold it."""
        entry = self._entries.get(key)
        return entry is not None and entry.shown != entry.value

    def quoted(self, key: str, part: str) -> str:
        """A part of the value of `key` for an error's reason, or the value as written if that hides it."""
        return self._entries[key].shown if self.hides(key) else part

    def only(self, names: Collection[str]) -> "Properties":
        """The entries with these keys."""
        return _of({key: entry for key, entry in self._entries.items() if key in names})

    def where(self, keep: Callable[[str], bool]) -> "Properties":
        """The entries whose key satisfies `keep`."""
        return _of({key: entry for key, entry in self._entries.items() if keep(key)})

    def starting(self, *prefixes: str) -> "Properties":
        """The entries whose key starts with one of the prefixes, under their whole keys."""
        return self.where(lambda key: key.startswith(prefixes))

    def under(self, prefix: str) -> "Properties":
        """The entries below a prefix, without it."""
        size = len(prefix)
        found = {key[size:]: entry for key, entry in self._entries.items() if key.startswith(prefix)}
        found.pop("", None)
        return _of(found)

    def below(self, prefix: str) -> "Properties":
        """Put a prefix in front of each key; the inverse of `under`."""
        return _of({prefix + key: entry for key, entry in self._entries.items()})

    def resolved(self, change: Callable[[str, str], str], providers: Mapping[str, Provider]) -> "Properties":
        """Replace every value by `change(key, value)`; what is printed stays what was written."""
        entries = dict(self._entries)
        for key, entry in self._entries.items():
            value = change(key, entry.value)
            if value != entry.value:
                entries[key] = replace(entry, value=value, text=entry.value, providers=providers)
        return _of(entries)

    @property
    def providers(self) -> Mapping[str, Provider]:
        """Return the providers that resolved placeholders; empty where there were none."""
        every = (entry.providers for entry in self._entries.values() if entry.providers is not None)
        return {name: provider for providers in every for name, provider in providers.items()}

    def confined(self, roots: tuple[str, ...]) -> "Properties":
        """The same entries, whose files must lie below one of these folders."""
        return _of({key: replace(entry, roots=roots) for key, entry in self._entries.items()})

    def roots(self, *keys: str) -> tuple[str, ...]:
        """The folders below which files of these entries must lie; of the first entry that has any."""
        found = (self._entries[key].roots for key in keys if key in self._entries)
        return next(filter(None, found), ())

    def as_written(self) -> Mapping[str, str]:
        """The values with their placeholders."""
        return {
            key: entry.value if entry.text is None else entry.text for key, entry in self._entries.items()
        }


def _of(entries: dict[str, Property]) -> Properties:
    properties = Properties()
    properties._entries = entries  # noqa: SLF001 - the second constructor of this class
    return properties


def _written(key: str, value: str) -> Property:
    return Property(value, key, HIDDEN if is_sensitive(key) else without_user_info(value))


def read_properties(path: Path) -> Properties:
    """Read a file as `java.util.Properties` does, but for its encoding.

    Raises ConfigError naming the file when it can't be read or holds a malformed Unicode escape.
    """
    return parse_properties(decoded_properties(read_bytes(path), str(path)), str(path))


def read_bytes(path: Path) -> bytes:
    """Raises ConfigError naming the file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(str(path), None, error.strerror or str(error)) from error


def read_text(path: Path) -> str:
    """A file as UTF-8 where it is valid UTF-8, and as Latin-1 otherwise. Raises ConfigError naming it."""
    content = read_bytes(path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def read_regular_file(path: Path | NamedFile) -> bytes:
    """Read a file that may be named by another user. Raises ConfigError for a device and above 1 MiB."""
    named = path if isinstance(path, NamedFile) else NamedFile(str(path))
    try:
        return named.read(FILE_BYTES_MAX)
    except OSError as error:
        shown = named.path if named.path.isprintable() else repr(named.path)
        raise ConfigError(shown, None, error.strerror or str(error)) from error


def read_regular_properties(path: Path | NamedFile) -> Properties:
    """Read a file like `read_properties`, under the limits of `read_regular_file`."""
    name = path.path if isinstance(path, NamedFile) else str(path)
    return parse_properties(decoded_properties(read_regular_file(path), name), name)


def parse_properties(text: str | Text, name: str) -> Properties:
    """Parse the text of a properties file; `name` is what errors call it."""
    given = text if isinstance(text, Text) else Text(text)
    entries: dict[str, Property] = {}
    line = 1
    try:
        for each in javaproperties.parse(given.text):
            if isinstance(each, javaproperties.KeyValue):
                found = replace(_written(each.key, each.value), line=line)
                entries[each.key] = (
                    found if each.source.isascii() else _in_encoding(found, each.source, given)
                )
            line += len(_LINES.findall(each.source))
    except javaproperties.InvalidUEscapeError:
        # The escape itself may be part of a secret.
        raise ConfigError(name, None, "Malformed \\uxxxx encoding", line) from None
    return _of(entries)


def _in_encoding(found: Property, source: str, given: Text) -> Property:
    """Note how the encoding of the file matters for a value that is not all ASCII."""
    if given.odd_line is not None:
        return found if found.value.isascii() else replace(found, odd_line=given.odd_line)
    read = java_reading(source)
    return found if read == found.value else replace(found, java_reads=read)


_LINES: Final = re.compile(r"\r\n|\r|\n")
