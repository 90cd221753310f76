"""Produces whole record batches to many partitions on one loop, idempotently, in order, several in flight.

Owns resending, leader changes and back-off; `ProduceConnection` has the requests of one connection. A batch
is kept until it is acknowledged or refused. A partition's sequence counts the records written to it under
its producer id, and continues from task to task.

In transactions all partitions are written under the producer id and epoch of the transactional id. To end
one, `TransactionCycle` holds the writer, waits until it is settled, and releases it under those of the next.
"""

import asyncio
import random
from collections.abc import Collection

from sparkmirror.batches.producer import ProducerState
from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ProducerSettings
from sparkmirror.domain.errors import CorruptBatchError, DisconnectedError, KafkaError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.data.cluster_view import ClusterView
from sparkmirror.kafka.data.partition_queue import PartitionQueue, PendingBatch, QueueEvent, QueuePhase, Route
from sparkmirror.kafka.data.produce_connection import ProduceConnection
from sparkmirror.kafka.data.writer_listener import WriterListener
from sparkmirror.kafka.data.written_batches import LogChecks, Written
from sparkmirror.kafka.net.broker_link import BrokerLink, Traffic, traffic
from sparkmirror.kafka.transactions.transaction_scope import TransactionScope
from sparkmirror.kafka.wire import error_codes
from sparkmirror.kafka.wire.primitives import NO_TOPIC_ID
from sparkmirror.kafka.wire.produce import ProducedPartition

_HOUSEKEEPING_S = 1.0

