"""Writes and matches object names of MBeans, as `javax.management.ObjectName` and Kafka's JmxReporter do.

Pure.
"""

import re
from typing import Final, NamedTuple

_UNQUOTED: Final = re.compile(r"[\w\-%. \t]*", re.ASCII)
_WILDCARDS: Final = {"*": r"[\s\S]*", "?": r"[\s\S]"}
_ESCAPED: Final = re.compile(r'(["*?\\])')
_PROPERTY: Final = re.compile(r'([^,=:*?]+)=("(?:[^\\"]|\\.)*"|[^,=:"]*)(?:,|\Z)')


def jmx_value(text: str) -> str:
    """Quote a value as Kafka does in an object name (`Sanitizer.jmxSanitize`)."""
    if _UNQUOTED.fullmatch(text):
        return text
    escaped = _ESCAPED.sub(r"\\\1", text).replace("\n", "\\n")
    return f'"{escaped}"'


class ObjectNamePattern(NamedTuple):
    """Regular expressions of the domain and of values by key; `is_open`: more properties may be there."""

    domain: str
    values: tuple[tuple[str, str], ...]
    is_open: bool

    def matches(self, domain: str, properties: tuple[tuple[str, str], ...]) -> bool:
        """`properties` are not quoted."""
        if not re.fullmatch(self.domain, domain):
            return False
        found = {key: jmx_value(value) for key, value in properties}
        keys = {key for key, _ in self.values}
        if not (keys <= found.keys() if self.is_open else keys == found.keys()):
            return False
        return all(re.fullmatch(value, found[key]) for key, value in self.values)


def object_name_pattern(text: str) -> ObjectNamePattern:
    """Parse `domain:key=value,…`, with `*` for any text and `?` for any character. Raises ValueError."""
    domain, colon, rest = text.partition(":")
    if not colon:
        raise ValueError("is no object name: a domain, a colon and properties")
    values, at, is_open = [], 0, False
    while at < len(rest):
        if rest.startswith("*", at) and rest[at + 1 : at + 2] in ("", ","):
            is_open, at = True, at + 2
            continue
        found = _PROPERTY.match(rest, at)
        if found is None:
            raise ValueError(f"is no object name near '{rest[at:]}'")
        values.append((found[1], _glob(found[2])))
        at = found.end()
    if not values and not is_open:
        raise ValueError("is no object name: it has no properties")
    return ObjectNamePattern(_glob(domain), tuple(values), is_open)


def _glob(text: str) -> str:
    parts = re.split(r"(\\.|[*?])", text)  # in a quoted value `\*` is a star
    return "".join(_WILDCARDS.get(part, re.escape(part)) for part in parts)
