"""Declares the options of the three connectors: those of Kafka 4.3, and our own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sparkmirror.config.definitions import Definition, Option, Type, Value
from sparkmirror.config.kafka_options import options
from sparkmirror.config.properties import Properties
from sparkmirror.config.validators import AtLeast, OneOf
from sparkmirror.domain.start_at import parse_start_at

MIRROR_PACKAGE: Final = "org.apache.kafka.connect.mirror."
SOURCE_CONNECTOR: Final = MIRROR_PACKAGE + "MirrorSourceConnector"
CHECKPOINT_CONNECTOR: Final = MIRROR_PACKAGE + "MirrorCheckpointConnector"
HEARTBEAT_CONNECTOR: Final = MIRROR_PACKAGE + "MirrorHeartbeatConnector"

USE_DEFAULTS_FROM: Final = "use.defaults.from"
"""Read by the config property filter; in no connector's table, as in Kafka (KIP-894)."""

MIRROR_SOURCE: Final = options(SOURCE_CONNECTOR)
MIRROR_CHECKPOINT: Final = options(CHECKPOINT_CONNECTOR)
MIRROR_HEARTBEAT: Final = options(HEARTBEAT_CONNECTOR)

CONNECTORS: Final = {
    SOURCE_CONNECTOR: MIRROR_SOURCE,
    CHECKPOINT_CONNECTOR: MIRROR_CHECKPOINT,
    HEARTBEAT_CONNECTOR: MIRROR_HEARTBEAT,
}

CONNECTOR_NAMES: Final = MIRROR_SOURCE.names | MIRROR_CHECKPOINT.names | MIRROR_HEARTBEAT.names
"""The options that mm2.properties passes to connectors from its top level; it drops everything else there."""

_CONNECT: Final = options("framework")

FRAMEWORK: Final = Definition(option for option in _CONNECT if option.name in MIRROR_HEARTBEAT.names)
"""The options that Connect gives every connector; the connectors' own tables include them."""

SOURCE_FRAMEWORK: Final = Definition(option for option in _CONNECT if option.name not in FRAMEWORK.names)
"""The options that Connect adds for source connectors; mm2.properties doesn't take them at its top level."""


@dataclass(frozen=True)
class _StartAt:
    """Accepts what `start.at` may be, or nothing."""

    def __call__(self, value: Value) -> Value:
        if value:
            parse_start_at(str(value))
        return value

    def __str__(self) -> str:
        return "earliest, latest, a time, a duration, or empty"


_ON_CLUSTER_CHANGE: Final = Option(
    "on.cluster.change",
    Type.STRING,
    "stop",
    "What to do when another cluster, by its id, answers at an alias's address: stop until you "
    "say which is meant, or continue with it as at a first start.",
    validator=OneOf(("stop", "continue")),
)

