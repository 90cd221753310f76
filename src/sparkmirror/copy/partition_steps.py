"""Takes what happens to partitions, one event after the other, and has the instructions carried out."""

from collections import deque
from collections.abc import Callable, Collection, Mapping

from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_events import Drained, Event, Instruction
from sparkmirror.domain.ids import TopicPartition

Report = Callable[[TopicPartition, Event], None]
"""Takes an event of a source partition."""


class PartitionSteps:
    """`copies` are by source partition. On the loop's thread only."""

    def __init__(
        self,
        copies: Mapping[TopicPartition, PartitionCopy],
        clock: Callable[[], float],
        carry_out: Callable[[PartitionCopy, Instruction], None],
    ) -> None:
        self._copies = copies
        self._clock = clock
        self._carry_out = carry_out
        self._events: deque[tuple[PartitionCopy, Event]] = deque()

    @property
    def copies(self) -> Collection[PartitionCopy]:
        return self._copies.values()

    def of(self, source: TopicPartition) -> PartitionCopy:
        return self._copies[source]

    def report_all(self, event: Event) -> None:
        for copy in self._copies.values():
            self.take(copy, event)

    def report(self, source: TopicPartition, event: Event) -> None:
        self.take(self._copies[source], event)

    def report_if_drained(self, copy: PartitionCopy) -> None:
        if not copy.outstanding_bytes:
            self.take(copy, Drained())

    def take(self, copy: PartitionCopy, event: Event) -> None:
        """Carry out what follows from the event."""
        self._events.append((copy, event))
        if len(self._events) > 1:
            return  # an instruction of the event before brought it, and comes first
        try:
            while self._events:
                copy, event = self._events[0]
                for instruction in copy.step(event, self._clock()):
                    self._carry_out(copy, instruction)
                self._events.popleft()
        finally:
            self._events.clear()
