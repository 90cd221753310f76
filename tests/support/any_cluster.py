"""The interface of a cluster that tests use, implemented by real brokers and by clusters in memory."""

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
