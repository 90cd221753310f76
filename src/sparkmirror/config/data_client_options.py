"""The options that only a consumer or only a producer has; what all clients share is in `client_options`."""

from typing import Final

from sparkmirror.config.client_options import CLIENT
from sparkmirror.config.definitions import Definition, Importance, Option, Type, Value
from sparkmirror.config.validators import AtLeast, DistinctItems, NonEmpty, OneOf, OneOfAnyCase

_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW


def _offset_reset(value: Value) -> Value:
    assert isinstance(value, str)
    if value.startswith("by_duration:"):
        raise ValueError("by_duration is not supported yet; use earliest, latest or none")
    if value not in ("earliest", "latest", "none"):
        raise ValueError("The value must be either 'earliest', 'latest' or 'none'")
    return value


CONSUMER: Final = CLIENT | Definition(
    (
        Option("fetch.max.bytes", Type.INT, 52428800, "Most bytes of a fetch.", _HIGH, AtLeast(0)),
        Option(
            "max.partition.fetch.bytes", Type.INT, 1048576, "Most bytes of a partition.", _HIGH, AtLeast(0)
        ),
        Option("fetch.min.bytes", Type.INT, 1, "Fewest bytes worth an answer.", _HIGH, AtLeast(0)),
        Option("fetch.max.wait.ms", Type.INT, 500, "How long to wait for them.", _LOW, AtLeast(0)),
        Option(
            "auto.offset.reset",
            Type.STRING,
            "earliest",
            "Where to start without a usable offset; MM2's default, not the consumer's.",
            _MEDIUM,
            _offset_reset,
        ),
        Option(
            "isolation.level",
            Type.STRING,
            "read_uncommitted",
            "Whether records of open and aborted transactions are read.",
            _MEDIUM,
            OneOf(("read_committed", "read_uncommitted")),
        ),
        Option("check.crcs", Type.BOOLEAN, default=True, doc="Whether checksums are verified."),
        Option("client.rack", Type.STRING, "", "Where the client is, for fetching from followers (KIP-392)."),
        Option("group.id", Type.STRING, None, "Consumer group.", _HIGH),
        Option("group.instance.id", Type.STRING, None, "Static member.", _MEDIUM, NonEmpty()),
        Option(
            "group.protocol",
            Type.STRING,
            "classic",
            "Group protocol (KIP-848).",
            _HIGH,
            OneOfAnyCase(("CONSUMER", "CLASSIC")),
        ),
        Option("group.remote.assignor", Type.STRING, None, "Assignor on the broker.", _MEDIUM),
        Option("session.timeout.ms", Type.INT, 45000, "When a member counts as lost.", _HIGH),
        Option("heartbeat.interval.ms", Type.INT, 3000, "How often a member reports.", _HIGH),
        Option(
            "partition.assignment.strategy",
            Type.LIST,
            (
                "org.apache.kafka.clients.consumer.RangeAssignor",
                "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
            ),
            "How a group shares partitions.",
            _MEDIUM,
            DistinctItems(),
        ),
        Option("max.poll.records", Type.INT, 500, "Most records of a poll.", _MEDIUM, AtLeast(1)),
        Option("max.poll.interval.ms", Type.INT, 300000, "Longest time to a poll.", _MEDIUM, AtLeast(1)),
        Option("enable.auto.commit", Type.BOOLEAN, default=True, doc="Whether to commit; MM2 never does."),
        Option("auto.commit.interval.ms", Type.INT, 5000, "How often.", _LOW, AtLeast(0)),
        Option("default.api.timeout.ms", Type.INT, 60000, "How long a call may take.", _MEDIUM, AtLeast(0)),
        Option("exclude.internal.topics", Type.BOOLEAN, default=True, doc="For subscriptions by pattern."),
        Option("allow.auto.create.topics", Type.BOOLEAN, default=True, doc="For subscriptions."),
        Option("interceptor.classes", Type.LIST, (), "Interceptors.", _LOW, DistinctItems()),
        Option("key.deserializer", Type.CLASS, None, "Always bytes in MM2.", _HIGH),
        Option("value.deserializer", Type.CLASS, None, "Always bytes in MM2.", _HIGH),
        Option(
            "share.acknowledgement.mode",
            Type.STRING,
            "implicit",
            "For share groups.",
            _MEDIUM,
            OneOf(("implicit", "explicit")),
        ),
        Option("share.acquire.mode", Type.STRING, "BATCH_OPTIMIZED", "For share groups.", _MEDIUM),
    )
)

