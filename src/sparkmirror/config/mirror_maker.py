"""Reads mm2.properties: the flows that it describes, and the worker's and connectors' properties of each.

The layers are those of Kafka's MirrorMakerConfig, with its surprises: a top-level key reaches a
connector only if it has an option of that name, and a key under `S->T.` never reaches the worker.
"""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from sparkmirror.config.client_options import SHARED_NAMES
from sparkmirror.config.connector_options import (
    CHECKPOINT_CONNECTOR,
    CONNECTOR_NAMES,
    HEARTBEAT_CONNECTOR,
    OWN,
    SOURCE_CONNECTOR,
)
from sparkmirror.config.definitions import JAVA_WHITESPACE
from sparkmirror.config.known_keys import UnknownKey, unknown_keys, unread
from sparkmirror.config.metrics_options import METRICS, MetricsOptions, metrics_options
from sparkmirror.config.properties import Properties
from sparkmirror.config.providers import PREFIX as CONFIG_PROVIDERS
from sparkmirror.config.providers import configured_providers, resolved
from sparkmirror.config.worker_options import MIRROR_MAKER
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


@dataclass(frozen=True, slots=True)
class FlowProperties:
    """One flow with all properties resolved, ready to be started."""

    flow: Flow
    worker: Properties
    source: Properties
    checkpoint: Properties
    heartbeat: Properties
    state_topics: frozenset[str] = frozenset()
    """The topics in which the workers of all flows of the file store their state."""


class MirrorMakerConfig:
    """The content of one mm2.properties. Raises ConfigError when its own options are wrong."""

    def __init__(self, properties: Properties, environment: Mapping[str, str] = os.environ) -> None:
        self._properties = properties
        self._providers = configured_providers(properties, environment)
        own = MIRROR_MAKER.parse(self.resolve(properties.only(MIRROR_MAKER.names)))
        self.clusters = tuple(map(Alias, own.strings("clusters")))
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
            raise ConfigError("clusters", ", ".join(self.clusters), "No source->target replication flows.")
        return tuple(chosen)

    def mirroring(self) -> tuple[Flow, ...]:
        """The flows that are enabled: the others that run emit heartbeats only."""
        return tuple(flow for flow in self._pairs() if self._is_enabled(flow))

    def names_topics(self, flow: Flow) -> bool:
        """Whether the file says which topics this flow mirrors; else they are all of them."""
        return "topics" in self._properties or f"{flow}.topics" in self._properties

    def cluster_properties(self, alias: Alias) -> Properties:
        """`alias.*` without the prefix, and with the settings that all clients share copied to each kind.

        Those of the top level are the defaults.
        """
        own = self._properties.under(f"{alias}.")
        own = _for_each_client(own.only(SHARED_NAMES)) | own
        top = self._properties.only(SHARED_NAMES)
        return _for_each_client(top) | top | own

    def worker_properties(self, flow: Flow) -> Properties:
        """The Connect worker's properties, resolved. Nothing under `S->T.` gets here."""
        stated = self.cluster_properties(flow.target) | self._properties.starting(*WORKER_PREFIXES)
        return (
            Properties(worker_defaults(flow))
            | self.resolve(stated)
            | self._properties.starting(CONFIG_PROVIDERS)
        )

    def connector_properties(self, flow: Flow, connector_class: str) -> Properties:
        """A connector's properties as Connect stores them, placeholders unresolved."""
        top = self._properties.only(CONNECTOR_NAMES | OWN.names)
        top |= self._properties.starting(CONFIG_PROVIDERS, "replication.policy")
        clusters = _connector_side("source.", self.cluster_properties(flow.source))
        clusters |= _connector_side("target.", self.cluster_properties(flow.target))
        own = self._properties.under(f"{flow}.")
        return Properties(_connector_defaults(flow, connector_class)) | top | clusters | own

    def resolve(self, properties: Properties) -> Properties:
        """Replace `${provider:path:key}`. Raises ConfigError, without values, for what can't be found."""
        return resolved(properties, self._providers)

    def spark_properties(self) -> Properties:
        """`spark.*`, resolved, for the Spark session; none if a cluster is called `spark`."""
        if "spark" in self.clusters:
            return Properties()
        return self.resolve(self._properties.starting(SPARK_PREFIX))

    def metrics_options(self) -> MetricsOptions:
        """The options of `/metrics`. Raises ConfigError."""
        return metrics_options(self.resolve(self._properties.only(METRICS.names)))

    def unknown_keys(self) -> tuple[UnknownKey, ...]:
        """The keys of the file that nothing reads, each with the most similar known key."""
        below = tuple(f"{place}." for place in (*self.clusters, *self._pairs()))
        return unread(unknown_keys(self._properties, self.clusters), self._properties, below)

    def _pairs(self) -> list[Flow]:
        return [
            Flow(source, target) for source in self.clusters for target in self.clusters if source != target
        ]

    def _runs(self, flow: Flow) -> bool:
        keys = (f"{flow}.{_EMIT_HEARTBEATS}", _EMIT_HEARTBEATS)
        given = self.resolve(self._properties.only(keys))
        heartbeats = given.get(keys[0], given.get(keys[1], "true"))
        return self._is_enabled(flow) or _parse_boolean(heartbeats)

    def _is_enabled(self, flow: Flow) -> bool:
        key = f"{flow}.enabled"
        return _parse_boolean(self.resolve(self._properties.only((key,))).get(key, "false"))

    def _flow_config(self, flow: Flow) -> FlowProperties:
        for alias in flow:
            if not self.cluster_properties(alias).get("bootstrap.servers", "").strip(JAVA_WHITESPACE):
                raise ConfigError(
                    f"{alias}.bootstrap.servers", None, f"is missing, and the flow {flow} needs it"
                )
        return FlowProperties(
            flow=flow,
            worker=self.worker_properties(flow),
            source=self.resolve(self.connector_properties(flow, SOURCE_CONNECTOR)),
            checkpoint=self.resolve(self.connector_properties(flow, CHECKPOINT_CONNECTOR)),
            heartbeat=self.resolve(self.connector_properties(flow, HEARTBEAT_CONNECTOR)),
            state_topics=self._state_topics(),
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


_STATE_TOPICS: Final = ("offset.storage.topic", "config.storage.topic", "status.storage.topic")


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
