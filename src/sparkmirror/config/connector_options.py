"""The options of the three connectors, with the defaults of Kafka 4.3.

`FRAMEWORK` are those that Connect gives every connector; the connectors' own tables include them.
"""

from typing import Final

from sparkmirror.config.access_options import ACCESS
from sparkmirror.config.client_options import SECURITY
from sparkmirror.config.definitions import REQUIRED, Definition, Importance, Option, Type
from sparkmirror.config.properties import Properties
from sparkmirror.config.validators import (
    AtLeast,
    ConnectorNameText,
    DistinctItems,
    NonEmpty,
    OneOf,
    OneOfAnyCase,
    UniqueAliases,
)
from sparkmirror.policies.config_filter import DEFAULT_CONFIG_PROPERTIES_EXCLUDE
from sparkmirror.policies.topic_filter import DEFAULT_TOPICS, DEFAULT_TOPICS_EXCLUDE

MIRROR_PACKAGE: Final = "org.apache.kafka.connect.mirror."
SOURCE_CONNECTOR: Final = MIRROR_PACKAGE + "MirrorSourceConnector"
CHECKPOINT_CONNECTOR: Final = MIRROR_PACKAGE + "MirrorCheckpointConnector"
HEARTBEAT_CONNECTOR: Final = MIRROR_PACKAGE + "MirrorHeartbeatConnector"

USE_DEFAULTS_FROM: Final = "use.defaults.from"
"""Read by the config property filter; in no connector's table, as in Kafka (KIP-894)."""

_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_COMMON, _TRANSFORMS, _PREDICATES, _ERRORS = "Common", "Transforms", "Predicates", "Error Handling"

FRAMEWORK: Final = Definition(
    (
        Option("name", Type.STRING, REQUIRED, "The connector's name.", _HIGH, ConnectorNameText(), _COMMON),
        Option("connector.class", Type.STRING, REQUIRED, "Class or alias.", _HIGH, group=_COMMON),
        Option("connector.plugin.version", Type.STRING, None, "Version.", _MEDIUM, group=_COMMON),
        Option("tasks.max", Type.INT, 1, "Most tasks to use.", _HIGH, AtLeast(1), _COMMON),
        Option(
            "tasks.max.enforce",
            Type.BOOLEAN,
            default=True,
            doc="Whether more tasks than tasks.max are refused (KIP-1004).",
            group=_COMMON,
        ),
        Option("key.converter", Type.CLASS, None, "Converter of keys; the worker's if unset.", group=_COMMON),
        Option("key.converter.plugin.version", Type.STRING, None, "Its version.", group=_COMMON),
        Option(
            "value.converter", Type.CLASS, None, "Converter of values; the worker's if unset.", group=_COMMON
        ),
        Option("value.converter.plugin.version", Type.STRING, None, "Its version.", group=_COMMON),
        Option(
            "header.converter",
            Type.CLASS,
            None,
            "Converter of headers; the worker's if unset.",
            group=_COMMON,
        ),
        Option("header.converter.plugin.version", Type.STRING, None, "Its version.", group=_COMMON),
        Option("transforms", Type.LIST, (), "Names of transforms.", _LOW, UniqueAliases(), _TRANSFORMS),
        Option("predicates", Type.LIST, (), "Names of predicates.", _LOW, UniqueAliases(), _PREDICATES),
        Option(
            "config.action.reload",
            Type.STRING,
            "restart",
            "What a change behind a config provider does to the connector.",
            _LOW,
            OneOf(("none", "restart")),
            _COMMON,
        ),
        Option(
            "errors.retry.timeout",
            Type.LONG,
            0,
            "How long a failed operation is retried.",
            _MEDIUM,
            group=_ERRORS,
        ),
        Option(
            "errors.retry.delay.max.ms",
            Type.LONG,
            60000,
            "Longest pause between retries.",
            _MEDIUM,
            group=_ERRORS,
        ),
        Option(
            "errors.tolerance",
            Type.STRING,
            "none",
            "Whether records in error are skipped.",
            _MEDIUM,
            OneOf(("none", "all")),
            _ERRORS,
        ),
        Option(
            "errors.log.enable",
            Type.BOOLEAN,
            default=False,
            doc="Whether tolerated errors are logged.",
            importance=_MEDIUM,
            group=_ERRORS,
        ),
        Option(
            "errors.log.include.messages",
            Type.BOOLEAN,
            default=False,
            doc="Whether such logs include the record.",
            importance=_MEDIUM,
            group=_ERRORS,
        ),
    )
)

