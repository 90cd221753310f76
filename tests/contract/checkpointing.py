"""Runs the checkpoint connector alone, with settings made by the test."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.groups.checkpoint_connector import CheckpointConnector
from sparkmirror.settings.configured import ConfiguredFlow, configured_flow
from tests.support.any_cluster import AnyCluster
from tests.support.mirror import REPLICATION

_STOP_TIMEOUT_S: Final = 20.0


def flow_between(
    source: tuple[str, AnyCluster], target: tuple[str, AnyCluster], properties: Mapping[str, str]
) -> ConfiguredFlow:
    """Two clusters, each with its alias."""
    clusters = dict([source, target])
    settings = {
        "clusters": ", ".join(clusters),
        **{f"{alias}.bootstrap.servers": each.bootstrap_servers for alias, each in clusters.items()},
        f"{source[0]}->{target[0]}.enabled": "true",
        "refresh.groups.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
        **REPLICATION,
        **properties,
    }
    flows = MirrorMakerConfig(Properties(settings)).flows()
    return configured_flow(next(flow for flow in flows if flow.flow.source == source[0]))


@contextmanager
def checkpointing(
    source: tuple[str, AnyCluster], target: tuple[str, AnyCluster], properties: Mapping[str, str]
) -> Iterator[CheckpointConnector]:
    """Checkpoints of the flow between two clusters, each with its alias."""
    made = flow_between(source, target, properties)
    assert made.checkpoint is not None
    connector = CheckpointConnector(made, made.checkpoint)
    connector.thread.start()
    try:
        yield connector
    finally:
        connector.thread.stop()
        assert connector.thread.join(_STOP_TIMEOUT_S)
