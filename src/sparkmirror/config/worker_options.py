"""Declares the options of a Connect worker and of mm2.properties itself: Kafka's and our own."""

from typing import Final

from sparkmirror.config.client_options import ADMIN, SECURITY
from sparkmirror.config.definitions import Definition, Option, Type
from sparkmirror.config.kafka_options import options
from sparkmirror.config.validators import DistinctItems

MIRROR_MAKER: Final = options(
    "mirror_maker",
    validators={"clusters": DistinctItems(may_be_empty=False), "listeners": DistinctItems()},
)
"""The options of mm2.properties at its top level."""

_OF_THE_FILE: Final = {"clusters", "config.providers", "dedicated.mode.enable.internal.rest"}

INTERNAL_REST: Final = Definition(
    option for option in MIRROR_MAKER if option.name not in SECURITY.names | _OF_THE_FILE
)
"""The options of the REST API by which the nodes of a dedicated mirror talk to each other (KIP-710)."""

PLUGIN_MODULES: Final = "plugin.modules"
ALLOWED_PATHS: Final = "connector.allowed.paths"
ALLOWED_URLS: Final = "sasl.oauthbearer.allowed.urls"

OWN_WORKER: Final = Definition(
    (
        Option(
            PLUGIN_MODULES,
            Type.LIST,
            (),
            "Modules whose classes a config given to the REST API may name as `package.module:Class`. "
            "Others are not imported. Java's names and entry points need no entry.",
            DistinctItems(),
        ),
        Option(
            ALLOWED_PATHS,
            Type.LIST,
            (),
            "Folders below which the files lie that a config given to the REST API may name, as in "
            "`sync.users` or `ssl.truststore.location`. Symbolic links are resolved first.",
            DistinctItems(),
        ),
        Option(
            ALLOWED_URLS,
            Type.LIST,
            (),
            "URLs of token endpoints and token files that a config given to the REST API may name.",
            DistinctItems(),
        ),
        Option(
            "standby.spark.session",
            Type.BOOLEAN,
            None,
            "Whether a node that does not lead keeps Spark running: it takes over sooner, and uses more "
            "memory. Default: true where Spark is local.",
        ),
        Option(
            "rest.allowed.hosts",
            Type.LIST,
            (),
            "Names in URLs of the REST API, besides those of the listeners, the advertised one, the machine's"
            " name, addresses, names without a dot and private ones such as `….svc` or `….internal`. Others "
            "are refused: a web page can let a name of its own resolve to this worker. `*` allows all.",
        ),
    )
)

_KAFKAS: Final = options(
    "worker",
    defaults={"bootstrap.servers": (), "plugin.path": ()},
    validators={
        "bootstrap.servers": ADMIN["bootstrap.servers"].validator,
        "listeners": DistinctItems(),
        "plugin.path": DistinctItems(),
        "inter.worker.verification.algorithms": DistinctItems(),
        "metrics.recording.level": ADMIN["metrics.recording.level"].validator,
    },
)

WORKER: Final = ADMIN | _KAFKAS | OWN_WORKER
"""A worker's options, those of its own clients included."""
