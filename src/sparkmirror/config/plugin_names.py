"""Which properties name a plug-in of somebody's own, whose settings nobody here can know."""

from collections.abc import Mapping

from sparkmirror.config.admin_plugins import FORWARDING_ADMIN
from sparkmirror.config.definitions import JAVA_WHITESPACE
from sparkmirror.config.plugins import (
    CONFIG_PROPERTY_FILTER,
    GROUP_FILTER,
    REPLICATION_POLICY,
    TOPIC_FILTER,
)


def names_plugin(properties: Mapping[str, str]) -> bool:
    """Whether any of the settings names one, at the top level or anywhere below."""
    points = (REPLICATION_POLICY, TOPIC_FILTER, GROUP_FILTER, CONFIG_PROPERTY_FILTER, FORWARDING_ADMIN)
    return any(
        f".{key}".endswith(f".{point.key}") and value.strip(JAVA_WHITESPACE) not in point.ours
        for key, value in properties.items()
        for point in points
    )
