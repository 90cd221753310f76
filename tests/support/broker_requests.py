"""Sends single requests with the frames of the hot path on a blocking connection."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from sparkmirror.batches.record_batch import FetchedBatch, iterate_batches
from sparkmirror.domain.client_settings import ConsumerSettings, ProducerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.net.metadata import request_metadata
from sparkmirror.kafka.wire import fetch, produce
from sparkmirror.kafka.wire.fetch import FetchedPartition, FetchPosition, FetchResponse, FetchSession
from sparkmirror.kafka.wire.produce import ProducedPartition, ProduceResponse
from tests.support.any_cluster import AnyCluster
from tests.support.connections import connection
from tests.support.waiting import await_value

BYTES_MAX: Final = 1 << 20
NO_EPOCH: Final = -1
_ANSWER_S: Final = 30.0


class Asker:
    """A connection to one broker of a cluster, by default the first."""

    def __init__(self, cluster: AnyCluster, broker: int = 0) -> None:
        self.settings = connection(cluster)
        host, port = self.settings.bootstrap_servers[broker]
        self.connection = Connection.open(host, port, self.settings)
        self._correlation_ids = itertools.count(1000)

    def ask(self, request: Any, response_class: Any, version_max: int = 99) -> Any:
        """Send a request of kafka-python."""
        return self.connection.request(request, response_class, timeout_s=10, version_max=version_max)

    def produce(
        self, batches: Mapping[TopicPartition, bytearray | memoryview], version: int = produce.VERSION_HIGH
    ) -> ProduceResponse:
        number = next(self._correlation_ids)
        views = {partition: memoryview(data) for partition, data in batches.items()}
        frame = produce.encode_produce_request(views, ProducerSettings(self.settings), version, number)
        return produce.decode_produce_response(self._exchange(frame), version, number)

    def produce_by_id(
        self, partition: TopicPartition, topic_id: bytes, batch: bytearray | memoryview
    ) -> ProducedPartition:
        number, version = next(self._correlation_ids), produce.VERSION_BY_ID
        frame = produce.encode_produce_request(
            {partition: memoryview(batch)},
            ProducerSettings(self.settings),
            version,
            number,
            topic_ids={partition: topic_id},
        )
        topics = {topic_id: partition.topic}
        (produced,) = produce.decode_produce_response(
            self._exchange(frame), version, number, topics
        ).partitions
        return produced

    def topic_id(self, topic: str) -> bytes:
        return request_metadata(self.connection, [topic], 10).topic_ids[topic]

    def begin_produce(
        self, partition: TopicPartition, batch: bytearray | memoryview, timeout_s: float
    ) -> Callable[[], ProducedPartition]:
        """Send a request with this timeout at the broker; the returned function waits for the response.

        The connection can't be used for anything else afterwards.
        """
        number, version = next(self._correlation_ids), produce.VERSION_HIGH
        settings = ProducerSettings(replace(self.settings, request_timeout_s=timeout_s))
        frame = produce.encode_produce_request({partition: memoryview(batch)}, settings, version, number)
        channel = self.connection.into_channel()
        channel.send(frame)

        def answer() -> ProducedPartition:
            received = await_value(
                lambda: next(channel.receive(), None), timeout_s + _ANSWER_S, lambda: "no response to Produce"
            )
            (produced,) = produce.decode_produce_response(received, version, number).partitions
            return produced

        return answer

    def produce_one(self, partition: TopicPartition, batch: bytearray | memoryview) -> ProducedPartition:
        (produced,) = self.produce({partition: batch}).partitions
        return produced

    def fetch(
        self,
        session: FetchSession,
        *,
        version: int = fetch.VERSION_HIGH_BY_NAME,
        bytes_max: int = BYTES_MAX,
        read_committed: bool = False,
    ) -> FetchResponse:
        number = next(self._correlation_ids)
        settings = ConsumerSettings(self.settings, fetch_wait_max_s=0.0, read_committed=read_committed)
        frame = session.request(settings, version, number, bytes_max)
        return fetch.decode_fetch_response(self._exchange(frame), version, number, session.topics)

    def fetch_one(
        self,
        partition: TopicPartition,
        offset: int,
        bytes_max: int = BYTES_MAX,
        read_epoch: int = NO_EPOCH,
        **options: Any,
    ) -> FetchedPartition:
        """Fetch one partition in a session of one request."""
        session = FetchSession()
        session.want(partition, FetchPosition(offset, NO_EPOCH, bytes_max, read_epoch))
        (fetched,) = self.fetch(session, **options).partitions
        return fetched

    def _exchange(self, frame: list[Any]) -> memoryview:
        return self.connection.ask(frame, "a request", _ANSWER_S)


@contextmanager
def asking(cluster: AnyCluster, broker: int = 0) -> Iterator[Asker]:
    asker = Asker(cluster, broker)
    try:
        yield asker
    finally:
        asker.connection.close()


def stored_batches(cluster: AnyCluster, topic: str, partition: int = 0) -> list[FetchedBatch]:
    """Read the batches as stored by the first broker, up to the high watermark."""
    found: list[FetchedBatch] = []
    offset = 0
    with asking(cluster) as asker:
        while data := asker.fetch_one(TopicPartition(topic, partition), offset).records:
            found += iterate_batches(data)
            offset = found[-1].header.last_offset + 1
    return found
