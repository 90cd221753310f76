r"""Java regular expressions, read by Java's rules and matched by Python's engine.

MM2's lists of topics and groups are Java patterns. What such lists contain is translated, token by token:

    literals, `.`, `^`, `$`, `|`, `(…)`, `(?:…)`, `(?=…)`, `(?!…)`, `(?<=…)`, `(?<!…)`, `(?i)`, `(?i:…)`
    `*`, `+`, `?`, `{n}`, `{n,}`, `{n,m}`, each also reluctant (`*?`)
    `[…]`, `[^…]`, ranges, `\d`, `\w`, `\s` and their opposites, `\p{Alpha}` and other ASCII names
    `\Q…\E`, `\t`, `\n`, `\r`, `\f`, and a backslash before what is no letter or digit

Everything else, valid in Java or not, is refused with its name and position: no pattern matches other texts
than in Java.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NoReturn

import regex

from sparkmirror.domain.comments import comment_in, is_part
from sparkmirror.domain.errors import ConfigError

_REPEATED_MAX: Final = 100_000
"""The engine writes out `a{1000}`: so many atoms may a pattern have, repetitions written out."""

_AT_ONCE_S: Final = 0.002
_MATCH_MAX_S: Final = 0.2
"""CPU time for one name. An ordinary pattern takes microseconds."""

_QUOTE: Final = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
_GROUP: Final = re.compile(r"\((?!\?)|\(\?(?:[:=!]|<[=!]|i:)")
_QUANTIFIER: Final = re.compile(r"[*+?]\??|\{(?P<low>[0-9]+)(?:,(?P<high>[0-9]*))?\}\??")
_CONTROLS: Final[Mapping[str, str]] = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BETWEEN: Final[Mapping[str, str]] = {
    "|": "|",
    "^": r"\A",
    "$": r"(?:\Z|(?=\r\n\Z|[\r\x85\u2028\u2029]\Z)|(?<!\r)(?=\n\Z))",
}
_ANY: Final = r"[^\n\r\x85\u2028\u2029]"
_PROPERTIES: Final[Mapping[str, str]] = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": re.escape("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
}
_REFUSED: Final = re.compile(
    r"(?P<character_property>\\[pP](?:\{[^}]*\}?|.?))|(?P<back_reference>\\[1-9k])|(?P<escape>\\.?)"
    r"|(?P<named_group>\(\?<[a-zA-Z][^>]*>?)|(?P<atomic_group>\(\?>)|(?P<group>\(\?[^:)]*[:)]?)"
    r"|(?P<repetition>\{[^}]*\}?)",
    re.DOTALL,
)
"""Constructs that are not supported, by what they are called."""


class JavaPattern:
    """A compiled pattern of a setting, whose matching ends in bounded time."""

    def __init__(self, key: str, pattern: str, compiled: "regex.Pattern[str]") -> None:
        self._key = key
        self.pattern = pattern
        self._fullmatch = compiled.fullmatch

    def fullmatch(self, name: str) -> bool:
        """Whether the whole name matches. Raises ConfigError if that takes too long."""
        try:
            # With concurrent=True each name could wait 5 ms for the GIL beside a busy thread.
            return self._fullmatch(name, timeout=_AT_ONCE_S) is not None
        except TimeoutError:
            return self._matches_slowly(name)

    def _matches_slowly(self, name: str) -> bool:
        try:
            return self._fullmatch(name, concurrent=True, timeout=_MATCH_MAX_S) is not None
        except TimeoutError as exc:
            reason = (
                f"matching it with '{name}' takes more than {_MATCH_MAX_S} s. Simplify what is repeated "
                "inside of a repetition"
            )
            raise ConfigError(self._key, self.pattern, reason) from exc


def compile_list(patterns: Sequence[str], key: str) -> JavaPattern:
    """Compile a list to one pattern: the items joined by `|`, to be used with `fullmatch`.

    An empty list matches nothing, as in MM2, and items are not grouped: `(?i)` in one reaches the next.
    Raises ConfigError with `key` for what Java refuses or this module doesn't support.
    """
    joined = "|".join(patterns)
    return JavaPattern(key, joined, _compiled(joined, key) if patterns else regex.compile("(?!)"))


def compile_names(patterns: Sequence[str], key: str) -> JavaPattern:
    """A list that selects names. Raises also for an item with a comment behind it, which matches no name."""
    for pattern in patterns:
        if comment_in(pattern):
            raise ConfigError(key, pattern, is_part(comment_in(pattern)))
    return compile_list(patterns, key)


def compile_capturing(pattern: str, key: str) -> "regex.Pattern[str]":
    """Compile a pattern whose groups capture, to be matched with a time-out. Raises as `compile_list`."""
    return _compiled(pattern, key, captures=True)


def _compiled(pattern: str, key: str, *, captures: bool = False) -> "regex.Pattern[str]":
    with _named_errors(key, pattern):
        translation = _Translator(pattern, captures=captures).translate()
        if "(?<" in translation:
            re.compile(translation)  # refuses a look-behind without a fixed length, which `regex` takes
        return regex.compile(translation, regex.ASCII)


@contextmanager
def _named_errors(key: str, pattern: str) -> Iterator[None]:
    try:
        yield
    except _UnsupportedError as exc:
        raise ConfigError(key, pattern, f"not a usable Java regular expression: {exc}") from exc
    except (re.error, regex.error) as exc:
        raise ConfigError(key, pattern, f"this Java regular expression is not supported: {exc}") from exc
    except RecursionError as exc:
        raise ConfigError(key, pattern, "this regular expression is nested too deeply") from exc


class _UnsupportedError(Exception):
    """Java would refuse the pattern, or it is not supported here."""


@dataclass(slots=True)
class _Group:
    """A group that is open: whether case is ignored, whether it looks behind, and what it holds so far."""

    ignores_case: bool = False
    looks_behind: bool = False
    is_assertion: bool = False
    atoms: int = 0


class _Translator:
    """Reads a Java pattern from left to right, and collects the text of the Python pattern."""

    def __init__(self, pattern: str, *, captures: bool) -> None:
        """`captures`: groups capture, as in Java. Else nothing refers to their text, and they need not."""
        self._text = pattern
        self._captures = captures
        self._at = 0
        self._open = [_Group()]
        self._parts: list[str] = []
        self._last: int | None = None
        """The atoms of what a quantifier would repeat, None where there is nothing."""

    def translate(self) -> str:
        while self._at < len(self._text):
            self._token()
        if len(self._open) > 1:
            self._fail("unclosed group")
        return "".join(self._parts)

    def _token(self) -> None:
        char = self._text[self._at]
        if quantifier := self._taken(_QUANTIFIER):
            self._quantify(quantifier)
        elif quote := self._taken(_QUOTE):
            for each in quote[1]:
                self._atom(re.escape(each))
        elif group := self._taken(_GROUP):
            self._enter(group[0])
        elif self._text.startswith("(?i)", self._at):
            self._at += len("(?i)")
            self._open[-1].ignores_case = True
            self._last = None
        elif char in _BETWEEN:
            self._at += 1
            self._parts.append(_BETWEEN[char])
            self._last = None
        elif char == ")":
            self._leave()
        elif char == "[":
            self._at += 1
            self._atom(self._class())
        elif char == ".":
            self._at += 1
            self._atom(_ANY)
        else:
            self._atom(f"[{members}]" if (members := self._set()) else re.escape(self._member()))

    def _taken(self, token: re.Pattern[str]) -> re.Match[str] | None:
        match = token.match(self._text, self._at)
        if match:
            self._at = match.end()
        return match

    def _atom(self, translation: str) -> None:
        """Append an atom with its own flag: in Java `(?i)` also reaches later alternatives."""
        self._parts.append(f"(?i:{translation})" if self._open[-1].ignores_case else translation)
        self._count(1)

    def _count(self, atoms: int) -> None:
        self._last = atoms
        self._open[-1].atoms += atoms
        if sum(group.atoms for group in self._open) > len(self._text) + _REPEATED_MAX:
            self._fail(f"repetitions add up to more than {_REPEATED_MAX}")

    def _quantify(self, quantifier: re.Match[str]) -> None:
        last = self._last
        if last is None:
            self._at = quantifier.start()
            self._fail(f"nothing to repeat before '{quantifier[0]}'")
        if self._text.startswith("+", self._at):
            self._fail(f"possessive quantifier '{quantifier[0]}+' is not supported")
        if any(group.looks_behind for group in self._open):
            self._fail("a repetition in a look-behind is not supported")
        low, high = int(quantifier["low"] or 0), int(quantifier["high"] or 0)
        if quantifier["high"] and high < low:
            self._fail(f"illegal repetition range '{quantifier[0]}'")
        self._parts.append(quantifier[0])
        self._count(last * max(low, high))
        self._last = None

    def _enter(self, opening: str) -> None:
        inside = _Group(self._open[-1].ignores_case or opening == "(?i:")
        inside.looks_behind = opening.startswith("(?<")
        inside.is_assertion = inside.looks_behind or opening[-1] in "=!"
        self._open.append(inside)
        self._parts.append("(?:" if opening == "(?i:" or (opening == "(" and not self._captures) else opening)
        self._last = None

    def _leave(self) -> None:
        if len(self._open) == 1:
            self._fail("unmatched ')'")
        self._at += 1
        group = self._open.pop()
        self._parts.append(")")
        self._count(max(group.atoms, 1))
        if group.is_assertion:
            self._last = None

    def _set(self) -> str | None:
        """Read an escape that means several characters; returns them as they are written in a class."""
        if self._text[self._at : self._at + 2] in ("\\d", "\\D", "\\w", "\\W", "\\s", "\\S"):
            self._at += 2
            return self._text[self._at - 2 : self._at]
        for name, members in _PROPERTIES.items():
            if self._text.startswith(f"\\p{{{name}}}", self._at):
                self._at += len(f"\\p{{{name}}}")
                return members
        return None

    def _member(self) -> str:
        """Read one character, which may be escaped."""
        char = self._text[self._at]
        if char != "\\":
            if char in "({":
                self._refuse()
            self._at += 1
            return char
        escaped = self._text[self._at + 1 : self._at + 2]
        if escaped not in _CONTROLS and (not escaped or (escaped.isascii() and escaped.isalnum())):
            self._refuse()
        self._at += 2
        return _CONTROLS.get(escaped, escaped)

    def _class(self) -> str:
        negated = self._text.startswith("^", self._at)
        self._at += negated
        items: list[str] = []
        while not items or not self._text.startswith("]", self._at):  # a first `]` is a member
            items.append(self._set() or self._range())
        self._at += 1
        return f"[{'^' if negated else ''}{''.join(items)}]"

    def _range(self) -> str:
        first = self._class_member()
        if not self._text.startswith("-", self._at) or self._text[self._at + 1 : self._at + 2] in ("", "]"):
            return re.escape(first)
        self._at += 1
        last = self._class_member()
        if last < first:
            self._fail(f"illegal character range '{first}-{last}'")
        return f"{re.escape(first)}-{re.escape(last)}"

    def _class_member(self) -> str:
        if self._at >= len(self._text):
            self._fail("unclosed character class")
        if self._text.startswith("&&", self._at):
            self._fail("class intersection '&&' is not supported")
        if self._text[self._at] == "[":
            self._fail("a class in a class is not supported")
        if self._text[self._at] in "({":
            self._at += 1
            return self._text[self._at - 1]
        return self._member()

    def _refuse(self) -> NoReturn:
        """Name the construct here, which is not supported."""
        construct = _REFUSED.match(self._text, self._at)
        assert construct is not None
        kind = str(construct.lastgroup).replace("_", " ")
        self._fail(f"{kind} '{construct[0]}' is not supported")

    def _fail(self, reason: str) -> NoReturn:
        raise _UnsupportedError(f"{reason}, near index {self._at} of '{self._text}'")
