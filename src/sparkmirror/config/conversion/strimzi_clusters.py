"""Converts the cluster sections of KafkaMirrorMaker2 resources to clients' settings and back.

Secrets of Kubernetes are referred to, never read: `${strimzisecrets:FOLDER/SECRET:KEY}`. FOLDER is where they
are mounted, a folder for each, and `strimzisecrets` is Kafka's own DirectoryConfigProvider.
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from sparkmirror.config.client_options import SHARED_NAMES
from sparkmirror.config.conversion.model import PROVIDERS, Remarks
from sparkmirror.config.conversion.yaml_section import Section
from sparkmirror.config.properties import Properties

MOUNTED_SECRETS: Final = "/mnt/secrets"
"""The default folder of mounted secrets."""

SECRETS: Final = "strimzisecrets"
"""The operator's name for its own provider of secrets, so that no user has another of that name."""

DIRECTORY_PROVIDER: Final = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"

_LOGIN: Final = {
    "plain": ("PLAIN", "org.apache.kafka.common.security.plain.PlainLoginModule"),
    "scram-sha-256": ("SCRAM-SHA-256", "org.apache.kafka.common.security.scram.ScramLoginModule"),
    "scram-sha-512": ("SCRAM-SHA-512", "org.apache.kafka.common.security.scram.ScramLoginModule"),
}
_REFERENCE: Final = re.compile(rf"\$\{{{SECRETS}:([^:}}]*):([^:}}]*)\}}")
_JAAS: Final = re.compile(r'([\w.]+) required username="((?:[^"\\]|\\.)*)" password="([^"\\]*)";')
_TLS_CONFIG: Final = frozenset(
    {"ssl.endpoint.identification.algorithm", "ssl.cipher.suites", "ssl.protocol", "ssl.enabled.protocols"}
)
"""The only keys below `ssl.`, `sasl.` and `security.` that a cluster's `config` may have."""


def secret_providers(names: str | None) -> dict[str, str]:
    """`config.providers` with the one for secrets added to the user's own."""
    own = [name.strip() for name in (names or "").split(",") if name.strip()]
    return {
        PROVIDERS: ",".join([*own, SECRETS]),
        f"{PROVIDERS}.{SECRETS}.class": DIRECTORY_PROVIDER,
    }


def refers_to_secrets(properties: Mapping[str, str]) -> bool:
    return any(_REFERENCE.search(value) for value in properties.values())


