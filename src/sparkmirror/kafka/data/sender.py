"""Sends what the queues of a writer have ready, and carries out what becomes of it: the loop's edge.

`LeaderConnections` knows where to send, `ProduceOutcomes` decides what a response means.
"""

import asyncio
import random
from collections.abc import Collection, Mapping, Sequence

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ProducerSettings
from sparkmirror.domain.errors import DisconnectedError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.data.leader_connections import LeaderConnections, Placement, needed_rights
from sparkmirror.kafka.data.partition_queue import PartitionQueue, QueueEvent, QueuePhase
from sparkmirror.kafka.data.produce_connection import ProduceConnection
from sparkmirror.kafka.data.produce_outcomes import Next, Outcome, ProduceOutcomes
from sparkmirror.kafka.data.transaction_scope import TransactionScope
from sparkmirror.kafka.data.writer_listener import WriterListener
from sparkmirror.kafka.data.written_batches import LogChecks, Written
from sparkmirror.kafka.net.broker_link import BrokerLink
from sparkmirror.kafka.wire import error_codes
from sparkmirror.kafka.wire.produce import ProducedPartition

_HOUSEKEEPING_S = 1.0

_COMPLETING_S = 0.01
"""The delay before a batch is sent again that met the end of the transaction before its own."""


class Sender:
    """Sends for one writer. It reads `queues`, and never adds or removes one."""

    def __init__(
        self,
        settings: ProducerSettings,
        loop: asyncio.AbstractEventLoop,
        listener: WriterListener,
        transaction: TransactionScope | None,
        queues: Mapping[TopicPartition, PartitionQueue],
    ) -> None:
        cluster = settings.connection
        self._cluster = cluster
        self._loop = loop
        self._listener = listener
        self._transaction = transaction
        self._queues = queues
        self._backoff = Backoff(cluster.retry_backoff_s, cluster.retry_backoff_max_s)
        self.connections = LeaderConnections(
            settings, loop, self, self._leaders_changed, self._cluster_failed
        )
        self._outcomes = ProduceOutcomes(transactional=transaction is not None)
        self._checks = LogChecks(cluster, loop, self)
        self._timers: dict[PartitionQueue, asyncio.TimerHandle] = {}
        """The timers of queues that back off."""
        self._exempt: Collection[TopicPartition] | None = None
        """The partitions that a held writer sends all the same; None while it is not held."""
        self._correlation_id = 0
        self._housekeeping: asyncio.TimerHandle | None = None

    def start(self, topics: Sequence[str]) -> None:
        self.connections.start(topics)
        self._housekeep()

    def stop(self) -> None:
        """Close all connections for good; the listener is not called any more."""
        if self._housekeeping is not None:
            self._housekeeping.cancel()
        self._checks.stop()
        for timer in self._timers.values():
            timer.cancel()
        self.connections.stop()
        self._queues = {}

    @property
    def is_settled(self) -> bool:
        """Whether nothing is under way, and everything that may be in a log is acknowledged."""
        return self.connections.is_idle and self._outcomes.is_settled

    def route(self, queue: PartitionQueue) -> None:
        """Find the queue's connection, and offer it what is ready."""
        placed = self.connections.place(queue)
        if isinstance(placed, SparkmirrorError):
            self._listener.write_failed(queue.partition, placed)
        elif placed is Placement.RECREATED:
            queue.give_up()
            self.forget(queue)
            self._listener.target_recreated(queue.partition)
        elif placed is Placement.FOUND:
            if queue.producer is not None and not queue.ready:
                self._listener.write_possible(queue.partition)
            self.connections.offer(queue)

    def flush(self) -> None:
        for connection in self.connections.all:
            if connection.ready:
                self._send(connection)

    def hold(self, exempt: Collection[TopicPartition] | None) -> None:
        """Send nothing new, except to these partitions, until this is called with None. For transactions."""
        self._exempt = exempt

    def forget(self, queue: PartitionQueue) -> None:
        """Neither retry nor check what the queue had sent."""
        timer = self._timers.pop(queue, None)
        if timer is not None:
            timer.cancel()
        self._checks.cancel(queue)

    def refuse(self, queue: PartitionQueue, error: SparkmirrorError) -> None:
        """Take what is ready as refused for this reason."""
        self._follow(queue, self._outcomes.recover(queue, error))

    # requests and responses

    def link_ready(self, link: BrokerLink) -> None:
        self._send(self.connections.negotiate(link, transactional=self._transaction is not None))

    def link_lost(self, link: BrokerLink, error: SparkmirrorError) -> None:
        connection = self.connections.of_link(link)
        for request in connection.take_requests():
            for queue in request.queues.values():
                self._fail(queue, error)
        for queue in self._queues.values():
            if queue.ready and self.connections.of_queue(queue) is connection:
                self._listener.write_failed(queue.partition, error)
        self.connections.refresh()

    def link_received(self, link: BrokerLink, frame: memoryview) -> None:
        connection = self.connections.of_link(link)
        request, response = connection.received(frame)
        took_s = self._loop.time() - request.sent_at
        for produced in response.partitions:
            queue = request.queues.pop(produced.partition, None)
            if queue is not None:
                self._take(queue, produced, took_s)
        for queue in request.queues.values():
            self._fail(queue, DisconnectedError(f"the broker's response lacks {queue.partition}"))
        self._send(connection)

    def throttle_ended(self, link: BrokerLink) -> None:
        self._send(self.connections.of_link(link))

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

    def _send_again(self, queue: PartitionQueue) -> None:
        self.route(queue)
        connection = self.connections.of_queue(queue)
        if connection is not None:
            self._send(connection)

    def _take(self, queue: PartitionQueue, produced: ProducedPartition, took_s: float) -> None:
        if produced.error == error_codes.REQUEST_TIMED_OUT:
            queue.timed_out()
        if produced.error or queue.phase is QueuePhase.DRAINING:
            context = f"produce to {queue.partition}"
            needed = needed_rights(self._cluster, Need.WRITE_TOPIC, queue.partition)
            self._fail(queue, error_codes.error_for(produced.error, context, produced.message, needed))
            return
        offset = produced.base_offset
        pending = self._outcomes.acknowledged(queue, offset)
        self._listener.acknowledged(queue.partition, pending.batch, offset, completes=pending.completes)
        if queue.is_slow and queue.responded(took_s):
            self._send_again(queue)  # on the other connection, where nothing else may trigger a send
        self.connections.offer(queue)

    # failures

    def _fail(self, queue: PartitionQueue, error: SparkmirrorError) -> None:
        outcome = self._outcomes.failed(queue, error)
        if outcome is not None:
            self._follow(queue, outcome)

    def _follow(self, queue: PartitionQueue, outcome: Outcome) -> None:
        partition, error = queue.partition, outcome.error
        match outcome.next:
            case Next.SEND:
                self._send_again(queue)
            case Next.CHECK_LOG:
                self._listener.write_failed(partition, error)
                self._checks.start(queue, error)
            case Next.RETRY:
                if error.code in error_codes.LEADER_CHANGED:
                    self.connections.refresh()
                self._retry_in(self._backoff.delay_s(queue.failures, random.random()), queue)
                self._listener.write_failed(partition, error)
            case Next.RETRY_SOON:
                self._retry_in(_COMPLETING_S, queue)
            case Next.GIVE_UP:
                self.forget(queue)
                self._listener.sequence_lost(partition, error)
            case Next.REFUSE:
                assert outcome.refused is not None
                self._listener.write_refused(partition, error, outcome.refused)

    def _retry_in(self, delay_s: float, queue: PartitionQueue) -> None:
        self._timers[queue] = self._loop.call_later(delay_s, self._retry, queue)

    def _retry(self, queue: PartitionQueue) -> None:
        del self._timers[queue]
        queue.happened(QueueEvent.RETRY)
        self._send_again(queue)

    def log_check_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        self._listener.write_failed(partition, error)

    def log_checked(self, queue: PartitionQueue, written: list[Written], error: SparkmirrorError) -> None:
        for pending, offset in self._outcomes.found(queue, written):
            self._listener.acknowledged(queue.partition, pending.batch, offset, completes=pending.completes)
        self._follow(queue, self._outcomes.recover(queue, error))

    # the cluster

    def _leaders_changed(self) -> None:
        self.connections.update_brokers()
        changed = self.connections.with_new_leaders(self._queues.values())
        for queue in self._queues.values():
            self.route(queue)
        if changed:
            self._listener.leaders_changed(changed)
        self.flush()

    def _cluster_failed(self, error: SparkmirrorError) -> None:
        for queue in self._queues.values():
            if queue.route is None:
                self._listener.write_failed(queue.partition, error)

    def _housekeep(self) -> None:
        """Drop connections to brokers that accept a request and never respond."""
        self._housekeeping = self._loop.call_later(_HOUSEKEEPING_S, self._housekeep)
        for connection in self.connections.all:
            connection.check_response(self._loop.time())
