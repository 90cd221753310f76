"""Finds, checks and creates the classes that MM2's plug-in settings name.

A setting names a Java class that has a counterpart here, an entry point of the point's group (which may be
called like a Java class), or `package.module:Class`. The class is called with the connector's properties.
"""

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from sparkmirror.config.connector_options import MIRROR_PACKAGE
from sparkmirror.config.default_plugins import (
    CustomMM2ReplicationPolicy,
    DefaultConfigPropertyFilter,
    DefaultGroupFilter,
    DefaultReplicationPolicy,
    DefaultTopicFilter,
    IdentityReplicationPolicy,
)
from sparkmirror.config.definitions import JAVA_WHITESPACE
from sparkmirror.config.plugin_guard import FAILURES, Guarded, described, lacking
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError, PluginError
from sparkmirror.policies.config_filter import ConfigPropertyFilter
from sparkmirror.policies.filters import GroupFilter, TopicFilter
from sparkmirror.policies.replication import ReplicationPolicy

T = TypeVar("T")

_REFERENCE: Final = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*(?:\.[^\W\d]\w*)*)")
_STRIMZI_IDENTITY: Final = "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"
_NOTES: Final[Mapping[str, str]] = {
    _STRIMZI_IDENTITY: "Strimzi removed it; Kafka's IdentityReplicationPolicy is used, which names other"
    " clusters' heartbeats ALIAS.heartbeats",
}


class TopicFilterPlugin(Protocol):
    """The interface of a user's `topic.filter.class`."""

    def should_replicate(self, topic: str) -> bool:
        """Whether the user wants this topic, named as on the source cluster."""
        ...


class GroupFilterPlugin(Protocol):
    """The interface of a user's `group.filter.class`."""

    def should_replicate(self, group: str) -> bool:
        """Whether the user wants this group's offsets on the target."""
        ...


_UNUSABLE: Final = "the value of the placeholder can't be used"


class UnusablePluginError(Exception):
    """A class that a setting names can't be found, or is no such plug-in; the message has the remedy."""


@dataclass(frozen=True)
class PluginPoint(Generic[T]):
    """A setting that names a class."""

    key: str
    group: str
    """The group of entry points in which packages announce such plug-ins."""
    protocol: type
    """The interface of the class."""
    ours: Mapping[str, type[T]]
    """Java classes that have a counterpart here; the first is the default."""
    finished: Callable[[Any, str], T] = field(default=lambda plugin, _: cast("T", plugin))
    """Turns a guarded plug-in and its name into the object that connectors use."""

    def find(self, name: str) -> type:
        """The class of that name. Raises UnusablePluginError."""
        ours = self.ours.get(name)
        if ours is not None:
            return ours
        entry = self._reference(name) if ":" in name else self._announced(name)
        kind = _loaded(entry)
        problem = _problem(kind, self.protocol)
        if problem is not None:
            raise UnusablePluginError(f"{entry.value} {problem}")
        return cast("type", kind)

    def name_in(self, properties: Mapping[str, str]) -> str:
        """The class that these properties name, Kafka's own where they name none."""
        return properties.get(self.key, next(iter(self.ours))).strip(JAVA_WHITESPACE)

    def make(self, properties: Mapping[str, str]) -> T:
        """The plug-in that these properties name, Kafka's own without a name. Raises ConfigError."""
        given = properties if isinstance(properties, Properties) else Properties(properties)
        name = self.name_in(given)
        try:
            return self.made(self.find(name), name, given)
        except (UnusablePluginError, PluginError) as error:
            raise given.error(self.key, _UNUSABLE if given.hides(self.key) else str(error)) from error
        except ConfigError as error:
            # Named as it was written.
            reason = _UNUSABLE if given.hides(error.key) else error.reason
            raise given.error(error.key, reason) from error

    def made(self, kind: type, name: str, properties: Properties) -> T:
        """Create one of a class that errors call `name`. Raises PluginError, or a ConfigError of its own."""
        plugin = _made(kind, properties)
        if name in self.ours:
            return cast("T", plugin)
        return self.finished(Guarded(plugin, name, self.protocol), name)

    def note(self, properties: Mapping[str, str]) -> str | None:
        """A note for the user about the class that these properties name, if there is one."""
        name = self.name_in(properties)
        return f"{self.key}={name}: {_NOTES[name]}" if name in _NOTES else None

    def _reference(self, name: str) -> EntryPoint:
        if not _REFERENCE.fullmatch(name):
            raise UnusablePluginError("is not of the form package.module:Class")
        return EntryPoint(name, name, self.group)

    def _announced(self, name: str) -> EntryPoint:
        announced = entry_points(group=self.group)
        found = {entry.value: entry for entry in announced.select(name=name)}
        if len(found) > 1:
            values = " and ".join(sorted(found))
            raise UnusablePluginError(f"is announced as {values}; write one of them")
        if found:
            return next(iter(found.values()))
        raise UnusablePluginError(self._unknown(sorted(announced.names)))

    def _unknown(self, announced: list[str]) -> str:
        return (
            "there is no Java here, and no Python counterpart was found: neither among those that come with"
            f" sparkmirror ({', '.join(self.ours)}) nor among the entry points of the group {self.group}"
            f" ({', '.join(announced) or 'none is installed'}). Write package.module:Class, or install a"
            " package that announces its class under this name (docs/plugins.md)"
        )


