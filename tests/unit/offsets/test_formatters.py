"""Records are formatted as by Kafka's OffsetSyncFormatter, CheckpointFormatter and HeartbeatFormatter."""

from sparkmirror.domain.ids import Alias, Flow, GroupId, TopicPartition
from sparkmirror.offsets.formatters import (
    checkpoint_json,
    heartbeat_json,
    offset_sync_json,
    text_of,
)
from sparkmirror.offsets.wire_records import Checkpoint, Heartbeat, OffsetSync


def test_offset_sync_is_formatted_as_by_kafka() -> None:
    sync = OffsetSync(TopicPartition("t", 0), 5, 7)
    assert (
        text_of(sync, offset_sync_json(sync))
        == "OffsetSync{topicPartition=t-0, upstreamOffset=5, downstreamOffset=7}"
    )
    assert offset_sync_json(sync) == {
        "topic": "t",
        "partition": 0,
        "upstreamOffset": 5,
        "downstreamOffset": 7,
    }


def test_checkpoint_is_formatted_as_by_kafka() -> None:
    checkpoint = Checkpoint(GroupId("g1"), TopicPartition("source1.t", 0), 10, 8)
    assert text_of(checkpoint, checkpoint_json(checkpoint)) == (
        "Checkpoint{consumerGroupId=g1, topicPartition=source1.t-0, upstreamOffset=10, downstreamOffset=8, "
        "metadata=}"
    )
    assert checkpoint_json(checkpoint)["metadata"] == ""


def test_heartbeat_is_formatted_as_by_kafka() -> None:
    heartbeat = Heartbeat(Flow(Alias("A"), Alias("B")), 1700000000000)
    assert text_of(heartbeat, heartbeat_json(heartbeat)) == (
        "Heartbeat{sourceClusterAlias=A, targetClusterAlias=B, timestamp=1700000000000}"
    )
    assert heartbeat_json(heartbeat)["timestamp"] == 1700000000000
