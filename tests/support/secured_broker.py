"""One real broker with a port for each kind of security.

PLAINTEXT; TLS; MUTUAL, which wants client certificates; LOGIN, SASL without TLS; SHORT, the same with
sessions of 3 s; SAFE, SASL over TLS; MSK, plaintext that is advertised by a name and a port of MSK's, where
`iam_front` may stand.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import confluent_kafka as confluent
import confluent_kafka.admin

from sparkmirror.clusters import ClusterSpec, LocalCluster
from sparkmirror.clusters.cluster_state import ClusterState, NodeState
from sparkmirror.clusters.ports import HOST, ReservedPort
from sparkmirror.config import client_layers
from sparkmirror.config.properties import Properties
from sparkmirror.config.providers import configured_providers, resolved
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.rights import ANONYMOUS
from sparkmirror.kafka.net.transport import SocketNetwork
from tests.support.certificates import PASSWORD, Identity, authority, issued, write
from tests.support.iam_front import MSK_HOST

_PROTOCOLS: Final = {
    "PLAINTEXT": "PLAINTEXT",
    "CONTROLLER": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "LOGIN": "SASL_PLAINTEXT",
    "SHORT": "SASL_PLAINTEXT",
    "SAFE": "SASL_SSL",
    "MSK": "PLAINTEXT",
}
FRONT: Final = "FRONT"
"""The port where clients of MSK's name are expected; the broker does not listen there."""
_MODULES: Final = "org.apache.kafka.common.security"
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_AUTHORIZER: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": ANONYMOUS,
}
USER: Final = "alice"
CLIENT: Final = "User:CN=client"
"""The principal of the certificate `SecuredBroker.client`."""
ODD_USER: Final = "a,b=c"
"""SCRAM has signs of its own for these characters."""
LOGIN_PASSWORD: Final = 'pass, "word" = \\'
SESSION_S: Final = 3.0
_PROVIDERS: Final = Properties(
    {
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
)


@dataclass(frozen=True, slots=True)
class SecuredBroker:
    """The certificate is for 127.0.0.1 only. `client` is a certificate that the port MUTUAL accepts."""

    cluster: LocalCluster
    ports: Mapping[str, int]
    folder: Path
    authority: Identity
    client: Identity

    @property
    def trusting(self) -> Mapping[str, str]:
        """The settings of a client that trusts the broker."""
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "authority.pem"),
        }

    @property
    def known(self) -> Mapping[str, str]:
        """The settings of a client that the broker knows, too."""
        keys = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.folder / "client.pem")}
        return {**self.trusting, **keys}

    def settings(
        self, listener: str, properties: Mapping[str, str], host: str = HOST, alias: str = "near"
    ) -> ConnectionSettings:
        """Return a client's settings as read from a configuration."""
        servers = {"bootstrap.servers": f"{host}:{self.ports[listener]}", "request.timeout.ms": "10000"}
        clusters = {f"source.cluster.{key}": value for key, value in (servers | dict(properties)).items()}
        written = Properties({"source.cluster.alias": alias, **clusters})
        made = client_layers.source_admin(resolved(written, configured_providers(_PROVIDERS, {})))
        return replace(made, network=SocketNetwork())  # which knows no broker by another connection


