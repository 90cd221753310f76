"""MM2's records as JSON, and as text, word for word as Kafka's formatters for the console consumer do."""

from collections.abc import Mapping

from sparkmirror.offsets.wire_records import Checkpoint, Heartbeat, OffsetSync

Json = Mapping[str, str | int]


def checkpoint_text(checkpoint: Checkpoint) -> str:
    return (
        f"Checkpoint{{consumerGroupId={checkpoint.group}, topicPartition={checkpoint.topic_partition}, "
        f"upstreamOffset={checkpoint.upstream_offset}, downstreamOffset={checkpoint.downstream_offset}, "
        f"metadata={checkpoint.metadata or ''}}}"
    )


def checkpoint_json(checkpoint: Checkpoint) -> Json:
    topic, partition = checkpoint.topic_partition
    return {
        "consumerGroupId": checkpoint.group,
        "topic": topic,
        "partition": partition,
        "upstreamOffset": checkpoint.upstream_offset,
        "downstreamOffset": checkpoint.downstream_offset,
        "metadata": checkpoint.metadata or "",
    }


def heartbeat_text(heartbeat: Heartbeat) -> str:
    source, target = heartbeat.flow
    return (
        f"Heartbeat{{sourceClusterAlias={source}, targetClusterAlias={target}, "
        f"timestamp={heartbeat.timestamp_ms}}}"
    )


def heartbeat_json(heartbeat: Heartbeat) -> Json:
    source, target = heartbeat.flow
    return {
        "sourceClusterAlias": source,
        "targetClusterAlias": target,
        "timestamp": heartbeat.timestamp_ms,
    }


def offset_sync_text(sync: OffsetSync) -> str:
    return (
        f"OffsetSync{{topicPartition={sync.topic_partition}, upstreamOffset={sync.upstream_offset}, "
        f"downstreamOffset={sync.downstream_offset}}}"
    )


def offset_sync_json(sync: OffsetSync) -> Json:
    topic, partition = sync.topic_partition
    return {
        "topic": topic,
        "partition": partition,
        "upstreamOffset": sync.upstream_offset,
        "downstreamOffset": sync.downstream_offset,
    }
