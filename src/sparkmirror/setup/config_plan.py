"""Plans the configs to change on the target, and explains those that differ and stay. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from sparkmirror.domain.topics import AlterConfigOp, AlterConfigOpType, ConfigEntry, ConfigSource
from sparkmirror.policies.config_filter import ConfigChanges, ConfigPropertyFilter, config_changes
from sparkmirror.setup.topic_explanation import ConfigDifference


@dataclass(frozen=True, slots=True)
class ConfigPlan:
    """Holds changes by topic of the target.

    `unknown` names configs that the target's version does not have.
    """

    changes: Mapping[str, tuple[AlterConfigOp, ...]] = field(default_factory=dict)
    unknown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MirroredConfigs:
    """The configs of a topic that exists on both sides."""

    topic: str
    """The topic's name on the target."""
    source: tuple[ConfigEntry, ...]
    target: tuple[ConfigEntry, ...]


def plan_configs(config_filter: ConfigPropertyFilter, mirrored: Iterable[MirroredConfigs]) -> ConfigPlan:
    """Differences only: a plan made right after another was carried out is empty.

    Most topics are configured alike: what is the same object on both sides is compared once.
    """
    changes: dict[str, tuple[AlterConfigOp, ...]] = {}
    unknown: dict[str, tuple[str, ...]] = {}
    compared: dict[tuple[int, int], tuple[MirroredConfigs, ConfigChanges]] = {}
    for one in mirrored:
        alike = id(one.source), id(one.target)
        if alike not in compared:
            # Kept together with its objects: Python reuses ids once objects are gone.
            compared[alike] = one, config_changes(config_filter, one.source, one.target)
        _, found = compared[alike]
        if found.operations:
            changes[one.topic] = found.operations
        if found.unknown:
            unknown[one.topic] = found.unknown
    return ConfigPlan(changes, unknown)


def config_differences(
    config_filter: ConfigPropertyFilter,
    source: Iterable[ConfigEntry],
    target: Iterable[ConfigEntry],
    *,
    is_synced: bool = True,
    refused: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[ConfigDifference]:
    """List differences by name, with what the next sync does; an equal but inherited value is one too.

    `refused` has the reasons for which the last sync could not alter configs.
    """
    here = {entry.name: entry for entry in source}
    there = {entry.name: entry for entry in target}
    changes = config_changes(config_filter, here.values(), there.values())
    coming = {operation.name: operation for operation in changes.operations}
    for name in sorted(here.keys() | there.keys()):
        source_entry, target_entry = here.get(name), there.get(name)
        values = _value(source_entry), _value(target_entry)
        if name in coming:
            yield ConfigDifference(
                name, *values, _coming(coming[name], refused.get(name), is_synced=is_synced)
            )
        elif values[0] != values[1]:
            yield ConfigDifference(
                name, *values, _why_it_stays(config_filter, name, source_entry, target_entry)
            )


def _coming(operation: AlterConfigOp, refused: str | None, *, is_synced: bool) -> str:
    if not is_synced:
        return "left as it is: no sync is enabled"
    if refused is not None:
        return f"the last sync could not alter it: {refused}"
    return f"the next sync {'sets' if operation.op is AlterConfigOpType.SET else 'resets'} it"


def _why_it_stays(
    config_filter: ConfigPropertyFilter, name: str, source: ConfigEntry | None, target: ConfigEntry | None
) -> str:
    if source is None:
        return "the source does not know it"
    if not config_filter.should_replicate_config_property(name):
        return "excluded: config.properties.exclude"
    if target is None:
        return "the target does not know it"
    if source.is_sensitive or source.is_read_only:
        return "read-only" if source.is_read_only else "sensitive: its value can't be read"
    if source.source is ConfigSource.STATIC_BROKER_CONFIG:
        return "a setting of the source's brokers"
    return "a default of each cluster's own: use.defaults.from"


def _value(entry: ConfigEntry | None) -> str | None:
    return None if entry is None else entry.value
