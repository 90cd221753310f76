"""Refuses configs that Connect accepts but a connector fails with, and features that are not supported."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from sparkmirror.config.connector_options import CHECKPOINT_CONNECTOR, SOURCE_CONNECTOR
from sparkmirror.config.definitions import JAVA_WHITESPACE
from sparkmirror.config.known_keys import names_plugin
from sparkmirror.connect.validation.classes import module_problem
from sparkmirror.connect.validation.descriptions import KAFKA_VERSION, is_spoken_version
from sparkmirror.connect.validation.infos import ConfigValue
from sparkmirror.connect.validation.values import Given
from sparkmirror.domain.errors import ConfigError
from sparkmirror.policies.config_filter import DefaultConfigPropertyFilter, DefaultsFrom
from sparkmirror.policies.filters import DefaultGroupFilter, DefaultTopicFilter
from sparkmirror.transforms.parsing import CHAINS, chain_of, function_keys, require_routers

_REFUSED: Final[Mapping[str, str]] = {
    "offsets.storage.topic": "A connector's own topic is not supported; its offsets are in the worker's.",
}
_VERSIONS: Final = ("key.converter", "value.converter", "header.converter")
_PATTERNS: Final[Mapping[str, tuple[str, ...]]] = {
    SOURCE_CONNECTOR: ("topics", "topics.exclude", "config.properties.exclude"),
    CHECKPOINT_CONNECTOR: ("topics", "topics.exclude", "groups", "groups.exclude"),
}
"""The lists of regexes that a connector's filters read."""

_READERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("topics", "topics.exclude"), "topic.filter.class"),
    **dict.fromkeys(("groups", "groups.exclude"), "group.filter.class"),
    "config.properties.exclude": "config.property.filter.class",
}
"""The filter that reads each list."""

_TRIALS: Final[Mapping[str, Callable[[tuple[str, ...]], object]]] = {
    "topics": lambda items: DefaultTopicFilter(items, ()),
    "topics.exclude": lambda items: DefaultTopicFilter((), items),
    "groups": lambda items: DefaultGroupFilter(items, ()),
    "groups.exclude": lambda items: DefaultGroupFilter((), items),
    "config.properties.exclude": lambda items: DefaultConfigPropertyFilter(items, DefaultsFrom.TARGET),
}


def refused(values: Mapping[str, ConfigValue], given: Given, connector: str) -> Iterator[tuple[str, str]]:
    """Keys and what is wrong with them, of those that are not in error already."""
    for key, reason in _REFUSED.items():
        if (given.resolved(key) or "").strip(JAVA_WHITESPACE) and not values[key].errors:
            yield key, f"Invalid value {given.shown(key)} for configuration {key}: {reason}"
    yield from _chain_errors(values, given, connector)
    for converter in _VERSIONS:
        key = f"{converter}.plugin.version"
        version = given.resolved(key)
        if version is not None and not is_spoken_version(version):
            yield (
                key,
                f"Invalid value {given.shown(key)} for configuration {key}: only {KAFKA_VERSION} is here",
            )
    for key in _PATTERNS.get(connector, ()):
        if names_plugin(given.properties.only((_READERS[key],))):
            continue  # a plug-in defines the meaning of its own list
        if given.resolved(key) is not None and (key not in values or not values[key].errors):
            error = _pattern_error(key, given)
            if error is not None:
                yield key, f"Invalid value {given.shown(key)} for configuration {key}: {error}"


def _chain_errors(
    values: Mapping[str, ConfigValue], given: Given, connector: str
) -> Iterator[tuple[str, str]]:
    if any(value.errors for key, value in values.items() if key.partition(".")[0] in CHAINS):
        return
    try:
        for key in function_keys(given.properties):
            problem = module_problem(given.properties[key], given.modules)
            if problem is not None:
                raise given.properties.error(key, problem)
        (chain_of if connector == SOURCE_CONNECTOR else require_routers)(given.properties)
    except ConfigError as error:
        yield error.key, str(error)


def _pattern_error(key: str, given: Given) -> str | None:
    text = (given.resolved(key) or "").strip(JAVA_WHITESPACE)
    try:
        _TRIALS[key](tuple(item.strip() for item in text.split(",")) if text else ())
    except ConfigError as error:
        return "not a usable Java regular expression" if given.is_resolved(key) else error.reason
    return None
