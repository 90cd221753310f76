"""What is wrong with a class that a plug-in setting names, without making one."""

from typing import Final

from sparkmirror.config.admin_plugins import FORWARDING_ADMIN
from sparkmirror.config.plugins import (
    CONFIG_PROPERTY_FILTER,
    GROUP_FILTER,
    REPLICATION_POLICY,
    TOPIC_FILTER,
    UnusablePluginError,
)

_POINTS: Final = {
    point.key: point
    for point in (REPLICATION_POLICY, TOPIC_FILTER, GROUP_FILTER, CONFIG_PROPERTY_FILTER, FORWARDING_ADMIN)
}


def class_problem(setting: str, name: str) -> str | None:
    """Why a class can't be used for a setting; None if it can be, or if that is no plug-in point."""
    point = _POINTS.get(setting)
    if point is None:
        return None
    try:
        point.find(name)
    except UnusablePluginError as error:
        return str(error)
    return None
