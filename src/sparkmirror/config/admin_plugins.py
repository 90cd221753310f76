"""Finds and creates the admin plug-ins of `forwarding.admin.class` (KIP-787).

An admin plug-in is made for each cluster and connector, over an admin client that is connected already.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, cast

from sparkmirror.config.client_layers import admin_properties
from sparkmirror.config.plugin_guard import FAILURES, Guarded, described
from sparkmirror.config.plugin_points import PluginPoint, UnusablePluginError
from sparkmirror.config.properties import Properties
from sparkmirror.domain.accounts import QuotaChange, SaltedCredential
from sparkmirror.domain.errors import KafkaError, PluginError
from sparkmirror.domain.ids import Flow
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.policies.admin_writes import AdminWrites, ForwardingAdmin

FORWARDING_ADMIN: Final = PluginPoint[ForwardingAdmin](
    "forwarding.admin.class",
    "sparkmirror.admins",
    ForwardingAdmin,
    {"org.apache.kafka.clients.admin.ForwardingAdmin": ForwardingAdmin},
)


@dataclass(frozen=True, slots=True)
class AdminPlugins:
    """Creates a connector's admin plug-ins; without a `kind` writes go to the clusters directly."""

    name: str = ""
    kind: type[ForwardingAdmin] | None = None
    properties: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The admin client's properties, by the alias of the cluster."""

    def over(self, delegate: AdminWrites, cluster: str) -> AdminWrites:
        """The writer for the cluster of that alias. Raises PluginError."""
        if self.kind is None:
            return delegate
        try:
            plugin = self.kind(self.properties[cluster], delegate, cluster)
        except FAILURES as error:
            raise PluginError(f"making a {self.name} for {cluster} raised {described(error)}") from error
        return cast("AdminWrites", _Complete(Guarded(plugin, self.name, AdminWrites)))


DIRECTLY: Final = AdminPlugins()


def admin_plugins(connector: Properties, flow: Flow) -> AdminPlugins:
    """The admin plug-ins of a connector's `forwarding.admin.class`. Raises ConfigError."""
    name = FORWARDING_ADMIN.name_in(connector)
    try:
        kind = FORWARDING_ADMIN.find(name)
        inspect.signature(kind).bind({}, None, "")
    except (UnusablePluginError, TypeError) as error:
        raise connector.error(FORWARDING_ADMIN.key, str(error)) from error
    if kind is ForwardingAdmin:
        return DIRECTLY
    sides = {flow.source: "source", flow.target: "target"}
    properties: dict[str, Properties] = {
        alias: admin_properties(connector, side) for alias, side in sides.items()
    }
    return AdminPlugins(name, kind, properties)


class _Complete:
    """Adds an error for each item that a plug-in returns no result for, so that none counts as done."""

    def __init__(self, plugin: Guarded) -> None:
        self._plugin = plugin

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return partial(_complete, f"{self._plugin!r}.{method}", getattr(self._plugin, method))


def _complete(
    name: str, ask: Callable[..., Mapping[Any, Any]], items: Mapping[Any, Any] | Sequence[Any]
) -> Mapping[Any, KafkaError | None]:
    results = ask(items)
    asked = map(_key, items)
    missing = {key: KafkaError(f"{name} returned no result for {key}") for key in asked if key not in results}
    return {**results, **missing}


def _key(item: object) -> object:
    """The key of an item's result."""
    match item:
        case TopicCreation():
            return item.name
        case QuotaChange():
            return item.entity
        case SaltedCredential():
            return item.credential.user
        case _:
            return item
