"""Reads mm2.properties: the flows that it describes, and the worker's and connectors' properties of each.

The layers are those of Kafka's MirrorMakerConfig, with its surprises: a top-level key reaches a
connector only if it has an option of that name, and a key under `S->T.` never reaches the worker.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sparkmirror.config.client_layers import SHOWN_ALIAS
from sparkmirror.config.client_options import SHARED_NAMES
from sparkmirror.config.connector_options import (
    CHECKPOINT_CONNECTOR,
    CONNECTOR_NAMES,
    HEARTBEAT_CONNECTOR,
    OWN,
    SOURCE_CONNECTOR,
)
from sparkmirror.config.definitions import JAVA_WHITESPACE
from sparkmirror.config.former_keys import FORMER_LISTS
from sparkmirror.config.known_keys import TRANSFORMS, UnknownKey, unknown_keys, unread
from sparkmirror.config.metrics_options import METRICS, MetricsOptions, metrics_options
from sparkmirror.config.properties import Properties
from sparkmirror.config.providers import PREFIX as CONFIG_PROVIDERS
from sparkmirror.config.providers import check_placeholders, configured_providers, resolved
from sparkmirror.config.worker_options import MIRROR_MAKER
from sparkmirror.domain.comments import comment_in
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.domain.state_topics import StateTopic

SPARK_PREFIX: Final = "spark."
BYTE_ARRAY_CONVERTER: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"

WORKER_PREFIXES: Final = (
    "offset.storage",
    "config.storage",
    "status.storage",
    "key.converter",
    "value.converter",
    "header.converter",
    "task",
    "worker",
    "replication.policy",
)
"""The top-level keys that every worker gets."""

_CLIENTS = ("producer", "consumer", "admin")
_EMIT_HEARTBEATS = "emit.heartbeats.enabled"
_SEPARATOR_SWITCH = "replication.policy.internal.topic.separator.enabled"


@dataclass(frozen=True, slots=True)
class FlowProperties:
    """A flow with all properties resolved, ready to be started."""

    flow: Flow
    worker: Properties
    source: Properties
    checkpoint: Properties
    heartbeat: Properties
    state_topics: frozenset[str] = frozenset()
    """The topics in which the workers of all flows of the file store their state."""
    is_copied_back: bool = False
    """Whether the opposite flow copies, by the same file."""


class MirrorMakerConfig:
    """The content of one mm2.properties. Raises ConfigError when its own options are wrong."""

    def __init__(
        self, properties: Properties, environment: Mapping[str, str] = os.environ, *, resolves: bool = True
    ) -> None:
        """`resolves`: placeholders are replaced, not only checked, for which secrets need not be here."""
        self.properties = properties
        self._resolves = resolves
        if not resolves:
            check_placeholders(properties)
        self._providers = configured_providers(properties, environment) if resolves else {}
        own = MIRROR_MAKER.parse(self.resolve(properties.only(MIRROR_MAKER.names)))
        self.clusters = tuple(map(Alias, own.strings("clusters")))
        if comment_in(properties.get("clusters", "")):
            raise properties.error("clusters", "is a list of names")
        self.internal_rest = own.boolean("dedicated.mode.enable.internal.rest")

    def flows(self, only_targets: Collection[str] | None = None) -> tuple[FlowProperties, ...]:
        """The flows to run, with the properties of their worker and connectors.

        Raises ConfigError as `running` does, and for a cluster without bootstrap servers.
        """
        return tuple(self._flow_config(flow) for flow in self.running(only_targets))

    def running(self, only_targets: Collection[str] | None = None) -> tuple[Flow, ...]:
        """The flows to run, if given only those into `only_targets`.

        A flow runs when it is enabled, or when it has heartbeats to emit (KAFKA-10710). Raises ConfigError
        for an unknown target, and when no flow is left.
        """
        self._check_targets(only_targets or ())
        chosen = [
            flow
            for flow in self._pairs()
            if self._runs(flow) and (only_targets is None or flow.target in only_targets)
        ]
        if not chosen:
            reason = "No source->target replication flows."
            blank = " and ".join(key for key in self.properties if self.is_false_by_blank(key))
            if blank:
                reason += f" The value of {blank} ends in a blank, and counts as false, as in Java."
            raise ConfigError("clusters", ", ".join(self.clusters), reason)
        return tuple(chosen)

    def is_false_by_blank(self, key: str) -> bool:
        """Whether a switch that is read as it is written says true, but for blanks beside it."""
        text = self.properties[key]
        is_read = key == _EMIT_HEARTBEATS or key.endswith((f".{_EMIT_HEARTBEATS}", _SEPARATOR_SWITCH))
        is_read = is_read or any(key == f"{flow}.enabled" for flow in self._pairs())
        return is_read and not _parse_boolean(text) and _parse_boolean(text.strip())

    def mirroring(self) -> tuple[Flow, ...]:
        """The flows that mirror topics: the others that run emit heartbeats only.

        A connector trims its `enabled`, in Java too, so that `true ` does not start a flow by itself, and
        mirrors where heartbeats start it.
        """
        return tuple(
            flow for flow in self._pairs() if self._runs(flow) and _parse_boolean(self._enabled(flow).strip())
        )

    def names_topics(self, flow: Flow) -> bool:
        """Whether the file says which topics this flow mirrors; else they are all of them."""
        return "topics" in self.properties or f"{flow}.topics" in self.properties

    def cluster_properties(self, alias: Alias) -> Properties:
        """`alias.*` without the prefix, and with the settings that all clients share copied to each kind.

        Settings of the top level are the defaults.
        """
        own = self.properties.under(f"{alias}.")
        own = _for_each_client(own.only(SHARED_NAMES)) | own
        top = self.properties.only(SHARED_NAMES)
        return _for_each_client(top) | top | own

    def worker_properties(self, flow: Flow) -> Properties:
        """The Connect worker's properties, resolved. Nothing under `S->T.` gets here."""
        stated = self.cluster_properties(flow.target) | self.properties.starting(*WORKER_PREFIXES)
        return (
            Properties(worker_defaults(flow))
            | self.resolve(stated)
            | self.properties.starting(CONFIG_PROVIDERS)
        )

    def connector_properties(self, flow: Flow, connector_class: str) -> Properties:
        """A connector's properties as Connect stores them, placeholders unresolved."""
        top = self.properties.only(CONNECTOR_NAMES | OWN.names | FORMER_LISTS.keys())
        top |= self.properties.starting(CONFIG_PROVIDERS, "replication.policy")
        clusters = _connector_side("source.", self.cluster_properties(flow.source))
        clusters |= _connector_side("target.", self.cluster_properties(flow.target))
        own = self.properties.under(f"{flow}.")
        found = Properties(_connector_defaults(flow, connector_class)) | top | clusters | own
        return found | Properties(dict(_names_of_empty_aliases(found, flow)))

    def resolve(self, properties: Properties) -> Properties:
        """Replace `${provider:path:key}`. Raises ConfigError, without values, for what can't be found."""
        return resolved(properties, self._providers) if self._resolves else properties

    def spark_properties(self) -> Properties:
        """`spark.*`, resolved, for the Spark session; none if a cluster is called `spark`."""
        if "spark" in self.clusters:
            return Properties()
        return self.resolve(self.properties.starting(SPARK_PREFIX))

    def metrics_options(self) -> MetricsOptions:
        """The options of `/metrics`. Raises ConfigError."""
        return metrics_options(self.resolve(self.properties.only(METRICS.names)))

    def unknown_keys(self) -> tuple[UnknownKey, ...]:
        """The keys of the file that nothing reads, each with the most similar known key."""
        below = tuple(f"{place}." for place in (*self.clusters, *self._pairs()))
        return unread(unknown_keys(self.properties, self.clusters, self.mirroring()), self.properties, below)

    def _pairs(self) -> list[Flow]:
        return [
            Flow(source, target) for source in self.clusters for target in self.clusters if source != target
        ]

    def _runs(self, flow: Flow) -> bool:
        keys = (f"{flow}.{_EMIT_HEARTBEATS}", _EMIT_HEARTBEATS)
        given = self.resolve(self.properties.only(keys))
        heartbeats = given.get(keys[0], given.get(keys[1], "true"))
        return _parse_boolean(self._enabled(flow)) or _parse_boolean(heartbeats)

    def _enabled(self, flow: Flow) -> str:
        key = f"{flow}.enabled"
        return self.resolve(self.properties.only((key,))).get(key, "false")

    def check_servers(self, flow: Flow) -> None:
        """Raises ConfigError for a cluster of the flow without bootstrap servers."""
        for alias in flow:
            if not self.cluster_properties(alias).get("bootstrap.servers", "").strip(JAVA_WHITESPACE):
                key = f"{alias}.bootstrap.servers"
                reason = f"is missing, and the flow {flow} needs it"
                meant = next((each for each in self.properties if each.endswith(f".{key}")), None)
                if meant is not None:
                    reason += f"; is {meant} meant for it?"
                raise ConfigError(key, None, reason)

    def _flow_config(self, flow: Flow) -> FlowProperties:
        self.check_servers(flow)
        return FlowProperties(
            flow=flow,
            worker=self.worker_properties(flow),
            source=self.resolve(self.connector_properties(flow, SOURCE_CONNECTOR)),
            checkpoint=_without_chain(self.resolve(self.connector_properties(flow, CHECKPOINT_CONNECTOR))),
            heartbeat=_without_chain(self.resolve(self.connector_properties(flow, HEARTBEAT_CONNECTOR))),
            state_topics=self._state_topics(),
            is_copied_back=Flow(flow.target, flow.source) in self.mirroring(),
        )

    def _state_topics(self) -> frozenset[str]:
        workers = map(self.worker_properties, self.running())
        return frozenset(worker[key].strip() for worker in workers for key in _STATE_TOPICS)

    def _check_targets(self, only_targets: Collection[str]) -> None:
        for target in only_targets:
            if target not in self.clusters:
                raise ConfigError(
                    "--clusters", target, f"is not one of clusters = {', '.join(self.clusters)}"
                )


