"""Reads connectors' settings as people and REST clients write them: JSON, or properties. Pure.

JSON is read as Java's worker reads it: a number keeps its own text, and of a key that is there twice the last
value counts.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn

from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError

NULL: Final = "Null value can not be supplied as the configuration value"


class WrittenConnector(NamedTuple):
    """`beside` are the keys beside `config`; `remarks` are about how the settings are written."""

    name: str | None
    settings: Properties
    beside: tuple[str, ...] | None = None
    remarks: tuple[str, ...] = ()


def json_value(
    text: str,
    repeated: Callable[[str, object, object], None] = lambda *_: None,
    parse_int: Callable[[str], object] = str,
    parse_float: Callable[[str], object] = str,
) -> object:
    """Parse JSON, numbers as their texts. Raises ValueError, and RecursionError.

    `repeated` is told the key and both values of a key that is there twice.
    """

    def made(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in pairs:
            if key in found:
                repeated(key, found[key], value)
            found[key] = value
        return found

    return json.loads(
        text,
        object_pairs_hook=made,
        parse_int=parse_int,
        parse_float=parse_float,
        parse_constant=_refuse_constant,
    )


def written_connectors(text: str, file: str) -> list[WrittenConnector]:
    """The connectors of a JSON text: settings, `{"name": …, "config": {…}}`, or an array of the latter.

    Raises ConfigError naming the file, and the line of what is no JSON; never with a value in it.
    """
    remarks: list[str] = []

    def repeated(key: str, one: object, other: object) -> None:
        which = "with one value" if one == other else "and the last value counts, as in Java"
        remarks.append(f"{key} is there twice, {which}")

    try:
        content = json_value(text.lstrip("\ufeff"), repeated)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ConfigError(file, None, f"is no JSON: {error.msg}, {where}") from error
    except ValueError as error:
        raise ConfigError(file, None, f"is no JSON: {error}") from error
    except RecursionError as error:
        raise ConfigError(file, None, "is nested too deeply") from error
    found = [_connector(item, file) for item in (content if isinstance(content, list) else [content])]
    return [one._replace(remarks=tuple(remarks)) for one in found]


def _connector(item: object, file: str) -> WrittenConnector:
    if not isinstance(item, dict):
        raise ConfigError(file, None, "holds no connector: an object of settings is expected")
    wrapped = item.get("config")
    if not isinstance(wrapped, dict):
        settings = _settings(item, file)
        return WrittenConnector(settings.get("name"), settings)
    settings, name = _settings(wrapped, file), item.get("name")
    if isinstance(name, str) and settings.get("name", name) != name:
        raise ConfigError(file, None, f"has two names, {name} and {settings['name']}")
    beside = tuple(key for key in item if key != "config")
    return WrittenConnector(name if isinstance(name, str) else None, settings, beside)


def _settings(content: Mapping[str, Any], file: str) -> Properties:
    return Properties(dict(_texts(content, file)))


def _texts(content: Mapping[str, Any], file: str) -> Iterator[tuple[str, str]]:
    """Booleans become texts as in JSON, as in Connect; numbers are texts already."""
    for key, value in content.items():
        match value:
            case str():
                yield key, value
            case bool():
                yield key, "true" if value else "false"
            case None:
                raise ConfigError(key, None, f"{NULL}; leave out settings that are not wanted ({file})")
            case _:
                raise ConfigError(key, None, f"is an object or an array; Connect takes texts ({file})")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no value of JSON")
