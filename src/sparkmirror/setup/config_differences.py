"""Which configs of a topic differ between source and target, and whether that stays so."""

from collections.abc import Iterable, Iterator

from sparkmirror.policies.config_filter import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigPropertyFilter,
    ConfigSource,
    config_changes,
)
from sparkmirror.setup.topic_explanation import ConfigDifference


def config_differences(
    config_filter: ConfigPropertyFilter, source: Iterable[ConfigEntry], target: Iterable[ConfigEntry]
) -> Iterator[ConfigDifference]:
    """By name. What the next sync changes is told also where the value is the same, but merely inherited."""
    here = {entry.name: entry for entry in source}
    there = {entry.name: entry for entry in target}
    changes = config_changes(config_filter, here.values(), there.values())
    coming = {operation.name: operation for operation in changes.operations}
    for name in sorted(here.keys() | there.keys()):
        ours, theirs = here.get(name), there.get(name)
        values = _value(ours), _value(theirs)
        if name in coming:
            is_set = coming[name].op is AlterConfigOpType.SET
            yield ConfigDifference(
                name, *values, "the next sync sets it" if is_set else "the next sync resets it"
            )
        elif values[0] != values[1]:
            yield ConfigDifference(name, *values, _why_it_stays(config_filter, name, ours, theirs))


def _why_it_stays(
    config_filter: ConfigPropertyFilter, name: str, ours: ConfigEntry | None, theirs: ConfigEntry | None
) -> str:
    if ours is None:
        return "the source does not know it"
    if not config_filter.should_replicate_config_property(name):
        return "excluded: config.properties.exclude"
    if theirs is None:
        return "the target does not know it"
    if ours.is_sensitive or ours.is_read_only:
        return "read-only" if ours.is_read_only else "sensitive: its value can't be read"
    if ours.source is ConfigSource.STATIC_BROKER_CONFIG:
        return "a setting of the source's brokers"
    return "a default of each cluster's own: use.defaults.from"


def _value(entry: ConfigEntry | None) -> str | None:
    return None if entry is None else entry.value
