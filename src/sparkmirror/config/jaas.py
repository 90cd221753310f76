"""Reads `sasl.jaas.config` and JAAS files as Java does.

Words, quoted texts, comments and the marks of the format are read; what else Java's StreamTokenizer takes
(numbers, octal escapes, single slashes, quotes that a line's end closes) is refused.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

_FLAGS: Final = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_TOKEN: Final = re.compile(
    r"""[\x00-\x20]+|//[^\r\n]*|/\*.*?\*/
    |(?P<quoted>"(?:[^"\\\r\n]|\\[^0-7\r\n])*"|'(?:[^'\\\r\n]|\\[^0-7\r\n])*')
    |(?P<word>[A-Za-z_$\xa0-\U0010ffff][A-Za-z0-9_$.\-\xa0-\U0010ffff]*)
    |(?P<mark>[{};=])""",
    re.DOTALL | re.VERBOSE,
)


class JaasEntry(NamedTuple):
    """A login module's class and its options."""

    module: str
    options: Mapping[str, str]


class _Token(NamedTuple):
    """A word or a quoted text; or, with `text` None, a mark of the format."""

    text: str | None
    kind: str = ""


def parse_jaas(config: str) -> JaasEntry:
    """The one login module of a client. Raises ValueError, whose text holds nothing of the config."""
    tokens = _tokens(config)
    entries = [_entry(token, tokens) for token in tokens]
    if len(entries) != 1:
        raise ValueError("must name exactly one login module")
    return entries[0]


def parse_jaas_file(text: str) -> Mapping[str, tuple[JaasEntry, ...]]:
    """The login modules of each entry of a file, as `java.security.auth.login.config` names one.

    Raises ValueError, whose text holds nothing of the file.
    """
    tokens = _tokens(text)
    entries: dict[str, tuple[JaasEntry, ...]] = {}
    for name in tokens:
        brace = next(tokens, None)
        if name.text is None or brace is None or brace.kind != "{":
            raise ValueError("must have entries of the form NAME { MODULE required OPTION=VALUE; };")
        entries[name.text] = _modules(tokens)
        end = next(tokens, None)
        if end is None or end.kind != ";":
            raise ValueError("lacks a semicolon behind the brace that closes an entry")
    return entries


def _modules(tokens: Iterator[_Token]) -> tuple[JaasEntry, ...]:
    found: list[JaasEntry] = []
    for token in tokens:
        if token.kind == "}":
            return tuple(found)
        found.append(_entry(token, tokens))
    raise ValueError("lacks the brace that closes an entry")


def _entry(first: _Token, tokens: Iterator[_Token]) -> JaasEntry:
    if first.text is None:
        raise ValueError("must begin with the class of a login module")
    flag = next(tokens, None)
    if flag is None or flag.text is None or flag.text.upper() not in _FLAGS:
        raise ValueError("lacks `required` behind the login module")
    options: dict[str, str] = {}
    for key in tokens:
        if key.kind == ";":
            return JaasEntry(first.text, options)
        equals, value = next(tokens, None), next(tokens, None)
        if key.text is None or equals is None or equals.kind != "=" or value is None or value.text is None:
            raise ValueError("has an option without a value, or a value that needs quotes")
        options[key.text] = value.text
    raise ValueError("must end with a semicolon")


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"has something at index {at} that is not supported there, or needs quotes")
        at = found.end()
        match found.lastgroup:
            case "quoted":
                yield _Token(_ESCAPED.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), found[0][1:-1]))
            case "word":
                yield _Token(found[0])
            case "mark":
                yield _Token(None, found[0])
