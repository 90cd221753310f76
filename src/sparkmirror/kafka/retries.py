"""Trying again with back-off until a deadline, for callers that may block."""

import random
import time

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import SparkmirrorError


class Retries:
    """One operation's attempts; `deadline` is by the monotonic clock."""

    def __init__(self, settings: ConnectionSettings, deadline: float) -> None:
        self._backoff = Backoff(settings.retry_backoff_s, settings.retry_backoff_max_s)
        self._deadline = deadline
        self._failures = 0

    def wait(self, error: SparkmirrorError) -> None:
        """Sleep before the next attempt; raises the error when it lasts or no time is left for one."""
        self._failures += 1
        delay_s = self._backoff.delay_s(self._failures, random.random())
        if not error.retriable or time.monotonic() + delay_s > self._deadline:
            raise error
        time.sleep(delay_s)