SOURCE_FRAMEWORK: Final = Definition(
    (
        Option("topic.creation.groups", Type.LIST, (), "Groups of topic settings.", _LOW, UniqueAliases()),
        Option(
            "exactly.once.support",
            Type.STRING,
            "requested",
            "Whether the connector must support exactly-once (KIP-618).",
            _MEDIUM,
            OneOfAnyCase(("REQUESTED", "REQUIRED")),
        ),
        Option(
            "transaction.boundary",
            Type.STRING,
            "poll",
            "What ends a transaction under exactly-once (KIP-618).",
            _MEDIUM,
            OneOfAnyCase(("POLL", "INTERVAL", "CONNECTOR")),
        ),
        Option(
            "transaction.boundary.interval.ms", Type.LONG, None, "Length of an interval.", _LOW, AtLeast(0)
        ),
        Option("offsets.storage.topic", Type.STRING, None, "The connector's own offsets.", _LOW, NonEmpty()),
    )
)
"""What Connect adds for source connectors; not among the names that mm2.properties takes at its top level."""

BASE: Final = (
    FRAMEWORK
    | SECURITY
    | Definition(
        (
            Option("enabled", Type.BOOLEAN, default=True, doc="Whether to replicate source->target."),
            Option("source.cluster.alias", Type.STRING, REQUIRED, "Alias of the source cluster.", _HIGH),
            Option("target.cluster.alias", Type.STRING, "target", "Alias of the target cluster.", _HIGH),
            Option("admin.timeout.ms", Type.LONG, 60000, "Time limit of administrative jobs."),
            Option(
                "replication.policy.class",
                Type.CLASS,
                MIRROR_PACKAGE + "DefaultReplicationPolicy",
                "How remote topics are named.",
            ),
            Option("replication.policy.separator", Type.STRING, ".", "Between alias and topic."),
            Option(
                "replication.policy.internal.topic.separator.enabled",
                Type.BOOLEAN,
                default=True,
                doc="Whether the separator is used in the names of MM2's internal topics too (KIP-949).",
            ),
            Option(
                "forwarding.admin.class",
                Type.CLASS,
                "org.apache.kafka.clients.admin.ForwardingAdmin",
                "The admin client to use (KIP-787).",
            ),
            Option(
                "metric.reporters",
                Type.LIST,
                ("org.apache.kafka.common.metrics.JmxReporter",),
                "Classes that report metrics.",
                _LOW,
                DistinctItems(),
            ),
            Option("config.providers", Type.LIST, (), "Names of config providers.", _LOW, DistinctItems()),
        )
    )
)

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
            "on.loop",
            Type.STRING,
            "filter",
            "What to do with records that were mirrored from the target, where topics' names don't show it: "
            "leave them out, stop the partition, or copy them back as MM2 does, round and round.",
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
            "partition.assignment",
            Type.STRING,
            "load",
            "How partitions are dealt to tasks: by measured load, or in turn as MM2 does.",
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
            "mirror wrote, once missing for the grace period. dry-run only says which and when.",
            validator=OneOf(("false", "true", "dry-run")),
        ),
        Option(
            "sync.topic.deletes.grace.seconds",
            Type.LONG,
            86400,
            "For how long a topic must have been missing at the source before it's deleted on the target.",
            validator=AtLeast(60),
        ),
        *ACCESS,
    )
)
"""What a MirrorSourceConnector of ours can be told beyond Kafka's."""

