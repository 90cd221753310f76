"""The options of a Connect worker and those of mm2.properties itself, with the defaults of Kafka 4.3."""

from typing import Final

from sparkmirror.config.client_options import ADMIN, BOOTSTRAP_SERVERS, SECURITY
from sparkmirror.config.definitions import REQUIRED, Definition, Importance, Option, Type
from sparkmirror.config.validators import AtLeast, DistinctItems, OneOf, OneOfAnyCase, PositiveOrDefault

_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW

INTERNAL_REST: Final = Definition(
    (
        Option(
            "listeners", Type.LIST, ("http://:8083",), "Addresses of the REST API.", _LOW, DistinctItems()
        ),
        Option("rest.advertised.host.name", Type.STRING, None, "Host that other workers use."),
        Option("rest.advertised.port", Type.INT, None, "Port that other workers use."),
        Option("rest.advertised.listener", Type.STRING, None, "Protocol that other workers use."),
        Option("access.control.allow.origin", Type.STRING, "", "CORS: allowed origins."),
        Option("access.control.allow.methods", Type.STRING, "", "CORS: allowed methods."),
        Option("response.http.headers.config", Type.STRING, "", "Rules for headers of answers."),
        Option(
            "ssl.client.auth",
            Type.STRING,
            "none",
            "Whether clients of the REST API need a certificate.",
            _LOW,
            OneOf(("required", "requested", "none")),
        ),
    )
)

_PROVIDERS = Option("config.providers", Type.LIST, (), "Names of config providers.", _LOW, DistinctItems())

MIRROR_MAKER: Final = (
    SECURITY
    | INTERNAL_REST
    | Definition(
        (
            Option(
                "clusters",
                Type.LIST,
                REQUIRED,
                "Aliases of the clusters.",
                _HIGH,
                DistinctItems(may_be_empty=False),
            ),
            Option(
                "dedicated.mode.enable.internal.rest",
                Type.BOOLEAN,
                default=False,
                doc="Whether nodes talk to each other (KIP-710).",
                importance=_HIGH,
            ),
            _PROVIDERS,
        )
    )
)

_STORAGE: Final = (
    Option("offset.storage.topic", Type.STRING, REQUIRED, "Topic of source offsets.", _HIGH),
    Option("offset.storage.partitions", Type.INT, 25, "Its partitions.", _LOW, PositiveOrDefault()),
    Option("offset.storage.replication.factor", Type.SHORT, 3, "Its replicas.", _LOW, PositiveOrDefault()),
    Option("config.storage.topic", Type.STRING, REQUIRED, "Topic of connector configs.", _HIGH),
    Option("config.storage.replication.factor", Type.SHORT, 3, "Its replicas.", _LOW, PositiveOrDefault()),
    Option("status.storage.topic", Type.STRING, REQUIRED, "Topic of statuses.", _HIGH),
    Option("status.storage.partitions", Type.INT, 5, "Its partitions.", _LOW, PositiveOrDefault()),
    Option("status.storage.replication.factor", Type.SHORT, 3, "Its replicas.", _LOW, PositiveOrDefault()),
)

_GROUP: Final = (
    Option("group.id", Type.STRING, REQUIRED, "The Connect group.", _HIGH),
    Option("session.timeout.ms", Type.INT, 10000, "When a worker counts as lost.", _HIGH),
    Option("heartbeat.interval.ms", Type.INT, 3000, "How often a worker reports.", _HIGH),
    Option("rebalance.timeout.ms", Type.INT, 60000, "How long joining may take.", _HIGH),
    Option("worker.sync.timeout.ms", Type.INT, 3000, "How long to wait for newer configs.", _MEDIUM),
    Option("worker.unsync.backoff.ms", Type.INT, 300000, "How long to stay away after that.", _MEDIUM),
    Option(
        "connect.protocol",
        Type.STRING,
        "sessioned",
        "Protocol of the group (KIP-415, KIP-507).",
        _LOW,
        OneOf(("eager", "compatible", "sessioned")),
    ),
    Option(
        "scheduled.rebalance.max.delay.ms",
        Type.INT,
        300000,
        "How long to wait for a lost worker.",
        _LOW,
        AtLeast(0),
    ),
    Option(
        "exactly.once.source.support",
        Type.STRING,
        "disabled",
        "Whether source connectors may use transactions (KIP-618).",
        _HIGH,
        OneOfAnyCase(("DISABLED", "PREPARING", "ENABLED")),
    ),
)

