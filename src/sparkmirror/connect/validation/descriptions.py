"""Lists Connect's plugins and describes their options, Kafka's in its own words, ours as declared."""

from http import HTTPStatus
from typing import Final

from sparkmirror.config import kafka_options
from sparkmirror.config.connector_options import CONNECTORS, OWN_OPTIONS
from sparkmirror.config.definitions import Option, Required, Value
from sparkmirror.config.kafka_options import KeyInfo
from sparkmirror.domain.connect import ConnectError

KAFKA_VERSION: Final = "4.3.1"
"""The release whose Connect is spoken here."""

BYTE_ARRAY_CONVERTER: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"

_LATEST: Final = "latest"


def plugins(*, connectors_only: bool = True) -> list[dict[str, str]]:
    """PluginInfo of each plugin, in Connect's order: connectors first, each kind by name."""
    kinds = [(name, "source") for name in sorted(CONNECTORS)]
    if not connectors_only:
        kinds += [(BYTE_ARRAY_CONVERTER, "converter"), (BYTE_ARRAY_CONVERTER, "header_converter")]
    return [{"class": name, "type": kind, "version": KAFKA_VERSION} for name, kind in kinds]


def plugin_config_keys(plugin: str) -> list[KeyInfo]:
    """ConfigKeyInfo of each of a plugin's options. Raises ConnectError for one that isn't there."""
    if plugin in _aliases(BYTE_ARRAY_CONVERTER, "Converter"):
        return kafka_options.descriptions("converter")
    found = connector_class(plugin)
    if found is None:
        raise ConnectError(HTTPStatus.NOT_FOUND, f"Unknown plugin {plugin}.")
    own = connector_table(found)
    names = {info["name"] for info in own}
    return own + [info for info in kafka_options.descriptions("framework") if info["name"] not in names]


def connector_class(name: str) -> str | None:
    """The connector class of a name: the class, or it without package, or without "Connector" too."""
    return next((known for known in CONNECTORS if name in _aliases(known, "Connector")), None)


def connector_table(connector: str) -> list[KeyInfo]:
    """The descriptions of a connector's options: Kafka's, then our own."""
    return kafka_options.descriptions(connector) + [described(option) for option in OWN_OPTIONS[connector]]


def without_package(class_name: str) -> str:
    return class_name.rpartition(".")[2]


def is_spoken_version(text: str) -> bool:
    """Whether a `….plugin.version` is met by what is here (KIP-891)."""
    return text == _LATEST or text.strip() in {KAFKA_VERSION, f"[{KAFKA_VERSION}]"}


def _aliases(class_name: str, suffix: str) -> tuple[str, str, str]:
    simple = without_package(class_name)
    return class_name, simple, simple.removesuffix(suffix)


def described(option: Option) -> KeyInfo:
    return {
        "name": option.name,
        "type": option.type.value,
        "required": option.required,
        "default_value": None if isinstance(option.default, Required) else shown(option.default),
        "importance": "LOW",
        "documentation": option.doc,
        "group": None,
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
