"""Builds the REST API's TLS contexts from `ssl.*` keys, as server and as client of other workers.

Keys and certificates are read from PEM only.
"""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sparkmirror.config.client_options import SSL
from sparkmirror.config.definitions import Password, Values
from sparkmirror.config.properties import Properties
from sparkmirror.config.worker_options import INTERNAL_REST
from sparkmirror.domain.errors import ConfigError

_TABLE: Final = SSL | INTERNAL_REST
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_TO_PEM: Final = (
    "Only PEM can be read. Convert the store, for instance with `openssl pkcs12 -in store.p12 -out store.pem`"
    ", and set the type to PEM."
)


@dataclass(frozen=True, slots=True, repr=False)
class TlsSettings:
    """PEM texts; None where there is none."""

    key: str | None
    certificates: str | None
    trusted: str | None
    key_password: str | None
    client_auth: str = "none"
    versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    ciphers: tuple[str, ...] = ()
    checks_host_names: bool = True


def tls_settings(worker: Properties, prefix: str) -> TlsSettings:
    """Read the `ssl.*` keys with the prefix if there are any, else those without. Raises ConfigError."""
    own = worker.under(prefix).starting("ssl.")
    properties = own or worker.starting("ssl.")
    values = _TABLE.parse(properties)
    key, certificates = _key_store(properties, values)
    return TlsSettings(
        key=key,
        certificates=certificates,
        trusted=_store(properties, values, "truststore", "truststore.certificates"),
        key_password=_secret(values, "ssl.key.password"),
        client_auth=values.string("ssl.client.auth"),
        versions=values.strings("ssl.enabled.protocols"),
        ciphers=values.strings("ssl.cipher.suites"),
        checks_host_names=bool(values["ssl.endpoint.identification.algorithm"]),
    )


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """Raises ConfigError when there is no usable key."""
    if settings.key is None or settings.certificates is None:
        reason = "An https listener needs a key and its certificates: a PEM file, with ssl.keystore.type=PEM"
        raise ConfigError("ssl.keystore.location", None, reason)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _configure(context, settings)
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    return context


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """For requests to other workers. Without a trust store, the system's authorities are trusted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if settings.trusted is None:
        context.load_default_certs()
    context.check_hostname = settings.checks_host_names
    _configure(context, settings)
    return context


def _configure(context: ssl.SSLContext, settings: TlsSettings) -> None:
    versions = sorted(_VERSIONS[name] for name in settings.versions if name in _VERSIONS)
    if not versions:
        reason = f"None of them can be spoken, which are {', '.join(_VERSIONS)}"
        raise ConfigError("ssl.enabled.protocols", ",".join(settings.versions), reason)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    _choose_ciphers(context, settings.ciphers)
    try:
        if settings.trusted is not None:
            context.load_verify_locations(cadata=settings.trusted)
    except ssl.SSLError as error:
        raise ConfigError("ssl.truststore.location", None, f"Can't be used: {error}") from error
    if settings.key is not None and settings.certificates is not None:
        _load_key(context, settings.key, settings.certificates, settings.key_password)


def _choose_ciphers(context: ssl.SSLContext, ciphers: tuple[str, ...]) -> None:
    """Set the ciphers, by OpenSSL's names; those of TLS 1.3 can't be chosen."""
    if not ciphers:
        return
    try:
        context.set_ciphers(":".join(ciphers))
    except ssl.SSLError as error:
        raise ConfigError("ssl.cipher.suites", ",".join(ciphers), "OpenSSL knows none of them") from error


def _load_key(context: ssl.SSLContext, key: str, certificates: str, password: str | None) -> None:
    try:
        with _as_file(f"{key}\n{certificates}\n") as file:
            # Without a password Python would prompt at the terminal.
            context.load_cert_chain(file, password=password or "")
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            "ssl.keystore.location", None, f"The key can't be used, or not with ssl.key.password: {error}"
        ) from error


@contextmanager
def _as_file(text: str) -> Iterator[Path]:
    """Python's ssl reads keys from files only: from one in memory where the system has such files."""
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(text)
            file.flush()
            yield Path(file.name)
        return
    with os.fdopen(os.memfd_create("key"), "w") as file:
        file.write(text)
        file.flush()
        yield Path(f"/proc/self/fd/{file.fileno()}")


def _key_store(properties: Properties, values: Values) -> tuple[str | None, str | None]:
    key, chain = _secret(values, "ssl.keystore.key"), _secret(values, "ssl.keystore.certificate.chain")
    if key is not None or chain is not None:
        _require_pem(properties, values, "ssl.keystore.type")
        return key, chain
    whole = _store(properties, values, "keystore", None)
    return whole, "" if whole is not None else None


def _store(properties: Properties, values: Values, store: str, texts: str | None) -> str | None:
    text = None if texts is None else _secret(values, f"ssl.{texts}")
    location = values[f"ssl.{store}.location"]
    if text is None and location is None:
        return None
    _require_pem(properties, values, f"ssl.{store}.type")
    if text is not None:
        return text
    return _read(properties, f"ssl.{store}.location", str(location))


def _read(properties: Properties, key: str, location: str) -> str:
    try:
        return Path(location).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise properties.error(key, f"Can't be read: {error}") from error


def _require_pem(properties: Properties, values: Values, key: str) -> None:
    if values.string(key).upper() != "PEM":
        raise ConfigError(properties.origin(key), values.string(key), _TO_PEM)


def _secret(values: Values, name: str) -> str | None:
    secret = values[name]
    return secret.value if isinstance(secret, Password) else None
