"""Produces whole record batches to many partitions on one loop, idempotently, in order, several in flight.

Owns connections, resending, leader changes and back-off. A batch is kept until it is acknowledged or
refused. A partition's sequence counts the records written to it under its producer id, and continues from
task to task.

In transactions all partitions are written under the producer id and epoch of the transactional id. To end
one, `TransactionCycle` holds the writer, waits until it is settled, and releases it under those of the next.
"""

import asyncio
import random
from collections import deque
from collections.abc import Collection
from dataclasses import replace
from typing import Protocol

from sparkmirror.batches.producer import ProducerState
from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ProducerSettings
from sparkmirror.domain.errors import DisconnectedError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka import error_codes, produce
from sparkmirror.kafka.broker_link import BrokerLink
from sparkmirror.kafka.cluster_view import ClusterView
from sparkmirror.kafka.partition_queue import PartitionQueue, PendingBatch, QueueEvent, QueuePhase, Route
from sparkmirror.kafka.produce import ProducedPartition, decode_produce_response, encode_produce_request
from sparkmirror.kafka.transaction_scope import TransactionScope
from sparkmirror.kafka.wire import NO_TOPIC_ID
from sparkmirror.kafka.written_batches import LogChecks, Written

_HOUSEKEEPING_S = 1.0
_FOLLOWERS_WAIT_MAX_S = 1.0
"""How long a broker may wait for a partition's followers before the partition moves to another connection."""

_COMPLETING_S = 0.01
"""How long to wait before a batch is sent again that met the end of the transaction before its own."""


