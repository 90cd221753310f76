"""Counts the bytes that a copy task has on their way, and says which partitions may add to them.

A partition far ahead of its acknowledgements must leave room for the others of the task, and so must one that
the target does not take.
"""

from collections.abc import Callable, Iterable, Iterator

from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.domain.ids import TopicPartition

_SILENT_S = 10.0
"""A partition without an acknowledgement for so long can't be written, even if no error says so yet."""


class Buffer:
    """`outstanding_bytes` are taken from the source, and not acknowledged by the target."""

    def __init__(self, plan: TaskPlan, when_free: Callable[[], None]) -> None:
        """`when_free` is called once when half of the buffer is free that was awaited."""
        self._when_free = when_free
        self.bytes_max = plan.buffer_bytes_max
        self.outstanding_bytes = 0
        self._outstanding_bytes_max = plan.outstanding_bytes_max
        self._partition_bytes_max = max(
            plan.buffer_bytes_max // max(len(plan.partitions), 1), 2 * plan.consumer.partition_fetch_bytes_max
        )
        self._is_awaited = False
        self._silent_since: dict[TopicPartition, tuple[int, float]] = {}
        """The acknowledged records and the time of the last change; only while the buffer is short."""

    @property
    def free_bytes(self) -> int:
        """The bytes that may be fetched. If they are less than half of the buffer, half is awaited."""
        free = self.bytes_max - self.outstanding_bytes
        self._is_awaited = free < self.bytes_max // 2
        return free

    @property
    def takeable_bytes(self) -> int:
        """The bytes that may be taken. Fetched bytes can become more: decompressed for the target."""
        return self._outstanding_bytes_max - self.outstanding_bytes

    @property
    def is_half_free(self) -> bool:
        return self.outstanding_bytes <= self.bytes_max // 2

    def await_half(self) -> None:
        """Call `when_free` as soon as half of it is free."""
        self._is_awaited = True
        self.free(0)

    def take(self, count: int) -> None:
        """Count so many bytes that were taken from the source."""
        self.outstanding_bytes += count

    def free(self, count: int) -> None:
        """Free so many bytes, which are acknowledged or dropped."""
        self.outstanding_bytes -= count
        if self._is_awaited and self.is_half_free:
            self._is_awaited = False
            self._when_free()

    def is_full_for(self, copy: PartitionCopy) -> bool:
        return copy.outstanding_bytes > self._partition_bytes_max

    def is_free_for(self, copy: PartitionCopy) -> bool:
        """Whether half of its share is free, after it was full."""
        return copy.outstanding_bytes <= self._partition_bytes_max // 2

    def forget_silent(self) -> None:
        self._silent_since.clear()

    def stuck(self, copies: Iterable[PartitionCopy], now: float) -> Iterator[PartitionCopy]:
        """Yield the copies whose outstanding batches the target does not take, while the buffer is short."""
        for copy in copies:
            if not copy.outstanding_bytes:
                continue
            records, since = self._silent_since.get(copy.plan.source, (-1, now))
            if records != copy.records:
                since = now
            self._silent_since[copy.plan.source] = copy.records, since
            if copy.state.write_error is not None or now - since >= _SILENT_S:
                yield copy
