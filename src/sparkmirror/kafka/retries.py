"""Retries with back-off until a deadline, for callers that may block."""

import random
from typing import Final

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import SparkmirrorError, ThrottledError
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.wire.error_codes import THROTTLING_QUOTA_EXCEEDED

STARVED_AFTER_S: Final = 120.0
"""Throttle times longer than this together, without an answer between them, are an error.

By default a broker measures a quota over 11 s; a batch that exceeds what it allows then never comes.
"""


def starved(cluster: str) -> ThrottledError:
    """Make the error for a cluster that has answered Fetch requests with throttle times only."""
    return ThrottledError(
        f"{cluster} throttles: a quota (consumer_byte_rate, request_percentage) let nothing through for "
        f"{STARVED_AFTER_S:.0f} s. A batch larger than it allows in its window (11 s by default) never comes",
        THROTTLING_QUOTA_EXCEEDED,
    )


class Retries:
    """Times an operation's attempts. `deadline` is by the network's clock; by default a time-out from now."""

    def __init__(self, settings: ConnectionSettings, deadline: float | None = None) -> None:
        self._backoff = Backoff(settings.retry_backoff_s, settings.retry_backoff_max_s)
        self._network = network_of(settings)
        self._deadline = self._network.time() + settings.request_timeout_s if deadline is None else deadline
        self._failures = 0
        self._throttled_s = 0.0
        self._cluster = settings.cluster

    def throttled(self, throttle_s: float) -> None:
        """Note that an answer asked to wait instead: the deadline moves. Raises ThrottledError in the end."""
        self._throttled_s += throttle_s
        self._deadline += throttle_s
        if self._throttled_s > STARVED_AFTER_S:
            raise starved(self._cluster)

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
