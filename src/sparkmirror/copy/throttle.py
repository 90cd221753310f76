"""Keeps a copy task to its rate limits: how long a partition is throttled, and how much may be fetched."""

import asyncio
from collections.abc import Callable

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.policies.rate_limits import RateLimits, Shares, TaskLimits


class Throttle:
    """Keeps a flow's limit; calls `fetch_more` when it allows more again. On the loop's thread only."""

    def __init__(
        self,
        limits: RateLimits,
        shares: Shares,
        loop: asyncio.AbstractEventLoop,
        fetch_more: Callable[[], None],
    ) -> None:
        self._limits = TaskLimits(limits, shares, loop.time())
        self._loop = loop
        self._fetch_more = fetch_more
        self._timer: asyncio.TimerHandle | None = None

    def change(self, limits: RateLimits) -> None:
        """Set other limits. Partitions that were throttled under the old ones must ask again."""
        self._limits.change(limits, self._loop.time())
        self.stop()
        self._fetch_more()

    def allowed(self, budget_bytes: int) -> int:
        """The bytes, of so many, that may be fetched now; if none, `fetch_more` is called in time."""
        allowed = self._limits.allowed(budget_bytes, self._loop.time())
        if allowed <= 0 < budget_bytes and self._timer is None:
            self._timer = self._loop.call_later(
                self._limits.flow_throttle_s(self._loop.time()), self._expired
            )
        return allowed

    def taken(self, partition: TopicPartition, size: int) -> None:
        """Count bytes of a partition that go to the target."""
        self._limits.taken(partition, size, self._loop.time())

    def throttle_s(self, partition: TopicPartition) -> float:
        """The time for which the partition must not be fetched, 0.0 if it may."""
        return self._limits.throttle_s(partition, self._loop.time())

    def stop(self) -> None:
        """Make no more calls."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expired(self) -> None:
        self._timer = None
        self._fetch_more()
