"""Examples of what connectors and their process measure: together they make every metric."""

from dataclasses import replace
from math import nan
from typing import Final

from sparkmirror.domain.ids import Alias, ConnectorName, Flow, GroupId, TopicPartition
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.metrics.readings import (
    CheckpointReading,
    ConnectorReading,
    GcReading,
    GroupTranslation,
    HeartbeatReading,
    JvmReading,
    MemoryReading,
    NodeReading,
    PartitionReading,
    SourceReading,
    TaskReading,
    Traffic,
)
from sparkmirror.metrics.windows import Summary

FLOW = Flow(Alias("us-west"), Alias("b"))
PARTITION = PartitionReading(
    task=1,
    source=TopicPartition("orders", 3),
    target_topic="us-west.orders",
    records=7,
    bytes=700,
    record_rate=0.5,
    byte_rate=50.0,
    latency=Summary(2.0, 1.0, 4.0, 3.0),
    lag=5,
    lag_s=1.5,
    lost=2,
    looped=5,
    filtered=6,
    incidents={"records-lost": 1},
)
SOURCE = SourceReading(
    FLOW,
    ConnectorName("MirrorSourceConnector"),
    {0: "running", 1: "failed"},
    partitions=[PARTITION],
    states={"running": 1, "silent": 0},
    retries=3,
    failures=1,
    stalls=4,
    stalled=1,
    lost=9,
    looped=8,
    filtered=7,
    incidents={"records-lost": 6},
)
CHECKPOINT = CheckpointReading(
    FLOW,
    ConnectorName("MirrorCheckpointConnector"),
    {0: "running"},
    groups=2,
    checkpoints=11,
    last_at=1000.5,
    latencies={(GroupId("my group?"), TopicPartition("us-west.orders", 0)): Summary(8.0, nan, nan, nan)},
    left_out=0,
    lookups_waiting=3,
    lookup_bytes=4096,
)
HEARTBEAT = HeartbeatReading(FLOW, ConnectorName("MirrorHeartbeatConnector"), {0: "running"}, 6, None)
REFUSED: Final = Trouble(Cause(TroubleWord.NOT_COMMITTED, Subject.GROUP, "no"), "g")
_TIMES: Final = Summary(1.0, nan, nan, nan)
_TASK: Final = TaskReading(1, _TIMES, _TIMES, Traffic(1, 2, 3), Traffic(4, 5, 6), 7, 6, 0, 0)

EVERY_CONNECTOR: Final[tuple[ConnectorReading, ...]] = (
    replace(SOURCE, of_tasks={0: _TASK}, up={FLOW.source: True}),
    replace(
        CHECKPOINT,
        translated_at=1.0,
        troubles=[REFUSED],
        translations={GroupId("g"): GroupTranslation(1.0, 1, 0, 0, 0)},
    ),
    HEARTBEAT,
)
JVM: Final = JvmReading({"heap": MemoryReading(5, 7, 9)}, {"G1 Young Generation": GcReading(4, 0.25)}, 31)
NODE: Final = NodeReading("c", "http://a", is_leader=True, is_rebalancing=False, jvm=JVM)
