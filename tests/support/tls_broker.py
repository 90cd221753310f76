"""One real broker with a plaintext port, a TLS port, and a TLS port that wants client certificates."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sparkmirror.clusters import ClusterSpec, LocalCluster
from sparkmirror.clusters.cluster_state import ClusterState, NodeState
from sparkmirror.clusters.ports import HOST, ReservedPort
from sparkmirror.config import client_layers
from sparkmirror.config.properties import Properties
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.kafka.transport import SocketNetwork
from tests.support.certificates import PASSWORD, Identity, authority, issued, write

_LISTENERS: Final = ("PLAINTEXT", "CONTROLLER", "TLS", "MUTUAL")


@dataclass(frozen=True, slots=True)
class TlsBroker:
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
        """As read from a configuration."""
        servers = {"bootstrap.servers": f"{host}:{self.ports[listener]}", "request.timeout.ms": "10000"}
        clusters = {f"source.cluster.{key}": value for key, value in (servers | dict(properties)).items()}
        made = client_layers.source_admin(Properties({"source.cluster.alias": alias, **clusters}))
        return replace(made, network=SocketNetwork())  # which knows no broker by another connection


@contextmanager
def tls_broker(home: Path) -> Iterator[TlsBroker]:
    """It ends with the block."""
    home.mkdir(parents=True, exist_ok=True)
    trusted = authority("the authority")
    broker, client = issued(trusted, "broker", HOST), issued(trusted, "client")
    key_store = write(home / "broker.p12", broker.pkcs12(PASSWORD, trusted))
    trust_store = write(home / "authority.pem", trusted.certificate_pem())
    write(home / "client.pem", client.key_pem() + client.certificate_pem())
    with ExitStack() as held:
        reserved = {name: ReservedPort() for name in _LISTENERS}
        for port in reserved.values():
            held.callback(port.release)
        ports = {name: port.number for name, port in reserved.items()}
        spec = ClusterSpec("secured", 1, _broker_settings(ports, key_store, trust_store), heap_mb=256)
        node = NodeState(ports["PLAINTEXT"], ports["CONTROLLER"])
        state = ClusterState.new(spec)
        ClusterState(spec, state.cluster_id, (node,)).save(home)
        for name in ("PLAINTEXT", "CONTROLLER"):  # the cluster reserves these itself
            reserved[name].release()
        cluster = LocalCluster.start(spec, home)
        held.callback(cluster.stop, timeout_s=0)
        yield TlsBroker(cluster, ports, home, trusted, client)


def _broker_settings(ports: Mapping[str, int], key_store: str, trust_store: str) -> dict[str, str]:
    return {
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,MUTUAL:SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": key_store,
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": trust_store,
        "listener.name.mutual.ssl.client.auth": "required",
    }
