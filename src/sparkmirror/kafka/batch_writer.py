"""Produces whole record batches to many partitions on one loop, idempotently, in order, several in flight.

Owns connections, sequence numbers, resending, leader changes and back-off. A batch is kept until it is
acknowledged or refused. A partition's sequence counts the records written to it under its producer id, which
whoever begins the partition knows: the count goes on from task to task.

In transactions all partitions are written under the producer id and epoch of the transactional id. Who ends
one holds the writer, waits until it is settled, and releases it under what the next one has.
"""

import asyncio
import random
from collections import deque
from collections.abc import Collection
from dataclasses import replace
from typing import Protocol

from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerState
from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ProducerSettings
from sparkmirror.domain.errors import DisconnectedError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka import error_codes, produce
from sparkmirror.kafka.broker_link import BrokerLink
from sparkmirror.kafka.cluster_view import ClusterView
from sparkmirror.kafka.look_back import Written
from sparkmirror.kafka.looking_back import LookingBack
from sparkmirror.kafka.partition_queue import PartitionQueue, PendingBatch, Route
from sparkmirror.kafka.produce import ProducedPartition, decode_produce_response, encode_produce_request
from sparkmirror.kafka.transaction_scope import TransactionScope
from sparkmirror.kafka.wire import NO_TOPIC_ID

_HOUSEKEEPING_S = 1.0
_PATIENCE_S = 1.0
"""How long a broker may wait for a partition's followers before the partition moves to another connection."""

_WELL_AFTER = 3
"""So many quick answers in a row, and a slow partition is with the others again."""

_COMPLETING_S = 0.01
"""How long to wait before a batch is sent again that met the end of the transaction before its own."""


