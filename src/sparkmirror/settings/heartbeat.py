"""Settings of MirrorHeartbeatConnector, and the records that it emits."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from sparkmirror.domain.ids import Flow
from sparkmirror.domain.incidents import OnClusterChange
from sparkmirror.domain.option_fields import FromOption
from sparkmirror.offsets.wire_records import Heartbeat


@dataclass(frozen=True, slots=True)
class MirrorHeartbeatSettings:
    """A MirrorHeartbeatConnector's settings as values; the topic is on the target cluster."""

    flow: Flow
    emit: bool
    interval_s: float
    topic: str
    replication_factor: Annotated[int, FromOption("heartbeats.topic.replication.factor")]
    on_cluster_change: Annotated[OnClusterChange, FromOption("on.cluster.change")] = OnClusterChange.STOP


class HeartbeatRecord(NamedTuple):
    """A record to produce to partition 0; the timestamp is also inside the value."""

    key: bytes
    value: bytes
    timestamp_ms: int


def heartbeat_record(flow: Flow, now_ms: int) -> HeartbeatRecord:
    """A flow's heartbeat at a time in milliseconds since the epoch."""
    heartbeat = Heartbeat(flow, now_ms)
    return HeartbeatRecord(heartbeat.encode_key(), heartbeat.encode_value(), heartbeat.timestamp_ms)
