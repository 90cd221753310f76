"""Reads connector settings from a file or standard input.

JSON, in both of the forms that Connect knows: bare settings, and `{"name": …, "config": {…}}`.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from sparkmirror.config.properties import HIDDEN, read_text
from sparkmirror.domain.errors import ConfigError

STANDARD_INPUT: Final = Path("-")


class Given(NamedTuple):
    """`name` is given beside the settings."""

    name: str | None
    config: Mapping[str, str]


def read_file(file: Path) -> Given:
    """Read settings, from standard input for `-`. Raises ConfigError, never with a secret in it."""
    name = "standard input" if file == STANDARD_INPUT else str(file)
    text = sys.stdin.read() if file == STANDARD_INPUT else read_text(file)
    given = _shaped(_json(text.lstrip("\ufeff"), name), name)
    for key, value in given.config.items():
        if HIDDEN in value:  # it must not overwrite the secret
            raise ConfigError(key, HIDDEN, "is the placeholder of a masked secret")
    return given


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _object(pairs, name))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ConfigError(name, None, f"is no JSON: {error.msg}, {where}") from error
    except RecursionError as error:
        raise ConfigError(name, None, "is nested too deeply") from error


def _object(pairs: Sequence[tuple[str, object]], name: str) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ConfigError(name, None, "has a key twice")
    return found


def _shaped(content: object, name: str) -> Given:
    if not isinstance(content, dict):
        raise ConfigError(name, None, "holds no connector: an object of settings is expected")
    config = content.get("config")
    if not isinstance(config, dict):
        settings = dict(_texts(content.items(), name))
        return Given(settings.get("name"), settings)
    beside = dict(_texts(((key, value) for key, value in content.items() if key != "config"), name))
    unknown = beside.keys() - {"name"}
    if unknown:
        raise ConfigError(name, None, f"has {', '.join(sorted(unknown))} beside its config")
    return Given(beside.get("name"), dict(_texts(config.items(), name)))


def _texts(settings: Iterable[tuple[str, object]], name: str) -> Iterable[tuple[str, str]]:
    """Numbers and booleans become text as in JSON, as in Connect."""
    for key, value in settings:
        match value:
            case str():
                yield key, value
            case bool() | int() | float():
                yield key, json.dumps(value)
            case None:
                raise ConfigError(key, None, "is null; leave out settings that are not wanted")
            case _:
                raise ConfigError(key, None, f"is an object or an array; Connect takes strings ({name})")
