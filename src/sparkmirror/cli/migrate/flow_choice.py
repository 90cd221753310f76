"""Which flow of an mm2.properties is meant, and how to reach what it works on."""

from pathlib import Path

from sparkmirror.cli.mirror_maker_file import read_mirror_maker_file
from sparkmirror.client.flow_access import CheckpointAccess, FlowAccess
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.runtime.flow_settings import FlowSettings, SourceConnector


def choose_flow(file: Path, wanted: str | None) -> FlowAccess:
    """The only flow of a file that mirrors topics, or the one that is named. Raises SparkmirrorError."""
    flows = read_mirror_maker_file(file).flows
    by_name = {str(flow.flow): (flow, flow.source) for flow in flows if flow.source is not None}
    names = ", ".join(by_name) or "none"
    if wanted is None and len(by_name) > 1:
        raise SparkmirrorError(f"{file} has several flows ({names}): name one with --flow")
    name = wanted if wanted is not None else next(iter(by_name), None)
    if name not in by_name:
        missing = "no flow that mirrors topics" if wanted is None else f"no flow {wanted} that mirrors topics"
        raise SparkmirrorError(f"{file} has {missing} (it has: {names})")
    return _access(*by_name[name])


def _access(flow: FlowSettings, source: SourceConnector) -> FlowAccess:
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
