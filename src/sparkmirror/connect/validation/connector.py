"""Validates a connector's config as Connect does, in the steps of Kafka's AbstractHerder.

A connector's own view of an option replaces the framework's, errors included, as in Kafka.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

from sparkmirror.config import kafka_options
from sparkmirror.config.connector_options import (
    CHECKPOINT_CONNECTOR,
    CONNECTORS,
    FRAMEWORK,
    OWN_OPTIONS,
    SOURCE_CONNECTOR,
    SOURCE_FRAMEWORK,
    mirror_checkpoint_contradictions,
    mirror_source_contradictions,
    reads_committed,
)
from sparkmirror.config.definitions import Definition
from sparkmirror.config.kafka_options import KeyInfo
from sparkmirror.config.properties import Properties
from sparkmirror.config.providers import configured_providers
from sparkmirror.config.transaction_settings import NO_BOUNDARIES, NOT_ENABLED
from sparkmirror.connect.validation import descriptions, limits, overrides
from sparkmirror.connect.validation.chains import ChainItem, chain_items, options_of
from sparkmirror.connect.validation.classes import plugin_modules
from sparkmirror.connect.validation.descriptions import KAFKA_VERSION
from sparkmirror.connect.validation.infos import ConfigValue, Infos, infos
from sparkmirror.connect.validation.values import Given, judged
from sparkmirror.domain.connect import ConnectError

_CLASS: Final = "connector.class"
_VERSION: Final = "connector.plugin.version"
_CONVERTERS: Final = (("header.converter", "header"), ("key.converter", "key"), ("value.converter", "value"))
(_USE,) = kafka_options.options("converter")
_NULL: Final = "Null value can not be supplied as the configuration value."


def validate(
    plugin_in_path: str | None,
    config: Mapping[str, str | None],
    worker: Properties,
    environment: Mapping[str, str] = os.environ,
) -> Infos:
    """ConfigInfos of a config. `plugin_in_path` is what a request names beside it; None where nothing does.

    `worker` are the properties of the Connect worker, with its config providers, for whose placeholders
    `environment` is read. Raises ConnectError without a class, for an unknown class, and for another
    class than the one in the path.
    """
    given = Given(config, configured_providers(worker, environment), plugin_modules(worker))
    return validate_given(plugin_in_path, given, worker)


def validate_given(plugin_in_path: str | None, given: Given, worker: Properties) -> Infos:
    """Validate a config whose placeholders have been resolved."""
    _check_path(plugin_in_path, given.written(_CLASS))
    connector = _connector(given)
    name = given.shown(_CLASS)
    version = given.resolved(_VERSION)
    if version is not None and not descriptions.is_spoken_version(version):
        return _of_another_version(name, connector, given)
    table = _Table(connector, chain_items(given))
    values = _values(table, given, worker)
    extra = [value.info(None) for key, value in values.items() if key not in table.definitions]
    listed_values = [values[key].info(table.definitions[key]) for key in table.names]
    overridden = overrides.infos_of(given, worker)
    converters = [info for key, kind in _CONVERTERS for info in _converter(key, kind, values, given)]
    return infos(name, table.groups, [*extra, *listed_values, *overridden, *converters])


class _Table:
    """A connector's options and their descriptions: the framework's, its chain's, then its own."""

    def __init__(self, connector: str, chain: Sequence[ChainItem]) -> None:
        own = descriptions.connector_table(connector)
        framework = kafka_options.descriptions("framework")
        chained, options = options_of(chain)
        self.connector = connector
        self.chain = chain
        self.definitions: dict[str, KeyInfo] = {
            info["name"]: info for info in (*framework, *chained.values(), *own)
        }
        self.names = list(self.definitions)
        self.of_connector = frozenset(info["name"] for info in own)
        self.options: Definition = SOURCE_FRAMEWORK | CONNECTORS[connector] | OWN_OPTIONS[connector] | options

    @property
    def groups(self) -> list[str]:
        """The headings: those of the connector alone come last."""
        headings = dict.fromkeys(info["group"] for info in self.definitions.values())
        return [heading for heading in headings if heading is not None]


def _check_path(plugin: str | None, included: str | None) -> None:
    if plugin is None or included is None:
        return
    if not _normalized(included).endswith(_normalized(plugin)):
        raise ConnectError(
            HTTPStatus.BAD_REQUEST,
            f"Included connector type {included} does not match request type {plugin}",
        )


def _normalized(plugin: str) -> str:
    return plugin.removesuffix("Connector") or plugin


def _connector(given: Given) -> str:
    """The class of the connector. Raises ConnectError when that is none of ours."""
    name = given.resolved(_CLASS)
    if name is None:
        listed = ", ".join(f"{key}={given.shown(key)}" for key in given)
        raise ConnectError(
            HTTPStatus.BAD_REQUEST, f"Connector config {{{listed}}} contains no connector type"
        )
    if _CLASS in given.failures:
        raise ConnectError(HTTPStatus.BAD_REQUEST, given.failures[_CLASS])
    connector = descriptions.connector_class(name)
    if connector is None:
        raise ConnectError(HTTPStatus.BAD_REQUEST, _unknown(given.shown(_CLASS)))
    return connector


