"""Looks at a run's flows from outside, from Kafka alone: `status`, `lag`, `topics explain`, `groups explain`.

Positions are never ahead of the records, so a lag of 0 is true at every moment.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.explanation import Explanation
from sparkmirror.plan.topic_facts import topic_facts
from sparkmirror.settings.configured import ConfiguredFlow, configured_flow
from sparkmirror.setup.topic_explanation import explain
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.status.flow_reader import FlowReader
from sparkmirror.status.partition_reports import PartitionReports
from sparkmirror.storage.progress import PartitionProgress
from tests.memory.checked_flow import POSITIONS, SYNCS, CheckedFlow
from tests.memory.cluster import MemoryCluster
from tests.memory.drill.readers import GroupLooks, Readers
from tests.memory.stage import Stage

_LOOK_MAX_S: Final = 120.0
_IDENTITY: Final = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


class _Seen(NamedTuple):
    """The result of one look: as `status` and `lag` tell it, and both commands that explain."""

    reports: Sequence[PartitionProgress]
    explained: Explanation
    group: Explanation


class OutsideLooks:
    """One flow. `violated` gets a lag of 0 while records are missing, and a wrong offset of a group."""

    def __init__(self, stage: Stage, flow: CheckedFlow) -> None:
        self._stage = stage
        self._flow = flow
        self._settings = _networked(stage, flow)
        self.groups = GroupLooks(flow, self._settings, stage.shape)

    def begin(self) -> None:
        """Look while everything else goes on."""
        missing, readers = self._missing(), self.groups.drawn()

        def judge(seen: _Seen | None) -> None:
            if seen is not None:
                self._judge(seen, missing)
                for wrong in self.groups.wrong(readers, seen.group):
                    self._flow.violated(wrong)

        looked = self._stage.network.executor().submit(self._read, readers)
        looked.add_done_callback(lambda look: judge(look.result()))

    def wrong(self) -> list[str]:
        """Look now, at a flow that has nothing left to copy: the words that say something else."""
        readers = self.groups.drawn()
        looked = self._stage.network.executor().submit(self._read, readers)
        if not self._stage.run_until(looked.done, _LOOK_MAX_S):
            return [f"no look is over after {_LOOK_MAX_S:g} s"]
        seen = looked.result()
        if seen is None:
            return ["nothing can be read"]
        told = {it.source.partition for it in seen.reports}
        return [
            *(f"{it.source}: lag {it.lag}, {it.error}" for it in seen.reports if it.lag != 0 or it.error),
            *(f"{self._flow.ends.topic}-{at} is not told" for at in self._flow.partitions if at not in told),
            *(f"explained: {obstacle}" for obstacle in seen.explained.obstacles),
            *(
                f"{it.source} is explained: {it.why}, lag {it.numbers['lag']}"
                for it in seen.explained.partitions
                if it.numbers["lag"] != 0 or not it.is_fine
            ),
            *self.groups.unsettled(readers, seen.group),
        ]

    def _read(self, readers: Readers) -> _Seen | None:
        """None while a cluster can't be read: then there are no words."""
        source = self._settings.source
        assert source is not None
        access = FlowAccess.of(self._settings, source)
        try:
            with closing(FlowReader(access, lambda: self._stage.source.now_ms() / 1000)) as reader:
                reports = PartitionReports().of(reader.read())
            topic = explain(topic_facts(self._settings, source, self._flow.ends.topic))
            return _Seen(reports, topic, self.groups.explained(readers))
        except SparkmirrorError:
            return None

    def _missing(self) -> Mapping[int, set[int]]:
        return {at: self._flow.missing(at) for at in self._flow.partitions}

    def _judge(self, seen: _Seen, before: Mapping[int, set[int]]) -> None:
        still = self._missing()
        lags = [(it.source, it.lag, "seen from outside") for it in seen.reports]
        lags += [(it.source, it.numbers["lag"], "as it is explained") for it in seen.explained.partitions]
        for source, lag, how in lags:
            missing = before[source.partition] & still[source.partition]
            if lag == 0 and missing:
                lacking = f"records {sorted(missing)} are missing"
                self._flow.violated(f"{source} has lag 0, {how}, and {lacking}")


def _networked(stage: Stage, flow: CheckedFlow) -> ConfiguredFlow:
    """The flow as a file would configure it, with all connections in memory."""
    ends = flow.ends
    settings = _configured(
        *ends.flow, _servers(ends.source), _servers(ends.target), ends.topic, ends.topic == ends.remote
    )
    source, checkpoint, network = settings.source, settings.checkpoint, stage.network
    assert source is not None
    assert checkpoint is not None
    consumer = replace(source.consumer_of(0).connection, network=network)
    producer = source.producer_of(0)
    producer = replace(producer, connection=replace(producer.connection, network=network))
    reads = ConsumerSettings(consumer, read_committed=stage.shape.reads_committed)
    return replace(
        settings,
        worker_client=replace(settings.worker_client, network=network),
        source=replace(
            source,
            source_admin=replace(source.source_admin, network=network),
            target_admin=replace(source.target_admin, network=network),
            offset_syncs_admin=replace(source.offset_syncs_admin, network=network),
            offset_syncs_producer=replace(source.offset_syncs_producer, network=network),
            consumer_of=lambda _: reads,
            producer_of=lambda _: producer,
        ),
        checkpoint=replace(
            checkpoint,
            settings=replace(checkpoint.settings, offset_syncs_topic=SYNCS),
            source_admin=replace(checkpoint.source_admin, network=network),
            target_admin=replace(checkpoint.target_admin, network=network),
            offset_syncs_consumer=replace(checkpoint.offset_syncs_consumer, network=network),
            checkpoints_consumer=replace(checkpoint.checkpoints_consumer, network=network),
            records_consumer=reads,
        ),
        heartbeat=replace(
            settings.heartbeat, target_admin=replace(settings.heartbeat.target_admin, network=network)
        ),
    )


@lru_cache(maxsize=64)
def _configured(
    source: str, target: str, at_source: str, at_target: str, topic: str, keeps: bool
) -> ConfiguredFlow:
    properties = {
        "clusters": f"{source}, {target}",
        f"{source}.bootstrap.servers": at_source,
        f"{target}.bootstrap.servers": at_target,
        f"{target}.offset.storage.topic": POSITIONS,
        f"{source}->{target}.enabled": "true",
        f"{source}->{target}.name": "drill",
        f"{source}->{target}.topics": topic,
        "emit.heartbeats.enabled": "false",
        "sync.group.offsets.enabled": "true",
        "sync.topic.acls.enabled": "false",
        "replication.factor": "1",
        **({"replication.policy.class": _IDENTITY} if keeps else {}),
    }
    (flow,) = MirrorMakerConfig(Properties(properties)).flows([target])
    return configured_flow(flow)


def _servers(cluster: MemoryCluster) -> str:
    return ",".join(f"{broker.host}:{broker.port}" for broker in cluster.brokers)
