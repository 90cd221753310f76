"""Frames Produce requests on one connection to a broker, and matches its responses to them."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace

from sparkmirror.domain.client_settings import ProducerSettings
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_queue import PartitionQueue
from sparkmirror.kafka.data.transaction_scope import TransactionScope
from sparkmirror.kafka.net.broker_link import BrokerLink
from sparkmirror.kafka.wire import produce
from sparkmirror.kafka.wire.produce import ProduceResponse, decode_produce_response, encode_produce_request

_FOLLOWERS_WAIT_MAX_S = 1.0
"""The time that a broker may wait for followers before the partition moves to another connection."""


class ProduceRequest:
    """A Produce request under way."""

    def __init__(self, correlation_id: int, version: int, sent_at: float) -> None:
        self.correlation_id = correlation_id
        self.version = version
        self.sent_at = sent_at
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        self.topics: dict[bytes, str] = {}


class ProduceConnection:
    """A connection: its link, its requests under way, and the queues that may have something to send.

    A broker handles the requests of a connection one after the other, and delays one whose partition waits
    for its followers. So on the connection for most partitions it may wait a short time only. Partitions for
    which that was too short have a second connection, where it may wait as long as a request may take.
    """

    def __init__(self, link: BrokerLink, settings: ProducerSettings, *, waits_for_followers: bool) -> None:
        self.link = link
        self.requests: deque[ProduceRequest] = deque()
        self.ready: dict[PartitionQueue, None] = {}
        self._was_throttled = False
        """Whether the last response had a throttle time: then one request at a time is enough."""
        wait_max_s = None if waits_for_followers else _FOLLOWERS_WAIT_MAX_S
        self._settings = replace(settings, followers_wait_max_s=wait_max_s)
        self._version = 0

    @property
    def can_send(self) -> bool:
        in_flight_max = 1 if self._was_throttled else self._settings.in_flight_max
        return bool(self.ready) and self.link.can_send and len(self.requests) < in_flight_max

    def negotiate(self, *, by_id: bool, transactional: bool) -> None:
        """Choose the version of Produce, `by_id` if topics have ids. Raises UnsupportedVersionError."""
        by_name = produce.VERSION_ADDING_PARTITIONS if transactional else produce.VERSION_HIGH
        high = produce.VERSION_BY_ID if by_id else by_name
        self._version = self.link.version_of(produce.API_KEY, "Produce", produce.VERSION_LOW, high)

    def gather(self, may_send: Callable[[PartitionQueue], bool] | None) -> dict[PartitionQueue, memoryview]:
        """Take one batch per partition, in turn, as many as fit into a request; a large one travels alone.

        `may_send` is asked about batches in transactions, None outside of them.
        """
        batches: dict[PartitionQueue, memoryview] = {}
        room = self._settings.request_bytes_max
        transactional = may_send is not None
        while self.ready:
            queue = next(iter(self.ready))
            if queue.can_send and (may_send is None or may_send(queue)):
                size = len(queue.ready[0].batch.data)
                if batches and size > room:
                    break
                room -= size
                pending = queue.take()
                assert queue.producer is not None
                batches[queue] = pending.stamped_by(queue.producer, transactional=transactional)
            del self.ready[queue]
        self.ready.update(dict.fromkeys(queue for queue in batches if queue.can_send))
        return batches

    def send(
        self,
        batches: Mapping[PartitionQueue, memoryview],
        correlation_id: int,
        now: float,
        transaction: TransactionScope | None,
    ) -> None:
        version = self._version
        if transaction is not None:
            version = min(version, transaction.produce_version_max)
        request = ProduceRequest(correlation_id, version, now)
        request.queues = {queue.partition: queue for queue in batches}
        topic_ids = {queue.partition: queue.topic_id for queue in batches}
        request.topics = {topic_id: partition.topic for partition, topic_id in topic_ids.items()}
        self.requests.append(request)
        self.link.send(
            encode_produce_request(
                {queue.partition: data for queue, data in batches.items()},
                self._settings,
                version,
                correlation_id,
                transactional_id=None if transaction is None else transaction.transactional_id,
                topic_ids=topic_ids,
            )
        )

    def received(self, frame: memoryview) -> tuple[ProduceRequest, ProduceResponse]:
        """The oldest request and its response. Raises DisconnectedError, and keeps the request."""
        if not self.requests:
            raise DisconnectedError(f"{self._address} sent a response to no request")
        # Only a response that can be decoded ends its request: else the connection fails, and all that wait.
        oldest = self.requests[0]
        response = decode_produce_response(frame, oldest.version, oldest.correlation_id, oldest.topics)
        self.link.throttle(response.throttle_s)
        self._was_throttled = response.throttle_s > 0
        return self.requests.popleft(), response

    def take_requests(self) -> deque[ProduceRequest]:
        """Forget the requests under way, whose responses will never come."""
        requests, self.requests = self.requests, deque()
        return requests

    def check_response(self, now: float) -> None:
        """Drop the connection to a broker that accepts a request and never responds."""
        timeout_s = self._settings.connection.request_timeout_s
        if self.requests and now - self.link.waiting_since(self.requests[0].sent_at) > timeout_s:
            self.link.drop(
                DisconnectedError(f"{self._address} left a Produce unanswered for {timeout_s:g} s")
            )

    @property
    def _address(self) -> str:
        return f"{self.link.broker.host}:{self.link.broker.port}"
