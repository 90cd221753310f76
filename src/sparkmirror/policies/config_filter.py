"""Selects topic configs to replicate, at creation and in the periodic sync (KIP-382, KIP-894)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from sparkmirror.domain.errors import PluginError
from sparkmirror.domain.topics import AlterConfigOp, AlterConfigOpType, ConfigEntry, ConfigSource
from sparkmirror.policies.java_regex import compile_names

DEFAULT_CONFIG_PROPERTIES_EXCLUDE: Final = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.after.max.ms",
    "message.timestamp.type",
    "unclean.leader.election.enable",
    "min.insync.replicas",
)
"""Kafka 4.3's list, its unescaped dots included."""


class DefaultsFrom(Enum):
    """The cluster whose defaults a config gets that is not set on the source (`use.defaults.from`)."""

    SOURCE = "source"
    TARGET = "target"


class ConfigPropertyFilter(Protocol):
    """MM2's plug-in point `config.property.filter.class`."""

    def should_replicate_config_property(self, name: str) -> bool:
        """Whether the config may be written on the target at all."""
        ...

    def should_replicate_source_default(self, name: str) -> bool:
        """Whether a config at its default gets the source's default instead of the target's."""
        ...


class DefaultConfigPropertyFilter:
    """Selects all configs but those that a list of Java regexes names.

    Raises ConfigError for an unusable one.
    """

    def __init__(
        self,
        exclude: Sequence[str] = DEFAULT_CONFIG_PROPERTIES_EXCLUDE,
        defaults_from: DefaultsFrom = DefaultsFrom.TARGET,
    ) -> None:
        self._excluded = compile_names(exclude, "config.properties.exclude")
        self._defaults_from = defaults_from
        self._decided: dict[str, bool] = {}
        """By name: thousands of topics have the same few dozen configs."""

    def should_replicate_config_property(self, name: str) -> bool:
        found = self._decided.get(name)
        if found is None:
            found = self._decided[name] = not self._excluded.fullmatch(name)
        return found

    def should_replicate_source_default(self, name: str) -> bool:  # noqa: ARG002 - the filter's contract
        return self._defaults_from is DefaultsFrom.SOURCE


class EachConfigAlone:
    """Leaves out a config at which a plug-in fails, and no other; `failed` has the reasons by name."""

    def __init__(self, plugin: ConfigPropertyFilter) -> None:
        self._plugin = plugin
        self.failed: dict[str, PluginError] = {}

    def should_replicate_config_property(self, name: str) -> bool:
        return self._ask(self._plugin.should_replicate_config_property, name)

    def should_replicate_source_default(self, name: str) -> bool:
        return self._ask(self._plugin.should_replicate_source_default, name)

    def _ask(self, method: Callable[[str], bool], name: str) -> bool:
        try:
            return method(name)
        except PluginError as error:
            self.failed[name] = error
            return False


@dataclass(frozen=True, slots=True)
class ConfigChanges:
    """The changes to a target topic. `unknown` names what the target's version does not have."""

    operations: tuple[AlterConfigOp, ...] = ()
    unknown: tuple[str, ...] = ()


def creation_configs(
    config_filter: ConfigPropertyFilter, source: Iterable[ConfigEntry]
) -> tuple[tuple[str, str], ...]:
    """Names and values that a new target topic gets, by name."""
    return tuple(
        (entry.name, entry.value)
        for entry in _replicated(config_filter, source)
        if entry.value is not None
        and (not entry.is_default or config_filter.should_replicate_source_default(entry.name))
    )


def config_changes(
    config_filter: ConfigPropertyFilter, source: Iterable[ConfigEntry], target: Iterable[ConfigEntry]
) -> ConfigChanges:
    """Return the changes that make an existing target topic follow its source, by name.

    MM2 sends every operation every time. Left out here is what the target has already, so that a quiet
    sync sends nothing, and what it does not know, because a broker refuses such a request as a whole.
    """
    present = {entry.name: entry for entry in target}
    operations: list[AlterConfigOp] = []
    unknown: list[str] = []
    for entry in _replicated(config_filter, source):
        wanted = _wanted(config_filter, entry)
        if entry.name in present:
            operations += () if _holds(present, wanted) else (wanted,)
        elif wanted.op is AlterConfigOpType.SET:
            unknown.append(entry.name)
    return ConfigChanges(tuple(operations), tuple(unknown))


def _replicated(config_filter: ConfigPropertyFilter, entries: Iterable[ConfigEntry]) -> list[ConfigEntry]:
    return sorted(
        (
            entry
            for entry in entries
            if not (entry.is_read_only or entry.is_sensitive)
            and entry.source is not ConfigSource.STATIC_BROKER_CONFIG
            and config_filter.should_replicate_config_property(entry.name)
        ),
        key=lambda entry: entry.name,
    )


def _wanted(config_filter: ConfigPropertyFilter, entry: ConfigEntry) -> AlterConfigOp:
    if entry.is_default and not config_filter.should_replicate_source_default(entry.name):
        return AlterConfigOp(entry.name, AlterConfigOpType.DELETE)
    return AlterConfigOp(entry.name, AlterConfigOpType.SET, entry.value)


# A value that is merely inherited is not held: the broker's setting could change under it.
def _holds(present: Mapping[str, ConfigEntry], wanted: AlterConfigOp) -> bool:
    entry = present[wanted.name]
    is_set = entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    return (is_set and entry.value == wanted.value) if wanted.op is AlterConfigOpType.SET else not is_set
