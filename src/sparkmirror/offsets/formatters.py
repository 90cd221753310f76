"""MM2's records as JSON, and as text, word for word as Kafka's formatters for the console consumer do."""

from collections.abc import Mapping

from sparkmirror.offsets.wire_records import Checkpoint, Heartbeat, OffsetSync

Json = Mapping[str, str | int]


def text_of(record: Checkpoint | Heartbeat | OffsetSync, fields: Json) -> str:
    """Write a record as its class in Java does; `fields` are those of its JSON."""
    shown = dict(fields)
    if "topic" in shown:
        shown["topic"] = f"{shown['topic']}-{shown.pop('partition')}"
    written = (f"{'topicPartition' if name == 'topic' else name}={value}" for name, value in shown.items())
    return f"{type(record).__name__}{{{', '.join(written)}}}"


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


def heartbeat_json(heartbeat: Heartbeat) -> Json:
    source, target = heartbeat.flow
    return {
        "sourceClusterAlias": source,
        "targetClusterAlias": target,
        "timestamp": heartbeat.timestamp_ms,
    }


def offset_sync_json(sync: OffsetSync) -> Json:
    topic, partition = sync.topic_partition
    return {
        "topic": topic,
        "partition": partition,
        "upstreamOffset": sync.upstream_offset,
        "downstreamOffset": sync.downstream_offset,
    }
