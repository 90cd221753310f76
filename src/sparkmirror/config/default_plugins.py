"""Creates Kafka's own policies and filters from a connector's properties, as every plug-in is created.

`policies` has what they do. Plug-ins may be subclasses of these classes.
"""

from collections.abc import Mapping

from sparkmirror.config.connector_options import MIRROR_CHECKPOINT, MIRROR_SOURCE, USE_DEFAULTS_FROM
from sparkmirror.config.definitions import JAVA_WHITESPACE, Definition
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError
from sparkmirror.policies import config_filter, filters
from sparkmirror.policies import replication as policies
from sparkmirror.policies.config_filter import DefaultsFrom

_ALIAS = "source.cluster.alias"


class DefaultReplicationPolicy(policies.DefaultReplicationPolicy):
    """Kafka's `DefaultReplicationPolicy`."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        super().__init__(*_separators(properties))


class IdentityReplicationPolicy(policies.IdentityReplicationPolicy):
    """Kafka's `IdentityReplicationPolicy`. No topic has a source unless `source.cluster.alias` is set."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        super().__init__(*_separators(properties), _alias(properties))


class CustomMM2ReplicationPolicy(policies.CustomMM2ReplicationPolicy):
    """The AWS samples' `CustomMM2ReplicationPolicy`. Raises ConfigError without `source.cluster.alias`."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        alias = _alias(properties)
        if alias is None:
            raise ConfigError(_ALIAS, None, "is missing; under this policy every topic comes from there")
        super().__init__(*_separators(properties), alias)


class DefaultTopicFilter(filters.DefaultTopicFilter):
    """Kafka's `DefaultTopicFilter`: `topics` and `topics.exclude`. Raises ConfigError."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        super().__init__(*_lists(MIRROR_SOURCE, properties, "topics", "topics.exclude"))


class DefaultGroupFilter(filters.DefaultGroupFilter):
    """Kafka's `DefaultGroupFilter`: `groups` and `groups.exclude`. Raises ConfigError."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        super().__init__(*_lists(MIRROR_CHECKPOINT, properties, "groups", "groups.exclude"))


class DefaultConfigPropertyFilter(config_filter.DefaultConfigPropertyFilter):
    """Kafka's `DefaultConfigPropertyFilter`: `config.properties.exclude` and `use.defaults.from`."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        (exclude,) = _lists(MIRROR_SOURCE, properties, "config.properties.exclude")
        defaults_from = properties.get(USE_DEFAULTS_FROM, "").strip(JAVA_WHITESPACE)
        super().__init__(exclude, DefaultsFrom.SOURCE if defaults_from == "source" else DefaultsFrom.TARGET)


def _separators(properties: Mapping[str, str]) -> tuple[str, bool]:
    # Kafka hands policies the texts as written: `_ ` is another separator than `_`, and `true ` isn't true.
    separator = properties.get("replication.policy.separator", ".")
    enabled = properties.get("replication.policy.internal.topic.separator.enabled", "true")
    return separator, enabled.lower() == "true"


def _alias(properties: Mapping[str, str]) -> str | None:
    alias = properties.get(_ALIAS)
    return None if alias is None else alias.strip(JAVA_WHITESPACE)


def _lists(definition: Definition, properties: Mapping[str, str], *names: str) -> list[tuple[str, ...]]:
    given = properties if isinstance(properties, Properties) else Properties(properties)
    values = Definition(definition[name] for name in names).parse(given)
    return [values.strings(name) for name in names]