def _loaded(entry: EntryPoint) -> object:
    module, _, attributes = entry.value.partition(":")
    try:
        found: Any = importlib.import_module(module.strip())
    except ModuleNotFoundError as error:
        if error.name is not None and (f"{module}.").startswith(f"{error.name}."):
            reason = f"there is no module {error.name}; install it beside sparkmirror, or set PYTHONPATH"
            raise UnusablePluginError(reason) from error
        raise UnusablePluginError(f"importing {module} raised {described(error)}") from error
    except FAILURES as error:
        raise UnusablePluginError(f"importing {module} raised {described(error)}") from error
    for attribute in filter(None, attributes.strip().split(".")):
        try:
            found = getattr(found, attribute)
        except AttributeError as error:
            raise UnusablePluginError(f"there is no {attributes.strip()} in the module {module}") from error
    return found


def _made(kind: type, properties: Properties) -> object:
    try:
        return kind(properties)
    except ConfigError:
        raise
    except FAILURES as error:
        raise PluginError(f"making it raised {described(error)}") from error


def _problem(kind: object, wanted: type) -> str | None:
    """The reason why an object is not a class that fits; None if it is. A Protocol fits by its methods."""
    if not isinstance(kind, type):
        return f"is of type {type(kind).__name__}; it must be a class"
    if not getattr(wanted, "_is_protocol", False):
        is_one = issubclass(kind, wanted)
        return None if is_one else f"is no subclass of sparkmirror.plugins.{wanted.__name__}"
    missing = lacking(kind, wanted)
    return (
        f"is no {wanted.__name__.removesuffix('Plugin')}: it has no {', '.join(missing)}" if missing else None
    )


@cache
def find_function(reference: str) -> Callable[..., Any]:
    """Return the function `package.module:name`. Raises UnusablePluginError."""
    if not _REFERENCE.fullmatch(reference):
        raise UnusablePluginError("is not of the form package.module:name")
    found = _loaded(EntryPoint(reference, reference, ""))
    if not callable(found):
        raise UnusablePluginError(f"{reference} is of type {type(found).__name__}; it must be a function")
    return found


class _Filter:
    """A guarded filter that names the setting by which it refuses a name."""

    def __init__(self, plugin: TopicFilterPlugin | GroupFilterPlugin, setting: str) -> None:
        self.should_replicate = plugin.should_replicate
        self._setting = setting

    def refused_by(self, name: str) -> str | None:
        return None if self.should_replicate(name) else self._setting


def _tried(policy: ReplicationPolicy, _: str) -> ReplicationPolicy:
    """A policy that has named something. Raises PluginError when it can't: it would fail at once anyway."""
    remote = policy.format_remote_topic("source", "topic")
    for topic in ("topic", remote):
        for ask in (policy.topic_source, policy.upstream_topic, policy.original_topic):
            ask(topic)
        for judge in (policy.is_heartbeats_topic, policy.is_checkpoints_topic):
            judge(topic)
        for judge in (policy.is_mm2_internal_topic, policy.is_internal_topic):
            judge(topic)
    policy.heartbeats_topic()
    policy.offset_syncs_topic("other")
    policy.checkpoints_topic("source")
    return policy


REPLICATION_POLICY: Final = PluginPoint[ReplicationPolicy](
    "replication.policy.class",
    "sparkmirror.replication_policies",
    ReplicationPolicy,
    {
        MIRROR_PACKAGE + "DefaultReplicationPolicy": DefaultReplicationPolicy,
        MIRROR_PACKAGE + "IdentityReplicationPolicy": IdentityReplicationPolicy,
        "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy": CustomMM2ReplicationPolicy,
        _STRIMZI_IDENTITY: IdentityReplicationPolicy,
    },
    _tried,
)
TOPIC_FILTER: Final = PluginPoint[TopicFilter](
    "topic.filter.class",
    "sparkmirror.topic_filters",
    TopicFilterPlugin,
    {MIRROR_PACKAGE + "DefaultTopicFilter": DefaultTopicFilter},
    lambda plugin, name: _Filter(plugin, f"topic.filter.class ({name})"),
)
GROUP_FILTER: Final = PluginPoint[GroupFilter](
    "group.filter.class",
    "sparkmirror.group_filters",
    GroupFilterPlugin,
    {MIRROR_PACKAGE + "DefaultGroupFilter": DefaultGroupFilter},
    lambda plugin, name: _Filter(plugin, f"group.filter.class ({name})"),
)
CONFIG_PROPERTY_FILTER: Final = PluginPoint[ConfigPropertyFilter](
    "config.property.filter.class",
    "sparkmirror.config_property_filters",
    ConfigPropertyFilter,
    {MIRROR_PACKAGE + "DefaultConfigPropertyFilter": DefaultConfigPropertyFilter},
)
