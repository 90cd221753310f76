"""The batches of a partition that its writer must not get before ends are recorded, or a gap is filled."""

from collections import deque

from sparkmirror.batches.record_batch import OutgoingBatch


class HeldBatches:
    """In their order, and the last of what is outstanding."""

    __slots__ = ("_batches", "drops")

    def __init__(self) -> None:
        self._batches: deque[OutgoingBatch] = deque()
        self.drops = 0
        """How often they were dropped: what was under way for them then releases nothing."""

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def first_offset(self) -> int:
        """Of the source. There must be one."""
        return self._batches[0].offsets[0]

    def append(self, batch: OutgoingBatch) -> None:
        self._batches.append(batch)

    def release(self) -> OutgoingBatch:
        """The first one, for the writer."""
        return self._batches.popleft()

    def drop(self) -> int:
        """Forget them. How many."""
        count = len(self._batches)
        self._batches.clear()
        self.drops += 1
        return count
