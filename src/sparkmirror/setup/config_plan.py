"""Which configs of topics on the target don't follow their source."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sparkmirror.policies.config_filter import (
    AlterConfigOp,
    ConfigChanges,
    ConfigEntry,
    ConfigPropertyFilter,
    config_changes,
)


@dataclass(frozen=True, slots=True)
class ConfigPlan:
    """By topic of the target. `unknown` names configs that the target's version does not have."""

    changes: Mapping[str, tuple[AlterConfigOp, ...]] = field(default_factory=dict)
    unknown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MirroredConfigs:
    """What both sides say of a topic that exists on both."""

    topic: str
    """On the target."""
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
            # Held together with what it's about: ids are given again once their objects are gone.
            compared[alike] = one, config_changes(config_filter, one.source, one.target)
        _, found = compared[alike]
        if found.operations:
            changes[one.topic] = found.operations
        if found.unknown:
            unknown[one.topic] = found.unknown
    return ConfigPlan(changes, unknown)


def topics_by_unknown(plan: ConfigPlan) -> Mapping[str, tuple[str, ...]]:
    """The topics of the target that lack each config which its version does not have; both sorted."""
    topics: dict[str, list[str]] = {}
    for topic in sorted(plan.unknown):
        for name in plan.unknown[topic]:
            topics.setdefault(name, []).append(topic)
    return {name: tuple(topics[name]) for name in sorted(topics)}