class WriterListener(Protocol):
    """Hears from the writer. All calls come on the loop's thread."""

    def acknowledged(
        self, partition: TopicPartition, batch: OutgoingBatch, base_offset: int, *, completes: bool
    ) -> None:
        """In order per partition. A split batch is acknowledged in parts; the last one completes it."""

    def write_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        """The partition is retried with back-off; an acknowledgement means that it works again."""

    def write_possible(self, partition: TopicPartition) -> None:
        """Leader and producer id are known and nothing waits: without data no acknowledgement would come."""

    def write_refused(self, partition: TopicPartition, error: SparkmirrorError, batch: OutgoingBatch) -> None:
        """The target will never take this batch as it is. It and all after it were discarded."""

    def sequence_lost(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        """The broker knows of another sequence. What was not acknowledged is discarded: `begin` again.

        In transactions: nothing more can be written in this one, nor can it be committed.
        """

    def target_recreated(self, partition: TopicPartition) -> None:
        """The topic has another id than at `begin`. What was not acknowledged is discarded."""


class _Request:
    """One Produce request under way."""

    def __init__(self, correlation_id: int, version: int, sent_at: float) -> None:
        self.correlation_id = correlation_id
        self.version = version
        self.sent_at = sent_at
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        self.topics: dict[bytes, str] = {}


class _Sink:
    """One connection: its link, its requests under way, and the queues that may have something to send.

    A broker handles the requests of a connection one after the other, and delays one whose partition waits
    for its followers. So on the connection for most partitions it may wait a short time only. Partitions for
    which that was too short have a second connection, where it may wait as long as a request may take.
    """

    def __init__(self, link: BrokerLink, settings: ProducerSettings) -> None:
        self.link = link
        self.settings = settings
        self.version = 0
        self.requests: deque[_Request] = deque()
        self.ready: dict[PartitionQueue, None] = {}
        self.throttled = False


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
        connection = settings.connection
        self._backoff = Backoff(connection.retry_backoff_s, connection.retry_backoff_max_s)
        self._view = ClusterView(connection, loop, self._leaders_changed, self._cluster_failed)
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._sinks: dict[Route, _Sink] = {}
        self._sink_of: dict[BrokerLink, _Sink] = {}
        self._checks = LogChecks(connection, loop, self)
        self._timers: dict[PartitionQueue, asyncio.TimerHandle] = {}
        """Of those that back off."""
        self._doubtful: set[PartitionQueue] = set()
        """In transactions: those with something that may be in the log and is not acknowledged."""
        self._exempt: Collection[TopicPartition] | None = None
        """What a held writer sends all the same; None while it is not held."""
        self._correlation_id = 0
        self._housekeeping: asyncio.TimerHandle | None = None
        self._stopped = False

    def start(self, partitions: Collection[TopicPartition]) -> None:
        """Find the partitions' leaders; each waits for its `begin`."""
        self._queues = {partition: PartitionQueue(partition) for partition in partitions}
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
        """Stop for good: the listener is not called any more."""
        self._stopped = True
        self._view.stop()
        if self._housekeeping is not None:
            self._housekeeping.cancel()
        self._checks.stop()
        for timer in self._timers.values():
            timer.cancel()
        for sink in self._sinks.values():
            sink.link.close()
        self._sinks.clear()
        self._queues = {}

    def append(self, partition: TopicPartition, batch: OutgoingBatch) -> None:
        """Take a batch over; nothing is sent before `flush`."""
        queue = self._queues[partition]
        queue.append(batch)
        self._offer(queue)

    def flush(self) -> None:
        for sink in self._sinks.values():
            if sink.ready:
                self._send(sink)

    def discard_unsent(self) -> None:
        """Keep only what is in flight: an orderly stop waits for nothing else."""
        for queue in self._queues.values():
            queue.discard()

    def has_unsent(self, partition: TopicPartition) -> bool:
        """Whether `drop_unsent` would drop something."""
        return self._queues[partition].has_unsent

    def drop_unsent(self, partition: TopicPartition) -> int:
        """Forget the last batches appended, as far as none can be in the log: how many; append them again."""
        return self._queues[partition].drop_unsent()

    @property
    def is_idle(self) -> bool:
        return not any(sink.requests for sink in self._sinks.values())

    # transactions

    def hold(self, exempt: Collection[TopicPartition] = ()) -> None:
        """Send nothing new, except to those; see `is_settled`."""
        self._exempt = exempt

    @property
    def is_settled(self) -> bool:
        """Whether everything that may be in a log is acknowledged."""
        return self.is_idle and not self._doubtful

    def release(self) -> None:
        """Go on, in the next transaction. Everything must be settled."""
        assert self._transaction is not None
        self._exempt = None
        producer = self._transaction.producer
        for queue in self._queues.values():
            if queue.producer is not None and queue.producer != producer:
                queue.renumber(producer)
            self._offer(queue)
        self.flush()

    def admit(self, partitions: Collection[TopicPartition]) -> None:
        """They belong to the transaction now."""
        for partition in partitions:
            self._offer(self._queues[partition])
        self.flush()

    def refuse(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        """It can't be made part of the transaction: nothing of it was sent."""
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
            error = error_codes.error_for(code, f"{queue.partition} on the target", needed=needed)
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
            self._sinks[queue.route].ready.pop(queue, None)
        queue.route = route
        self._connect(route)
        if queue.producer is not None and not queue.ready:
            self._listener.write_possible(queue.partition)
        self._offer(queue)

    def _offer(self, queue: PartitionQueue) -> None:
        if queue.ready and queue.route is not None:
            self._sinks[queue.route].ready[queue] = None

    def _connect(self, route: Route) -> None:
        if route not in self._sinks:
            broker = self._view.broker(route.node_id)
            assert broker is not None, "a leader is always among the brokers of the same answer"
            link = BrokerLink(broker, self._settings.connection, self._loop, self)
            wait_max_s = None if route.is_slow else _FOLLOWERS_WAIT_MAX_S
            sink = _Sink(link, replace(self._settings, followers_wait_max_s=wait_max_s))
            self._sinks[route] = self._sink_of[link] = sink
            link.start()

    def _leaders_changed(self) -> None:
        for route, sink in self._sinks.items():
            sink.link.broker = self._view.broker(route.node_id) or sink.link.broker
        for queue in self._queues.values():
            self._route(queue)
        self.flush()

    def _cluster_failed(self, error: SparkmirrorError) -> None:
        for queue in self._queues.values():
            if queue.route is None:
                self._listener.write_failed(queue.partition, error)

    # requests and responses

    def link_ready(self, link: BrokerLink) -> None:
        sink = self._sink_of[link]
        by_name = produce.VERSION_HIGH if self._transaction is None else produce.VERSION_ADDING_PARTITIONS
        high = produce.VERSION_BY_ID if self._view.has_topic_ids else by_name
        sink.version = link.version_of(produce.API_KEY, "Produce", produce.VERSION_LOW, high)
        self._send(sink)

    def link_lost(self, link: BrokerLink, error: SparkmirrorError) -> None:
        sink = self._sink_of[link]
        requests, sink.requests = sink.requests, deque()
        for request in requests:
            for queue in request.queues.values():
                self._fail(queue, error)
        for queue in self._queues.values():
            if queue.ready and queue.route is not None and self._sinks.get(queue.route) is sink:
                self._listener.write_failed(queue.partition, error)
        self._view.refresh()

    def link_received(self, link: BrokerLink, frame: memoryview) -> None:
        sink = self._sink_of[link]
        if not sink.requests:
            raise DisconnectedError(f"{link.broker.host}:{link.broker.port} sent a response to no request")
        # Only a response that can be decoded ends its request: else the connection fails, and all that wait.
        oldest = sink.requests[0]
        response = decode_produce_response(frame, oldest.version, oldest.correlation_id, oldest.topics)
        request = sink.requests.popleft()
        for produced in response.partitions:
            queue = request.queues.pop(produced.partition, None)
            if queue is not None:
                self._settle(queue, produced, self._loop.time() - request.sent_at)
        for queue in request.queues.values():
            self._fail(queue, DisconnectedError(f"the broker did not answer for {queue.partition}"))
        if response.throttle_s > 0:
            sink.throttled = True
            self._loop.call_later(response.throttle_s, self._throttle_ended, sink)
        else:
            self._send(sink)

    def _throttle_ended(self, sink: _Sink) -> None:
        sink.throttled = False
        self._send(sink)

    def _send(self, sink: _Sink) -> None:
        while (
            sink.ready
            and sink.link.is_ready
            and not sink.throttled
            and len(sink.requests) < self._settings.in_flight_max
        ):
            batches = self._gather(sink)
            if not batches:
                return
            self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
            transaction = self._transaction
            version = (
                sink.version if transaction is None else min(sink.version, transaction.produce_version_max)
            )
            request = _Request(self._correlation_id, version, self._loop.time())
            request.queues = {partition: self._queues[partition] for partition in batches}
            topic_ids = {partition: queue.topic_id for partition, queue in request.queues.items()}
            request.topics = {topic_id: partition.topic for partition, topic_id in topic_ids.items()}
            sink.requests.append(request)
            sink.link.send(
                encode_produce_request(
                    batches,
                    sink.settings,
                    version,
                    request.correlation_id,
                    transactional_id=None if transaction is None else transaction.transactional_id,
                    topic_ids=topic_ids,
                )
            )

    def _gather(self, sink: _Sink) -> dict[TopicPartition, memoryview]:
        """One batch per partition, in turn, as many as fit into a request; a large one travels alone."""
        batches: dict[TopicPartition, memoryview] = {}
        room = self._settings.request_bytes_max
        served: list[PartitionQueue] = []
        transactional = self._transaction is not None
        while sink.ready:
            queue = next(iter(sink.ready))
            if queue.can_send and (not transactional or self._may_send(queue)):
                size = len(queue.ready[0].batch.data)
                if batches and size > room:
                    break
                room -= size
                pending = queue.take()
                assert queue.producer is not None
                batches[queue.partition] = pending.stamped_by(queue.producer, transactional=transactional)
                served.append(queue)
            del sink.ready[queue]
        sink.ready.update(dict.fromkeys(queue for queue in served if queue.can_send))
        return batches

    def _may_send(self, queue: PartitionQueue) -> bool:
        """Whether the transaction takes its batch now; it's offered again when that changes."""
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
        if all_are_written or (code in error_codes.WORTH_HALVING and queue.split_first()):
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
            self._send(self._sinks[queue.route])

    def _housekeep(self) -> None:
        """Drop the connection to a broker that accepts a request and never responds."""
        self._housekeeping = self._loop.call_later(_HOUSEKEEPING_S, self._housekeep)
        timeout_s = self._settings.connection.request_timeout_s
        for sink in self._sinks.values():
            if sink.requests and self._loop.time() - sink.requests[0].sent_at > timeout_s:
                address = f"{sink.link.broker.host}:{sink.link.broker.port}"
                sink.link.drop(DisconnectedError(f"{address} left a Produce unanswered for {timeout_s:g} s"))
