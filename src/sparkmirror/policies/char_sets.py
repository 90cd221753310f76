r"""Sets of Unicode code points, as Java's regular expressions build their character classes.

Owns set algebra and the names Java gives to sets (`\d`, `\p{Alpha}`, `\p{Lu}`); knows nothing of
patterns. Categories come from Python's Unicode tables, which can be a version apart from a JVM's.
"""

import sys
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

MAX_CODE_POINT: Final = sys.maxunicode
_CASE_STEP: Final = ord("a") - ord("A")

Range = tuple[int, int]
"""First and last code point, both inside."""


@dataclass(frozen=True, slots=True)
class CharSet:
    """A set of code points: sorted ranges that neither overlap nor touch."""

    ranges: tuple[Range, ...]

    @classmethod
    def of(cls, *members: str | Range) -> "CharSet":
        """The union of single characters (each of a string) and of ranges."""
        ranges: list[Range] = []
        for member in members:
            ranges += [(ord(c), ord(c)) for c in member] if isinstance(member, str) else [member]
        return cls(_normalized(ranges))

    def __or__(self, other: "CharSet") -> "CharSet":
        return CharSet(_normalized((*self.ranges, *other.ranges)))

    def __invert__(self) -> "CharSet":
        gaps: list[Range] = []
        start = 0
        for first, last in self.ranges:
            if first > start:
                gaps.append((start, first - 1))
            start = last + 1
        if start <= MAX_CODE_POINT:
            gaps.append((start, MAX_CODE_POINT))
        return CharSet(tuple(gaps))

    def ignoring_ascii_case(self) -> "CharSet":
        """This set and the other case of its ASCII letters: Java's CASE_INSENSITIVE without UNICODE_CASE."""
        twins = [_clipped(r, "A", "Z", _CASE_STEP) for r in self.ranges]
        twins += [_clipped(r, "a", "z", -_CASE_STEP) for r in self.ranges]
        return CharSet(_normalized((*self.ranges, *(r for r in twins if r[0] <= r[1]))))

    def to_regex(self) -> str:
        """A Python regex that matches one member; nothing in it depends on flags."""
        if not self.ranges:
            return "(?!)"
        return f"[{''.join(map(_range_regex, self.ranges))}]"


def _normalized(ranges: Iterable[Range]) -> tuple[Range, ...]:
    merged: list[Range] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def _clipped(chars: Range, first: str, last: str, shift: int) -> Range:
    return max(chars[0], ord(first)) + shift, min(chars[1], ord(last)) + shift


def _range_regex(chars: Range) -> str:
    first, last = chars
    return _escaped(first) if first == last else f"{_escaped(first)}-{_escaped(last)}"


def _escaped(code_point: int) -> str:
    char = chr(code_point)
    return char if char.isascii() and char.isalnum() else f"\\U{code_point:08x}"


ANY: Final = CharSet.of((0, MAX_CODE_POINT))
LINE_TERMINATORS: Final = CharSet.of("\n\r\x85\u2028\u2029")

_LOWER: Final = CharSet.of((ord("a"), ord("z")))
_UPPER: Final = CharSet.of((ord("A"), ord("Z")))
_DIGIT: Final = CharSet.of((ord("0"), ord("9")))
_ALPHA: Final = _LOWER | _UPPER
_SPACE: Final = CharSet.of(" \t\n\x0b\f\r")
_GRAPH: Final = CharSet.of((ord("!"), ord("~")))

ESCAPED_SETS: Final[Mapping[str, CharSet]] = {
    "d": _DIGIT,
    "h": CharSet.of(" \t\xa0\u1680\u180e\u202f\u205f\u3000", (0x2000, 0x200A)),
    "s": _SPACE,
    "v": CharSet.of("\n\x0b\f\r\x85\u2028\u2029"),
    "w": _ALPHA | _DIGIT | CharSet.of("_"),
}
"""What a backslash and a lower-case letter mean; the upper-case letter is the complement."""

_POSIX: Final[Mapping[str, CharSet]] = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "ASCII": CharSet.of((0, 0x7F)),
    "Alpha": _ALPHA,
    "Digit": _DIGIT,
    "Alnum": _ALPHA | _DIGIT,
    "Punct": CharSet.of("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    "Graph": _GRAPH,
    "Print": _GRAPH | CharSet.of(" "),
    "Blank": CharSet.of(" \t"),
    "Cntrl": CharSet.of((0, 0x1F), "\x7f"),
    "XDigit": _DIGIT | CharSet.of((ord("a"), ord("f")), (ord("A"), ord("F"))),
    "Space": _SPACE,
    "L1": CharSet.of((0, 0xFF)),
    "all": ANY,
}

_CASED: Final = ("Lu", "Ll", "Lt")
_CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "L": ("Lu", "Ll", "Lt", "Lm", "Lo"),
    "LC": _CASED,
    "LD": ("Lu", "Ll", "Lt", "Lm", "Lo", "Nd"),
    "M": ("Mn", "Me", "Mc"),
    "N": ("Nd", "Nl", "No"),
    "P": ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"),
    "S": ("Sm", "Sc", "Sk", "So"),
    "Z": ("Zs", "Zl", "Zp"),
    **{c: (c,) for c in (*_CASED, "Lm", "Lo", "Mn", "Me", "Mc", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe")},
    **{c: (c,) for c in ("Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf")},
}


def named_set(name: str, *, ignore_case: bool) -> CharSet | None:
    r"""The set Java calls `\p{name}`, or None for a name that is not known here.

    POSIX names and general categories, the latter also as `Is…`, `gc=…` and `general_category=…`.
    """
    key, equals, value = name.partition("=")
    if equals:
        short = value if key.lower() in ("gc", "general_category") else ""
    else:
        short = name.removeprefix("Is")
    if short in _POSIX:
        return _POSIX[short].ignoring_ascii_case() if ignore_case else _POSIX[short]
    if ignore_case and short in _CASED:
        return _categories(_CASED)
    return _categories(_CATEGORIES[short]) if short in _CATEGORIES else None


@lru_cache(maxsize=len(_CATEGORIES))
def _categories(names: tuple[str, ...]) -> CharSet:
    members = (c for c in range(MAX_CODE_POINT + 1) if unicodedata.category(chr(c)) in names)
    return CharSet(_normalized((c, c) for c in members))
