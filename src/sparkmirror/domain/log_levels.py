"""Log levels by the names that Connect's REST API has for them (those of Log4j), and Python's numbers."""

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
"""From the one that lets everything pass; 0 would mean a logger's parent's level."""


def is_level(text: str) -> bool:
    return text.upper() in _NUMBERS


def level_number(text: str) -> int:
    """A level's number, by its name in any case. Raises KeyError for what is none."""
    return _NUMBERS[text.upper()]


def level_name(number: int) -> str:
    """The level that lets the same pass as this number."""
    return next((name for name, of_level in _NUMBERS.items() if number <= of_level), "OFF")
