"""Retries with back-off until a deadline, for callers that may block."""

import random

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.kafka.net.transport import network_of


class Retries:
    """One operation's attempts; `deadline` is by the network's clock."""

    def __init__(self, settings: ConnectionSettings, deadline: float) -> None:
        self._backoff = Backoff(settings.retry_backoff_s, settings.retry_backoff_max_s)
        self._network = network_of(settings)
        self._deadline = deadline
        self._failures = 0

    @property
    def left_s(self) -> float:
        """The time left for an attempt; never zero, so that the last one can raise its own error."""
        return max(0.001, self._deadline - self._network.time())

    def wait(self, error: SparkmirrorError, backoff: Backoff | None = None) -> None:
        """Sleep before the next attempt, by another back-off if one is given.

        Raises the error when it lasts or no time is left for another attempt.
        """
        self._failures += 1
        delay_s = (backoff or self._backoff).delay_s(self._failures, random.random())
        if not error.retriable or self._network.time() + delay_s > self._deadline:
            raise error
        self._network.sleep(delay_s)
