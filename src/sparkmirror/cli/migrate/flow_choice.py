"""Which flow of an mm2.properties is meant, and how to reach what it works on."""

from pathlib import Path

from sparkmirror.cli.mirror_maker_file import read_mirror_maker_file
from sparkmirror.cli.mirroring_flows import mirroring_flows
from sparkmirror.connectors.flow_settings import FlowSettings, SourceConfig
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.migrate.flow_access import CheckpointAccess, FlowAccess


def choose_flow(file: Path, wanted: str | None) -> FlowAccess:
    """The only flow of a file that mirrors topics, or the one that is named. Raises SparkmirrorError."""
    flows = read_mirror_maker_file(file).flows
    found = mirroring_flows(file, flows, None if wanted is None else [wanted])
    if len(found) > 1:
        names = ", ".join(flow.name for flow in found)
        raise SparkmirrorError(f"{file} has several flows ({names}): name one with --flow")
    return _access(*found[0])


def _access(flow: FlowSettings, source: SourceConfig) -> FlowAccess:
    checkpoint = flow.checkpoint
    return FlowAccess(
        flow=flow.flow,
        connector=source.name,
        source=source.settings,
        source_admin=source.source_admin,
        target_admin=source.target_admin,
        consumer=source.consumers[0],
        positions=flow.worker_client,
        positions_topic=flow.worker.offset_topic.name,
        heartbeat=flow.heartbeat.settings,
        heartbeat_admin=flow.heartbeat.admin,
        checkpoint=None
        if checkpoint is None
        else CheckpointAccess(
            settings=checkpoint.settings,
            source_admin=checkpoint.source_admin,
            target_admin=checkpoint.target_admin,
            offset_syncs=checkpoint.offset_syncs_consumer,
            checkpoints=checkpoint.checkpoints_consumer,
            admin_plugins=checkpoint.admin_plugins,
        ),
    )
