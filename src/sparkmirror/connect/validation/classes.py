"""Checks the plug-in and converter classes that a config names, without creating an instance.

sparkmirror copies batches byte for byte, as ByteArrayConverter does. A connector that names another converter
is refused; one that only inherits it from the worker gets a note.
"""

from collections.abc import Collection, Mapping
from typing import Final

from sparkmirror.config.admin_plugins import FORWARDING_ADMIN
from sparkmirror.config.definitions import JAVA_WHITESPACE
from sparkmirror.config.plugin_points import (
    CONFIG_PROPERTY_FILTER,
    GROUP_FILTER,
    REPLICATION_POLICY,
    TOPIC_FILTER,
    UnusablePluginError,
)
from sparkmirror.config.properties import Properties
from sparkmirror.config.worker_options import PLUGIN_MODULES, WORKER
from sparkmirror.connect.validation.descriptions import BYTE_ARRAY_CONVERTER, without_package

_POINTS: Final = {
    point.key: point
    for point in (REPLICATION_POLICY, TOPIC_FILTER, GROUP_FILTER, CONFIG_PROPERTY_FILTER, FORWARDING_ADMIN)
}


PLUGIN_KEYS: Final = _POINTS.keys()


def plugin_modules(worker: Properties) -> frozenset[str]:
    """The modules that REST configs may name. Raises ValueError."""
    modules = WORKER[PLUGIN_MODULES].parse(worker.get(PLUGIN_MODULES, ""))
    assert isinstance(modules, tuple)
    return frozenset(modules)


def module_problem(name: str, modules: Collection[str]) -> str | None:
    """The reason why a REST config may not name this class; None if it may. Imports nothing."""
    module, colon, _ = name.strip(JAVA_WHITESPACE).partition(":")
    if not colon or module in modules:
        return None
    return f"its module is not in {PLUGIN_MODULES} of the worker's properties, so it is not imported"


def class_problem(setting: str, name: str, modules: Collection[str] = ()) -> str | None:
    """The reason why a class can't be used for a setting; None if it can, or if that is no plug-in point."""
    point = _POINTS.get(setting)
    if point is None:
        return None
    problem = module_problem(name, modules)
    if problem is not None:
        return problem
    try:
        point.find(name)
    except UnusablePluginError as error:
        return str(error)
    return None


_NUMBERS: Final = "takes no bytes, so that tasks would fail"
_EFFECTS: Final[Mapping[str, str]] = {
    "org.apache.kafka.connect.json.JsonConverter": "would write bytes as Base64 inside of JSON",
    "org.apache.kafka.connect.storage.StringConverter": "would write Java's name of an array, as [B@1b6d3586",
    "org.apache.kafka.connect.storage.SimpleHeaderConverter": "would write bytes as Base64",
    **{
        f"org.apache.kafka.connect.converters.{kind}Converter": _NUMBERS
        for kind in ("Boolean", "Double", "Float", "Integer", "Long", "Short")
    },
}
"""Connect's other converters, with their effect on records that are bytes."""


def converter_class(text: str) -> str | None:
    """Return the class for a name: the class itself, or it without package, or without "Converter" too."""
    for known in (BYTE_ARRAY_CONVERTER, *_EFFECTS):
        simple = without_package(known)
        short = simple.removesuffix("HeaderConverter").removesuffix("Converter")
        if text in (known, simple, short, simple.removesuffix("Converter")):
            return known
    return None


def converter_effect(text: str) -> str | None:
    """The effect of this converter on records in Java; None if it leaves them as they are."""
    known = converter_class(text)
    if known == BYTE_ARRAY_CONVERTER:
        return None
    return _EFFECTS[known] if known else "is a Java class that is not known here"


def converter_error(text: str) -> str | None:
    """The reason why a connector can't have this converter; None if it can."""
    known = converter_class(text)
    if known == BYTE_ARRAY_CONVERTER:
        return None
    instead = f"Use {BYTE_ARRAY_CONVERTER}: records are copied byte for byte."
    if known is None:
        return f"Class {text} could not be found. {instead}"
    return f"{without_package(known)} {_EFFECTS[known]}. {instead}"
