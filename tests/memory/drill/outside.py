"""Looks at a run's flows from outside, from Kafka alone, as `status FILE` and `lag FILE` do.

Positions are never ahead of the records, so a lag of 0 is true at every moment.
"""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from functools import lru_cache
from typing import Final

from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import ConnectorName
from sparkmirror.settings.configured import configured_flow
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.status.flow_look import FlowLook
from sparkmirror.status.flow_reader import FlowReader
from sparkmirror.status.partition_reports import PartitionReports
from sparkmirror.storage.progress import PartitionProgress
from tests.memory.checked_flow import POSITIONS, CheckedFlow
from tests.memory.cluster import MemoryCluster
from tests.memory.stage import Stage

_LOOK_MAX_S: Final = 120.0
_IDENTITY: Final = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


class OutsideLooks:
    """One flow. `violated` gets a lag of 0 while records are missing."""

    def __init__(self, stage: Stage, flow: CheckedFlow) -> None:
        self._stage = stage
        self._flow = flow
        self._access = _access(stage, flow)

    def begin(self) -> None:
        """Look while everything else goes on."""
        missing = self._missing()
        self._stage.network.executor().submit(self._read).add_done_callback(
            lambda look: self._judge(look.result(), missing)
        )

    def wrong(self) -> list[str]:
        """Look now, at a flow that has nothing left to copy: the words that say something else."""
        looked = self._stage.network.executor().submit(self._read)
        if not self._stage.run_until(looked.done, _LOOK_MAX_S):
            return [f"no look is over after {_LOOK_MAX_S:g} s"]
        reports = looked.result()
        if reports is None:
            return ["nothing can be read"]
        return [f"{it.source}: lag {it.lag}, {it.error}" for it in reports if it.lag != 0 or it.error] + [
            f"{self._flow.ends.topic}-{at} is not told"
            for at in self._flow.partitions
            if at not in {it.source.partition for it in reports}
        ]

    def _read(self) -> list[PartitionProgress] | None:
        """None while a cluster can't be read: then there are no words."""
        try:
            with closing(FlowReader(self._access, lambda: self._stage.source.now_ms() / 1000)) as reader:
                look: FlowLook = reader.read()
        except SparkmirrorError:
            return None
        return PartitionReports().of(look)

    def _missing(self) -> Mapping[int, set[int]]:
        return {at: self._flow.missing(at) for at in self._flow.partitions}

    def _judge(self, reports: list[PartitionProgress] | None, before: Mapping[int, set[int]]) -> None:
        still = self._missing()
        for report in reports or ():
            missing = before[report.source.partition] & still[report.source.partition]
            if report.lag == 0 and missing:
                lacking = f"records {sorted(missing)} are missing"
                self._flow.violated(f"{report.source} has lag 0, seen from outside, and {lacking}")


def _access(stage: Stage, flow: CheckedFlow) -> FlowAccess:
    ends = flow.ends
    access = _configured(
        *ends.flow, _servers(ends.source), _servers(ends.target), ends.topic, ends.topic == ends.remote
    )
    network = stage.network
    consumer = replace(access.consumer.connection, network=network)
    return replace(
        access,
        connector=ConnectorName("drill"),
        positions_topic=POSITIONS,
        consumer=ConsumerSettings(consumer, read_committed=stage.shape.reads_committed),
        source_admin=replace(access.source_admin, network=network),
        target_admin=replace(access.target_admin, network=network),
        producer=replace(access.producer, network=network),
        positions=replace(access.positions, network=network),
        heartbeat_admin=replace(access.heartbeat_admin, network=network),
    )


@lru_cache(maxsize=64)
def _configured(
    source: str, target: str, at_source: str, at_target: str, topic: str, keeps: bool
) -> FlowAccess:
    properties = {
        "clusters": f"{source}, {target}",
        f"{source}.bootstrap.servers": at_source,
        f"{target}.bootstrap.servers": at_target,
        f"{source}->{target}.enabled": "true",
        f"{source}->{target}.topics": topic,
        "emit.heartbeats.enabled": "false",
        "emit.checkpoints.enabled": "false",
        **({"replication.policy.class": _IDENTITY} if keeps else {}),
    }
    (flow,) = MirrorMakerConfig(Properties(properties)).flows([target])
    configured = configured_flow(flow)
    assert configured.source is not None
    return FlowAccess.of(configured, configured.source)


def _servers(cluster: MemoryCluster) -> str:
    return ",".join(f"{broker.host}:{broker.port}" for broker in cluster.brokers)
