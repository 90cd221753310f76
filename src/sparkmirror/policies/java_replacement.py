"""Replacements as Java's `Matcher` reads them, of patterns that `java_regex` compiles. Pure."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from sparkmirror.domain.errors import ConfigError

if TYPE_CHECKING:
    import regex

_REFERENCE: Final = re.compile(r"\$([0-9]+)|(\$.?|\\.?)", re.DOTALL)

Replacement: TypeAlias = Sequence[str | int]
"""Texts, and the groups that are put between them."""


def parse_replacement(text: str, pattern: "regex.Pattern[str]", key: str) -> Replacement:
    """Split a replacement at `$1`. A number has as many digits as there are groups for, as in Java.

    Raises ConfigError.
    """
    parts: list[str | int] = []
    at = 0
    for found in _REFERENCE.finditer(text):
        parts.append(text[at : found.start()])
        at = found.end()
        digits = found[1]
        if digits is None:
            raise ConfigError(key, text, f"'{found[2]}' is not supported: only $ and the number of a group")
        while len(digits) > 1 and int(digits) > pattern.groups:
            digits = digits[:-1]
        if int(digits) > pattern.groups:
            raise ConfigError(key, text, f"the pattern has no group {digits}")
        parts += [int(digits), found[1][len(digits) :]]
    parts.append(text[at:])
    return [part for part in parts if part != ""]


def expanded(replacement: Replacement, match: "regex.Match[str]") -> str:
    """The text in place of a match."""
    return "".join(part if isinstance(part, str) else match[part] or "" for part in replacement)