OWN_CHECKPOINT: Final = Definition(
    (
        Option(
            "translation.resolve",
            Type.STRING,
            "active",
            "For which groups an offset that no offset sync translates exactly is looked up in the records "
            "of both clusters: for none, for those that have moved since the connector looked last, or also "
            "for those that stand still. Needs READ on the topics, else it's not done.",
            _LOW,
            OneOf(("off", "active", "all")),
        ),
        Option(
            "reverse.checkpointing.enabled",
            Type.BOOLEAN,
            default=False,
            doc="Whether groups' offsets in topics that came from the target are translated back, by the "
            "offset syncs of the opposite flow: groups that failed over to the source go on where they are "
            "when they return (as KIP-1098 proposes). The opposite flow's offset-syncs.topic.location must "
            "be this one's, and replication.policy.class one that names the source in topics.",
        ),
    )
)
"""What a MirrorCheckpointConnector of ours can be told beyond Kafka's."""

OWN: Final = OWN_SOURCE | OWN_CHECKPOINT

_TOPIC_FILTER = Option(
    "topic.filter.class",
    Type.CLASS,
    MIRROR_PACKAGE + "DefaultTopicFilter",
    "Selects the topics to replicate.",
)
_OFFSET_SYNCS_LOCATION = Option(
    "offset-syncs.topic.location",
    Type.STRING,
    "source",
    "Which cluster holds the offset-syncs topic (KIP-716).",
    _LOW,
    OneOf(("source", "target")),
)
_POLL_TIMEOUT = Option("consumer.poll.timeout.ms", Type.LONG, 1000, "How long a poll of the source waits.")

_METRIC_NAMES = Option(
    "metric.names.formats",
    Type.LIST,
    ("legacy",),
    "Which names metrics have (KIP-1280).",
    _LOW,
    DistinctItems(("legacy", "new"), may_be_empty=False),
)


def _periodic(name: str, seconds: int, what: str, *, enabled: bool = True) -> tuple[Option, Option]:
    return (
        Option(f"{name}.enabled", Type.BOOLEAN, enabled, f"Whether to periodically {what}."),
        Option(f"{name}.interval.seconds", Type.LONG, seconds, f"How often to {what}."),
    )


def _replication_factor(topic: str) -> Option:
    name = f"{topic}.topic.replication.factor"
    return Option(name, Type.SHORT, 3, f"Replication factor of the {topic} topic.")


MIRROR_SOURCE: Final = BASE | Definition(
    (
        Option("topics", Type.LIST, DEFAULT_TOPICS, "Names and regexes of topics.", _HIGH, DistinctItems()),
        Option(
            "topics.exclude",
            Type.LIST,
            DEFAULT_TOPICS_EXCLUDE,
            "Names and regexes of topics not to replicate; excludes win (KIP-629, KIP-1074).",
            _HIGH,
            DistinctItems(),
        ),
        Option(
            "config.properties.exclude",
            Type.LIST,
            DEFAULT_CONFIG_PROPERTIES_EXCLUDE,
            "Names and regexes of topic settings not to replicate.",
            _HIGH,
            DistinctItems(),
        ),
        _TOPIC_FILTER,
        Option(
            "config.property.filter.class",
            Type.CLASS,
            MIRROR_PACKAGE + "DefaultConfigPropertyFilter",
            "Selects the topic settings to replicate.",
        ),
        _POLL_TIMEOUT,
        *_periodic("refresh.topics", 600, "look for new topics and partitions"),
        *_periodic("sync.topic.configs", 600, "configure remote topics like their source"),
        *_periodic("sync.topic.acls", 600, "copy the source topics' ACLs"),
        Option("replication.factor", Type.INT, 2, "Replication factor of new remote topics."),
        _replication_factor("offset-syncs"),
        _OFFSET_SYNCS_LOCATION,
        Option("offset.lag.max", Type.LONG, 100, "How many records an offset sync may be behind."),
        Option(
            "emit.offset-syncs.enabled",
            Type.BOOLEAN,
            default=True,
            doc="Whether to write offset syncs (KIP-1031).",
        ),
        Option(
            "heartbeats.replication.enabled",
            Type.BOOLEAN,
            default=True,
            doc="Whether heartbeats topics are replicated whatever the topic filter says (KIP-1089).",
        ),
        _METRIC_NAMES,
    )
)

