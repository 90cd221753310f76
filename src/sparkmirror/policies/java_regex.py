r"""Java regular expressions, read by Java's rules and matched by Python's engine.

MM2's lists of topics and groups are Java patterns. The two dialects are similar but differ in what `.`, `$`,
`\w` and flags mean, so a pattern is parsed as `java.util.regex.Pattern` does and rewritten without
flags, every set spelled out. What has no faithful counterpart is refused, as is what Java refuses.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, NoReturn

import regex

from sparkmirror.domain.errors import ConfigError
from sparkmirror.policies.char_sets import ANY, ESCAPED_SETS, LINE_TERMINATORS, CharSet, named_set

_REPETITIONS_MAX: Final = 2**31 - 1
_RANGES_MAX: Final = 20_000
"""So many ranges may the large classes of a pattern have in all: `\\p{L}` alone has more than 600."""
_SMALL_CLASS: Final = 16

_REPEATED_MAX: Final = 100_000
"""The engine writes out `a{1000}`: so many atoms may the repetitions of a pattern add."""

_AT_ONCE_S: Final = 0.002
_MATCH_MAX_S: Final = 0.2
"""CPU time for one name. An ordinary pattern takes microseconds."""
_NAME_MAX: Final = 249
"""The length of a topic's name; groups' ids and origins can be longer."""
_STEPS_MAX: Final = _NAME_MAX**2 * 4
"""What takes at most so many steps, about 2 ms, needs no clock: reading it takes longer than most matches."""

_QUOTE: Final = re.compile(r"\\Q(.*?)(?:\\E|\Z)|\\.|[^\\]+|\\\Z", re.DOTALL)
_GROUP: Final = re.compile(
    r"\?(?:(?P<plain><[=!]|[:=!>])|<(?P<name>[a-zA-Z][a-zA-Z0-9]*)>"
    r"|(?P<on>[a-zA-Z]*)(?:-(?P<off>[a-zA-Z]*))?(?P<end>[:)]))"
)
_QUANTIFIER: Final = re.compile(r"(?P<range>[*+?]|\{(?P<low>[0-9]+)(?:,(?P<high>[0-9]*))?\})(?P<mode>[?+]?)")
_PROPERTY: Final = re.compile(r"\{([^}]+)\}|([A-Z])")
_HEX: Final = re.compile(r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})")
_OCTAL: Final = re.compile(r"0([0-3][0-7]{2}|[0-7]{1,2})")
_CONTROL: Final = re.compile(r"c([@-\[\]-_?])")

_ESCAPED_CHARS: Final[Mapping[str, str]] = {
    "a": "\a",
    "e": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}
_END_OF_TEXT: Final = r"(?:\Z|(?=\r\n\Z|[\r\x85\u2028\u2029]\Z)|(?<!\r)(?=\n\Z))"
_END_OF_LINE: Final = r"(?:\Z|(?=[\r\x85\u2028\u2029])|(?<!\r)(?=\n))"
_START_OF_LINE: Final = r"(?:(?!\Z)(?:\A|(?<=[\n\x85\u2028\u2029])|(?<=\r)(?!\n)))"
_WORD_EDGE: Final = "(?:(?<=[0-9A-Z_a-z])(?![0-9A-Z_a-z])|(?<![0-9A-Z_a-z])(?=[0-9A-Z_a-z]))"
_ASSERTIONS: Final[Mapping[str, str]] = {
    "A": r"\A",
    "z": r"\Z",
    "Z": _END_OF_TEXT,
    "b": _WORD_EDGE,
    "B": f"(?!{_WORD_EDGE})",  # Python's own \B does not match an empty text
}


class JavaPattern:
    """A compiled pattern of a setting, whose matching ends in bounded time."""

    def __init__(self, key: str, pattern: str, translation: str, *, is_quick: bool) -> None:
        """`translation` is the pattern in the engine's dialect. Raises `regex.error`.

        `is_quick`: no name of a topic can take more than `_STEPS_MAX` steps.
        """
        self._is_quick = is_quick
        self._key = key
        self.pattern = pattern
        self._fullmatch = regex.compile(translation).fullmatch

    def fullmatch(self, name: str) -> bool:
        """Whether the whole name matches. Raises ConfigError if that takes too long."""
        if self._is_quick and len(name) <= _NAME_MAX:
            return self._fullmatch(name) is not None
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
    """One pattern for a list: the items joined by `|`, to be used with `fullmatch`.

    As in MM2 an empty list matches nothing, and items are not grouped: `(?i)` in one reaches the next.
    Raises ConfigError with `key` for what Java refuses or Python can't match the same way.
    """
    joined = "|".join(patterns)
    if not patterns:
        return JavaPattern(key, joined, "(?!)", is_quick=True)
    with _named_errors(key, joined):
        translator = _Translator(joined)
        translation = translator.translate()
        return JavaPattern(key, joined, translation, is_quick=translator.steps <= _STEPS_MAX)


def compile_capturing(pattern: str, key: str) -> "regex.Pattern[str]":
    """One pattern whose groups capture, to be matched with a time-out. Raises as `compile_list`."""
    with _named_errors(key, pattern):
        return regex.compile(_Translator(pattern, captures=True).translate())


@contextmanager
def _named_errors(key: str, joined: str) -> Iterator[None]:
    try:
        yield
    except _UnsupportedError as exc:
        raise ConfigError(key, joined, f"not a usable Java regular expression: {exc}") from exc
    except (re.error, regex.error) as exc:
        raise ConfigError(
            key, joined, f"this Java regular expression has no Python counterpart: {exc}"
        ) from exc
    except RecursionError as exc:
        raise ConfigError(key, joined, "this regular expression is nested too deeply") from exc


class _UnsupportedError(Exception):
    """Java would refuse the pattern, or nothing in Python means the same."""


@dataclass(frozen=True, slots=True)
class _Flags:
    ignore_case: bool = False
    dot_all: bool = False
    multiline: bool = False

    def switched(self, letters: str, *, on: bool) -> "_Flags":
        names = {"i": "ignore_case", "s": "dot_all", "m": "multiline"}
        unknown = letters.strip("ism")
        if unknown:
            raise _UnsupportedError(f"flag '{unknown[0]}' is not supported (only i, s and m are)")
        return replace(self, **{names[letter]: on for letter in letters})


class _Translator:
    """Recursive descent over one Java pattern; each method returns the Python text of what it read."""

    def __init__(self, pattern: str, *, captures: bool = False) -> None:
        """`captures`: groups capture, as in Java. Else nothing refers to their text, and they need not."""
        self._captures = captures
        self._text = _QUOTE.sub(_without_quote, pattern)
        self._at = 0
        self._flags = _Flags()
        self._names: set[str] = set()
        self._choices = 0
        """How many choices there were so far: between alternatives, and of how often to repeat."""
        self._looks_behind = 0
        """How many look-behinds are open."""
        self.has_look_behinds = False
        self.steps = 0
        """The most that a match with a topic's name takes, as far as it is known to be few."""
        self._ranges_left = _RANGES_MAX
        self._atoms = 0
        self._atoms_max = len(pattern) + _REPEATED_MAX

    def translate(self) -> str:
        translation = self._alternatives(self._whole_alternative)
        if self._at < len(self._text):
            self._fail("unmatched ')'")
        if self.has_look_behinds:
            re.compile(translation)  # refuses those without a fixed length, which `regex` takes
        return translation

    def _counted(self, chars: CharSet) -> CharSet:
        if len(chars.ranges) > _SMALL_CLASS:
            self._ranges_left -= len(chars.ranges)
        if self._ranges_left < 0:
            raise _UnsupportedError("its character classes have too many ranges")
        return chars

    def _fail(self, reason: str) -> NoReturn:
        raise _UnsupportedError(f"{reason}, near index {self._at} of '{self._text}'")

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        char = self._peek()
        self._at += 1
        return char

    def _take_match(self, token: re.Pattern[str]) -> re.Match[str] | None:
        match = token.match(self._text, self._at)
        if match:
            self._at = match.end()
        return match

    # What an alternative's flags switch stays switched in the next ones, until the group ends.
    def _alternatives(self, read: Callable[[], str]) -> str:
        sequences = [read()]
        while self._peek() == "|":
            self._at += 1
            self._choices += 1
            sequences.append(read())
        return "|".join(sequences)

    def _whole_alternative(self) -> str:
        choices = self._choices
        sequence = self._sequence()
        self.steps += _NAME_MAX ** min(self._choices - choices, 3)
        return sequence

    def _sequence(self) -> str:
        parts: list[str] = []
        while self._peek() not in ("", "|", ")"):
            choices, atoms = self._choices, self._atoms
            atom = self._atom()
            if atom is not None:
                self._atoms += 1
                parts.append(self._quantified(atom, self._atoms - atoms, has_choices=self._choices > choices))
        return "".join(parts)

    def _atom(self) -> str | None:
        char = self._take()
        if char in "*+?{":
            self._fail(f"nothing to repeat before '{char}'")
        match char:
            case "(":
                return self._group()
            case "[":
                return self._counted(self._class()).to_regex()
            case "\\":
                return self._escape()
            case "." | "^" | "$":
                return self._flagged(char)
            case _:
                return self._literal(ord(char))

    def _flagged(self, char: str) -> str:
        match char:
            case ".":
                return (ANY if self._flags.dot_all else ~LINE_TERMINATORS).to_regex()
            case "^":
                return _START_OF_LINE if self._flags.multiline else r"\A"
            case _:
                return _END_OF_LINE if self._flags.multiline else _END_OF_TEXT

    def _literal(self, code_point: int) -> str:
        return self._cased(CharSet.of(chr(code_point))).to_regex()

    def _cased(self, chars: CharSet) -> CharSet:
        return chars.ignoring_ascii_case() if self._flags.ignore_case else chars

    def _quantified(self, atom: str, atoms: int, *, has_choices: bool) -> str:
        quantifier = self._take_match(_QUANTIFIER)
        if quantifier is None:
            if self._peek() == "{":
                self._fail("illegal repetition")
            return atom
        low, high = int(quantifier["low"] or 0), int(quantifier["high"] or _REPETITIONS_MAX)
        if not low <= high <= _REPETITIONS_MAX:
            self._fail("illegal repetition range")
        self._atoms += atoms * max(low, int(quantifier["high"] or 0))
        if self._atoms > self._atoms_max:
            raise _UnsupportedError(f"its repetitions add up to more than {_REPEATED_MAX}")
        if self._looks_behind and has_choices and quantifier["mode"] != "+":
            self._fail("a look-behind that repeats what has a choice has no obvious length")
        is_fixed = low == high or (quantifier["low"] is not None and "," not in quantifier["range"])
        self._choices += not is_fixed
        is_counted = quantifier["low"] is not None and (low > _NAME_MAX or not atom.startswith("["))
        if has_choices or is_counted:
            self.steps += _STEPS_MAX + 1  # nested repetitions can take exponential time
        if quantifier["mode"] == "+":
            return f"(?>(?>{atom}){quantifier['range']})"  # not even a single repetition is tried another way
        return f"(?:{atom}){quantifier['range']}{quantifier['mode']}"

    def _group(self) -> str | None:
        before = self._flags
        opening = self._group_opening()
        if opening is None:
            return None
        self._looks_behind += opening.startswith("(?<")
        self.has_look_behinds |= self._looks_behind > 0
        body = self._alternatives(self._sequence)
        self._looks_behind -= opening.startswith("(?<")
        if self._take() != ")":
            self._fail("unclosed group")
        self._flags = before
        return f"{opening}{body})"

    def _group_opening(self) -> str | None:
        if self._peek() != "?":
            return "(" if self._captures else "(?:"
        head = self._take_match(_GROUP)
        if head is None:
            self._fail("unknown group type")
        if head["plain"]:
            return f"(?{head['plain']}"
        if head["name"]:
            self._declare(head["name"])
            return f"(?P<{head['name']}>" if self._captures else "(?:"
        self._flags = self._flags.switched(head["on"], on=True).switched(head["off"] or "", on=False)
        return "(?:" if head["end"] == ":" else None

    def _declare(self, name: str) -> None:
        if name in self._names:
            self._fail(f"group <{name}> is already defined")
        self._names.add(name)

    def _escape(self) -> str:
        kind = self._peek()
        if kind in _ASSERTIONS and not self._text.startswith("b{", self._at):
            return _ASSERTIONS[self._take()]
        escaped = self._escaped_chars()
        return self._counted(escaped).to_regex() if isinstance(escaped, CharSet) else self._literal(escaped)

    def _escaped_chars(self) -> CharSet | int:
        """Read what follows a backslash: a set, or one code point."""
        kind = self._peek()
        if kind in ("p", "P"):
            return self._property()
        if kind and kind.lower() in ESCAPED_SETS:
            chars = ESCAPED_SETS[self._take().lower()]
            return ~chars if kind.isupper() else chars
        if kind in _ESCAPED_CHARS:
            return ord(_ESCAPED_CHARS[self._take()])
        return self._escaped_code_point()

    def _escaped_code_point(self) -> int:
        if match := self._take_match(_HEX):
            return self._code_point(int(match[1] or match[2] or match[3], 16))
        if match := self._take_match(_OCTAL):
            return int(match[1], 8)
        if match := self._take_match(_CONTROL):
            return ord(match[1]) ^ 64
        char = self._peek()
        if char and char in "123456789k":
            self._fail("back-references are not supported")
        if not char or (char.isascii() and char.isalnum()):
            self._fail(f"escape '\\{char}' is illegal or not supported")
        return ord(self._take())

    def _code_point(self, value: int) -> int:
        if value > ord("\U0010ffff") or 0xD800 <= value <= 0xDFFF:
            self._fail(f"U+{value:X} is no character")
        return value

    def _property(self) -> CharSet:
        complement = self._take() == "P"
        match = self._take_match(_PROPERTY)
        if match is None:
            self._fail("malformed character property")
        name = match[1] or match[2]
        chars = named_set(name, ignore_case=self._flags.ignore_case)
        if chars is None:
            self._fail(f"character property '{name}' is unknown or not supported")
        return ~chars if complement else chars

    def _class(self) -> CharSet:
        negated = self._peek() == "^"
        self._at += negated
        items: list[CharSet] = []
        while not items or self._peek() != "]":  # a first `]` is a member
            if self._text.startswith("&&", self._at):
                self._fail("class intersection '&&' is not supported")
            items.append(self._counted(self._class_item()))
        self._at += 1
        chars = CharSet.of(*(each for item in items for each in item.ranges))
        return ~chars if negated else chars

    def _class_item(self) -> CharSet:
        if self._peek() == "[":
            self._at += 1
            return self._class()
        if self._text.startswith("\\v-", self._at):
            self._fail("'\\v' can't start a range")
        first = self._class_member()
        if isinstance(first, CharSet):
            return first
        if self._peek() != "-" or self._text[self._at + 1 : self._at + 2] in ("[", "]"):
            return self._cased(CharSet.of(chr(first)))
        self._at += 1
        last = self._class_member()
        if isinstance(last, CharSet) or last < first:
            self._fail("illegal character range")
        return self._cased(CharSet.of((first, last)))

    def _class_member(self) -> CharSet | int:
        char = self._take()
        if not char:
            self._fail("unclosed character class")
        return self._escaped_chars() if char == "\\" else ord(char)


def _without_quote(token: re.Match[str]) -> str:
    quoted: str | None = token[1]
    return token[0] if quoted is None else "".join(f"\\x{{{ord(char):x}}}" for char in quoted)