class ClusterReader:
    """`folder` is where Kubernetes' secrets are mounted."""

    def __init__(self, folder: str, remarks: Remarks) -> None:
        self._folder = folder.rstrip("/")
        self._remarks = remarks

    def clients(self, cluster: Section) -> Properties:
        """The settings that all clients of a cluster share. Raises ConfigError for a missing one."""
        tls = self._tls(cluster.section("tls"))
        sasl, login = self._authentication(cluster.section("authentication"))
        protocol = ("SASL_" if sasl else "") + ("PLAINTEXT" if tls is None else "SSL")
        security = {} if protocol == "PLAINTEXT" else {"security.protocol": protocol}
        servers = {"bootstrap.servers": cluster.needed("bootstrapServers")}
        stated = cluster.settings("config").only(SHARED_NAMES)
        return Properties({**servers, **security, **(tls or {}), **login}) | stated

    def _tls(self, tls: Section | None) -> dict[str, str] | None:
        if tls is None:
            return None
        certificates = []
        for trusted in tls.sections("trustedCertificates"):
            secret, name, pattern = (
                trusted.needed("secretName"),
                trusted.text("certificate"),
                trusted.text("pattern"),
            )
            if name:
                certificates.append(self._reference(secret, name))
            else:
                self._remarks.leave_out(
                    f"{trusted.path}: the certificates of secret {secret} that match {pattern}; no config"
                    " provider reads by pattern, so write certificate: and its name instead"
                )
        if not certificates:
            return {}
        return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "\n".join(certificates)}

    def _authentication(self, section: Section | None) -> tuple[bool, dict[str, str]]:
        """Whether it's SASL, and its settings."""
        if section is None:
            return False, {}
        kind = section.needed("type")
        if kind in _LOGIN:
            mechanism, module = _LOGIN[kind]
            password = self._secret(section, "passwordSecret", "password")
            jaas = (
                f'{module} required username="{_quoted(section.needed("username"))}" password="{password}";'
            )
            return True, {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
        if kind == "tls":
            return False, {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": self._secret(section, "certificateAndKey", "certificate"),
                "ssl.keystore.key": self._secret(section, "certificateAndKey", "key"),
            }
        if kind == "custom":
            own = section.settings("config").starting("sasl.", "ssl.keystore.")
            return section.text("sasl") == "true", dict(own)
        self._remarks.leave_out(f"{section.path}: authentication of type {kind} has no counterpart here")
        section.ignore(*section)
        return False, {}

    def _secret(self, section: Section, key: str, entry: str) -> str:
        secret = section.needed_section(key)
        return self._reference(secret.needed("secretName"), secret.needed(entry))

    def _reference(self, secret: str, key: str) -> str:
        self._remarks.note(f"secret {secret} is expected to be mounted at {self._folder}/{secret}")
        return f"${{{SECRETS}:{self._folder}/{secret}:{key}}}"


def cluster_section(alias: str, clients: Properties, where: str, remarks: Remarks) -> dict[str, object]:
    """A cluster of a resource: alias, servers, `tls`, `authentication` and the allowed keys of `config`."""
    protocol = clients.get("security.protocol", "PLAINTEXT").strip().upper()
    written: dict[str, object] = {"alias": alias, "bootstrapServers": clients.get("bootstrap.servers", "")}
    expressed = {"bootstrap.servers", "security.protocol"}
    if protocol.endswith("SSL"):
        trusted = _references(clients.get("ssl.truststore.certificates", ""))
        if trusted is not None and clients.get("ssl.truststore.type", "PEM") == "PEM":
            expressed |= {"ssl.truststore.certificates", "ssl.truststore.type"}
        certificates = [{"secretName": secret, "certificate": name} for secret, name in trusted or ()]
        written["tls"] = {"trustedCertificates": certificates} if certificates else {}
    authentication = _authentication(clients, sasl=protocol.startswith("SASL"))
    if authentication:
        section, of = authentication
        written["authentication"] = section
        expressed |= of
    config = clients.only(_TLS_CONFIG)
    for key in clients.keys() - expressed - config.keys():
        remarks.leave_out(f"{key} of {where}: the operator takes {_instead(key)}")
    return written | ({"config": dict(config)} if config else {})


def _instead(key: str) -> str:
    if key.startswith("ssl.truststore."):
        return "trusted certificates from Kubernetes' secrets only"
    return "security from tls and authentication only"


def _references(text: str) -> list[tuple[str, str]] | None:
    """The secrets and keys of which a text is made, a line each; None if it's made of anything else."""
    found = [_REFERENCE.fullmatch(line) for line in text.split("\n")] if text else []
    secrets = [(PurePosixPath(one[1]).name, one[2]) for one in found if one is not None]
    return secrets if len(secrets) == len(found) else None


def _authentication(clients: Properties, *, sasl: bool) -> tuple[dict[str, object], set[str]] | None:
    """The section and the settings that it expresses."""
    if sasl and (login := _login(clients)) is not None:
        return login, {"sasl.mechanism", "sasl.jaas.config"}
    if not sasl and (certificate := _certificate(clients)) is not None:
        return certificate, {"ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.type"}
    own = clients.starting("sasl.", "ssl.keystore.")
    if not own:
        return None
    return {"type": "custom", "sasl": sasl, "config": dict(own)}, set(own)


def _login(clients: Properties) -> dict[str, object] | None:
    found = _JAAS.fullmatch(clients.get("sasl.jaas.config", ""))
    others = clients.starting("sasl.", "ssl.keystore.").keys() - {"sasl.mechanism", "sasl.jaas.config"}
    if found is None or others:
        return None
    kinds = {login: kind for kind, login in _LOGIN.items()}
    kind = kinds.get((clients.get("sasl.mechanism", ""), found[1]))
    secret = _references(found[3])
    if kind is None or not secret or "\n" in found[3]:
        return None
    (name, key), user = secret[0], re.sub(r"\\(.)", r"\1", found[2])
    return {"type": kind, "username": user, "passwordSecret": {"secretName": name, "password": key}}


def _certificate(clients: Properties) -> dict[str, object] | None:
    chain = _references(clients.get("ssl.keystore.certificate.chain", ""))
    key = _references(clients.get("ssl.keystore.key", ""))
    if not chain or not key or len(chain) > 1 or len(key) > 1 or chain[0][0] != key[0][0]:
        return None
    if clients.get("ssl.keystore.type") != "PEM" or len(clients.starting("sasl.", "ssl.keystore.")) != 3:
        return None
    secret = {"secretName": chain[0][0], "certificate": chain[0][1], "key": key[0][1]}
    return {"type": "tls", "certificateAndKey": secret}


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