def _unknown(name: str) -> str:
    known = ", ".join(sorted(CONNECTORS))
    return (
        "Failed to find any class that implements Connector and which name matches"
        f" {name}, available connectors are: {known}. sparkmirror runs MirrorMaker's connectors and no other"
        " plugins; sink connectors need a Java Connect worker."
    )


def _of_another_version(name: str, connector: str, given: Given) -> Infos:
    """Connect's short response for a plugin version that does not exist (KIP-891)."""
    version = given.shown(_VERSION).strip()
    only = version.strip("[]")
    wanted = version if "," in only else f"[{only},{only}]"
    error = (
        f"Plugin {connector} not found that matches the version range {wanted},"
        f" available versions: [{KAFKA_VERSION}]"
    )
    table = [info for info in kafka_options.descriptions("framework") if info["name"] in FRAMEWORK.names]
    values = _judged(FRAMEWORK, table, given)
    for key in (_CLASS, _VERSION):
        values[key] = values[key].with_error(error)
    values[_VERSION] = replace(values[_VERSION], recommended=(KAFKA_VERSION,))
    headings = dict.fromkeys(info["group"] for info in table)
    latest = {_VERSION: {"default_value": KAFKA_VERSION}}
    configs = [values[info["name"]].info(info | latest.get(info["name"], {})) for info in table]
    return infos(name, headings, configs)


def _judged(options: Definition, table: Iterable[KeyInfo], given: Given) -> dict[str, ConfigValue]:
    values = {info["name"]: judged(options[info["name"]], info["default_value"], given) for info in table}
    for converter, _ in _CONVERTERS:
        key = f"{converter}.plugin.version"
        values[key] = replace(values[key], visible=values[converter].value is not None)
    return values


def _values(table: _Table, given: Given, worker: Properties) -> dict[str, ConfigValue]:
    """Every option's value, and after them what is wrong with keys that no table has."""
    values = _judged(table.options, table.definitions.values(), given)
    for item in table.chain:
        item.completed(values)
    for key, error in _framework_errors(values, table, given, worker):
        values[key] = values[key].with_error(error)
    for key in given.nulls():
        values[key] = values.get(key, ConfigValue(key)).with_error(_NULL)
    for key, reason in _contradictions(table.connector, given.properties).items():
        # An option that is the framework's alone loses what the framework found.
        there = key in table.of_connector
        values[key] = (values[key] if there else ConfigValue(key)).with_error(reason)
    for key, error in given.failures.items():
        values[key] = replace(values.get(key, ConfigValue(key)), errors=(error,))
    for key, error in limits.refused(values, given, table.connector):
        values[key] = values.get(key, ConfigValue(key)).with_error(error)
    return values


def _framework_errors(
    values: Mapping[str, ConfigValue], table: _Table, given: Given, worker: Properties
) -> Iterator[tuple[str, str]]:
    """The errors by the checks of Kafka's DistributedHerder for source connectors (KIP-618)."""
    support, boundary = values["exactly.once.support"], values["transaction.boundary"]
    if not support.errors and _lowered(support, given) == "required":
        if worker.get("exactly.once.source.support", "disabled").strip().lower() != "enabled":
            yield support.name, NOT_ENABLED
        if table.connector != SOURCE_CONNECTOR:
            yield support.name, _NO_API
        elif not reads_committed(given.properties):
            yield (
                support.name,
                "The connector does not support exactly-once semantics with the provided configuration.",
            )
    if not boundary.errors and _lowered(boundary, given) == "connector":
        yield boundary.name, NO_BOUNDARIES


_NO_API: Final = (
    "The connector does not implement the API required for preflight validation of exactly-once source"
    " support. Please consult the documentation for the connector to determine whether it supports"
    " exactly-once semantics, and then consider reconfiguring the connector to use the value"
    ' "requested" for this property (which will disable this preflight check and allow the connector to'
    " be created)."
)


def _lowered(value: ConfigValue, given: Given) -> str:
    return (given.resolved(value.name) or value.value or "").strip().lower()


def _contradictions(connector: str, properties: Properties) -> dict[str, str]:
    if connector == SOURCE_CONNECTOR:
        return mirror_source_contradictions(properties)
    return mirror_checkpoint_contradictions(properties) if connector == CHECKPOINT_CONNECTOR else {}


def _converter(
    key: str, kind: str, values: Mapping[str, ConfigValue], given: Given
) -> Iterator[dict[str, Any]]:
    """The options of a converter that the connector names itself."""
    text = given.resolved(key)
    if text is None or values[key].errors or values[f"{key}.plugin.version"].errors:
        return
    if text != text.strip():
        return  # Connect validates the value trimmed, and then looks up its options untrimmed
    (definition,) = kafka_options.descriptions("converter")
    name = f"{key}.{_USE.name}"
    value = ConfigValue(name, kind)
    if name in given:
        value = replace(judged(_USE, None, given.only(name, _USE.name)), name=name)
    yield value.info(definition | {"name": name})
