"""Maps the log levels of Connect's REST API (those of Log4j) to Python's numbers."""

from collections.abc import Mapping
from typing import Final

OFF: Final = 100
_NUMBERS: Final[Mapping[str, int]] = {
    "ALL": 1,
    "TRACE": 5,
    "DEBUG": 10,
    "INFO": 20,
    "WARN": 30,
    "ERROR": 40,
    "FATAL": 50,
    "OFF": OFF,
}
"""From the most verbose; 0 would mean the level of a logger's parent."""


def is_level(text: str) -> bool:
    return text.upper() in _NUMBERS


def level_number(text: str) -> int:
    """A level's number, by its name in any case. Raises KeyError for what is none."""
    return _NUMBERS[text.upper()]


def level_name(number: int) -> str:
    """The level with the same threshold as this number."""
    return next((name for name, of_level in _NUMBERS.items() if number <= of_level), "OFF")
