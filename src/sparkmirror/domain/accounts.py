"""Represents client quotas (KIP-546) and SCRAM credentials (KIP-554) as values."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """The clients that a quota is for: sorted names by `user`, `client-id` or `ip`; None is the default."""

    names: tuple[tuple[str, str | None], ...]

    def __str__(self) -> str:
        return ", ".join(f"{kind} {'<default>' if name is None else name}" for kind, name in self.names)


Quotas = Mapping[QuotaEntity, Mapping[str, float]]
"""Values by key, such as `producer_byte_rate`."""


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """Values to set; those of other keys stay."""

    entity: QuotaEntity
    values: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        return f"{self.entity}: " + ", ".join(f"{key}={value:g}" for key, value in self.values)


class ScramMechanism(IntEnum):
    """Numbers as in Kafka's protocol."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    def __str__(self) -> str:
        return self.name.replace("_", "-")


_HASHES: Final = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """A credential as Kafka describes it, without its secrets."""

    user: str
    mechanism: ScramMechanism
    iterations: int

    def __str__(self) -> str:
        return f"user {self.user} ({self.mechanism}, {self.iterations} iterations)"


@dataclass(frozen=True, slots=True)
class SaltedCredential:
    """A credential as brokers store it. It allows to log in, so it is never printed."""

    credential: ScramCredential
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


def salted(credential: ScramCredential, password: str, salt: bytes) -> SaltedCredential:
    """`SaltedPassword` of RFC 5802, of the password's UTF-8 as Kafka takes it, without SASLprep."""
    hashed = hashlib.pbkdf2_hmac(
        _HASHES[credential.mechanism], password.encode(), salt, credential.iterations
    )
    return SaltedCredential(credential, salt, hashed)
