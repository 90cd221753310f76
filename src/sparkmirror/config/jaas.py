"""Reads `sasl.jaas.config` and JAAS files as Java does, which cuts them by its StreamTokenizer."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

_FLAGS: Final = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasEntry(NamedTuple):
    """A login module's class and its options."""

    module: str
    options: Mapping[str, str]


class _Token(NamedTuple):
    """A word or a quoted text; or, with `text` None, a character that stands for itself or a number."""

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
    at, end = 0, len(text)
    while at < end:
        char = text[at]
        if char <= " ":
            at += 1
        elif char == "/":
            at = _behind_comment(text, at)
        elif char in "\"'":
            quoted, at = _quoted(text, at)
            yield _Token(quoted)
        elif _is_numeric(char) and not (char == "-" and not _begins_number(text, at)):
            at = _behind_number(text, at)
            yield _Token(None, "number")
        elif _is_alpha(char) and char != "-":
            begin = at
            while at < end and (_is_alpha(text[at]) or _is_numeric(text[at])):
                at += 1
            yield _Token(text[begin:at])
        else:
            at += 1
            yield _Token(None, char)


def _is_alpha(char: str) -> bool:
    return (char.isascii() and char.isalpha()) or char in "-_$" or char >= "\xa0"


def _is_numeric(char: str) -> bool:
    return "0" <= char <= "9" or char in ".-"


def _begins_number(text: str, at: int) -> bool:
    return at + 1 < len(text) and ("0" <= text[at + 1] <= "9" or text[at + 1] == ".")


def _behind_number(text: str, at: int) -> int:
    """A number ends before a second point, as in Java."""
    at += text[at] == "-"
    points = 0
    while at < len(text) and ("0" <= text[at] <= "9" or (text[at] == "." and not points)):
        points += text[at] == "."
        at += 1
    return at


def _behind_comment(text: str, at: int) -> int:
    if text.startswith("/*", at):
        end = text.find("*/", at + 2)
        return len(text) if end < 0 else end + 2
    # Java looks at what is behind a single slash once, for a second one: a line's end there counts no more.
    ends = [end for end in (text.find("\n", at + 2), text.find("\r", at + 2)) if end >= 0]
    return min(ends, default=len(text))


def _quoted(text: str, at: int) -> tuple[str, int]:
    """The text, and where it goes on behind it; a line's end ends it, too."""
    quote, said = text[at], []
    at += 1
    while at < len(text) and text[at] != quote and text[at] not in "\r\n":
        if text[at] != "\\":
            said.append(text[at])
            at += 1
            continue
        at += 1
        if at == len(text):
            break
        char, at = _escaped(text, at)
        said.append(char)
    return "".join(said), at + (at < len(text) and text[at] == quote)


def _escaped(text: str, at: int) -> tuple[str, int]:
    if not "0" <= text[at] <= "7":
        return _ESCAPES.get(text[at], text[at]), at + 1
    digits_max = 3 if text[at] <= "3" else 2
    end = at
    while end < len(text) and end - at < digits_max and "0" <= text[end] <= "7":
        end += 1
    return chr(int(text[at:end], 8)), end
