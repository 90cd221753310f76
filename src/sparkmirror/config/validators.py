"""What a value must satisfy beyond its type; the wording is that of Kafka's ConfigDef validators.

A validator returns the value to use or raises ValueError with the reason; `str()` describes it for a reader.
"""

import unicodedata
from dataclasses import dataclass

from sparkmirror.config.definitions import Value


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
    """What Connect accepts as a connector's name."""

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
