"""Thousands of generated patterns match the same texts with `java.util.regex` and with the Python port."""

import base64
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from sparkmirror.clusters import find_java
from sparkmirror.domain.errors import ConfigError
from sparkmirror.policies.java_regex import JavaPattern, compile_list

_PROGRAM: Final = Path(__file__).with_name("JavaMatches.java")
_FAST_START: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

WRITTEN: Final = (
    *(
        ".*",
        "orders",
        "orders.*",
        "orders\\..*",
        "(orders|payments)",
        "orders|payments.*",
        "[a-z]+",
        "[^_].*",
    ),
    *("(?!__).*", ".*(?<!-test)", "(?i)ORDERS", "\\Qorders.v1\\E", "^orders$", "mm2.*\\.internal", "__.*"),
    *(
        "(?!mm2|__).*",
        "[\\w.-]+",
        "prod[.-]\\w{3}[.-].*",
        "(?:eu|us)\\.orders",
        ".*[.]v[0-9]{1,2}",
        "orders,",
    ),
    *("\\p{Alnum}+", "[\\p{Lower}\\d]+", ".*?v1", "(o)(r).*", "o++r", "(?>o|or)ders", "a{2,}", "x*+"),
    *(
        ".*[\\-\\.]internal",
        "^(?!us-west\\.).*",
        "^(?!__.*)(?!.*\\.internal).*",
        "^(?!orders$).*",
        "^$",
        "^[\\w]*",
    ),
    *(
        '"*.internal',
        ".apicurio",
        "orders_[0-9]{4}",
        "orders.*   # all of them",
        "retention\\.ms",
        "*",
        "a||b",
    ),
    *(
        "[a-z&&[^o]]+",
        "(.)\\1",
        "(?<n>o)\\k<n>",
        "\\R",
        "\\X",
        "(?x) a",
        "(?u)\\w",
        "(?d).",
        "\\N{DIGIT ONE}",
    ),
)
"""Patterns as in real configurations."""

_ATOMS: Final = (
    *("a", "b", "A", "o", "Z", "0", "7", "_", "-", ".", "\\.", "\\-", "\\_", ",", "\u00e9", "\U0001f600"),
    *("\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\t", "\\n", "\\r", "\\f", "\\p{Alpha}", "\\p{Punct}"),
    *("^", "$", "\\Qa.b\\E", "\\Q*\\E", "\\E", "[ab]", "[^ab]", "[a-c]", "[A-Za-z]", "[\\w.]", "[^\\d_]"),
    *(
        "[]a]",
        "[^]]",
        "[a-]",
        "[-a]",
        "[.]",
        "[*+]",
        "[a-\\d]",
        "[\\d-a]",
        "[X-b]",
        "[a&b]",
        "[ -~]",
        "[^\\W]",
    ),
    *("[#-&]", "[a^]", "[\\]]", "[\\w-.]", "[--0]", "[(]", "[\\p{Lower}a]"),
)
_ATOMS_OF_JAVA: Final = (
    *(
        "\\h",
        "\\H",
        "\\v",
        "\\V",
        "\\x41",
        "\\u0061",
        "\\x{1F600}",
        "\\0101",
        "\\cA",
        "\\e",
        "\\a",
        "\\p{Lu}",
    ),
    *(
        "\\p{L}",
        "\\pL",
        "\\P{Ll}",
        "\\p{IsLl}",
        "\\p{gc=Nd}",
        "\\p{javaLowerCase}",
        "\\p{IsAlphabetic}",
        "\\A",
    ),
    *("\\z", "\\Z", "\\b", "\\B", "\\G", "\\1", "\\k<n>", "\\X", "[a-c[x-z]]", "[^a[b]]", "[a-z&&[^b]]"),
    *("[\\Qa-z\\E]", "[[:a:]]", "[a&&b]", "[&&a]", "[\\x41-\\x43]", "[\\p{Lu}a]"),
)
"""Expressions that only Java accepts."""

_QUANTIFIERS: Final = (
    *("", "", "", "", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,}", "{1,}?"),
    *("*+", "{2}+", "{", "{a}", "{,2}", "{2,1}", "**", "{0}"),
)
_GROUPS: Final = (
    *("(", "(", "(", "(?:", "(?:", "(?:", "(?:", "(?i:", "(?i:", "(?=", "(?!", "(?!", "(?<=", "(?<!"),
    *("(?>", "(?<n>", "(?s:", "(?P<n>", "(?#", "(?u:", "(?", "(?i", "(?'n'"),
)
_SWITCHES: Final = ("(?i)", "(?i)", "(?i)", "(?i)", "(?i)", "(?s)", "(?-i)", "(?x)", "(?^)")
_SOUP: Final = "ab.*+?|()[]{}^$\\-&,0:=!<>iQEdwpLux#_"

