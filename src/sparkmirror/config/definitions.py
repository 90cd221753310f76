"""Defines options, and parses property maps by tables of them, as Kafka's ConfigDef does.

An option is declared once, in `connector_options`, `client_options` or `worker_options`; parsing, `/validate`
and docs/configuration.md derive from it.
"""

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from sparkmirror.config.properties import HIDDEN, Properties
from sparkmirror.domain.errors import ConfigError, InvalidConfigError

JAVA_WHITESPACE: Final = "".join(map(chr, range(33)))
"""The characters that Java's `String.trim` removes."""


_LIST_WHITESPACE: Final = " \t\n\v\f\r"
"""The characters of `\\s` in Java, which splits lists at `\\s*,\\s*`."""


class Type(Enum):
    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"  # noqa: S105 - a type's name


class Required(Enum):
    """The default of an option that has none."""

    REQUIRED = "required"


REQUIRED: Final = Required.REQUIRED


@dataclass(frozen=True, slots=True)
class Password:
    """A secret text that never prints itself."""

    value: str

    def __str__(self) -> str:
        return HIDDEN

    def __repr__(self) -> str:
        return HIDDEN


Value = bool | int | float | str | tuple[str, ...] | Password | None
Validator = Callable[[Value], Value]
"""Returns the value to use; raises ValueError with the reason when it is not acceptable."""


@dataclass(frozen=True, slots=True)
class Option:
    """A setting. `doc` describes an option of ours; `kafka_options` has the descriptions of Kafka's."""

    name: str
    type: Type
    default: Value | Required
    doc: str | None = None
    validator: Validator | None = None

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    def parse(self, text: str) -> Value:
        """The typed value of a text. Raises ValueError with Kafka's reason."""
        value = self.parse_type(text)
        return value if self.validator is None else self.validator(value)

    def parse_type(self, text: str) -> Value:
        """The value that a text has by its type alone, acceptable or not. Raises ValueError."""
        return _PARSERS[self.type](text.strip(JAVA_WHITESPACE))


class Values:
    """The parsed values of a table's options, by name; asking for another type than declared is a bug."""

    __slots__ = ("_given", "_values")

    def __init__(self, values: Mapping[str, Value], given: Collection[str]) -> None:
        self._values = dict(values)
        self._given = frozenset(given)

    def __repr__(self) -> str:
        return f"Values({self._values})"

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def given(self, name: str) -> bool:
        """Whether the option is set, to whatever value."""
        return name in self._given

    def boolean(self, name: str) -> bool:
        value = self._values[name]
        assert isinstance(value, bool), name
        return value

    def integer(self, name: str) -> int:
        value = self._values[name]
        assert isinstance(value, int), name
        return value

    def seconds(self, name: str) -> float:
        """An option in milliseconds, in seconds."""
        return self.integer(name) / 1000

    def string(self, name: str) -> str:
        value = self._values[name]
        assert isinstance(value, str), name
        return value

    def strings(self, name: str) -> tuple[str, ...]:
        value = self._values[name]
        assert isinstance(value, tuple), name
        return value


class Definition:
    """A table of options. Immutable; `a | b` has the options of both."""

    __slots__ = ("_options",)

    def __init__(self, options: Iterable[Option]) -> None:
        self._options = {option.name: option for option in options}

    def __iter__(self) -> Iterator[Option]:
        return iter(self._options.values())

    def __or__(self, other: "Definition") -> "Definition":
        return Definition((*self, *other))

    def __getitem__(self, name: str) -> Option:
        return self._options[name]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._options)

    def parse(self, properties: Properties) -> Values:
        """Typed values of all options. Raises InvalidConfigError with every error there is."""
        errors: list[ConfigError] = []
        values: dict[str, Value] = {}
        for option in self:
            try:
                values[option.name] = _value(option, properties)
            except ConfigError as error:
                errors.append(error)
        if errors:
            raise InvalidConfigError(errors)
        return Values(values, self.names & properties.keys())

    def unknown(self, properties: Mapping[str, str]) -> tuple[tuple[str, str | None], ...]:
        """The keys that no option has, each with the most similar name that one has."""
        return tuple((key, nearest(key, self.names)) for key in properties if key not in self._options)


def nearest(key: str, names: Iterable[str], similarity: float = 0.7) -> str | None:
    """The name most similar to `key`, if one is similar enough."""
    return next(iter(difflib.get_close_matches(key, sorted(names), n=1, cutoff=similarity)), None)


def _value(option: Option, properties: Properties) -> Value:
    text = properties.get(option.name)
    if text is None:
        if isinstance(option.default, Required):
            reason = f'Missing required configuration "{option.name}" which has no default value.'
            raise properties.error(option.name, reason)
        return option.default
    try:
        return option.parse(text)
    except ValueError as error:
        raise properties.error(option.name, str(error)) from None


def _boolean(text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise ValueError("Expected value to be either true or false")


def _integer(kind: Type, bits: int) -> Callable[[str], int]:
    limit = 1 << (bits - 1)

    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?\d+", text) or not -limit <= int(text) < limit:
            raise ValueError(f"Not a number of type {kind.value}")
        return int(text)

    return parse


def _double(text: str) -> float:
    if not re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?[fFdD]?", text):
        raise ValueError("Not a number of type DOUBLE")
    return float(text.rstrip("fFdD"))


def _list(text: str) -> tuple[str, ...]:
    return tuple(item.strip(_LIST_WHITESPACE) for item in text.split(",")) if text else ()


_PARSERS: Final[Mapping[Type, Callable[[str], Value]]] = {
    Type.BOOLEAN: _boolean,
    Type.STRING: str,
    Type.INT: _integer(Type.INT, 32),
    Type.SHORT: _integer(Type.SHORT, 16),
    Type.LONG: _integer(Type.LONG, 64),
    Type.DOUBLE: _double,
    Type.LIST: _list,
    Type.CLASS: str,
    Type.PASSWORD: Password,
}
