"""Reads Kafka's own options, as `tests/golden/config/Describe.java` captured them from Java.

Kafka's names, types, defaults, validators and descriptions are not repeated in code: `options` parses with
them, and `descriptions` shows them as Connect does.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from sparkmirror.config.definitions import REQUIRED, Definition, Option, Required, Type, Validator, Value
from sparkmirror.config.validators import described_validator

KeyInfo = dict[str, Any]
"""Connect's ConfigKeyInfo."""

_VALIDATOR: Final = "validator"
_NONE: Final[Mapping[str, Any]] = {}


class _Captured(NamedTuple):
    groups: list[str]
    tables: Mapping[str, list[str]]
    described: Mapping[str, KeyInfo]
    differing: Mapping[str, Mapping[str, KeyInfo]]

    def entries(self, table: str) -> list[KeyInfo]:
        differing = self.differing.get(table, {})
        return [{"name": key} | self.described[key] | differing.get(key, {}) for key in self.tables[table]]


@cache
def _captured() -> _Captured:
    file = files("sparkmirror.config") / "kafka_options.json"
    return _Captured(**json.loads(file.read_text(encoding="utf-8")))


def groups() -> list[str]:
    """The headings under which Connect shows the options of a source connector."""
    return list(_captured().groups)


def descriptions(table: str) -> list[KeyInfo]:
    """Connect's ConfigKeyInfos of a table: a connector class, `framework`, `producer`, `admin` or another."""
    return [
        {field: value for field, value in entry.items() if field != _VALIDATOR}
        for entry in _captured().entries(table)
    ]


def options(
    table: str,
    *,
    defaults: Mapping[str, Value] = _NONE,
    validators: Mapping[str, Validator | None] = _NONE,
) -> Definition:
    """The options of a table, with other defaults and validators than Kafka's where given."""
    entries = _captured().entries(table)
    unknown = (defaults.keys() | validators.keys()) - {entry["name"] for entry in entries}
    assert not unknown, unknown
    return Definition(_option(entry, defaults, validators) for entry in entries)


def _option(
    entry: KeyInfo, defaults: Mapping[str, Value], validators: Mapping[str, Validator | None]
) -> Option:
    name, kind = entry["name"], Type(entry["type"])
    validator = validators[name] if name in validators else described_validator(entry[_VALIDATOR])
    if name in defaults:
        default: Value | Required = defaults[name]
    elif entry["required"]:
        default = REQUIRED
    else:
        default = _default(kind, entry["default_value"])
    return Option(name, kind, default, validator=validator)


@cache
def _default(kind: Type, text: str | None) -> Value:
    return None if text is None else Option("", kind, None).parse_type(text)