TEXTS: Final = (
    *(
        "",
        "a",
        "b",
        "A",
        "B",
        "ab",
        "aB",
        "AB",
        "ba",
        "aa",
        "aaa",
        "abab",
        "a.b",
        "a-b",
        "a_b",
        "-",
        ".",
        "_",
        "0",
    ),
    *(
        "07",
        "a0",
        "Z",
        "z",
        "x",
        "o",
        "orders",
        "ORDERS",
        "orders.v1",
        "orders-test",
        "__a",
        "mm2.x.internal",
    ),
    *(
        "a,b",
        "a b",
        " ",
        "\t",
        "\n",
        "a\n",
        "\na",
        "a\nb",
        "a\r\n",
        "\r",
        "\u00e9",
        "\u00c9",
        "\u0131",
        "\u212a",
    ),
    *("\u017f", "\U0001f600", "a\U0001f600", "\u0663", "\u2028", "a\u2028b", "\x85", "\x0b", "\x1b", "\x01"),
    *(
        "[",
        "]",
        "^",
        "\\",
        "&",
        "*",
        "(",
        "{2}",
        "}",
        "$",
        "|",
        "#",
        ":",
        "Q",
        "E",
        "n",
        "p",
        "\u01c5",
        "\u00df",
    ),
)


class Compared(NamedTuple):
    """Numbers of patterns that both accept, only Java accepts, and neither; and the differing matches."""

    both: int
    only_java: int
    neither: int
    differing: list[str]


def generated(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [_pattern(chance) for _ in range(count)]


def _pattern(chance: random.Random) -> str:
    if chance.random() < 0.15:
        return "".join(chance.choices(_SOUP, k=chance.randint(1, 8)))
    return _alternatives(chance, 0)


def _alternatives(chance: random.Random, depth: int) -> str:
    return "|".join(_sequence(chance, depth) for _ in range(chance.choice((1, 1, 1, 2, 3))))


def _sequence(chance: random.Random, depth: int) -> str:
    parts = []
    for _ in range(chance.choice((0, 1, 1, 2, 2, 3))):
        kind = chance.random()
        if kind < 0.1:
            parts.append(chance.choice(_SWITCHES))
        elif kind < 0.3 and depth < 3:
            parts.append(f"{chance.choice(_GROUPS)}{_alternatives(chance, depth + 1)})")
            parts.append(chance.choice(_QUANTIFIERS))
        else:
            atoms = _ATOMS if chance.random() < 0.97 else _ATOMS_OF_JAVA
            parts += (chance.choice(atoms), chance.choice(_QUANTIFIERS))
    return "".join(parts)


def matched_by_java(patterns: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Let Java match: for each pattern one digit per text, or "refused"."""
    asked = "\n".join((*map(_line, texts), "", *map(_line, patterns), ""))
    command = [find_java().executable, *_FAST_START, str(_PROGRAM)]
    ended = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def _line(text: str) -> str:
    return f"={base64.b64encode(text.encode()).decode()}"


def compare(patterns: Sequence[str], texts: Sequence[str]) -> Compared:
    both = only_java = neither = 0
    differing = []
    for pattern, java in zip(patterns, matched_by_java(patterns, texts), strict=True):
        ours = _ours(pattern)
        if java == "refused":
            neither += ours is None
            differing += [] if ours is None else [f"{pattern!r}: Java refuses it"]
        elif ours is None:
            only_java += 1
        else:
            both += 1
            differing += [
                f"{pattern!r} on {text!r}: Java says {digit}"
                for text, digit in zip(texts, java, strict=True)
                if ours.fullmatch(text) != (digit == "1") and not _differs_among_javas(pattern, text)
            ]
    return Compared(both, only_java, neither, differing)


def _ours(pattern: str) -> JavaPattern | None:
    try:
        return compile_list([pattern], "topics")
    except ConfigError:
        return None


def _differs_among_javas(pattern: str, text: str) -> bool:
    r"""Before JDK 19 `\b` also regarded non-ASCII letters (JDK-8264160)."""
    return not text.isascii() and ("\\b" in pattern or "\\B" in pattern)


def test_patterns_match_as_in_java() -> None:
    patterns = [*WRITTEN, *_ATOMS, *_ATOMS_OF_JAVA, *generated(1500, seed=7)]
    compared = compare(patterns, TEXTS)
    assert compared.differing == []
    # Otherwise the comparison would prove little.
    assert compared.both > len(patterns) / 3
    assert compared.neither > len(patterns) / 10
