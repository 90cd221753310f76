"""Makes progress records as copy tasks report them."""

from dataclasses import replace

from sparkmirror.domain.ids import ConnectorName, TopicPartition
from sparkmirror.domain.latency import EMPTY, LatencyHistogram
from sparkmirror.storage.progress import PartitionProgress, PartitionState

IDLE = PartitionProgress(
    connector=ConnectorName("MirrorSourceConnector"),
    task=0,
    job_epoch=1,
    source=TopicPartition("orders", 0),
    target_topic="source.orders",
    records=0,
    bytes=0,
    position=None,
    lag=None,
    latency=EMPTY,
    state=PartitionState.RUNNING,
    error=None,
    updated_at=1000.0,
)


def progress(
    partition: str, *, records: int = 0, lag: int | None = 0, at: float = 1000.0
) -> PartitionProgress:
    """`records` records of 100 bytes, all of them in the latency bucket 0, mirrored from offset 0 on."""
    return replace(
        IDLE,
        source=TopicPartition.parse(partition),
        records=records,
        bytes=100 * records,
        position=records - 1 if records else None,
        lag=lag,
        latency=LatencyHistogram({0: records} if records else {}),
        updated_at=at,
    )
