"""What a configuration comes to: every value that a connector or a client of it would use."""

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
from sparkmirror.config.mirror_maker import FlowConfig, MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.config.worker_options import WORKER

_NOT_USED = SECURITY.names | {"name", "enabled", "config.providers", "emit.checkpoints.enabled"}
_CONVERTERS = ("key.converter", "value.converter", "header.converter")


def effective(properties: Properties) -> dict[str, object]:
    """By flow, the values of worker, connectors and clients; None for a connector that does nothing."""
    return {str(flow.flow): _flow(flow) for flow in MirrorMakerConfig(properties, {}).flows()}


def _flow(flow: FlowConfig) -> dict[str, object]:
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


def _source(flow: FlowConfig) -> dict[str, object]:
    told, worker = flow.source, flow.worker
    return _connector(MIRROR_SOURCE | OWN_SOURCE, told, worker) | {
        "name": told["name"],
        USE_DEFAULTS_FROM: told.get(USE_DEFAULTS_FROM),
        "consumer": client_layers.source_consumer(told, 0),
        "producer": client_layers.target_producer(worker, told, 0),
        "source admin": client_layers.source_admin(told),
        "target admin": client_layers.target_admin(told),
        "syncs admin": client_layers.offset_syncs_admin(told),
        "syncs": client_layers.offset_syncs_producer(told, 0),
    }


def _checkpoint(flow: FlowConfig) -> dict[str, object]:
    # Under a name of their own in Connect, where `name` is that of all three in mm2.properties.
    told, worker = flow.checkpoint | Properties({"name": "x"}), flow.worker
    return _connector(MIRROR_CHECKPOINT, told, worker) | {
        "topics": told.get("topics"),
        "excluded": told.get("topics.exclude"),
        "producer": client_layers.target_producer(worker, told, 0),
        "source admin": client_layers.source_admin(told),
        "target admin": client_layers.target_admin(told),
        "syncs": client_layers.offset_syncs_consumer(told),
        "checkpoints": client_layers.checkpoints_consumer(told),
    }


def _heartbeat(flow: FlowConfig) -> dict[str, object]:
    told = flow.heartbeat | Properties({"name": "x"})
    producer = client_layers.target_producer(flow.worker, told, 0)
    return _connector(MIRROR_HEARTBEAT, told, flow.worker) | {
        "admin": client_layers.target_admin(told),
        "producer": producer,
    }