MIRROR_CHECKPOINT: Final = BASE | Definition(
    (
        Option("groups", Type.LIST, (".*",), "Names and regexes of groups.", _HIGH, DistinctItems()),
        Option(
            "groups.exclude",
            Type.LIST,
            ("console-consumer-.*", "connect-.*", "__.*"),
            "Names and regexes of groups not to replicate; excludes win (KIP-629).",
            _HIGH,
            DistinctItems(),
        ),
        Option(
            "group.filter.class",
            Type.CLASS,
            MIRROR_PACKAGE + "DefaultGroupFilter",
            "Selects the groups to replicate.",
        ),
        _TOPIC_FILTER,
        _POLL_TIMEOUT,
        *_periodic("refresh.groups", 600, "look for new consumer groups"),
        *_periodic("emit.checkpoints", 60, "write checkpoints"),
        *_periodic("sync.group.offsets", 60, "write translated offsets to idle groups", enabled=False),
        _replication_factor("checkpoints"),
        _OFFSET_SYNCS_LOCATION,
        _METRIC_NAMES,
    )
)

MIRROR_HEARTBEAT: Final = BASE | Definition(
    (*_periodic("emit.heartbeats", 1, "write a heartbeat"), _replication_factor("heartbeats"))
)

CONNECTORS: Final = {
    SOURCE_CONNECTOR: MIRROR_SOURCE,
    CHECKPOINT_CONNECTOR: MIRROR_CHECKPOINT,
    HEARTBEAT_CONNECTOR: MIRROR_HEARTBEAT,
}

CONNECTOR_NAMES: Final = MIRROR_SOURCE.names | MIRROR_CHECKPOINT.names | MIRROR_HEARTBEAT.names
"""What mm2.properties takes at its top level for connectors; everything else is dropped there."""


def check_mirror_source(properties: Properties) -> None:
    """Raises ConfigError with the first of `mirror_source_contradictions`."""
    for key, reason in mirror_source_contradictions(properties).items():
        raise properties.error(key, reason)


def check_mirror_checkpoint(properties: Properties) -> None:
    """Raises ConfigError with the first of `mirror_checkpoint_contradictions`."""
    for key, reason in mirror_checkpoint_contradictions(properties).items():
        raise properties.error(key, reason)


def mirror_source_contradictions(properties: Properties) -> dict[str, str]:
    """What MirrorSourceConnector's `validate` refuses beyond single values (KIP-618, KIP-1031)."""
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
    """What MirrorCheckpointConnector's `validate` refuses beyond single values."""
    if properties.get("enabled", "true") == "false":
        return {}
    return {key: reason for key, reason in _CHECKPOINT_NEEDS.items() if properties.get(key) == "false"}


def reads_committed(properties: Properties) -> bool:
    """Whether a source connector's consumer sees only what is committed."""
    consumer = properties.under("consumer.") | properties.under("source.consumer.")
    return consumer.get("isolation.level") == "read_committed"


_CHECKPOINT_NEEDS: Final = {
    "emit.checkpoints.enabled": (
        "MirrorCheckpointConnector can't run with emit.checkpoints.enabled set to false"
    ),
    "emit.offset-syncs.enabled": "MirrorCheckpointConnector can't run without offset syncs",
}