_CHAINS: Final = ("transforms", "predicates")
_STATE_TOPICS: Final = ("offset.storage.topic", "config.storage.topic", "status.storage.topic")


def _names_of_empty_aliases(connector: Properties, flow: Flow) -> Iterator[tuple[str, str]]:
    """Name clusters as in `clusters`, where an empty alias keeps the names of their topics."""
    for side, alias in zip(("source", "target"), flow, strict=True):
        if not connector[f"{side}.cluster.alias"].strip(JAVA_WHITESPACE):
            yield f"{side}.cluster.{SHOWN_ALIAS}", alias


def _without_chain(connector: Properties) -> Properties:
    """A flow's transforms are for mirrored records; the mirror's own need the names of topics only."""
    kept = connector.where(lambda key: key not in _CHAINS and not key.startswith(TRANSFORMS))
    aliases = [each.strip(JAVA_WHITESPACE) for each in connector.get("transforms", "").split(",")]
    types = {alias: connector.get(f"transforms.{alias}.type", "").strip(JAVA_WHITESPACE) for alias in aliases}
    routers = [alias for alias, kind in types.items() if kind.endswith("RegexRouter")]
    if not routers:
        return kept
    return connector | Properties({"transforms": ",".join(routers)})


def keeps_names_by_empty_alias(connector: Properties) -> bool:
    """Whether topics keep their names since nothing is put in front of them: neither alias nor separator."""
    is_empty = not connector.get("source.cluster.alias", "").strip(JAVA_WHITESPACE)
    given = connector.get("replication.policy.class", "DefaultReplicationPolicy").strip(JAVA_WHITESPACE)
    is_default = given.endswith("DefaultReplicationPolicy")
    return is_empty and is_default and connector.get("replication.policy.separator") == ""


