"""Converts the cluster sections of KafkaMirrorMaker2 resources to clients' settings.

Secrets of Kubernetes are referred to, never read: `${strimzisecrets:FOLDER/SECRET:KEY}`. FOLDER is where they
are mounted, a folder for each, and `strimzisecrets` is Kafka's own DirectoryConfigProvider.
"""

import re
from collections.abc import Iterable
from typing import Final

from sparkmirror.config.client_options import SHARED_NAMES
from sparkmirror.config.conversion.model import PROVIDERS, Remarks
from sparkmirror.config.conversion.yaml_section import Section
from sparkmirror.config.properties import Properties
from sparkmirror.config.providers import OF_STRIMZI
from sparkmirror.domain.errors import ConfigError

MOUNTED_SECRETS: Final = "/mnt/secrets"
"""The default folder of mounted secrets."""

SECRETS: Final = "strimzisecrets"
"""The operator's name for its own provider of secrets, so that no user has another of that name."""

_REFERENCE: Final = re.compile(r"\$\{strimzi(secret|configmap)s:[^/:{}]+/([^/:{}]+):([^{}]+)\}")
"""Names a key of a Kubernetes object as the operator's own providers read it: its namespace, and its name."""

_LOGIN: Final = {
    "plain": ("PLAIN", "org.apache.kafka.common.security.plain.PlainLoginModule"),
    "scram-sha-256": ("SCRAM-SHA-256", "org.apache.kafka.common.security.scram.ScramLoginModule"),
    "scram-sha-512": ("SCRAM-SHA-512", "org.apache.kafka.common.security.scram.ScramLoginModule"),
}


def operator_providers(config: Properties, values: Iterable[str]) -> Properties:
    """Return the worker's settings with those of the operator's config providers that values refer to."""
    texts = [*config.values(), *values]
    used = [name for name in OF_STRIMZI if any(f"${{{name}:" in text for text in texts)]
    own = [name.strip() for name in config.get(PROVIDERS, "").split(",") if name.strip()]
    if not used:
        return config
    classes = {f"{PROVIDERS}.{name}.class": OF_STRIMZI[name] for name in used}
    return config | Properties({PROVIDERS: ",".join([*own, *used]), **classes})


def mounted(text: str, folder: str, remarks: Remarks) -> str:
    """The text of a resource with `${strimzisecrets:NAMESPACE/SECRET:KEY}` read from the folder instead.

    Raises ConfigError for a pattern of keys, which no config provider reads.
    """

    def reference(found: re.Match[str]) -> str:
        kind, name, key = found.groups()
        if "*" in key:
            raise ConfigError(found[0], None, "no config provider reads by pattern: name the key")
        _note_mount(remarks, {"secret": "secret", "configmap": "config map"}[kind], folder, name)
        return f"${{{SECRETS}:{folder.rstrip('/')}/{name}:{key}}}"

    return _REFERENCE.sub(reference, text)


def _note_mount(remarks: Remarks, kind: str, folder: str, name: str) -> None:
    remarks.note(f"{kind} {name} is expected to be mounted at {folder.rstrip('/')}/{name}")


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
        """Return whether the authentication is SASL, and its settings."""
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
        _note_mount(self._remarks, "secret", self._folder, secret)
        return f"${{{SECRETS}:{self._folder}/{secret}:{key}}}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