OWN_SOURCE: Final = Definition(
    (
        Option(
            "on.data.loss",
            Type.STRING,
            "record",
            "What to do when records are gone from the source before they were copied: record it and "
            "continue, or stop the partition.",
            validator=OneOf(("record", "fail")),
        ),
        Option(
            "on.topic.recreated",
            Type.STRING,
            "record",
            "What to do when a source or target topic has been deleted and created again: record it and "
            "continue with the new topic, stop the partition, or restart: copy all that the "
            "source has, unless auto.offset.reset is latest.",
            validator=OneOf(("record", "fail", "restart")),
        ),
        _ON_CLUSTER_CHANGE,
        Option(
            "start.at",
            Type.STRING,
            "",
            "Where partitions begin that the source has at the flow's first start, or that a changed filter "
            "selects for the first time: earliest, latest, the first record since a time "
            "(2026-01-31T12:00:00Z), or since a duration before that start (P7D, PT6H). What appears later "
            "is copied from its first record. By default auto.offset.reset decides.",
            validator=_StartAt(),
        ),
        Option(
            "on.newer.position",
            Type.STRING,
            "continue",
            "Where to begin if another connector of this flow, under another name or with another offsets "
            "topic, has copied a partition into the same topic further since: continue there, or repeat what "
            "is behind the own position, as MM2 does. Offsets that were altered or reset since count. The "
            "same where the own positions are lost, because their topic was deleted.",
            validator=OneOf(("continue", "repeat")),
        ),
        Option(
            "on.bad.batch",
            Type.STRING,
            "fail",
            "What to do with a batch that can't be read, or that the target will never take: stop the "
            "partition, or leave it out and write a dead-letter record.",
            validator=OneOf(("fail", "skip")),
        ),
        Option(
            "batch.decompressed.bytes.max",
            Type.INT,
            67108864,
            "The largest size of a decompressed batch, with at most one record for each 128 bytes. A "
            "larger batch counts as one that can't be read: see on.bad.batch. Only batches that must "
            "change are decompressed, which takes up to four times as much memory.",
            validator=AtLeast(1048576),
        ),
        Option(
            "on.loop",
            Type.STRING,
            "filter",
            "What to do with records that were mirrored from the target, where topics' names don't show it: "
            "leave them out, stop the partition, or copy them back as MM2 does, in an endless cycle.",
            validator=OneOf(("filter", "fail", "copy")),
        ),
        Option(
            "provenance.header",
            Type.BOOLEAN,
            default=False,
            doc="Whether every record gets a header with the clusters it came from, where topics' names "
            "don't show it. It ends loops around more than two clusters and through Java MM2. Opens "
            "every batch; needs on.loop other than copy.",
        ),
        Option(
            "offsets.preserve",
            Type.BOOLEAN,
            default=False,
            doc="Whether each record has on the target the offset that it has at the source. Target topics "
            "must be empty at first, and nobody else may write to them. Needs enable.idempotence, "
            "auto.offset.reset=earliest, and on the target WRITE on transactional ids sparkmirror-*, "
            "READ and DELETE on the topics.",
        ),
        Option(
            "offsets.preserve.topics",
            Type.LIST,
            (".*",),
            "The topics whose offsets are preserved, as regexes of their names at the source. Others are "
            "copied as without offsets.preserve.",
        ),
        Option(
            "offsets.preserve.fill.timeout.ms",
            Type.LONG,
            900000,
            "The longest time to bring a target partition to the offset where its source starts, at a "
            "few million offsets a second. If it would take longer, the partition waits and says so.",
            validator=AtLeast(1000),
        ),
        Option(
            "offsets.gap",
            Type.STRING,
            "wait",
            "What to do about a gap that takes longer to fill than offsets.preserve.fill.timeout.ms, at "
            "500 control markers a second: fill it, or stop the partition.",
            validator=OneOf(("wait", "stop")),
        ),
        Option(
            "offsets.on.mismatch",
            Type.STRING,
            "stop",
            "What to do where the target's log can't get its source's offsets, because another producer "
            "has written to it or it lost records: stop the partition, or continue it with translated "
            "offsets until the target topic is recreated.",
            validator=OneOf(("stop", "continue-translated")),
        ),
        Option(
            "lag.group.id",
            Type.STRING,
            "",
            "A consumer group on the source for which the mirror's positions are committed every 5 s, "
            "so that kafka-consumer-groups.sh shows the mirror's lag; empty for none. Nobody else may "
            "use it: a group with members, or with offsets of others, gets nothing. Needs READ on the "
            "group and on the topics.",
        ),
        Option(
            "partition.assignment",
            Type.STRING,
            "load",
            "How partitions are assigned to tasks: by measured load, or round-robin as MM2 does.",
            validator=OneOf(("load", "roundrobin")),
        ),
        Option(
            "max.bytes.per.second",
            Type.LONG,
            None,
            "How fast the flow may copy, all topics together; its tasks share it evenly. Takes effect while "
            "the mirror runs.",
            validator=AtLeast(1),
        ),
        Option(
            "topic.max.bytes.per.second",
            Type.LIST,
            (),
            "How fast each topic may be copied: REGEX=BYTES items, of which the first that matches counts. "
            "Takes effect while the mirror runs.",
        ),
        Option(
            "sync.topic.deletes",
            Type.STRING,
            "false",
            "Whether topics that were deleted at the source are deleted on the target after the grace "
            "period, if this mirror wrote them; dry-run only logs them. Never under policies that keep "
            "names, such as IdentityReplicationPolicy, since applications may write to the same topics.",
            validator=OneOf(("false", "true", "dry-run")),
        ),
        Option(
            "sync.topic.deletes.grace.seconds",
            Type.LONG,
            86400,
            "For how long a topic must have been missing at the source before it's deleted on the target.",
            validator=AtLeast(60),
        ),
        Option(
            "sync.acls",
            Type.STRING,
            "topic",
            "Which ACLs follow the source: those of literal topic patterns, as in MM2, or also those of "
            "prefixes, of all topics (*), of groups and of transactional ids; never the right to write "
            "to topics. sync.topic.acls.* say whether and how often.",
            validator=OneOf(("topic", "all")),
        ),
        Option(
            "sync.acls.delete",
            Type.BOOLEAN,
            default=False,
            doc="Whether ACLs that the mirror created are removed when their source is gone. They are "
            "recorded in mm2-acls.<source>.internal on the target; nothing else is removed.",
        ),
        Option(
            "sync.quotas",
            Type.BOOLEAN,
            default=False,
            doc="Whether the target's client quotas follow the source (KIP-546), every "
            "sync.topic.acls.interval.seconds. A quota that was removed at the source stays.",
        ),
        Option(
            "sync.users",
            Type.STRING,
            None,
            "A properties file of NAME=PASSWORD lines: users whose SCRAM credentials of the source are "
            "created on the target where they are missing or have other iterations (KIP-554), every "
            "sync.topic.acls.interval.seconds. Passwords may be placeholders of config providers that "
            "the file names. A changed password is not noticed.",
        ),
    )
)
"""Our options of a MirrorSourceConnector."""