def _parse_boolean(text: str) -> bool:
    """Parse as Java's `Boolean.parseBoolean`: untrimmed, and everything but "true" is false."""
    return text.lower() == "true"


def _for_each_client(properties: Properties) -> Properties:
    copies = Properties()
    for client in _CLIENTS:
        copies |= properties.below(f"{client}.")
    return copies


def _connector_side(prefix: str, cluster: Properties) -> Properties:
    # Kafka compares only the start of the key, without a dot: `administrator` counts as `admin`.
    clients = cluster.starting(*_CLIENTS)
    others = cluster.where(lambda key: not key.startswith(_CLIENTS))
    return others.below(f"{prefix}cluster.") | clients.below(prefix)


def worker_defaults(flow: Flow) -> dict[str, str]:
    """The default properties of a flow's Connect worker."""
    return {
        "client.id": str(flow),
        "group.id": f"{flow.source}-mm2",
        "offset.storage.topic": StateTopic.OFFSETS.of(flow.source),
        "status.storage.topic": StateTopic.STATUS.of(flow.source),
        "config.storage.topic": StateTopic.CONFIGS.of(flow.source),
        "key.converter": BYTE_ARRAY_CONVERTER,
        "value.converter": BYTE_ARRAY_CONVERTER,
        "header.converter": BYTE_ARRAY_CONVERTER,
    }


def _connector_defaults(flow: Flow, connector_class: str) -> dict[str, str]:
    return {
        "name": connector_class.rpartition(".")[2],
        "connector.class": connector_class,
        "source.cluster.alias": flow.source,
        "target.cluster.alias": flow.target,
        "enabled": "false",
    }