_PLUGINS: Final = (
    Option("key.converter", Type.CLASS, REQUIRED, "Converter of keys.", _HIGH),
    Option("key.converter.plugin.version", Type.STRING, None, "Its version."),
    Option("value.converter", Type.CLASS, REQUIRED, "Converter of values.", _HIGH),
    Option("value.converter.plugin.version", Type.STRING, None, "Its version."),
    Option(
        "header.converter",
        Type.CLASS,
        "org.apache.kafka.connect.storage.SimpleHeaderConverter",
        "Converter of headers.",
    ),
    Option("header.converter.plugin.version", Type.STRING, None, "Its version."),
    Option("plugin.path", Type.LIST, (), "Where Java plugins are.", _LOW, DistinctItems()),
    Option(
        "plugin.discovery",
        Type.STRING,
        "hybrid_warn",
        "How Java plugins are found (KIP-898).",
        _LOW,
        OneOfAnyCase(("ONLY_SCAN", "SERVICE_LOAD", "HYBRID_WARN", "HYBRID_FAIL")),
    ),
    Option("connector.client.config.override.policy", Type.STRING, "All", "What overrides are allowed."),
    _PROVIDERS,
)

_TASKS: Final = (
    Option("offset.flush.interval.ms", Type.LONG, 60000, "How often offsets are stored."),
    Option("offset.flush.timeout.ms", Type.LONG, 5000, "How long that may take."),
    Option("task.shutdown.graceful.timeout.ms", Type.LONG, 5000, "How long tasks may take to stop."),
    Option("topic.creation.enable", Type.BOOLEAN, default=True, doc="Whether connectors may create topics."),
    Option("topic.tracking.enable", Type.BOOLEAN, default=True, doc="Whether topics in use are recorded."),
    Option("topic.tracking.allow.reset", Type.BOOLEAN, default=True, doc="Whether that may be reset."),
)

_REST: Final = (
    Option("admin.listeners", Type.LIST, None, "Addresses of the admin API; empty turns it off."),
    Option("rest.extension.classes", Type.LIST, (), "Java REST extensions.", _LOW, DistinctItems()),
    Option("inter.worker.key.generation.algorithm", Type.STRING, "HmacSHA256", "KIP-507."),
    Option("inter.worker.key.size", Type.INT, None, "KIP-507."),
    Option("inter.worker.key.ttl.ms", Type.INT, 3600000, "KIP-507.", _LOW, AtLeast(0)),
    Option("inter.worker.signature.algorithm", Type.STRING, "HmacSHA256", "KIP-507."),
    Option(
        "inter.worker.verification.algorithms", Type.LIST, ("HmacSHA256",), "KIP-507.", _LOW, DistinctItems()
    ),
)

_OWN: Final = (
    Option(
        "standby.spark.session",
        Type.BOOLEAN,
        default=None,
        doc="Whether a node that does not lead has Spark ready: it takes over sooner, and costs memory. "
        "By default where Spark is local.",
    ),
)

WORKER: Final = (
    ADMIN
    | INTERNAL_REST
    | Definition((BOOTSTRAP_SERVERS, *_STORAGE, *_GROUP, *_PLUGINS, *_TASKS, *_REST, *_OWN))
    | Definition(
        (Option("request.timeout.ms", Type.INT, 40000, "Of the group member.", _MEDIUM, AtLeast(0)),)
    )
)
"""A worker's own keys, those of its own clients included."""