class WriterListener(Protocol):
    """What the writer tells. All calls come on the loop's thread."""

    def acknowledged(
        self, partition: TopicPartition, batch: OutgoingBatch, base_offset: int, *, completes: bool
    ) -> None:
        """In order per partition. A split batch is acknowledged in parts; the last one completes it."""

    def write_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        """The partition is tried again with back-off; an acknowledgement says that it is well."""

    def write_possible(self, partition: TopicPartition) -> None:
        """Leader and producer id are known and nothing waits: without data no acknowledgement would tell."""

    def write_refused(self, partition: TopicPartition, error: SparkmirrorError, batch: OutgoingBatch) -> None:
        """The target will never take this batch as it is. It and all after it were discarded."""

    def sequence_lost(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        """The broker knows of another sequence. What was not acknowledged is discarded: `begin` anew.

        In transactions: nothing more can be written in this one, nor can it be committed.
        """

    def target_recreated(self, partition: TopicPartition) -> None:
        """The topic has another id than the one begun with. What was not acknowledged is discarded."""


class _Request:
    """One Produce request under way."""

    def __init__(self, correlation_id: int, version: int, sent_at: float) -> None:
        self.correlation_id = correlation_id
        self.version = version
        self.sent_at = sent_at
        self.lanes: dict[TopicPartition, PartitionQueue] = {}
        self.topics: dict[bytes, str] = {}


class _Sink:
    """One connection: its link, its requests under way, and the lanes that may have something to send.

    A broker answers one request of a connection after the other, and one about a partition that waits for its
    followers as late as that has them. So it's told to say soon for which partitions that is the case, and
    those have a second connection, where it may wait as long as a request may take.
    """

    def __init__(self, link: BrokerLink, settings: ProducerSettings) -> None:
        self.link = link
        self.settings = settings
        self.version = 0
        self.requests: deque[_Request] = deque()
        self.ready: dict[PartitionQueue, None] = {}
        self.throttled = False


class BatchWriter:
    """`append` then `flush`; see `WriterListener` for what comes back."""

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
        self._lanes: dict[TopicPartition, PartitionQueue] = {}
        self._sinks: dict[Route, _Sink] = {}
        self._sink_of: dict[BrokerLink, _Sink] = {}
        self._looking_back = LookingBack(connection, loop, self)
        self._doubtful: set[PartitionQueue] = set()
        """In transactions: those with something that may be in the log and is not acknowledged."""
        self._exempt: Collection[TopicPartition] | None = None
        """What a held writer sends all the same; None while it is not held."""
        self._correlation_id = 0
        self._housekeeping: asyncio.TimerHandle | None = None
        self._stopped = False

    def start(self, partitions: Collection[TopicPartition]) -> None:
        """Find the partitions' leaders; each waits for its `begin`."""
        self._lanes = {partition: PartitionQueue(partition) for partition in partitions}
        self._view.start(sorted({partition.topic for partition in partitions}))
        self._housekeep()

    def begin(self, partition: TopicPartition, state: ProducerState, topic_id: bytes = NO_TOPIC_ID) -> None:
        """Write the partition from now on, as long as its topic keeps the id.

        Before that, and after `sequence_lost` or `target_recreated`, what comes must wait. In transactions
        id and epoch are theirs, and numbers go on as long as those do; only the state's offset counts.
        """
        lane = self._lanes[partition]
        if self._transaction is not None:
            producer = self._transaction.producer
            sequence = lane.next_sequence if lane.producer == producer else 0
            state = ProducerState(producer, sequence, state.next_offset)
        lane.begin(state, topic_id, self._loop.time())
        self._route(lane)

    def stop(self) -> None:
        """For good: the listener is told nothing any more."""
        self._stopped = True
        self._view.stop()
        if self._housekeeping is not None:
            self._housekeeping.cancel()
        self._looking_back.stop()
        for sink in self._sinks.values():
            sink.link.close()
        self._sinks.clear()
        self._lanes = {}

    def append(self, partition: TopicPartition, batch: OutgoingBatch) -> None:
        """Take a batch over; nothing is sent before `flush`."""
        lane = self._lanes[partition]
        lane.append(batch)
        self._offer(lane)

    def flush(self) -> None:
        for sink in self._sinks.values():
            if sink.ready:
                self._send(sink)

    def discard_unsent(self) -> None:
        """Keep only what is in flight: an orderly stop waits for nothing else."""
        for lane in self._lanes.values():
            lane.discard()

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
        for lane in self._lanes.values():
            if lane.producer is not None and lane.producer != producer:
                lane.renumber(producer)
            self._offer(lane)
        self.flush()

    def admit(self, partitions: Collection[TopicPartition]) -> None:
        """They belong to the transaction now."""
        for partition in partitions:
            self._offer(self._lanes[partition])
        self.flush()

    def refuse(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        """It can't be made part of the transaction: nothing of it was sent."""
        lane = self._lanes[partition]
        if lane.ready and not lane.resting:
            self._recover(lane, error)

    # routing: which broker leads which partition

    def _route(self, lane: PartitionQueue) -> None:
        if self._stopped or lane.in_flight or lane.unsettled or not self._view.is_known:
            return
        leader = self._view.leader(lane.partition)
        if leader is None:
            lane.route = None
            code = self._view.topic_error(lane.partition.topic) or error_codes.LEADER_NOT_AVAILABLE
            needed = self._needed(Need.DESCRIBE_TOPIC, lane.partition)
            error = error_codes.error_for(code, f"{lane.partition} on the target", needed=needed)
            self._listener.write_failed(lane.partition, error)
            self._view.refresh()
            return
        topic = lane.partition.topic
        if lane.producer is not None:
            replaced = self._view.has_replaced(topic, lane.topic_id, lane.begun_at)
            if replaced:
                self._give_up(lane)
                self._listener.target_recreated(lane.partition)
            if replaced is not False:
                return
        lane.topic_id = self._view.topic_id(topic) or lane.topic_id
        route = Route(leader.node_id, lane.is_slow)
        if lane.route is not None and lane.route != route:
            self._sinks[lane.route].ready.pop(lane, None)
        lane.route = route
        self._connect(route)
        if lane.producer is not None and not lane.ready:
            self._listener.write_possible(lane.partition)
        self._offer(lane)

    def _offer(self, lane: PartitionQueue) -> None:
        if lane.ready and lane.route is not None:
            self._sinks[lane.route].ready[lane] = None

    def _connect(self, route: Route) -> None:
        if route not in self._sinks:
            broker = self._view.broker(route.node_id)
            assert broker is not None, "a leader is always among the brokers of the same answer"
            link = BrokerLink(broker, self._settings.connection, self._loop, self)
            wait_max_s = None if route.is_slow else _PATIENCE_S
            sink = _Sink(link, replace(self._settings, followers_wait_max_s=wait_max_s))
            self._sinks[route] = self._sink_of[link] = sink
            link.start()

    def _leaders_changed(self) -> None:
        for route, sink in self._sinks.items():
            sink.link.broker = self._view.broker(route.node_id) or sink.link.broker
        for lane in self._lanes.values():
            self._route(lane)
        self.flush()

    def _cluster_failed(self, error: SparkmirrorError) -> None:
        for lane in self._lanes.values():
            if lane.route is None:
                self._listener.write_failed(lane.partition, error)

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
            for lane in request.lanes.values():
                self._unsettle(lane, error)
        for lane in self._lanes.values():
            if lane.ready and lane.route is not None and self._sinks.get(lane.route) is sink:
                self._listener.write_failed(lane.partition, error)
        self._view.refresh()

    def link_received(self, link: BrokerLink, frame: memoryview) -> None:
        sink = self._sink_of[link]
        if not sink.requests:
            raise DisconnectedError(f"{link.broker.host}:{link.broker.port} answered what nobody asked")
        # Only an answer that can be read ends its request: what goes wrong here is told to all that wait.
        oldest = sink.requests[0]
        response = decode_produce_response(frame, oldest.version, oldest.correlation_id, oldest.topics)
        request = sink.requests.popleft()
        for produced in response.partitions:
            lane = request.lanes.pop(produced.partition, None)
            if lane is not None:
                self._settle(lane, produced, self._loop.time() - request.sent_at)
        for lane in request.lanes.values():
            self._unsettle(lane, DisconnectedError(f"the broker did not answer for {lane.partition}"))
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
            request.lanes = {partition: self._lanes[partition] for partition in batches}
            topic_ids = {partition: lane.topic_id for partition, lane in request.lanes.items()}
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
            lane = next(iter(sink.ready))
            if lane.can_send and (not transactional or self._may_send(lane)):
                size = len(lane.ready[0].batch.data)
                if batches and size > room:
                    break
                room -= size
                pending = lane.ready.popleft()
                lane.in_flight.append(pending)
                assert lane.producer is not None
                batches[lane.partition] = pending.stamped_by(lane.producer, transactional=transactional)
                served.append(lane)
            del sink.ready[lane]
        sink.ready.update(dict.fromkeys(lane for lane in served if lane.can_send))
        return batches

    def _may_send(self, lane: PartitionQueue) -> bool:
        """Whether the transaction takes its batch now; it's offered again when that changes."""
        assert self._transaction is not None
        if self._exempt is not None and lane.partition not in self._exempt:
            return False
        return self._transaction.admits(lane.partition)

    # outcomes

    def _settle(self, lane: PartitionQueue, produced: ProducedPartition, took_s: float) -> None:
        if produced.error == error_codes.REQUEST_TIMED_OUT:
            lane.is_slow, lane.quick_answers = True, 0
        if lane.failure is not None or produced.error:
            context, needed = f"produce to {lane.partition}", self._needed(Need.WRITE_TOPIC, lane.partition)
            self._unsettle(lane, error_codes.error_for(produced.error, context, produced.message, needed))
            return
        lane.proven = True
        lane.failures = 0
        self._acknowledge(lane, lane.in_flight.popleft(), produced.base_offset)
        if lane.is_slow:
            lane.quick_answers = lane.quick_answers + 1 if took_s < _PATIENCE_S else 0
            if lane.quick_answers >= _WELL_AFTER and not lane.in_flight:
                lane.is_slow = False
                self._resume(lane)  # elsewhere, where nobody else may have something to send
        self._offer(lane)

    def _acknowledge(self, lane: PartitionQueue, pending: PendingBatch, base_offset: int) -> None:
        if lane in self._doubtful and not lane.is_doubtful:
            self._doubtful.discard(lane)
        lane.next_offset = base_offset + len(pending.batch.offsets)
        self._listener.acknowledged(lane.partition, pending.batch, base_offset, completes=pending.completes)

    def _needed(self, need: Need, partition: TopicPartition) -> error_codes.Needed:
        # Brokers before 2.8 want the second for batches that are numbered.
        rights = need.of(partition.topic), Need.NUMBER_RECORDS.of()
        return error_codes.Needed(self._settings.connection, rights)

    def _unsettle(self, lane: PartitionQueue, error: SparkmirrorError) -> None:
        """Drain first: what follows a failed batch is sent again in order, whatever became of it."""
        pending = lane.in_flight.popleft()
        lane.unsettled.append(pending)
        lane.failure = lane.failure or error
        if error.code in error_codes.UNCLEAR:
            lane.is_unclear = True
            if self._transaction is not None:
                pending.is_doubtful = True
                self._doubtful.add(lane)
        if not lane.in_flight:
            lane.ready.extendleft(reversed(lane.unsettled))
            lane.unsettled.clear()
            failure, lane.failure = lane.failure, None
            if lane.is_unclear and lane.producer != NOT_IDEMPOTENT:
                lane.resting = True  # before anything is sent again, the log says what of it is there
                self._listener.write_failed(lane.partition, failure)
                self._looking_back.begin(lane, failure)
            else:
                self._recover(lane, failure)

    # looking back

    def look_back_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        self._listener.write_failed(partition, error)

    def looked_back(self, lane: PartitionQueue, written: list[Written], error: SparkmirrorError) -> None:
        arrived = {batch.sequence: batch for batch in written}
        while lane.ready and (batch := arrived.get(lane.ready[0].sequence)):
            if batch.record_count != len(lane.ready[0].batch.offsets):
                break
            self._acknowledge(lane, lane.ready.popleft(), batch.base_offset)
        lane.is_unclear = lane.resting = False
        self._recover(lane, error)

    def _recover(self, lane: PartitionQueue, error: SparkmirrorError) -> None:
        code = error.code
        looking_back_found_all = not lane.ready
        if looking_back_found_all or (code in error_codes.WORTH_HALVING and lane.split_first()):
            self._resume(lane)
        elif code == error_codes.CONCURRENT_TRANSACTIONS and self._transaction is not None:
            lane.resting = True
            self._loop.call_later(_COMPLETING_S, self._resume, lane)
        elif code in error_codes.SEQUENCE_UNKNOWN or self._is_lost(lane, error):
            self._give_up(lane)
            self._listener.sequence_lost(lane.partition, error)
        elif error.retriable:
            self._rest(lane, error)
        else:
            refused = lane.ready[0].batch
            lane.discard()
            self._listener.write_refused(lane.partition, error, refused)

    def _is_lost(self, lane: PartitionQueue, error: SparkmirrorError) -> bool:
        """Whether the transaction can't be committed any more: it's over, or it's in doubt what it holds."""
        if self._transaction is None:
            return False
        return error.code in error_codes.TRANSACTION_LOST or (not error.retriable and lane in self._doubtful)

    def _give_up(self, lane: PartitionQueue) -> None:
        """Nothing more is sent until the lane begins anew."""
        lane.discard()
        lane.producer = None

    def _rest(self, lane: PartitionQueue, error: SparkmirrorError) -> None:
        lane.failures += 1
        lane.resting = True
        self._listener.write_failed(lane.partition, error)
        if error.code in error_codes.LEADER_CHANGED:
            self._view.refresh()
        self._loop.call_later(self._backoff.delay_s(lane.failures, random.random()), self._resume, lane)

    def _resume(self, lane: PartitionQueue) -> None:
        if self._stopped:
            return
        lane.resting = False
        self._route(lane)
        if lane.route is not None:
            self._send(self._sinks[lane.route])

    def _housekeep(self) -> None:
        """A broker that accepts a request and never answers must not hold its partitions for ever."""
        self._housekeeping = self._loop.call_later(_HOUSEKEEPING_S, self._housekeep)
        patience = self._settings.connection.request_timeout_s
        for sink in self._sinks.values():
            if sink.requests and self._loop.time() - sink.requests[0].sent_at > patience:
                address = f"{sink.link.broker.host}:{sink.link.broker.port}"
                sink.link.drop(DisconnectedError(f"{address} left a Produce unanswered for {patience:g} s"))
