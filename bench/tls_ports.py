"""Gives a bench's brokers a second port, with TLS, and its clients the settings to trust it.

One key for all brokers, made by the JRE's keytool; its certificate is trusted itself. Version and cipher are
what both ends prefer: TLS 1.3, AES-256.
"""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sparkmirror.clusters import ClusterSpec
from sparkmirror.clusters.cluster_state import ClusterState, NodeState
from sparkmirror.clusters.ports import HOST, ReservedPort

_PASSWORD: Final = "benchmark"
_NAMES: Final = ("PLAINTEXT", "CONTROLLER", "TLS")


@dataclass(frozen=True, slots=True)
class BrokerKeys:
    """Files: the brokers' key store, and what clients trust."""

    key_store: Path
    trusted: Path

    @classmethod
    def made(cls, java: str, folder: Path) -> "BrokerKeys":
        keys = cls(folder / "broker.p12", folder / "trusted.pem")
        keytool = str(Path(java).with_name("keytool"))
        store = ["-keystore", str(keys.key_store), "-storetype", "PKCS12", "-storepass", _PASSWORD]
        generate = ["-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-dname", "CN=broker"]
        for step in (
            [*generate, "-ext", f"san=ip:{HOST}", *store],
            ["-exportcert", "-rfc", "-file", str(keys.trusted), *store],
        ):
            subprocess.run([keytool, *step], check=True, capture_output=True)
        return keys

    @property
    def client_settings(self) -> Mapping[str, str]:
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
        }

    def prepare(self, spec: ClusterSpec, folder: Path) -> tuple[ClusterSpec, str]:
        """Choose the ports of a cluster of one broker that will start there: its spec, its TLS address."""
        reserved = {name: ReservedPort() for name in _NAMES}
        ports = {name: port.number for name, port in reserved.items()}
        settings = {
            **spec.settings,
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.key_store),
            "ssl.keystore.password": _PASSWORD,
            "ssl.key.password": _PASSWORD,
        }
        made = ClusterSpec(spec.name, spec.brokers, settings, spec.heap_mb)
        folder.mkdir(parents=True)
        node = NodeState(ports["PLAINTEXT"], ports["CONTROLLER"])
        ClusterState(made, ClusterState.new(made).cluster_id, (node,)).save(folder)
        for port in reserved.values():
            port.release()
        return made, f"{HOST}:{ports['TLS']}"
