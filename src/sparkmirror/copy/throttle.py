"""Keeps a copy loop to its limits: timers for partitions that rest, and for a flow that must not ask yet."""

import asyncio
from collections.abc import Callable

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.policies.rate_limits import RateLimits, Shares, TaskLimits


class Throttle:
    """On the loop's thread only. When a partition's rest is over `go_on` is called, then `fetch_more`."""

    def __init__(
        self,
        limits: RateLimits,
        shares: Shares,
        loop: asyncio.AbstractEventLoop,
        *,
        go_on: Callable[[TopicPartition], None],
        fetch_more: Callable[[], None],
    ) -> None:
        self._limits = TaskLimits(limits, shares, loop.time())
        self._loop = loop
        self._go_on = go_on
        self._fetch_more = fetch_more
        self._resting: dict[TopicPartition, asyncio.TimerHandle] = {}
        self._waiting: asyncio.TimerHandle | None = None

    def change(self, limits: RateLimits) -> None:
        """Whoever rests or waits asks again at once."""
        self._limits.change(limits, self._loop.time())
        for partition in list(self._resting):
            self.forget(partition)
            self._go_on(partition)
        if self._waiting is not None:
            self._waiting.cancel()
        self._ask_again()

    def allowed(self, budget_bytes: int) -> int:
        """How many of so many bytes may be asked for now; when none may, `fetch_more` is called in time."""
        allowed = self._limits.allowed(budget_bytes, self._loop.time())
        if allowed <= 0 < budget_bytes and self._waiting is None:
            self._waiting = self._loop.call_later(
                self._limits.flow_throttle_s(self._loop.time()), self._ask_again
            )
        return allowed

    def taken(self, partition: TopicPartition, size: int) -> None:
        """So many bytes of a partition go to the target."""
        self._limits.taken(partition, size, self._loop.time())

    def rests(self, partition: TopicPartition) -> bool:
        """Whether it must not be fetched now; `go_on` is called when it may."""
        if partition not in self._resting:
            rest_s = self._limits.throttle_s(partition, self._loop.time())
            if rest_s <= 0:
                return False
            self._resting[partition] = self._loop.call_later(rest_s, self._rested, partition)
        return True

    def forget(self, partition: TopicPartition) -> None:
        """Somebody else says when it goes on."""
        timer = self._resting.pop(partition, None)
        if timer is not None:
            timer.cancel()

    def stop(self) -> None:
        """Nothing is called any more."""
        for timer in (*self._resting.values(), self._waiting):
            if timer is not None:
                timer.cancel()

    def _rested(self, partition: TopicPartition) -> None:
        del self._resting[partition]
        self._go_on(partition)
        self._fetch_more()

    def _ask_again(self) -> None:
        self._waiting = None
        self._fetch_more()
