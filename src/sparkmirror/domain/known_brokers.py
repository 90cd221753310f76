"""Remembers which brokers of a cluster can be tried when its bootstrap servers do not respond (KIP-899).

Also the id of the cluster that is meant by them: every connection is held to it.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

Address = tuple[str, int]
"""Host and port."""

_CLUSTERS_MAX: Final = 100
_UNREACHABLE_MAX: Final = 1000


class Meant(NamedTuple):
    """The id of a cluster, empty where any is allowed, and its alias."""

    cluster_id: str
    alias: str = ""


ANY: Final = Meant("")

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class KnownBrokers:
    """Bounded: the clusters and addresses that were noted longest ago are forgotten first.

    Safe in any thread: each change replaces a whole mapping. One that is lost to another thread's is noted
    again with the next response or failure.
    """

    def __init__(self, clusters_max: int = _CLUSTERS_MAX, unreachable_max: int = _UNREACHABLE_MAX) -> None:
        self._clusters_max = clusters_max
        self._unreachable_max = unreachable_max
        self._brokers: Mapping[tuple[Address, ...], Sequence[Address]] = {}
        """The brokers that the last Metadata response named, by bootstrap servers."""
        self._unreachable: Mapping[Address, None] = {}
        """Addresses to which the last attempt to connect failed."""
        self._meant: Mapping[tuple[Address, ...], Meant] = {}
        """By bootstrap servers."""

    def mean(self, bootstrap_servers: tuple[Address, ...], cluster: "Meant") -> None:
        """Allow connections to this cluster only."""
        self._meant = _with_newest(self._meant, bootstrap_servers, cluster, self._clusters_max)

    def meant(self, bootstrap_servers: tuple[Address, ...]) -> "Meant":
        """Return the cluster that is meant."""
        return self._meant.get(bootstrap_servers, ANY)

    def note_metadata(self, bootstrap_servers: tuple[Address, ...], brokers: Sequence[Address]) -> None:
        """A Metadata response named these brokers."""
        self._brokers = _with_newest(self._brokers, bootstrap_servers, tuple(brokers), self._clusters_max)

    def note_failure(self, address: Address) -> None:
        """An attempt to connect failed."""
        self._unreachable = _with_newest(self._unreachable, address, None, self._unreachable_max)

    def note_success(self, address: Address) -> None:
        """An attempt to connect succeeded."""
        if address in self._unreachable:
            self._unreachable = {other: None for other in self._unreachable if other != address}

    def addresses(self, bootstrap_servers: tuple[Address, ...]) -> Sequence[Address]:
        """Addresses to try: the brokers that Metadata named last, in any order, then the bootstrap servers.

        A process that has once reached a cluster finds it again when its bootstrap servers are gone or were
        named for other brokers, as Java's clients do. Addresses that could not be reached the last time come
        last: a broker that hangs delays a process once, and not each time that it asks any broker.
        """
        brokers = list(self._brokers.get(bootstrap_servers, ()))
        random.shuffle(brokers)
        unreachable = self._unreachable
        return sorted(dict.fromkeys([*brokers, *bootstrap_servers]), key=unreachable.__contains__)


def _with_newest(
    known: Mapping[_Key, _Value], key: _Key, value: _Value, count_max: int
) -> Mapping[_Key, _Value]:
    others = [(other, kept) for other, kept in known.items() if other != key]
    return dict([*others[max(0, len(others) + 1 - count_max) :], (key, value)])
