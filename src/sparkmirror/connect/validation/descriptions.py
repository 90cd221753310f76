"""What Connect lists as plugins, and how it describes their options.

Kafka's options are described in its own words, captured by `tests/golden/config/Describe.java`. Parsing
follows our tables; options that Kafka doesn't have are described from what the tables say.
"""

import json
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any, Final, NamedTuple

from sparkmirror.config.connector_options import (
    CHECKPOINT_CONNECTOR,
    CONNECTORS,
    OWN_CHECKPOINT,
    OWN_SOURCE,
    SOURCE_CONNECTOR,
)
from sparkmirror.config.definitions import Definition, Option, Required, Value
from sparkmirror.domain.connect import ConnectError

KAFKA_VERSION: Final = "4.3.1"
"""The release whose Connect is spoken here."""

BYTE_ARRAY_CONVERTER: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"

KeyInfo = dict[str, Any]
"""Connect's ConfigKeyInfo."""

_OWN: Final = {SOURCE_CONNECTOR: OWN_SOURCE, CHECKPOINT_CONNECTOR: OWN_CHECKPOINT}
_LATEST: Final = "latest"


class _Captured(NamedTuple):
    groups: list[str]
    tables: Mapping[str, list[str]]
    described: Mapping[str, KeyInfo]
    differing: Mapping[str, Mapping[str, KeyInfo]]


def plugins(*, connectors_only: bool = True) -> list[dict[str, str]]:
    """PluginInfo of each plugin, in Connect's order: connectors first, each kind by name."""
    kinds = [(name, "source") for name in sorted(CONNECTORS)]
    if not connectors_only:
        kinds += [(BYTE_ARRAY_CONVERTER, "converter"), (BYTE_ARRAY_CONVERTER, "header_converter")]
    return [{"class": name, "type": kind, "version": KAFKA_VERSION} for name, kind in kinds]


def plugin_config_keys(plugin: str) -> list[KeyInfo]:
    """ConfigKeyInfo of each of a plugin's options. Raises ConnectError for one that isn't there."""
    if plugin in _aliases(BYTE_ARRAY_CONVERTER, "Converter"):
        return table("converter")
    found = connector_class(plugin)
    if found is None:
        raise ConnectError(HTTPStatus.NOT_FOUND, f"Unknown plugin {plugin}.")
    own = connector_table(found)
    names = {info["name"] for info in own}
    return own + [info for info in table("framework") if info["name"] not in names]


def connector_class(name: str) -> str | None:
    """The connector that a name stands for: its class, or that without package, or "Connector"."""
    return next((known for known in CONNECTORS if name in _aliases(known, "Connector")), None)


def connector_table(connector: str) -> list[KeyInfo]:
    """How a connector's options are described: Kafka's, then our own."""
    return table(connector) + [_described(option) for option in own_options(connector)]


def own_options(connector: str) -> Definition:
    """What a connector can be told beyond Kafka's."""
    return _OWN.get(connector, Definition(()))


def table(name: str) -> list[KeyInfo]:
    """How Kafka describes a table's options: `framework`, `producer`, `admin`, `converter`, or a class."""
    captured = _captured()
    differing = captured.differing.get(name, {})
    return [{"name": key} | captured.described[key] | differing.get(key, {}) for key in captured.tables[name]]


def groups() -> list[str]:
    """The headings under which the options of a source connector stand."""
    return list(_captured().groups)


def without_package(class_name: str) -> str:
    return class_name.rpartition(".")[2]


def is_spoken_version(text: str) -> bool:
    """Whether a `….plugin.version` is met by what is here (KIP-891)."""
    return text == _LATEST or text.strip() in {KAFKA_VERSION, f"[{KAFKA_VERSION}]"}


def _aliases(class_name: str, suffix: str) -> tuple[str, str, str]:
    simple = without_package(class_name)
    return class_name, simple, simple.removesuffix(suffix)


def _described(option: Option) -> KeyInfo:
    return {
        "name": option.name,
        "type": option.type.value,
        "required": option.required,
        "default_value": None if isinstance(option.default, Required) else shown(option.default),
        "importance": option.importance.value,
        "documentation": option.doc,
        "group": option.group,
        "order_in_group": -1,
        "width": "NONE",
        "display_name": option.name,
        "dependents": [],
    }


def shown(value: Value) -> str | None:
    """A value as Kafka's `convertToString` writes it; passwords never."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


@cache
def _captured() -> _Captured:
    file = files("sparkmirror.config") / "connect_definitions.json"
    return _Captured(**json.loads(file.read_text(encoding="utf-8")))
