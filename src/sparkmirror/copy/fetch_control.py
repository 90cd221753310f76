"""Decides when a partition is fetched: as the task's buffer and the topics' rate limits allow."""

import asyncio
import random

from sparkmirror.copy import partition_events as events
from sparkmirror.copy.buffer import Buffer
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.copy_state import Phase
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_steps import PartitionSteps
from sparkmirror.copy.throttle import Throttle
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.batch_reader import BatchReader
from sparkmirror.kafka.data.batch_writer import BatchWriter
from sparkmirror.policies.rate_limits import RateLimits

_BUFFER_FULL = events.BufferFull()


class FetchControl:
    """Decides what is fetched and when. On the loop's thread only."""

    def __init__(
        self,
        plan: TaskPlan,
        loop: asyncio.AbstractEventLoop,
        steps: PartitionSteps,
        buffer: Buffer,
        reader: BatchReader,
    ) -> None:
        self._loop = loop
        self._steps = steps
        self._buffer = buffer
        self._reader = reader
        self._throttle = Throttle(plan.rate_limits, plan.rate_shares, loop, reader.fetch_more)
        self._will_fetch = False

    def stop(self) -> None:
        self._throttle.stop()

    def change_limits(self, limits: RateLimits) -> None:
        self._throttle.change(limits)
        self._steps.report_all(events.LimitsChanged())

    def fetch_next(self, copy: PartitionCopy) -> None:
        """Fetch what follows, unless the partition is too far ahead of its acknowledgements, or too fast."""
        if self._buffer.is_full_for(copy):
            self._steps.take(copy, _BUFFER_FULL)
        elif (throttle_s := self._throttle.throttle_s(copy.plan.source)) > 0:
            self._steps.take(copy, events.LimitReached(throttle_s))
        else:
            self._reader.advance(copy.plan.source, copy.fetch_position)

    def fetch_next_soon(self, copy: PartitionCopy) -> None:
        """Fetch what follows, and ask for it in this turn of the loop."""
        self.fetch_next(copy)
        self.fetch_soon()

    def fetch_next_when_free(self, copy: PartitionCopy) -> None:
        """Fetch what follows as soon as half of the task's buffer is free."""
        self.fetch_next(copy)
        self._buffer.await_half()

    def fetch_soon(self) -> None:
        if not self._will_fetch:
            self._will_fetch = True
            self._loop.call_soon(self._fetch_now)

    def _fetch_now(self) -> None:
        self._will_fetch = False
        self._reader.fetch_more()

    def budget_bytes(self) -> int:
        """The bytes that may be fetched now."""
        return self._throttle.allowed(self._buffer.free_bytes)

    def taken(self, source: TopicPartition, taken_bytes: int) -> None:
        """Note that so many bytes of the partition were taken."""
        self._buffer.take(taken_bytes)
        self._throttle.taken(source, taken_bytes)

    def check_buffer(self, writer: BatchWriter) -> None:
        """Take the buffer from partitions that can't be written, when others need it. Once a second."""
        if self._buffer.is_half_free:
            self._buffer.forget_silent()
            return
        copies = self._steps.copies
        stuck = set(self._buffer.stuck(copies, self._loop.time()))
        if any(copy.state.phase is Phase.COPYING for copy in copies if copy not in stuck):
            for copy in stuck:
                if copy.writes.has_held or writer.has_unsent(copy.plan.target):
                    self._steps.take(copy, events.BufferNeeded(random.random()))
        self.fetch_soon()
