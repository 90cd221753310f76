"""Checks values beyond their type, in the words of Kafka's ConfigDef validators.

A validator returns the value to use or raises ValueError with the reason; `str()` describes it for a reader.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Final

from sparkmirror.config.definitions import Validator, Value

_RANGE: Final = re.compile(r"\[(-?[\d.]+),\.\.\.(?:,(-?[\d.]+))?]")
_CHOICES: Final = re.compile(r"(\(case insensitive\) |list |non-empty list )?(?:\[(.*)])?")


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A number with a lower and perhaps an upper bound, both inclusive."""

    minimum: float
    maximum: float | None = None

    def __call__(self, value: Value) -> Value:
        assert isinstance(value, int | float)
        if value < self.minimum:
            raise ValueError(f"Value must be at least {self.minimum}")
        if self.maximum is not None and value > self.maximum:
            raise ValueError(f"Value must be no more than {self.maximum}")
        return value

    def __str__(self) -> str:
        return f"[{self.minimum},...{'' if self.maximum is None else f',{self.maximum}'}]"


@dataclass(frozen=True, slots=True)
class PositiveOrDefault:
    """A positive count, or -1 for the broker's default (KIP-605)."""

    def __call__(self, value: Value) -> Value:
        assert isinstance(value, int)
        if value < 1 and value != -1:
            raise ValueError("Value must be a positive number, or -1 to use the broker's default")
        return value

    def __str__(self) -> str:
        return "Positive number, or -1 to use the broker's default"


@dataclass(frozen=True, slots=True)
class OneOf:
    """A text out of a fixed set, in exactly this case."""

    choices: tuple[str, ...]

    def __call__(self, value: Value) -> Value:
        if value not in self.choices:
            raise ValueError(f"String must be one of: {', '.join(self.choices)}")
        return value

    def __str__(self) -> str:
        return f"[{', '.join(self.choices)}]"


@dataclass(frozen=True, slots=True)
class OneOfAnyCase:
    """A text out of a fixed set, in any case; the value keeps the user's case."""

    choices: tuple[str, ...]

    def __call__(self, value: Value) -> Value:
        assert isinstance(value, str)
        if value.upper() not in self.choices:
            raise ValueError(f"String must be one of (case insensitive): {', '.join(self.choices)}")
        return value

    def __str__(self) -> str:
        return f"(case insensitive) [{', '.join(self.choices)}]"


@dataclass(frozen=True, slots=True)
class DistinctItems:
    """A list without empty items; repeated ones count once (KIP-1161)."""

    choices: tuple[str, ...] = ()
    may_be_empty: bool = True

    def __call__(self, value: Value) -> Value:
        assert isinstance(value, tuple)
        if not value and not self.may_be_empty:
            raise ValueError("The list must not be empty")
        if "" in value:
            raise ValueError("Items of the list must not be empty")
        if self.choices and not set(value) <= set(self.choices):
            raise ValueError(f"String must be one of: {', '.join(self.choices)}")
        return tuple(dict.fromkeys(value))

    def __str__(self) -> str:
        return f"[{', '.join(self.choices)}]" if self.choices else ""


@dataclass(frozen=True, slots=True)
class UniqueAliases:
    """A list of names of which none may be repeated."""

    def __call__(self, value: Value) -> Value:
        assert isinstance(value, tuple)
        if len(set(value)) < len(value):
            raise ValueError("Duplicate alias provided.")
        return value

    def __str__(self) -> str:
        return "unique aliases"


@dataclass(frozen=True, slots=True)
class NonNull:
    """Any value."""

    def __call__(self, value: Value) -> Value:
        return value

    def __str__(self) -> str:
        return "non-null string"


@dataclass(frozen=True, slots=True)
class NonEmpty:
    """A text of at least one character."""

    def __call__(self, value: Value) -> Value:
        if value == "":
            raise ValueError("String must be non-empty")
        return value

    def __str__(self) -> str:
        return "non-empty string"


@dataclass(frozen=True, slots=True)
class ConnectorNameText:
    """A text that Connect accepts as a connector's name."""

    def __call__(self, value: Value) -> Value:
        assert isinstance(value, str)
        if not value:
            raise ValueError("String may not be empty")
        codes = [str(ord(char)) for char in value if unicodedata.category(char) == "Cc"]
        if codes:
            listed = ", ".join(codes)
            raise ValueError(
                f"String may not contain control sequences but had the following ASCII chars: {listed}"
            )
        return value

    def __str__(self) -> str:
        return "non-empty string without ISO control characters"


@cache
def described_validator(text: str | None) -> Validator | None:
    """The validator that describes itself in Java by this text; None for those that have no counterpart."""
    if text is None:
        return None
    if found := _RANGE.fullmatch(text):
        return AtLeast(_number(found[1]), None if found[2] is None else _number(found[2]))
    if found := _CHOICES.fullmatch(text):
        return _choice(found[1], tuple(found[2].split(", ")) if found[2] else ())
    if text.startswith("Positive number"):
        return PositiveOrDefault()
    if "unique" in text:
        return UniqueAliases()
    return {str(known): known for known in (NonNull(), NonEmpty(), ConnectorNameText())}.get(text)


def _choice(kind: str | None, choices: tuple[str, ...]) -> Validator:
    match kind:
        case None:
            return OneOf(choices)
        case "(case insensitive) ":
            return OneOfAnyCase(choices)
        case _:
            return DistinctItems(choices, may_be_empty=kind == "list ")


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)
