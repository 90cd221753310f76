"""Defines settings of a client that are kept elsewhere, and may change there."""

from typing import Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Kept(Protocol[T_co]):
    """Represents settings until they are used."""

    @property
    def holds_secrets(self) -> bool: ...

    def read(self) -> T_co:
        """Read the settings as they are now. Raises ConfigError."""
        ...
