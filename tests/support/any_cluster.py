"""What tests need of a cluster to be its client: real brokers and clusters in memory have it."""

from collections.abc import Sequence
from typing import Protocol


class Listening(Protocol):
    """A broker on this machine."""

    @property
    def port(self) -> int: ...


class AnyCluster(Protocol):
    @property
    def bootstrap_servers(self) -> str: ...

    @property
    def brokers(self) -> Sequence[Listening]: ...
