"""Declares the options of the three connectors: those of Kafka 4.3, and our own."""

from collections.abc import Mapping
from typing import Final

from sparkmirror.config.definitions import Definition, Option, Type
from sparkmirror.config.kafka_options import options
from sparkmirror.config.properties import Properties
from sparkmirror.config.validators import AtLeast, OneOf

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

OWN_SOURCE: Final = Definition(
    (
        Option(
            "on.data.loss",
            Type.STRING,
            "record",
            "What to do when records are gone from the source before they were copied.",
            validator=OneOf(("record", "fail")),
        ),
        Option(
            "on.topic.recreated",
            Type.STRING,
            "record",
            "What to do when a source or target topic has been deleted and created again.",
            validator=OneOf(("record", "fail", "restart")),
        ),
        Option(
            "on.bad.batch",
            Type.STRING,
            "fail",
            "What to do with a batch that can't be read, or that the target will never take.",
            validator=OneOf(("fail", "skip")),
        ),
        Option(
            "batch.decompressed.bytes.max",
            Type.INT,
            67108864,
            "The most bytes that a batch may have when it is decompressed; it may have one record for each "
            "128 of them. A larger batch counts as one that can't be read: see on.bad.batch. Only batches "
            "that must change are decompressed, which takes up to four times as much memory; others are "
            "copied as they are.",
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
            doc="Whether every record is given a header that names the clusters it has come from, where "
            "topics' names don't. With it records come back neither around rings of more than two clusters "
            "nor through Java MM2. Needs every batch to be opened, and on.loop other than copy.",
        ),
        Option(
            "offsets.preserve",
            Type.BOOLEAN,
            default=False,
            doc="Whether each record has on the target the offset that it has at the source. Target topics "
            "must be empty at first, and nobody else may write to them. Offsets without a record are filled "
            "with control markers, which consumers never see; what is before a source that starts later than "
            "0 with empty records, which are deleted before the first record is copied. Needs "
            "enable.idempotence, auto.offset.reset=earliest, and on the target WRITE on transactional ids "
            "that begin with sparkmirror-, READ and DELETE on the topics. Also with "
            "exactly.once.source.support=enabled: records are copied exactly once, without transactions.",
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
            "The longest that it may take to bring a target partition to the offset where its source starts: "
            "a few million offsets a second. If it would take longer, that partition waits and says so.",
            validator=AtLeast(1000),
        ),
        Option(
            "offsets.gap",
            Type.STRING,
            "wait",
            "What to do where a running partition has so many offsets without a record that to fill them "
            "takes longer than offsets.preserve.fill.timeout.ms, at 500 control markers a second: fill them "
            "all the same, or stop the partition.",
            validator=OneOf(("wait", "stop")),
        ),
        Option(
            "offsets.on.mismatch",
            Type.STRING,
            "stop",
            "What to do where the target's log can't get its source's offsets, since somebody else has "
            "written to it or it lost records: stop the partition, or continue it with translated offsets "
            "as without offsets.preserve, until the target topic is made anew.",
            validator=OneOf(("stop", "continue-translated")),
        ),
        Option(
            "lag.group.id",
            Type.STRING,
            "",
            "A consumer group on the source that the mirror's positions are committed for every 5 s, so that "
            "kafka-consumer-groups.sh and tools like it show the mirror's lag; empty for none. Nobody else "
            "may use the group; checkpoints leave it out. Needs READ on the group and on the topics.",
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
            "How fast the flow may copy, all topics together. Takes effect while the mirror runs.",
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
            "Whether topics that were deleted at the source are deleted on the target: those that this "
            "mirror wrote, once missing for the grace period. dry-run only logs which and when. A topic "
            "whose name on the target does not show its origin, as under IdentityReplicationPolicy, is never "
            "deleted: applications there may have written to it too.",
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
            "prefixed ones, of all topics (*), of groups and of transactional ids. Rights to write to topics "
            "never do. sync.topic.acls.enabled and …interval.seconds set whether and how often.",
            validator=OneOf(("topic", "all")),
        ),
        Option(
            "sync.acls.delete",
            Type.BOOLEAN,
            default=False,
            doc="Whether ACLs that the mirror made are removed when their source is gone. Once it is "
            "set, the ACLs that the mirror makes are recorded in mm2-acls.<source>.internal on the target; "
            "nothing else is ever removed.",
        ),
        Option(
            "sync.quotas",
            Type.BOOLEAN,
            default=False,
            doc="Whether the target's client quotas follow the source (KIP-546): of users, client ids and "
            "addresses, defaults included, every sync.topic.acls.interval.seconds. A quota that is gone at "
            "the source stays.",
        ),
        Option(
            "sync.users",
            Type.STRING,
            None,
            "A properties file of NAME=PASSWORD lines: users to create on the target where they lack a SCRAM "
            "credential that they have at the source, or where it has other iterations (KIP-554), every "
            "sync.topic.acls.interval.seconds. Passwords may be placeholders of config providers that the "
            "file names itself; Kafka does not reveal those of the source.",
        ),
    )
)
"""Our options of a MirrorSourceConnector."""

OWN_CHECKPOINT: Final = Definition(
    (
        Option(
            "translation.resolve",
            Type.STRING,
            "all",
            "For which groups an offset that no offset sync translates exactly is looked up in the records "
            "of both clusters: for none, for those that have moved since the connector looked last, or also "
            "for those that are idle. Needs READ on the topics, else it's not done.",
            OneOf(("off", "active", "all")),
        ),
        Option(
            "translation.resolve.bytes.max",
            Type.LONG,
            64 << 20,
            "How many bytes of records, of both clusters together, are read to look up offsets in every "
            "emit.checkpoints.interval.seconds. Offsets that are left over stay approximate until a later "
            "interval, in which they are the first; the log and /metrics show them. An offset is looked up "
            "once.",
            AtLeast(1 << 20),
        ),
        Option(
            "reverse.checkpointing.enabled",
            Type.BOOLEAN,
            default=False,
            doc="Whether groups' offsets in topics that came from the target are translated back, by the "
            "offset syncs of the opposite flow: groups that failed over to the source continue where "
            "they are when they return (as KIP-1098 proposes). The opposite flow's "
            "offset-syncs.topic.location must be this one's, and replication.policy.class "
            "one that names the source in topics.",
        ),
    )
)
"""Our options of a MirrorCheckpointConnector."""

OWN: Final = OWN_SOURCE | OWN_CHECKPOINT

OWN_OPTIONS: Final[Mapping[str, Definition]] = {
    SOURCE_CONNECTOR: OWN_SOURCE,
    CHECKPOINT_CONNECTOR: OWN_CHECKPOINT,
    HEARTBEAT_CONNECTOR: Definition(()),
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
