"""Remembers refused logins, so that all clients of a process together ask no more often than one.

Both count refusals: a broker may lock the account, an issuer of tokens the client.
"""

import random
import threading
import time
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.errors import AuthenticationError

_BACKOFF: Final = Backoff(1.0, 30.0)
_KEPT_S: Final = 60.0
"""The time for which the end of a wait is remembered, so that the next refusal waits longer."""


class _Refusal(NamedTuple):
    text: str
    failures: int
    until: float


class Refusals:
    """Remembers refusals by request and settings. Thread-safe."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._refused: dict[Hashable, _Refusal] = {}
        self._lock = threading.Lock()

    def require_none(self, key: Hashable) -> None:
        """Raise AuthenticationError with the text of the last refusal, until it is time to ask again."""
        with self._lock:
            found = self._refused.get(key)
            if found is not None and self._now() < found.until:
                raise AuthenticationError(found.text)

    def refused(self, key: Hashable, text: str) -> None:
        """Several that asked at the same time count as one."""
        now = self._now()
        with self._lock:
            self._refused = {each: of for each, of in self._refused.items() if now < of.until + _KEPT_S}
            before = self._refused.get(key)
            if before is not None and now < before.until:
                return
            failures = 1 if before is None else before.failures + 1
            until = now + _BACKOFF.delay_s(failures, random.random())
            self._refused[key] = _Refusal(text, failures, until)

    def accepted(self, key: Hashable) -> None:
        with self._lock:
            self._refused.pop(key, None)
