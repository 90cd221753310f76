"""Lists the values that connectors and their clients would use with a configuration."""

from sparkmirror.config import client_layers
from sparkmirror.config.client_options import SECURITY
from sparkmirror.config.connector_options import (
    MIRROR_CHECKPOINT,
    MIRROR_HEARTBEAT,
    MIRROR_SOURCE,
    OWN_SOURCE,
    SOURCE_FRAMEWORK,
    USE_DEFAULTS_FROM,
)
from sparkmirror.config.definitions import Definition
from sparkmirror.config.mirror_maker import FlowProperties, MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.config.worker_options import WORKER

_NOT_USED = SECURITY.names | {"name", "enabled", "config.providers", "emit.checkpoints.enabled"}
_CONVERTERS = ("key.converter", "value.converter", "header.converter")


def effective(properties: Properties) -> dict[str, object]:
    """By flow, the values of worker, connectors and clients; None for a connector that does nothing."""
    return {str(flow.flow): _flow(flow) for flow in MirrorMakerConfig(properties, {}).flows()}


def _flow(flow: FlowProperties) -> dict[str, object]:
    source = MIRROR_SOURCE.parse(flow.source)
    checkpoint = MIRROR_CHECKPOINT.parse(flow.checkpoint)
    mirrors = source.boolean("enabled")
    checks = mirrors and checkpoint.boolean("emit.checkpoints.enabled")
    checks = checks and source.boolean("emit.offset-syncs.enabled")
    beats = MIRROR_HEARTBEAT.parse(flow.heartbeat).boolean("emit.heartbeats.enabled")
    topics = dict(flow.worker.starting("offset.storage.", "config.storage.", "status.storage."))
    return {
        "worker": _values(WORKER, flow.worker) | topics,
        "worker client": client_layers.worker_client(flow.worker, "offsets"),
        "source": _source(flow) if mirrors else None,
        "checkpoint": _checkpoint(flow) if checks else None,
        "heartbeat": _heartbeat(flow) if beats else None,
    }


def _values(definition: Definition, properties: Properties) -> dict[str, object]:
    values = definition.parse(properties)
    return {name: str(values[name]) for name in values if name not in _NOT_USED}


def _connector(definition: Definition, properties: Properties, worker: Properties) -> dict[str, object]:
    converters = {key: properties.get(key, worker[key]) for key in _CONVERTERS}
    return _values(definition | SOURCE_FRAMEWORK, properties) | converters


def _source(flow: FlowProperties) -> dict[str, object]:
    connector, worker = flow.source, flow.worker
    return _connector(MIRROR_SOURCE | OWN_SOURCE, connector, worker) | {
        "name": connector["name"],
        USE_DEFAULTS_FROM: connector.get(USE_DEFAULTS_FROM),
        "consumer": client_layers.source_consumer(connector, 0),
        "producer": client_layers.target_producer(worker, connector, 0),
        "source admin": client_layers.source_admin(connector),
        "target admin": client_layers.target_admin(connector),
        "syncs admin": client_layers.offset_syncs_admin(connector),
        "syncs": client_layers.offset_syncs_producer(connector, 0),
    }


def _checkpoint(flow: FlowProperties) -> dict[str, object]:
    # Under a name of their own in Connect, where `name` is that of all three in mm2.properties.
    connector, worker = flow.checkpoint | Properties({"name": "x"}), flow.worker
    return _connector(MIRROR_CHECKPOINT, connector, worker) | {
        "topics": connector.get("topics"),
        "excluded": connector.get("topics.exclude"),
        "producer": client_layers.target_producer(worker, connector, 0),
        "source admin": client_layers.source_admin(connector),
        "target admin": client_layers.target_admin(connector),
        "syncs": client_layers.offset_syncs_consumer(connector),
        "checkpoints": client_layers.checkpoints_consumer(connector),
    }


def _heartbeat(flow: FlowProperties) -> dict[str, object]:
    connector = flow.heartbeat | Properties({"name": "x"})
    producer = client_layers.target_producer(flow.worker, connector, 0)
    return _connector(MIRROR_HEARTBEAT, connector, flow.worker) | {
        "admin": client_layers.target_admin(connector),
        "producer": producer,
    }
