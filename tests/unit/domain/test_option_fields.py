from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Annotated, NamedTuple

import pytest

from sparkmirror.domain.option_fields import FromOption, filled


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Settings:
    given: str
    count: Annotated[int, FromOption("the.count")]
    name: Annotated[str | None, FromOption("the.name")] = "unused"
    colour: Annotated[Colour, FromOption("the.colour")] = Colour.RED
    timeout_s: Annotated[float, FromOption("the.timeout.ms")] = 1.0
    grace_s: Annotated[float, FromOption("the.grace.seconds")] = 1.0


class Pair(NamedTuple):
    left: Annotated[bool, FromOption("left")] = False
    right: int = 7


OPTIONS = {
    "the.count": 3,
    "the.name": None,
    "the.colour": "red",
    "the.timeout.ms": 1500,
    "the.grace.seconds": 60,
    "more": 1,
}


def test_fields_are_filled_from_the_options_that_they_name() -> None:
    settings = filled(partial(Settings, given="here"), OPTIONS)
    assert settings == Settings("here", 3, None, Colour.RED, 1.5, 60.0)


def test_milliseconds_and_seconds_become_floats() -> None:
    settings = filled(partial(Settings, given="here"), OPTIONS)
    assert [type(value) for value in (settings.timeout_s, settings.grace_s)] == [float, float]


def test_a_named_tuple_is_filled_too() -> None:
    assert filled(partial(Pair), {"left": True}) == Pair(left=True, right=7)


def test_an_option_that_is_not_declared_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"the\.colour"):
        filled(partial(Settings, given="here"), {"the.count": 3, "the.name": None})
