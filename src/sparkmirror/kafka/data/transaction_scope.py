"""Keeps producer id and partitions of a writer's current transaction (KIP-98, KIP-890). Sends nothing.

`transactions` begins and ends them; `batch_writer` checks here before it sends.
"""

from collections.abc import Callable, Collection

from sparkmirror.batches.producer import ProducerId
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.wire import produce


class TransactionScope:
    """The transactions of one transactional id, one after another.

    `partitions` belong to the current one. Under version 2 of the protocol Produce adds them;
    under version 1 `wanted` is called for one that must be added first.
    """

    def __init__(self, transactional_id: str, wanted: Callable[[TopicPartition], None]) -> None:
        self.transactional_id = transactional_id
        self.partitions: set[TopicPartition] = set()
        self._wanted = wanted
        self._producer: ProducerId | None = None
        self._is_version_2 = False

    @property
    def producer(self) -> ProducerId:
        assert self._producer is not None, "nothing is begun before the id is initialised"
        return self._producer

    @property
    def produce_version_max(self) -> int:
        return produce.VERSION_BY_ID if self._is_version_2 else produce.VERSION_HIGH

    @property
    def adds_by_producing(self) -> bool:
        return self._is_version_2

    def begin(self, producer: ProducerId, *, is_version_2: bool) -> None:
        """Begin the next transaction under this producer id; no partition belongs to it yet."""
        self._producer = producer
        self._is_version_2 = is_version_2
        self.partitions.clear()

    def add(self, partitions: Collection[TopicPartition]) -> None:
        self.partitions.update(partitions)

    def admits(self, partition: TopicPartition) -> bool:
        """Whether a batch of it may be sent now."""
        if partition in self.partitions:
            return True
        if self._is_version_2:
            self.partitions.add(partition)
            return True
        self._wanted(partition)
        return False
