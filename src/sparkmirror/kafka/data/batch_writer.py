"""Produces whole record batches to many partitions on one loop, idempotently, in order, several in flight.

Owns the queues; `Sender` sends what is in them, follows leaders and retries. A batch is kept until it is
acknowledged or refused. A partition's sequence counts the records written to it under its producer id, and
continues from task to task.

In transactions all partitions are written under the producer id and epoch of the transactional id. To end
one, `TransactionCycle` holds the writer, waits until it is settled, and releases it under those of the next.
"""

import asyncio
from collections.abc import Collection

from sparkmirror.batches.producer import ProducerState
from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.domain.client_settings import ProducerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_queue import PartitionQueue, QueuePhase
from sparkmirror.kafka.data.sender import Sender
from sparkmirror.kafka.data.transaction_scope import TransactionScope
from sparkmirror.kafka.data.writer_listener import WriterListener
from sparkmirror.kafka.net.broker_link import Traffic
from sparkmirror.kafka.wire.primitives import NO_TOPIC_ID


class BatchWriter:
    """`append`, then `flush`; `WriterListener` has what comes back."""

    def __init__(
        self,
        settings: ProducerSettings,
        loop: asyncio.AbstractEventLoop,
        listener: WriterListener,
        transaction: TransactionScope | None = None,
    ) -> None:
        self._settings = settings
        self._transaction = transaction
        self._loop = loop
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._sender = Sender(settings, loop, listener, transaction, self._queues)

    @property
    def traffic(self) -> Traffic:
        return self._sender.connections.traffic

    def start(self, partitions: Collection[TopicPartition]) -> None:
        """Find the partitions' leaders; each waits for its `begin`."""
        bytes_max = self._settings.decompressed_bytes_max
        self._queues.update({partition: PartitionQueue(partition, bytes_max) for partition in partitions})
        self._sender.start(sorted({partition.topic for partition in partitions}))

    def begin(self, partition: TopicPartition, state: ProducerState, topic_id: bytes = NO_TOPIC_ID) -> None:
        """Write the partition from now on, as long as its topic keeps the id.

        Before that, and after `sequence_lost` or `target_recreated`, nothing is sent. In transactions the
        transaction has id and epoch, and sequences continue under them; only the state's offset counts.
        """
        queue = self._queues[partition]
        if self._transaction is not None:
            producer = self._transaction.producer
            sequence = queue.next_sequence if queue.producer == producer else 0
            state = ProducerState(producer, sequence, state.next_offset)
        self._sender.forget(queue)
        queue.number(state, topic_id, self._loop.time())
        self._sender.route(queue)

    def stop(self) -> None:
        """Close all connections for good; the listener is not called any more."""
        self._sender.stop()
        self._queues = {}

    def append(self, partition: TopicPartition, batch: OutgoingBatch) -> None:
        """Take a batch over; nothing is sent before `flush`."""
        queue = self._queues[partition]
        queue.append(batch)
        self._sender.connections.offer(queue)

    def flush(self) -> None:
        self._sender.flush()

    def discard_unsent(self) -> None:
        """Keep only what is in flight: an orderly stop waits for nothing else."""
        for queue in self._queues.values():
            queue.discard()

    def has_unsent(self, partition: TopicPartition) -> bool:
        """Whether `drop_unsent` would drop something."""
        return self._queues[partition].has_unsent

    def drop_unsent(self, partition: TopicPartition) -> int:
        """Forget the last appended batches that can't be in the log. Returns how many to append again."""
        return self._queues[partition].drop_unsent()

    def doubtful(self) -> set[TopicPartition]:
        """The partitions with something that may be in the log, and is not known to be."""
        return {partition for partition, queue in self._queues.items() if queue.is_doubtful}

    def unanswered(self) -> set[TopicPartition]:
        """The doubtful partitions, and those with something in flight."""
        return self.doubtful() | {partition for partition, queue in self._queues.items() if queue.in_flight}

    @property
    def is_idle(self) -> bool:
        return self._sender.connections.is_idle

    # transactions

    def hold(self, exempt: Collection[TopicPartition] = ()) -> None:
        """Send nothing new, except to the exempt partitions, until `release`; see `is_settled`."""
        self._sender.hold(exempt)

    @property
    def is_settled(self) -> bool:
        """Whether everything that may be in a log is acknowledged."""
        return self._sender.is_settled

    def release(self) -> None:
        """Continue in the next transaction. Everything must be settled."""
        assert self._transaction is not None
        self._sender.hold(None)
        producer = self._transaction.producer
        for queue in self._queues.values():
            if queue.producer is not None and queue.producer != producer:
                queue.renumber(producer)
            self._sender.connections.offer(queue)
        self.flush()

    def admit(self, partitions: Collection[TopicPartition]) -> None:
        """Send batches of these partitions, which belong to the transaction now."""
        for partition in partitions:
            self._sender.connections.offer(self._queues[partition])
        self.flush()

    def refuse(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        """Report that the partition can't be added to the transaction: none of its batches was sent."""
        queue = self._queues[partition]
        if queue.ready and queue.phase is QueuePhase.SENDING:
            self._sender.refuse(queue, error)