@contextmanager
def secured_broker(
    home: Path, *, guarded: bool = False, more: Mapping[str, str] | None = None
) -> Iterator[SecuredBroker]:
    """Run a secured broker until the block ends; `more` settings override others.

    A guarded one lets nobody but those without a login do what no ACL allows.
    """
    home.mkdir(parents=True, exist_ok=True)
    trusted = authority("the authority")
    broker, client = issued(trusted, "broker", HOST), issued(trusted, "client")
    key_store = write(home / "broker.p12", broker.pkcs12(PASSWORD, trusted))
    trust_store = write(home / "authority.pem", trusted.certificate_pem())
    write(home / "client.pem", client.key_pem() + client.certificate_pem())
    with ExitStack() as held:
        reserved = {name: ReservedPort() for name in (*_PROTOCOLS, FRONT)}
        for port in reserved.values():
            held.callback(port.release)
        ports = {name: port.number for name, port in reserved.items()}
        settings = (
            _broker_settings(ports, key_store, trust_store)
            | (_AUTHORIZER if guarded else {})
            | dict(more or {})
        )
        spec = ClusterSpec("secured", 1, settings, heap_mb=256)
        node = NodeState(ports["PLAINTEXT"], ports["CONTROLLER"])
        state = ClusterState.new(spec)
        ClusterState(spec, state.cluster_id, (node,)).save(home)
        for name in ("PLAINTEXT", "CONTROLLER"):  # the cluster reserves these itself
            reserved[name].release()
        cluster = LocalCluster.start(spec, home)
        held.callback(cluster.stop, timeout_s=0)
        add_scram_users(cluster.bootstrap_servers, USER, ODD_USER)
        yield SecuredBroker(cluster, ports, home, trusted, client)


def _broker_settings(ports: Mapping[str, int], key_store: str, trust_store: str) -> dict[str, str]:
    return {
        "listeners": ",".join(f"{name}://{HOST}:{ports[name]}" for name in _PROTOCOLS),
        "advertised.listeners": ",".join(
            f"MSK://{MSK_HOST}:{ports[FRONT]}" if name == "MSK" else f"{name}://{HOST}:{ports[name]}"
            for name in _PROTOCOLS
            if name != "CONTROLLER"
        ),
        "listener.security.protocol.map": ",".join(f"{name}:{of}" for name, of in _PROTOCOLS.items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": key_store,
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": trust_store,
        "listener.name.mutual.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(_MECHANISMS),
        "listener.name.safe.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "delegation.token.secret.key": PASSWORD,
        "listener.name.short.connections.max.reauth.ms": str(int(SESSION_S * 1000)),
        **{
            f"listener.name.{name}.{mechanism.lower()}.sasl.jaas.config": module
            for name in ("login", "short", "safe")
            for mechanism, module in _server_modules().items()
        },
    }


def _server_modules() -> dict[str, str]:
    plain = f"{_MODULES}.plain.PlainLoginModule required user_{USER}={quoted(LOGIN_PASSWORD)};"
    scram = f"{_MODULES}.scram.ScramLoginModule required;"
    oauth = f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;"
    return {"PLAIN": plain, "SCRAM-SHA-256": scram, "SCRAM-SHA-512": scram, "OAUTHBEARER": oauth}


def quoted(text: str) -> str:
    """Quote a text as a value in JAAS."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def login(mechanism: str, user: str = USER, password: str = LOGIN_PASSWORD) -> dict[str, str]:
    """The settings of a client that logs in with name and password."""
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    options = f"username={quoted(user)} password={quoted(password)}"
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{_MODULES}.{module} required {options};",
    }


def oauth(options: str, **more: str) -> dict[str, str]:
    """The settings of a client with a token; `more` are those below `sasl.oauthbearer`, with `_` for dots."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required {options};",
        **{f"sasl.oauthbearer.{key.replace('_', '.')}": value for key, value in more.items()},
    }


UNSECURED: Final = oauth(f'unsecuredLoginStringClaim_sub="{USER}"')


def add_scram_users(servers: str, *users: str, password: str = LOGIN_PASSWORD) -> None:
    """Users that log in with this password, from now on."""
    admin = confluent.admin.AdminClient({"bootstrap.servers": servers})
    kinds = (confluent.admin.ScramMechanism.SCRAM_SHA_256, confluent.admin.ScramMechanism.SCRAM_SHA_512)
    for user in users:
        for kind in kinds:  # a request may change a user once
            wanted = confluent.admin.UserScramCredentialUpsertion(
                user, confluent.admin.ScramCredentialInfo(kind, 4096), password.encode()
            )
            for done in admin.alter_user_scram_credentials([wanted]).values():
                done.result()
