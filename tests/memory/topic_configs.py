"""The topic configs that a broker of Kafka 4.3 without tiered storage accepts, and its words where not."""

from collections.abc import Mapping
from typing import Final

RECORDS_MAX: Final = "records.in.batch.max"
"""A config that Kafka does not have: other brokers limit how many records a batch has."""
_NAMES: Final = frozenset(
    [
        RECORDS_MAX,
        "cleanup.policy",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "delete.retention.ms",
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "follower.replication.throttled.replicas",
        "index.interval.bytes",
        "leader.replication.throttled.replicas",
        "local.retention.bytes",
        "local.retention.ms",
        "max.compaction.lag.ms",
        "max.message.bytes",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.type",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "min.insync.replicas",
        "preallocate",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
        "unclean.leader.election.enable",
    ]
)
DEFAULTS: Final = {"remote.storage.enable": "false"}
"""The configs that are described though they are not set; those of a broker are more."""
_LEAST: Final = {"segment.bytes": 1 << 20, "max.message.bytes": 0, "retention.ms": -1}
_NO_TIERED_STORAGE: Final = (
    "Tiered Storage functionality is disabled in the broker. "
    "Topic cannot be configured with remote log storage."
)


def fault_of(configs: Mapping[str, str | None]) -> str | None:
    """Return what a broker says to the first of these configs that it refuses."""
    for name in configs:
        if name not in _NAMES:
            return f"Unknown topic config name: {name}"
    for name, least in _LEAST.items():
        value = configs.get(name)
        if value is not None and int(value) < least:
            return f"Invalid value {value} for configuration {name}: Value must be at least {least}"
    return _NO_TIERED_STORAGE if configs.get("remote.storage.enable") == "true" else None