OWN_CHECKPOINT: Final = Definition(
    (
        _ON_CLUSTER_CHANGE,
        Option(
            "translation.resolve",
            Type.STRING,
            "all",
            "Groups whose offsets are looked up in the records of both clusters where no offset sync "
            "translates them exactly: none, those that have moved since the last look, or also idle "
            "ones. Needs READ on the topics.",
            OneOf(("off", "active", "all")),
        ),
        Option(
            "translation.resolve.bytes.max",
            Type.LONG,
            64 << 20,
            "How many bytes of records, of both clusters together, are read to look up offsets in every "
            "emit.checkpoints.interval.seconds. The rest stays approximate until a later interval; the "
            "log and /metrics show it.",
            AtLeast(1 << 20),
        ),
        Option(
            "reverse.checkpointing.enabled",
            Type.BOOLEAN,
            default=False,
            doc="Whether offsets of groups that failed over are translated back by the opposite flow's "
            "offset syncs, so they return without reading again (KIP-1098). Both flows need the same "
            "offset-syncs.topic.location, and a replication.policy.class whose names show the source.",
        ),
    )
)
"""Our options of a MirrorCheckpointConnector."""

OWN_HEARTBEAT: Final = Definition((_ON_CLUSTER_CHANGE,))
"""Our options of a MirrorHeartbeatConnector."""

OWN: Final = OWN_SOURCE | OWN_CHECKPOINT | OWN_HEARTBEAT

OWN_OPTIONS: Final[Mapping[str, Definition]] = {
    SOURCE_CONNECTOR: OWN_SOURCE,
    CHECKPOINT_CONNECTOR: OWN_CHECKPOINT,
    HEARTBEAT_CONNECTOR: OWN_HEARTBEAT,
}
"""Our options by connector."""


def check_mirror_source(properties: Properties) -> None:
    """Raises ConfigError with the first of `mirror_source_contradictions`."""
    for key, reason in mirror_source_contradictions(properties).items():
        raise properties.error(key, reason)


def mirror_source_contradictions(properties: Properties) -> dict[str, str]:
    """The errors of MirrorSourceConnector's `validate` beyond single values, by key (KIP-618, KIP-1031)."""
    found = {}
    if properties.get("exactly.once.support") == "required" and not reads_committed(properties):
        found["exactly.once.support"] = (
            "MirrorSourceConnector can only provide exactly-once guarantees when its source consumer is"
            " configured with isolation.level set to 'read_committed'; otherwise, records from aborted and"
            " uncommitted transactions will be replicated from the source cluster to the target cluster."
        )
    if properties.get("emit.offset-syncs.enabled") == "false" and properties.starting(
        "offset-syncs-", "offset-syncs.topic."
    ):
        found["emit.offset-syncs.enabled"] = (
            "MirrorSourceConnector can't setup offset-syncs feature"
            " while emit.offset-syncs.enabled set to false"
        )
    return found


def mirror_checkpoint_contradictions(properties: Properties) -> dict[str, str]:
    """The errors of MirrorCheckpointConnector's `validate` beyond single values, by key."""
    if properties.get("enabled", "true") == "false":
        return {}
    return {key: reason for key, reason in _CHECKPOINT_NEEDS.items() if properties.get(key) == "false"}


def reads_committed(properties: Properties) -> bool:
    """Whether a source connector's consumer reads only committed records."""
    consumer = properties.under("consumer.") | properties.under("source.consumer.")
    return consumer.get("isolation.level") == "read_committed"


_CHECKPOINT_NEEDS: Final = {
    "emit.checkpoints.enabled": (
        "MirrorCheckpointConnector can't run with emit.checkpoints.enabled set to false"
    ),
    "emit.offset-syncs.enabled": "MirrorCheckpointConnector can't run without offset syncs",
}
