"""Fills a settings class from the options that its fields name.

A field `provenance_header: Annotated[bool, FromOption("provenance.header")]` gets the parsed value of that
option, so that a new option needs its declaration, this field, and the place that uses it.
"""

from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Annotated, Any, Protocol, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FromOption:
    """The option that a field's value comes from. A `float` from an option in milliseconds is in seconds."""

    name: str


class ParsedOptions(Protocol):
    """The parsed values of options, by name."""

    def __getitem__(self, name: str, /) -> object: ...


def filled(settings: "partial[T]", options: ParsedOptions) -> T:
    """The settings with every field set that names an option; `partial` has the others."""
    hints = get_type_hints(settings.func, include_extras=True)
    values = {field: _value(hint, options) for field, hint in hints.items() if get_origin(hint) is Annotated}
    return settings(**values)


def _value(hint: Any, options: ParsedOptions) -> object:
    kind, option = get_args(hint)
    value = options[option.name]
    if kind is float:
        assert isinstance(value, int)
        return value / 1000 if option.name.endswith(".ms") else float(value)
    return kind(value) if isinstance(kind, type) and issubclass(kind, Enum) else value
