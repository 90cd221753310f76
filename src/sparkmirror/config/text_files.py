"""Decides the encoding of a properties file, once for the whole file. Pure.

Java takes every properties file for Latin-1; most are written in UTF-8 today. A file is UTF-8 where its keys
and values are, whatever its comments hold, and Latin-1 otherwise.
"""

import codecs
from typing import Final, NamedTuple

import javaproperties

from sparkmirror.domain.errors import ConfigError

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Text(NamedTuple):
    """The decoded text of a file. `odd_line` is the first line for which it is not UTF-8."""

    text: str
    odd_line: int | None = None


def decoded_properties(content: bytes, name: str) -> Text:
    """Decode a properties file. Raises ConfigError for UTF-16, which no reader of such files takes."""
    check_not_utf_16(content, name)
    try:
        return Text(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        text, line = content.decode("latin-1"), 1
    for each in javaproperties.parse(text):
        if not isinstance(each, javaproperties.Comment | javaproperties.Whitespace) and not _is_utf_8(
            each.source
        ):
            return Text(text, line)
        line += max(1, len(each.source.splitlines()))
    return Text(content.decode("utf-8-sig", errors="replace"))


def check_not_utf_16(content: bytes, name: str) -> None:
    """Raises ConfigError for a text in UTF-16, as some editors of Windows save it."""
    begin = content[:64]
    if content.startswith(_UTF_16) or (begin and begin.count(0) * 3 > len(begin)):
        raise ConfigError(name, None, "is UTF-16: save it as UTF-8")


def java_reading(source: str) -> str:
    """The value that Java reads from an entry of a file in UTF-8."""
    (entry,) = javaproperties.parse(source.encode(errors="replace").decode("latin-1"))
    assert isinstance(entry, javaproperties.KeyValue)
    return entry.value


def _is_utf_8(source: str) -> bool:
    try:
        source.encode("latin-1").decode()
    except UnicodeDecodeError:
        return False
    return True