PRODUCER: Final = CLIENT | Definition(
    (
        Option(
            "acks",
            Type.STRING,
            "all",
            "How many replicas must have a record.",
            _LOW,
            OneOf(("all", "-1", "0", "1")),
        ),
        Option(
            "compression.type",
            Type.STRING,
            None,
            "Codec of the target's batches; unset: each keeps the codec it has at the source.",
            _HIGH,
            OneOf(("none", "gzip", "snappy", "lz4", "zstd")),
        ),
        Option("compression.gzip.level", Type.INT, -1, "Level of gzip.", _MEDIUM, AtLeast(-1, 9)),
        Option("compression.lz4.level", Type.INT, 9, "Level of lz4.", _MEDIUM, AtLeast(1, 17)),
        Option("compression.zstd.level", Type.INT, 3, "Level of zstd.", _MEDIUM, AtLeast(-131072, 22)),
        Option("max.request.size", Type.INT, 1048576, "Most bytes of a request.", _MEDIUM, AtLeast(0)),
        Option(
            "max.in.flight.requests.per.connection",
            Type.INT,
            5,
            "Most unanswered requests per broker; Connect's own producer has 1.",
            _LOW,
            AtLeast(1),
        ),
        Option(
            "delivery.timeout.ms",
            Type.INT,
            2147483647,
            "When a record counts as lost; Connect's default, without end.",
            _MEDIUM,
            AtLeast(0),
        ),
        Option("receive.buffer.bytes", Type.INT, 32768, "SO_RCVBUF; -1: the system's.", _MEDIUM, AtLeast(-1)),
        Option("batch.size", Type.INT, 16384, "Bytes of a batch.", _MEDIUM, AtLeast(0)),
        Option("linger.ms", Type.LONG, 5, "How long a batch waits for more.", _MEDIUM, AtLeast(0)),
        Option("buffer.memory", Type.LONG, 33554432, "Bytes of all batches.", _HIGH, AtLeast(0)),
        Option(
            "max.block.ms", Type.LONG, 9223372036854775807, "Longest wait for space.", _MEDIUM, AtLeast(0)
        ),
        Option("retries", Type.INT, 2147483647, "How often to retry.", _HIGH, AtLeast(0)),
        Option("enable.idempotence", Type.BOOLEAN, default=False, doc="Connect's default."),
        Option("metadata.max.idle.ms", Type.LONG, 300000, "How long topics are kept.", _LOW, AtLeast(5000)),
        Option("partitioner.class", Type.CLASS, None, "Never used: partitions are kept.", _MEDIUM),
        Option("partitioner.ignore.keys", Type.BOOLEAN, default=False, doc="Never used."),
        Option("partitioner.adaptive.partitioning.enable", Type.BOOLEAN, default=True, doc="Never used."),
        Option("partitioner.availability.timeout.ms", Type.LONG, 0, "Never used.", _LOW, AtLeast(0)),
        Option("interceptor.classes", Type.LIST, (), "Interceptors.", _LOW, DistinctItems()),
        Option("key.serializer", Type.CLASS, None, "Always bytes in MM2.", _HIGH),
        Option("value.serializer", Type.CLASS, None, "Always bytes in MM2.", _HIGH),
        Option("transactional.id", Type.STRING, None, "Name for transactions.", _LOW, NonEmpty()),
        Option("transaction.timeout.ms", Type.INT, 60000, "When a transaction is aborted."),
        Option("transaction.two.phase.commit.enable", Type.BOOLEAN, default=False, doc="KIP-939."),
    )
)
