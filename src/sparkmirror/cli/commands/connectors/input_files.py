"""Reads connector settings and offsets from a file, standard input, or KEY=VALUE arguments.

JSON or YAML, in both of the forms that Connect knows: bare settings, and `{"name": …, "config": {…}}`.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from sparkmirror.client.connect_objects import PartitionOffset
from sparkmirror.config.conversion.yaml_section import documents
from sparkmirror.config.properties import HIDDEN, is_sensitive, read_text
from sparkmirror.domain.errors import ConfigError

STANDARD_INPUT: Final = "-"
GIVEN_HELP: Final = (
    "settings as KEY=VALUE, which override those of a file, JSON or YAML (- for standard input)"
)
_PAIR: Final = re.compile(r"([\w.-]+)=(.*)", re.DOTALL)


class Given(NamedTuple):
    """`name` and `initial_state` are given beside the settings; a setting of None is to be removed."""

    name: str | None
    config: dict[str, str | None]
    initial_state: str | None = None

    def texts(self) -> dict[str, str]:
        """The settings of a command that removes none. Raises ConfigError."""
        for key, value in self.config.items():
            if value is None:
                raise ConfigError(key, None, "is null; leave out settings that are not wanted")
        return {key: value for key, value in self.config.items() if value is not None}


def read_given(arguments: Sequence[str]) -> Given:
    """A file and pairs, in any order. Raises ConfigError, never with a secret in it."""
    pairs = [match for match in map(_PAIR.fullmatch, arguments) if match is not None]
    files = [argument for argument in arguments if _PAIR.fullmatch(argument) is None]
    if len(files) > 1:
        raise ConfigError(", ".join(files), None, "are several files; a connector is defined by one")
    given = _shaped(_document(files[0]), _called(files[0])) if files else Given(None, {})
    settings = {match[1]: match[2] for match in pairs}
    for key, value in settings.items():
        if is_sensitive(key) and value and not value.startswith("${"):
            raise ConfigError(
                key,
                None,
                "is a secret, and command lines are visible to all users of this machine: put it into a file",
            )
    return Given(
        settings.get("name", given.name), _without_masks({**given.config, **settings}), given.initial_state
    )


def read_file(file: str | Path) -> Given:
    """The same from a file alone."""
    given = _shaped(_document(str(file)), str(file))
    return given._replace(config=_without_masks(given.config))


def read_offsets(file: str) -> list[PartitionOffset]:
    """In the form of `GET /connectors/NAME/offsets`, or the list in it alone. Raises ConfigError."""
    content = _document(file)
    found = content.get("offsets") if isinstance(content, dict) else content
    if not isinstance(found, list) or not found:
        raise ConfigError(_called(file), None, 'has no list of offsets: {"offsets": [{"partition": …, …}]}')
    return [_offset(each, f"{_called(file)}: offset {number}") for number, each in enumerate(found)]


def _offset(item: object, origin: str) -> PartitionOffset:
    if not isinstance(item, dict) or item.keys() != {"partition", "offset"}:
        raise ConfigError(origin, None, "is no object with a partition and an offset, and nothing else")
    partition, offset = item["partition"], item["offset"]
    if not isinstance(partition, dict) or not (offset is None or isinstance(offset, dict)):
        raise ConfigError(origin, None, "needs an object as its partition, an object or null as its offset")
    return {"partition": partition, "offset": offset}


def _document(file: str) -> Any:
    text = sys.stdin.read() if file == STANDARD_INPUT else read_text(Path(file))
    name = _called(file)
    if text.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        return _json(text.lstrip("\ufeff"), name)
    found = documents(text, name)
    if len(found) != 1:
        raise ConfigError(name, None, f"holds {len(found)} documents where one is expected")
    return found[0]


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
    unknown = beside.keys() - {"name", "initial_state"}
    if unknown:
        raise ConfigError(name, None, f"has {', '.join(sorted(unknown))} beside its config")
    return Given(beside.get("name"), dict(_texts(config.items(), name)), beside.get("initial_state"))


def _texts(settings: Iterable[tuple[str, object]], name: str) -> Iterable[tuple[str, str | None]]:
    """Numbers and booleans as JSON writes them, as Connect does."""
    for key, value in settings:
        match value:
            case None | str():
                yield key, value
            case bool() | int() | float():
                yield key, json.dumps(value)
            case _:
                raise ConfigError(key, None, f"is an object or an array; Connect takes strings ({name})")


def _without_masks(config: Mapping[str, str | None]) -> dict[str, str | None]:
    """Refuse the placeholder of a masked secret: it must not overwrite the secret."""
    for key, value in config.items():
        if value is not None and HIDDEN in value:
            raise ConfigError(key, HIDDEN, "is the placeholder of a secret: see --show-secrets")
    return dict(config)


def _called(file: str) -> str:
    return "standard input" if file == STANDARD_INPUT else file
