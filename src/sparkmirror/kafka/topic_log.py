"""Small topics as logs: write records and wait for them, read a topic to its end, follow its tail.

For state (positions, syncs, heartbeats, progress), a few records a second; not for mirrored data.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from kafka import TopicPartition as LibraryPartition
from kafka.errors import KafkaError as LibraryError

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError, RetriableError
from sparkmirror.kafka.clients import open_consumer, open_producer
from sparkmirror.kafka.error_codes import translate

_POLL_MS = 500


class LogRecord(NamedTuple):
    """`partition` None lets the key choose (murmur2, as Java); `timestamp_ms` None means now."""

    key: bytes | None
    value: bytes | None
    partition: int | None = 0
    timestamp_ms: int | None = None
    offset: int = -1


class TopicWriter:
    """Not thread-safe: one owner. The connection is made at the first write."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._producer: Any = None

    def write(
        self, topic: str, records: Iterable[LogRecord], *, timeout_s: float | None = None
    ) -> Sequence[int]:
        """The records' offsets, when every one is acknowledged by all replicas.

        `timeout_s` is the request's time-out unless given. Raises KafkaError, naming the topic.
        """
        timeout_s = self._settings.request_timeout_s if timeout_s is None else timeout_s
        try:
            if self._producer is None:
                self._producer = open_producer(self._settings)
            futures = [
                self._producer.send(
                    topic,
                    key=record.key,
                    value=record.value,
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            self._producer.flush(timeout=timeout_s)
            return [future.get(timeout=timeout_s).offset for future in futures]
        except LibraryError as error:
            raise translate(error, f"write to {topic}") from error

    def close(self) -> None:
        """Give up what `write` could not get acknowledged."""
        if self._producer is None:
            return
        try:
            self._producer.close(timeout=1)
        except LibraryError:
            # Then its close ends before it has ended the thread that goes on trying (kafka-python 3.0.12).
            self._producer._sender.force_close()  # noqa: SLF001
        self._producer = None


def read_topic(
    settings: ConnectionSettings, topic: str, *, deadline_s: float = 60.0, read_committed: bool = False
) -> Iterator[LogRecord]:
    """Everything in a topic up to the end it has now, partition by partition interleaved.

    Yields nothing for a topic that doesn't exist. Raises RetriableError when the end isn't reached in time.
    """
    consumer = open_consumer(settings, read_committed=read_committed)
    try:
        yield from _read_to_end(consumer, topic, time.monotonic() + deadline_s)
    except LibraryError as error:
        raise translate(error, f"read {topic}") from error
    finally:
        consumer.close()


def _read_to_end(consumer: Any, topic: str, deadline: float) -> Iterator[LogRecord]:
    partitions = [LibraryPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
    if not partitions:
        return
    consumer.assign(partitions)
    ends = consumer.end_offsets(partitions)
    while any(consumer.position(partition) < ends[partition] for partition in partitions):
        if time.monotonic() > deadline:
            raise RetriableError(f"read {topic}: its end was not reached in time")
        for records in consumer.poll(timeout_ms=_POLL_MS).values():
            yield from map(_log_record, records)


def _log_record(record: Any) -> LogRecord:
    return LogRecord(record.key, record.value, record.partition, record.timestamp, record.offset)


class TopicTail:
    """Follows partition 0 of a topic. Not thread-safe: one owner."""

    def __init__(self, settings: ConnectionSettings, topic: str, from_offset: int = 0) -> None:
        self._partition = LibraryPartition(topic, 0)
        self._consumer = open_consumer(settings)
        self._consumer.assign([self._partition])
        # Below the log's start, auto.offset.reset=earliest finds the beginning.
        self._consumer.seek(self._partition, from_offset)

    def poll(self, timeout_s: float) -> list[LogRecord]:
        """What arrived, at once if there is something. Raises KafkaError."""
        try:
            batches = self._consumer.poll(timeout_ms=int(timeout_s * 1000))
        except LibraryError as error:
            raise translate(error, f"read {self._partition.topic}") from error
        return [_log_record(record) for records in batches.values() for record in records]

    def read_to_end(self, deadline_s: float) -> Iterator[LogRecord]:
        """Everything up to the end it has now. Raises KafkaError; RetriableError if it takes too long."""
        end = self.end_offset()
        deadline = time.monotonic() + deadline_s
        while self._consumer.position(self._partition) < end:
            if time.monotonic() > deadline:
                raise RetriableError(f"read {self._partition.topic}: its end was not reached in time")
            yield from self.poll(_POLL_MS / 1000)

    def end_offset(self) -> int:
        """Where the log ends now; raises DisconnectedError when nobody says."""
        try:
            return int(self._consumer.end_offsets([self._partition])[self._partition])
        except LibraryError as error:
            raise DisconnectedError(f"read the end of {self._partition.topic}: {error}") from error

    def close(self) -> None:
        self._consumer.close()
