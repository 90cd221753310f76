"""Holds how a client proves who it is, and whom it trusts, over TLS. No repr shows a secret."""

from dataclasses import dataclass
from typing import Final

from sparkmirror.domain.kept_settings import Kept

VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
"""The versions that Kafka's clients enable by default; no others are supported."""


@dataclass(frozen=True, slots=True, repr=False)
class Store:
    """A key store or a trust store: a file, or PEM in the setting itself (KIP-651)."""

    option: str
    """`ssl.keystore` or `ssl.truststore`: what errors name."""
    kind: str
    """`JKS`, `PKCS12` or `PEM`; a file of one of the first two may be of the other, as for the JRE."""
    location: str | None = None
    text: str | None = None
    password: str | None = None
    roots: tuple[str, ...] = ()
    """The folders below which the file must lie; anywhere without any."""


@dataclass(frozen=True, slots=True, repr=False)
class TlsSettings:
    """`ciphers` are OpenSSL's names, empty for its defaults. The system's trust store is the default.

    With `kept`, nothing is known here.
    """

    key_store: Store | None = None
    trust_store: Store | None = None
    key_password: str | None = None
    versions: tuple[str, ...] = VERSIONS
    ciphers: tuple[str, ...] = ()
    checks_host_names: bool = True
    kept: "Kept[TlsSettings] | None" = None

    def current(self) -> "TlsSettings":
        """Return the settings with what is kept elsewhere as it is now. Raises ConfigError."""
        return self if self.kept is None else self.kept.read()

    @property
    def holds_secrets(self) -> bool:
        """Whether it has a password, or a private key itself."""
        if self.kept is not None:
            return self.kept.holds_secrets
        stores = (self.key_store, self.trust_store)
        passwords = (self.key_password, *(store.password for store in stores if store is not None))
        has_key = self.key_store is not None and bool((self.key_store.text or "").strip())
        return has_key or any(passwords)

    @property
    def files(self) -> tuple[str, ...]:
        """The files whose content counts."""
        stores = (self.key_store, self.trust_store)
        return tuple(store.location for store in stores if store is not None and store.location is not None)
