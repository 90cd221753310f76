"""Reads whole batches of partitions, for a caller that may block. Every wait is bounded.

For state topics and for looking back at a log's end; the copy loop reads through `BatchReader`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import RetriableError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka import fetch
from sparkmirror.kafka.connection import Connection
from sparkmirror.kafka.error_codes import OFFSET_OUT_OF_RANGE, Needed, error_for
from sparkmirror.kafka.fetch import (
    FetchedPartition,
    FetchPosition,
    decode_fetch_response,
    encode_fetch_request,
)
from sparkmirror.kafka.leaders import Leaders
from sparkmirror.kafka.metadata import NO_EPOCH
from sparkmirror.kafka.retries import Retries
from sparkmirror.kafka.transport import network_of

_FETCH_BYTES_MAX = 8 << 20


class PartitionReader:
    """Not thread-safe: one owner."""

    def __init__(self, settings: ConsumerSettings, fetch_bytes_max: int = _FETCH_BYTES_MAX) -> None:
        """An answer has so many bytes at most, or one batch."""
        connection = settings.connection
        self._settings = replace(settings, partition_fetch_bytes_max=fetch_bytes_max, fetch_bytes_min=1)
        self._bytes_max = fetch_bytes_max
        self._timeout_s = connection.request_timeout_s
        self._network = network_of(connection)
        self._leaders = Leaders(connection)

    def partitions(self, topic: str) -> Sequence[TopicPartition]:
        """None for a topic that doesn't exist. Raises KafkaError."""
        return self._leaders.partitions(topic, self._timeout_s)

    def fetch(self, offsets: Mapping[TopicPartition, int], wait_s: float) -> list[FetchedPartition]:
        """What there is from these offsets on, at once if there is something, else what comes in `wait_s`.

        An answer's error is 0 or OFFSET_OUT_OF_RANGE. What fails for a moment is asked again until the
        request's time-out has passed; when nobody answers at all, that is said at once. Raises KafkaError.
        """
        retries = Retries(self._settings.connection, self._network.time() + wait_s + self._timeout_s)
        topics = {partition.topic for partition in offsets}
        while True:
            self._leaders.learn(topics, self._timeout_s)
            try:
                return self._fetch(offsets, wait_s)
            except RetriableError as error:
                self._leaders.forget()
                retries.wait(error)

    def forget_leaders(self) -> None:
        self._leaders.forget()

    def close(self) -> None:
        self._leaders.close()

    def _fetch(self, offsets: Mapping[TopicPartition, int], wait_s: float) -> list[FetchedPartition]:
        led = self._leaders.connections(offsets, self._timeout_s)
        answers = [
            answer
            for connection, partitions in led.items()
            for answer in self._ask(
                connection, {partition: offsets[partition] for partition in partitions}, wait_s
            )
        ]
        for answer in answers:
            if answer.error not in (0, OFFSET_OUT_OF_RANGE):
                needed = Needed(self._settings.connection, (Need.READ_TOPIC.of(answer.partition.topic),))
                raise error_for(answer.error, str(answer.partition), needed=needed)
        return answers

    def _ask(
        self, connection: Connection, offsets: Mapping[TopicPartition, int], wait_s: float
    ) -> Iterable[FetchedPartition]:
        version = connection.version_of(fetch.API_KEY, "Fetch", fetch.VERSION_LOW, fetch.VERSION_HIGH_BY_NAME)
        correlation_id = connection.next_correlation_id()
        settings = replace(self._settings, fetch_wait_max_s=wait_s)
        wanted = {
            partition: FetchPosition(offset, NO_EPOCH, self._bytes_max)
            for partition, offset in offsets.items()
        }
        request = encode_fetch_request(wanted, settings, version, correlation_id, self._bytes_max)
        frame = connection.ask(request, "Fetch", wait_s + self._timeout_s)
        response = decode_fetch_response(frame, version, correlation_id)
        if response.error:
            raise error_for(response.error, f"Fetch from {connection.address}")
        return response.partitions
