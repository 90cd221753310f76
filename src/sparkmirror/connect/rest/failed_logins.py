"""Counts failed logins by client address and user, so that passwords can't be guessed by trying.

Each count goes down with time. Where it is full, logins are refused unseen, the right ones too: of the same
user from the same address after a few failures, of an address after many. Other addresses are not affected,
so a stranger locks nobody out who does not share his address.
"""

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

_COUNTS_MAX: Final = 10_000
"""Counts that are kept; beyond, the one that was raised longest ago is dropped."""
_IPV6_SITE: Final = 64
"""Bits of an IPv6 address that a network is given; its hosts choose the others as they like."""


class Limit(NamedTuple):
    """Failures that are free, and the seconds until one of them is forgotten."""

    failures: int
    forgotten_after_s: float


OF_A_USER: Final = Limit(10, 6.0)
OF_AN_ADDRESS: Final = Limit(200, 0.5)


class _Count(NamedTuple):
    failures: float
    at: float


class FailedLogins:
    """For one thread."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._counts: OrderedDict[tuple[str, str | None], _Count] = OrderedDict()

    def wait_s(self, address: str, user: str) -> int:
        """Whole seconds until the user may try to log in from there; 0: now."""
        waits = [
            (self._failures(key, limit) + 1 - limit.failures) * limit.forgotten_after_s
            for key, limit in _keys(address, user)
        ]
        return max(0, math.ceil(max(waits)))

    def note(self, address: str, user: str) -> None:
        """Count a failed login."""
        for key, limit in _keys(address, user):
            self._counts[key] = _Count(self._failures(key, limit) + 1, self._now())
            self._counts.move_to_end(key)
        while len(self._counts) > _COUNTS_MAX:
            self._counts.popitem(last=False)

    def forget(self, address: str, user: str) -> None:
        """The user logged in: his failures there were mistakes. Those of the address stay."""
        self._counts.pop((_site(address), user), None)

    def _failures(self, key: tuple[str, str | None], limit: Limit) -> float:
        count = self._counts.get(key)
        if count is None:
            return 0.0
        return max(0.0, count.failures - (self._now() - count.at) / limit.forgotten_after_s)


def _keys(address: str, user: str) -> tuple[tuple[tuple[str, str | None], Limit], ...]:
    site = _site(address)
    return ((site, user), OF_A_USER), ((site, None), OF_AN_ADDRESS)


def _site(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_SITE), strict=False))