_COMPLETING_S = 0.01
"""How long to wait before a batch is sent again that met the end of the transaction before its own."""


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
        self._listener = listener
        cluster = settings.connection
        self._backoff = Backoff(cluster.retry_backoff_s, cluster.retry_backoff_max_s)
        self._view = ClusterView(cluster, loop, self._leaders_changed, self._cluster_failed)
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._connections: dict[Route, ProduceConnection] = {}
        self._connection_of: dict[BrokerLink, ProduceConnection] = {}
        self._checks = LogChecks(cluster, loop, self)
        self._timers: dict[PartitionQueue, asyncio.TimerHandle] = {}
        """Of those that back off."""
        self._doubtful: set[PartitionQueue] = set()
        """In transactions: those with something that may be in the log and is not acknowledged."""
        self._exempt: Collection[TopicPartition] | None = None
        """What a held writer sends all the same; None while it is not held."""
        self._correlation_id = 0
        self._housekeeping: asyncio.TimerHandle | None = None
        self._stopped = False

    @property
    def traffic(self) -> Traffic:
        return traffic(connection.link for connection in self._connections.values())

    def start(self, partitions: Collection[TopicPartition]) -> None:
        """Find the partitions' leaders; each waits for its `begin`."""
        bytes_max = self._settings.decompressed_bytes_max
        self._queues = {partition: PartitionQueue(partition, bytes_max) for partition in partitions}
        self._view.start(sorted({partition.topic for partition in partitions}))
        self._housekeep()

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
        self._cancel_timer(queue)
        queue.number(state, topic_id, self._loop.time())
        self._route(queue)

    def stop(self) -> None:
        """Close all connections for good; the listener is not called any more."""
        self._stopped = True
        self._view.stop()
        if self._housekeeping is not None:
            self._housekeeping.cancel()
        self._checks.stop()
        for timer in self._timers.values():
            timer.cancel()
        for connection in self._connections.values():
            connection.link.close()
        self._connections.clear()
        self._queues = {}

    def append(self, partition: TopicPartition, batch: OutgoingBatch) -> None:
        """Take a batch over; nothing is sent before `flush`."""
        queue = self._queues[partition]
        queue.append(batch)
        self._offer(queue)

    def flush(self) -> None:
        for connection in self._connections.values():
            if connection.ready:
                self._send(connection)

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
        """Also those with something that is in flight."""
        return self.doubtful() | {partition for partition, queue in self._queues.items() if queue.in_flight}

    @property
    def is_idle(self) -> bool:
        return not any(connection.requests for connection in self._connections.values())

    # transactions

    def hold(self, exempt: Collection[TopicPartition] = ()) -> None:
        """Send nothing new, except to the exempt partitions, until `release`; see `is_settled`."""
        self._exempt = exempt

    @property
    def is_settled(self) -> bool:
        """Whether everything that may be in a log is acknowledged."""
        return self.is_idle and not self._doubtful

    def release(self) -> None:
        """Continue in the next transaction. Everything must be settled."""
        assert self._transaction is not None
        self._exempt = None
        producer = self._transaction.producer
        for queue in self._queues.values():
            if queue.producer is not None and queue.producer != producer:
                queue.renumber(producer)
            self._offer(queue)
        self.flush()

    def admit(self, partitions: Collection[TopicPartition]) -> None:
        """Send batches of these partitions, which belong to the transaction now."""
        for partition in partitions:
            self._offer(self._queues[partition])
        self.flush()

    def refuse(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        """Report that the partition can't be added to the transaction: none of its batches was sent."""
        queue = self._queues[partition]
        if queue.ready and queue.phase is QueuePhase.SENDING:
            self._recover(queue, error)

    # routing: which broker leads which partition

    def _route(self, queue: PartitionQueue) -> None:
        if self._stopped or not queue.can_move or not self._view.is_known:
            return
        leader = self._view.leader(queue.partition)
        if leader is None:
            queue.route = None
            code = self._view.topic_error(queue.partition.topic) or error_codes.LEADER_NOT_AVAILABLE
            needed = self._needed(Need.DESCRIBE_TOPIC, queue.partition)
            error = error_codes.error_for(
                code, f"{queue.partition} on {self._settings.connection.cluster}", needed=needed
            )
            self._listener.write_failed(queue.partition, error)
            self._view.refresh()
            return
        topic = queue.partition.topic
        if queue.producer is not None:
            replaced = self._view.has_replaced(topic, queue.topic_id, queue.numbered_at)
            if replaced:
                self._give_up(queue)
                self._listener.target_recreated(queue.partition)
            if replaced is not False:
                return
        queue.topic_id = self._view.topic_id(topic) or queue.topic_id
        route = Route(leader.node_id, queue.is_slow)
        if queue.route is not None and queue.route != route:
            self._connections[queue.route].ready.pop(queue, None)
        queue.route = route
        self._connect(route)
        if queue.producer is not None and not queue.ready:
            self._listener.write_possible(queue.partition)
        self._offer(queue)

    def _offer(self, queue: PartitionQueue) -> None:
        if queue.ready and queue.route is not None:
            self._connections[queue.route].ready[queue] = None

    def _connect(self, route: Route) -> None:
        if route not in self._connections:
            broker = self._view.broker(route.node_id)
            assert broker is not None, "a leader is always among the brokers of the same response"
            link = BrokerLink(broker, self._settings.connection, self._loop, self)
            connection = ProduceConnection(link, self._settings, waits_for_followers=route.is_slow)
            self._connections[route] = self._connection_of[link] = connection
            link.start()

    def _leaders_changed(self) -> None:
        for route, connection in self._connections.items():
            connection.link.broker = self._view.broker(route.node_id) or connection.link.broker
        changed = [at for at, queue in self._queues.items() if queue.is_led_anew(self._view.leader(at))]
        for queue in self._queues.values():
            self._route(queue)
        if changed:
            self._listener.leaders_changed(changed)
        self.flush()

    def _cluster_failed(self, error: SparkmirrorError) -> None:
        for queue in self._queues.values():
            if queue.route is None:
                self._listener.write_failed(queue.partition, error)

    # requests and responses

    def link_ready(self, link: BrokerLink) -> None:
        connection = self._connection_of[link]
        connection.negotiate(by_id=self._view.has_topic_ids, transactional=self._transaction is not None)
        self._send(connection)

    def link_lost(self, link: BrokerLink, error: SparkmirrorError) -> None:
        connection = self._connection_of[link]
        for request in connection.take_requests():
            for queue in request.queues.values():
                self._fail(queue, error)
        for queue in self._queues.values():
            if queue.ready and queue.route is not None and self._connections.get(queue.route) is connection:
                self._listener.write_failed(queue.partition, error)
        self._view.refresh()

    def link_received(self, link: BrokerLink, frame: memoryview) -> None:
        connection = self._connection_of[link]
        request, response = connection.received(frame)
        for produced in response.partitions:
            queue = request.queues.pop(produced.partition, None)
            if queue is not None:
                self._settle(queue, produced, self._loop.time() - request.sent_at)
        for queue in request.queues.values():
            self._fail(queue, DisconnectedError(f"the broker's response lacks {queue.partition}"))
        if response.throttle_s > 0:
            connection.throttled = True
            self._loop.call_later(response.throttle_s, self._throttle_ended, connection)
        else:
            self._send(connection)

    def _throttle_ended(self, connection: ProduceConnection) -> None:
        connection.throttled = False
        self._send(connection)

    def _send(self, connection: ProduceConnection) -> None:
        transaction = self._transaction
        may_send = None if transaction is None else self._may_send
        while connection.can_send:
            batches = connection.gather(may_send)
            if not batches:
                return
            self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
            connection.send(batches, self._correlation_id, self._loop.time(), transaction)

    def _may_send(self, queue: PartitionQueue) -> bool:
        """Whether the transaction takes its batch now; the queue is offered again when that changes."""
        assert self._transaction is not None
        if self._exempt is not None and queue.partition not in self._exempt:
            return False
        return self._transaction.admits(queue.partition)

    # outcomes

    def _settle(self, queue: PartitionQueue, produced: ProducedPartition, took_s: float) -> None:
        if produced.error == error_codes.REQUEST_TIMED_OUT:
            queue.timed_out()
        if produced.error or queue.phase is QueuePhase.DRAINING:
            context, needed = f"produce to {queue.partition}", self._needed(Need.WRITE_TOPIC, queue.partition)
            self._fail(queue, error_codes.error_for(produced.error, context, produced.message, needed))
            return
        queue.proven = True
        queue.failures = 0
        self._acknowledge(queue, queue.in_flight.popleft(), produced.base_offset)
        if queue.is_slow and queue.responded(took_s):
            self._send_again(queue)  # on the other connection, where nothing else may trigger a send
        self._offer(queue)

    def _acknowledge(self, queue: PartitionQueue, pending: PendingBatch, base_offset: int) -> None:
        if self._doubtful and queue in self._doubtful and not queue.is_doubtful:
            self._doubtful.discard(queue)
        queue.next_offset = base_offset + len(pending.batch.offsets)
        self._listener.acknowledged(queue.partition, pending.batch, base_offset, completes=pending.completes)

    def _needed(self, need: Need, partition: TopicPartition) -> error_codes.Needed:
        # Brokers before 2.8 want the second for batches that are numbered.
        rights = need.of(partition.topic), Need.NUMBER_RECORDS.of()
        return error_codes.Needed(self._settings.connection, rights)

    def _fail(self, queue: PartitionQueue, error: SparkmirrorError) -> None:
        """The first batch in flight failed; when all are settled, decide how the queue continues."""
        is_unclear = error.code in error_codes.UNCLEAR
        failure = queue.fail_first(error, is_unclear=is_unclear)
        if is_unclear and self._transaction is not None:
            self._doubtful.add(queue)
        if failure is None:
            return
        if queue.needs_check():
            queue.happened(QueueEvent.UNCLEAR)
            self._listener.write_failed(queue.partition, failure)
            self._checks.start(queue, failure)
        else:
            self._recover(queue, failure)

    # batches that may be in the log

    def log_check_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        self._listener.write_failed(partition, error)

    def log_checked(self, queue: PartitionQueue, written: list[Written], error: SparkmirrorError) -> None:
        arrived = {batch.sequence: batch for batch in written}
        while queue.ready and (batch := arrived.get(queue.ready[0].sequence)):
            if batch.record_count != len(queue.ready[0].batch.offsets):
                break
            self._acknowledge(queue, queue.ready.popleft(), batch.base_offset)
        self._recover(queue, error)

    def _recover(self, queue: PartitionQueue, error: SparkmirrorError) -> None:
        code = error.code
        all_are_written = not queue.ready
        is_split = False
        if not all_are_written and code in error_codes.WORTH_HALVING:
            try:
                is_split = queue.split_first()
            except CorruptBatchError as reason:
                error = KafkaError(f"{error}; it can't be split: {reason}", code)
        if all_are_written or is_split:
            queue.happened(QueueEvent.RETRY)
            self._send_again(queue)
        elif code == error_codes.CONCURRENT_TRANSACTIONS and self._transaction is not None:
            self._back_off(queue, _COMPLETING_S)
        elif code in error_codes.SEQUENCE_UNKNOWN or self._is_lost(queue, error):
            self._give_up(queue)
            self._listener.sequence_lost(queue.partition, error)
        elif error.retriable:
            queue.failures += 1
            if code in error_codes.LEADER_CHANGED:
                self._view.refresh()
            self._back_off(queue, self._backoff.delay_s(queue.failures, random.random()))
            self._listener.write_failed(queue.partition, error)
        else:
            refused = queue.ready[0].batch
            queue.happened(QueueEvent.RETRY)
            queue.discard()
            self._listener.write_refused(queue.partition, error, refused)

    def _is_lost(self, queue: PartitionQueue, error: SparkmirrorError) -> bool:
        """Whether the transaction can't be committed any more: it is over, or its contents are in doubt."""
        if self._transaction is None:
            return False
        return error.code in error_codes.TRANSACTION_LOST or (not error.retriable and queue in self._doubtful)

    def _give_up(self, queue: PartitionQueue) -> None:
        """Nothing more is sent until the partition's next `begin`."""
        queue.give_up()
        self._cancel_timer(queue)
        self._checks.cancel(queue)

    def _back_off(self, queue: PartitionQueue, delay_s: float) -> None:
        queue.happened(QueueEvent.BACK_OFF)
        self._timers[queue] = self._loop.call_later(delay_s, self._retry, queue)

    def _retry(self, queue: PartitionQueue) -> None:
        del self._timers[queue]
        queue.happened(QueueEvent.RETRY)
        self._send_again(queue)

    def _cancel_timer(self, queue: PartitionQueue) -> None:
        timer = self._timers.pop(queue, None)
        if timer is not None:
            timer.cancel()

    def _send_again(self, queue: PartitionQueue) -> None:
        self._route(queue)
        if queue.route is not None and not self._stopped:
            self._send(self._connections[queue.route])

    def _housekeep(self) -> None:
        """Drop connections to brokers that accept a request and never respond."""
        self._housekeeping = self._loop.call_later(_HOUSEKEEPING_S, self._housekeep)
        for connection in self._connections.values():
            connection.check_response(self._loop.time())
