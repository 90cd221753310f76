"""The options that all clients of Kafka 4.3 share, and the admin client's: names, types, ranges and defaults.

Every value is validated as Java's clients do. Those that mean something to sparkmirror are read in `clients`;
the rest is accepted so that a file written for Java MM2 keeps working.
"""

from typing import Final

from sparkmirror.config.definitions import Definition, Importance, Option, Type, Value
from sparkmirror.config.validators import AtLeast, DistinctItems, OneOf, OneOfAnyCase

_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_SSL, _SASL, _OAUTH = "ssl.", "sasl.", "sasl.oauthbearer."

BOOTSTRAP_SERVERS: Final = Option(
    "bootstrap.servers",
    Type.LIST,
    (),
    "Brokers to ask first, as host:port.",
    _HIGH,
    DistinctItems(may_be_empty=False),
)

SECURITY_PROTOCOL: Final = Option(
    "security.protocol",
    Type.STRING,
    "PLAINTEXT",
    "How to speak to brokers.",
    _MEDIUM,
    OneOfAnyCase(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
)

SSL: Final = Definition(
    (
        Option(_SSL + "protocol", Type.STRING, "TLSv1.3", "Protocol that contexts are made of.", _MEDIUM),
        Option(_SSL + "provider", Type.STRING, None, "Java security provider.", _MEDIUM),
        Option(_SSL + "cipher.suites", Type.LIST, (), "Ciphers to offer.", _LOW, DistinctItems()),
        Option(
            _SSL + "enabled.protocols",
            Type.LIST,
            ("TLSv1.2", "TLSv1.3"),
            "Protocols to offer.",
            _MEDIUM,
            DistinctItems(),
        ),
        Option(_SSL + "keystore.type", Type.STRING, "JKS", "Format of the key store.", _MEDIUM),
        Option(_SSL + "keystore.location", Type.STRING, None, "File of the key store.", _HIGH),
        Option(_SSL + "keystore.password", Type.PASSWORD, None, "Password of the key store.", _HIGH),
        Option(_SSL + "keystore.key", Type.PASSWORD, None, "Private key in PEM.", _HIGH),
        Option(_SSL + "keystore.certificate.chain", Type.PASSWORD, None, "Certificates in PEM.", _HIGH),
        Option(_SSL + "key.password", Type.PASSWORD, None, "Password of the private key.", _HIGH),
        Option(_SSL + "truststore.type", Type.STRING, "JKS", "Format of the trust store.", _MEDIUM),
        Option(_SSL + "truststore.location", Type.STRING, None, "File of the trust store.", _HIGH),
        Option(_SSL + "truststore.password", Type.PASSWORD, None, "Password of the trust store.", _HIGH),
        Option(_SSL + "truststore.certificates", Type.PASSWORD, None, "Trusted certificates in PEM.", _HIGH),
        Option(_SSL + "keymanager.algorithm", Type.STRING, "SunX509", "Java's key manager."),
        Option(_SSL + "trustmanager.algorithm", Type.STRING, "PKIX", "Java's trust manager."),
        Option(
            _SSL + "endpoint.identification.algorithm",
            Type.STRING,
            "https",
            "How host names are checked; empty turns it off.",
        ),
        Option(_SSL + "secure.random.implementation", Type.STRING, None, "Java's random numbers."),
        Option(_SSL + "engine.factory.class", Type.CLASS, None, "Java class that makes TLS engines."),
    )
)

SASL: Final = Definition(
    (
        Option(_SASL + "mechanism", Type.STRING, "GSSAPI", "Mechanism of SASL.", _MEDIUM),
        Option(_SASL + "jaas.config", Type.PASSWORD, None, "Login module and its options.", _MEDIUM),
        Option(_SASL + "client.callback.handler.class", Type.CLASS, None, "Java callback class.", _MEDIUM),
        Option(_SASL + "login.callback.handler.class", Type.CLASS, None, "Java callback class.", _MEDIUM),
        Option(_SASL + "login.class", Type.CLASS, None, "Java login class.", _MEDIUM),
        Option(_SASL + "login.connect.timeout.ms", Type.INT, None, "Time to reach a token server."),
        Option(_SASL + "login.read.timeout.ms", Type.INT, None, "Time for its answer."),
        Option(_SASL + "login.retry.backoff.ms", Type.LONG, 100, "Shortest pause between logins."),
        Option(_SASL + "login.retry.backoff.max.ms", Type.LONG, 10000, "Longest pause between logins."),
        Option(
            _SASL + "login.refresh.window.factor",
            Type.DOUBLE,
            0.8,
            "Part of a credential's life before a refresh.",
            _LOW,
            AtLeast(0.5, 1.0),
        ),
        Option(
            _SASL + "login.refresh.window.jitter", Type.DOUBLE, 0.05, "Its jitter.", _LOW, AtLeast(0.0, 0.25)
        ),
        Option(
            _SASL + "login.refresh.min.period.seconds",
            Type.SHORT,
            60,
            "Shortest time to a refresh.",
            _LOW,
            AtLeast(0, 900),
        ),
        Option(
            _SASL + "login.refresh.buffer.seconds",
            Type.SHORT,
            300,
            "Time kept free before expiry.",
            _LOW,
            AtLeast(0, 3600),
        ),
        Option(_SASL + "kerberos.service.name", Type.STRING, None, "Principal name of the brokers.", _MEDIUM),
        Option(_SASL + "kerberos.kinit.cmd", Type.STRING, "/usr/bin/kinit", "The kinit command."),
        Option(_SASL + "kerberos.ticket.renew.window.factor", Type.DOUBLE, 0.8, "When to renew a ticket."),
        Option(_SASL + "kerberos.ticket.renew.jitter", Type.DOUBLE, 0.05, "Its jitter."),
        Option(_SASL + "kerberos.min.time.before.relogin", Type.LONG, 60000, "Shortest time to a relogin."),
    )
)

OAUTHBEARER: Final = Definition(
    (
        Option(_OAUTH + "token.endpoint.url", Type.STRING, None, "Where tokens are issued.", _MEDIUM),
        Option(_OAUTH + "scope", Type.STRING, None, "Scope to ask for.", _MEDIUM),
        Option(_OAUTH + "client.credentials.client.id", Type.STRING, None, "Client id.", _MEDIUM),
        Option(_OAUTH + "client.credentials.client.secret", Type.PASSWORD, None, "Client secret.", _MEDIUM),
        Option(
            _OAUTH + "jwt.retriever.class",
            Type.CLASS,
            "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
            "Java class that gets tokens.",
            _MEDIUM,
        ),
        Option(
            _OAUTH + "jwt.validator.class",
            Type.CLASS,
            "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
            "Java class that validates tokens.",
            _MEDIUM,
        ),
        Option(
            _OAUTH + "assertion.algorithm",
            Type.STRING,
            "RS256",
            "Signature of assertions.",
            _MEDIUM,
            OneOfAnyCase(("ES256", "RS256")),
        ),
        Option(_OAUTH + "assertion.claim.aud", Type.STRING, None, "Claim aud.", _MEDIUM),
        Option(_OAUTH + "assertion.claim.exp.seconds", Type.INT, 300, "Claim exp.", _LOW, AtLeast(0, 86400)),
        Option(_OAUTH + "assertion.claim.iss", Type.STRING, None, "Claim iss.", _MEDIUM),
        Option(_OAUTH + "assertion.claim.jti.include", Type.BOOLEAN, default=False, doc="Claim jti."),
        Option(_OAUTH + "assertion.claim.nbf.seconds", Type.INT, 60, "Claim nbf.", _LOW, AtLeast(0, 3600)),
        Option(_OAUTH + "assertion.claim.sub", Type.STRING, None, "Claim sub.", _MEDIUM),
        Option(_OAUTH + "assertion.file", Type.STRING, None, "File of a signed assertion.", _MEDIUM),
        Option(_OAUTH + "assertion.private.key.file", Type.STRING, None, "File of the key.", _MEDIUM),
        Option(_OAUTH + "assertion.private.key.passphrase", Type.PASSWORD, None, "Its passphrase.", _MEDIUM),
        Option(_OAUTH + "assertion.template.file", Type.STRING, None, "File of a template.", _MEDIUM),
        Option(_OAUTH + "scope.claim.name", Type.STRING, "scope", "Name of the scope claim."),
        Option(_OAUTH + "sub.claim.name", Type.STRING, "sub", "Name of the subject claim."),
        Option(_OAUTH + "jwks.endpoint.url", Type.STRING, None, "Where keys are published.", _MEDIUM),
        Option(_OAUTH + "jwks.endpoint.refresh.ms", Type.LONG, 3600000, "How often they are read."),
        Option(_OAUTH + "jwks.endpoint.retry.backoff.ms", Type.LONG, 100, "Shortest pause."),
        Option(_OAUTH + "jwks.endpoint.retry.backoff.max.ms", Type.LONG, 10000, "Longest pause."),
        Option(_OAUTH + "clock.skew.seconds", Type.INT, 30, "Difference of clocks to tolerate."),
        Option(_OAUTH + "expected.audience", Type.LIST, (), "Audiences to accept.", _HIGH, DistinctItems()),
        Option(_OAUTH + "expected.issuer", Type.STRING, None, "Issuer to accept.", _HIGH),
        Option(_OAUTH + "header.urlencode", Type.BOOLEAN, default=False, doc="Whether to URL-encode."),
    )
)

SECURITY: Final = Definition((SECURITY_PROTOCOL,)) | SSL | SASL | OAUTHBEARER

SHARED_NAMES: Final = SECURITY.names | {BOOTSTRAP_SERVERS.name}
"""What `source.cluster.`, `target.cluster.` and an alias pass on to every client (MirrorClientConfig)."""


def _at_least_zero(name: str, kind: Type, default: Value, doc: str) -> Option:
    return Option(name, kind, default, doc, _MEDIUM, AtLeast(0))


_REPORTERS = ("org.apache.kafka.common.metrics.JmxReporter",)

CLIENT: Final = SECURITY | Definition(
    (
        BOOTSTRAP_SERVERS,
        Option(
            "client.dns.lookup",
            Type.STRING,
            "use_all_dns_ips",
            "How host names are resolved.",
            _MEDIUM,
            OneOf(("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")),
        ),
        Option("client.id", Type.STRING, "", "What brokers' logs and quotas call the client.", _MEDIUM),
        _at_least_zero("metadata.max.age.ms", Type.LONG, 300000, "How old metadata may become."),
        Option(
            "metadata.recovery.strategy",
            Type.STRING,
            "rebootstrap",
            "What to do when no known broker answers (KIP-899).",
            _LOW,
            OneOfAnyCase(("REBOOTSTRAP", "NONE")),
        ),
        _at_least_zero("metadata.recovery.rebootstrap.trigger.ms", Type.LONG, 300000, "When to do it."),
        Option("send.buffer.bytes", Type.INT, 131072, "SO_SNDBUF; -1: the system's.", _MEDIUM, AtLeast(-1)),
        Option("receive.buffer.bytes", Type.INT, 65536, "SO_RCVBUF; -1: the system's.", _MEDIUM, AtLeast(-1)),
        _at_least_zero("reconnect.backoff.ms", Type.LONG, 50, "Shortest pause before reconnecting."),
        _at_least_zero("reconnect.backoff.max.ms", Type.LONG, 1000, "Longest pause before reconnecting."),
        _at_least_zero("retry.backoff.ms", Type.LONG, 100, "Shortest pause before retrying."),
        _at_least_zero("retry.backoff.max.ms", Type.LONG, 1000, "Longest pause before retrying."),
        _at_least_zero("request.timeout.ms", Type.INT, 30000, "How long an answer may take."),
        Option("socket.connection.setup.timeout.ms", Type.LONG, 10000, "How long connecting may take."),
        Option("socket.connection.setup.timeout.max.ms", Type.LONG, 30000, "Its limit after failures."),
        Option("connections.max.idle.ms", Type.LONG, 540000, "When idle connections are closed."),
        Option("enable.metrics.push", Type.BOOLEAN, default=True, doc="Whether to push metrics (KIP-714)."),
        _at_least_zero("metrics.sample.window.ms", Type.LONG, 30000, "Length of a metric's sample."),
        Option("metrics.num.samples", Type.INT, 2, "Samples of a metric.", _LOW, AtLeast(1)),
        Option(
            "metrics.recording.level",
            Type.STRING,
            "INFO",
            "How much is measured.",
            _LOW,
            OneOf(("INFO", "DEBUG", "TRACE")),
        ),
        Option("metric.reporters", Type.LIST, _REPORTERS, "Classes that report.", _LOW, DistinctItems()),
        Option("security.providers", Type.STRING, None, "Java security providers."),
        Option("config.providers", Type.LIST, (), "Names of config providers.", _LOW, DistinctItems()),
    )
)

ADMIN: Final = CLIENT | Definition(
    (
        Option("bootstrap.controllers", Type.LIST, (), "Controllers to ask first.", _HIGH, DistinctItems()),
        Option("retries", Type.INT, 2147483647, "How often to retry.", _LOW, AtLeast(0)),
        _at_least_zero("default.api.timeout.ms", Type.INT, 60000, "How long a call may take."),
        Option("connections.max.idle.ms", Type.LONG, 300000, "When idle connections are closed."),
        Option("enable.metrics.push", Type.BOOLEAN, default=False, doc="Whether to push metrics (KIP-714)."),
    )
)
