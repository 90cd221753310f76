"""Declares the options of a Connect worker and of mm2.properties itself: Kafka's and our own."""

from typing import Final

from sparkmirror.config.client_options import ADMIN, SECURITY
from sparkmirror.config.definitions import Definition, Option, Type
from sparkmirror.config.kafka_options import options
from sparkmirror.config.validators import AtLeast, DistinctItems, NonEmpty

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
ADMIN_USERS: Final = "rest.admin.users"
OPEN_PATHS: Final = "rest.open.paths"
TOKENS: Final = "rest.oauthbearer."
"""The prefix of the options for tokens, which are named as those of a broker."""
JAAS_FILE: Final = "java.security.auth.login.config"

EXTENSIONS: Final = "rest.extension.classes"
EXTENSIONS_PACKAGE: Final = "org.apache.kafka.connect.rest.basic.auth.extension."
BASIC_AUTHENTICATION: Final = (
    f"{EXTENSIONS_PACKAGE}BasicAuthSecurityRestExtension",
    "BasicAuthSecurityRestExtension",
)
"""The only extension that a worker here has."""

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
            "Host names by which the REST API may be called, besides those of listeners, the machine's "
            "name, addresses, names without a dot and private ones (`….svc`, `….internal`). Others are "
            "refused, since a web page could resolve its own name to this worker. `*` allows all.",
        ),
        Option(
            "ui.actions",
            Type.BOOLEAN,
            default=False,
            doc="Whether the pages may pause, resume, stop and restart connectors where nobody has to log in:"
            " only if all listeners are of this machine alone. Where a login is needed, administrators may.",
        ),
        Option(
            JAAS_FILE,
            Type.STRING,
            None,
            "The JAAS file whose entry `KafkaConnect` has the login modules of "
            "`BasicAuthSecurityRestExtension`. Default: that of `-Djava.security.auth.login.config=…` in the "
            "environment variable `KAFKA_OPTS`.",
        ),
        Option(
            ADMIN_USERS,
            Type.STRING,
            "*",
            "Users who may change something, separated by semicolons; others may only read, and see no "
            "secrets. Names of basic authentication, and distinguished names of client certificates such as "
            "`CN=ops,O=Example`. `*`: all. A token's role comes from the token.",
        ),
        Option(
            OPEN_PATHS,
            Type.LIST,
            (),
            "Paths of the REST API that can be read without a login.",
            DistinctItems(("/", "/health", "/metrics", "/docs", "/openapi.json")),
        ),
        Option(
            f"{TOKENS}jwks.endpoint.url",
            Type.STRING,
            None,
            "Where the public keys are that sign the tokens of the API's users: `https://…` or `file:/…`."
            " Set, requests may bring a token (`Authorization: Bearer …`). Trust stores of the server's are "
            "named by `rest.oauthbearer.ssl.truststore.*`.",
        ),
        Option(f"{TOKENS}expected.issuer", Type.STRING, None, "The `iss` of tokens; must be set."),
        Option(
            f"{TOKENS}expected.audience",
            Type.LIST,
            (),
            "The `aud` of tokens, or several of which one is enough; must be set, as tokens for other "
            "services would count otherwise.",
            DistinctItems(),
        ),
        Option(
            f"{TOKENS}clock.skew.seconds",
            Type.INT,
            30,
            "How far the clocks of the issuer and of this machine may differ.",
            AtLeast(0, 3600),
        ),
        Option(
            f"{TOKENS}sub.claim.name", Type.STRING, "sub", "The claim that has the user's name.", NonEmpty()
        ),
        Option(
            f"{TOKENS}roles.claim.name",
            Type.STRING,
            "roles",
            "The claim that lists the user's roles, or is a text of them with spaces between; points lead "
            "into objects, as in `realm_access.roles`.",
            NonEmpty(),
        ),
        Option(
            f"{TOKENS}admin.roles",
            Type.LIST,
            ("admin",),
            "Roles of which one makes a user an administrator. `*`: every valid token does.",
            DistinctItems(),
        ),
        Option(
            f"{TOKENS}viewer.roles",
            Type.LIST,
            ("viewer",),
            "Roles of which one lets a user read. `*`: every valid token does.",
            DistinctItems(),
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
