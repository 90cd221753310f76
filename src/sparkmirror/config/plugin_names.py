"""Which properties name a plug-in of somebody's own, whose settings nobody here can know."""

from collections.abc import Iterable, Mapping

from sparkmirror.config.admin_plugins import FORWARDING_ADMIN
from sparkmirror.config.definitions import JAVA_WHITESPACE
from sparkmirror.config.known_keys import UnknownKey, unknown_connector_keys
from sparkmirror.config.plugins import (
    CONFIG_PROPERTY_FILTER,
    GROUP_FILTER,
    REPLICATION_POLICY,
    TOPIC_FILTER,
)

_USUAL = (".filter.", ".admin.", ".replication.policy.")
"""Below these, plug-ins usually have their keys."""


def names_plugin(properties: Mapping[str, str]) -> bool:
    """Whether any of the settings names one, at the top level or anywhere below."""
    points = (REPLICATION_POLICY, TOPIC_FILTER, GROUP_FILTER, CONFIG_PROPERTY_FILTER, FORWARDING_ADMIN)
    return any(
        f".{key}".endswith(f".{point.key}") and value.strip(JAVA_WHITESPACE) not in point.ours
        for key, value in properties.items()
        for point in points
    )


def unread(
    unknown: Iterable[UnknownKey], properties: Mapping[str, str], below: tuple[str, ...]
) -> tuple[UnknownKey, ...]:
    """The unknown keys that no plug-in can read either; those `below` these prefixes reach one."""
    if not names_plugin(properties):
        return tuple(unknown)
    return tuple(one for one in unknown if not (one.key.startswith(below) and _may_be_a_plugins(one)))


def unread_connector_keys(config: Mapping[str, str]) -> tuple[UnknownKey, ...]:
    """The keys of one connector's config that nothing reads, and no plug-in that it names."""
    return unread(unknown_connector_keys(config), config, ("",))


def _may_be_a_plugins(unknown: UnknownKey) -> bool:
    """What looks like a known key, or was one, is most likely a mistake."""
    looks_known = unknown.nearest is not None or unknown.note is not None
    return not looks_known or (unknown.note is None and any(part in f".{unknown.key}" for part in _USUAL))
