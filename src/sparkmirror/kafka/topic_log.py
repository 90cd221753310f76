"""Small topics as logs: write records and wait for them, read a topic to its end, follow its tail.

For state (positions, syncs, heartbeats, progress), a few records a second; not for mirrored data. Everything
blocks, and every wait is bounded.
"""

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from kafka.partitioner.default import murmur2

from sparkmirror.domain.aborted_transactions import AbortedTransactions
from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings, ProducerSettings
from sparkmirror.domain.errors import CorruptBatchError, DisconnectedError, KafkaError, RetriableError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.log_records import LogRecord, decode_log_batch, encode_log_batch
from sparkmirror.domain.record_batch import iterate_batches
from sparkmirror.kafka import produce
from sparkmirror.kafka.connection import Connection
from sparkmirror.kafka.error_codes import UNKNOWN_TOPIC_OR_PARTITION, error_for
from sparkmirror.kafka.fetch import FetchedPartition
from sparkmirror.kafka.leaders import Leaders
from sparkmirror.kafka.offsets import EARLIEST, list_offsets
from sparkmirror.kafka.partition_reader import PartitionReader
from sparkmirror.kafka.produce import ProducedPartition, decode_produce_response, encode_produce_request

_BATCH_BYTES_MAX = 512 * 1024
"""Well below every default limit of a batch's size."""

_TAIL_ANSWER_TIMEOUT_S = 5.0
"""Whoever follows a tail wants to know soon when it's cut off."""


class TopicWriter:
    """Not thread-safe: one owner. The connection is made at the first write."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._producer = ProducerSettings(settings)
        self._leaders = Leaders(settings)
        self._backoff = Backoff(settings.retry_backoff_s, settings.retry_backoff_max_s)

    def write(
        self, topic: str, records: Iterable[LogRecord], *, timeout_s: float | None = None
    ) -> Sequence[int]:
        """The records' offsets, when every one is acknowledged by all replicas.

        What fails for a moment is sent again until `timeout_s` (the request's time-out unless given) has
        passed; when nobody answers at all, that is said at once. Raises KafkaError, naming the topic; some
        records may be written all the same, even twice.
        """
        timeout_s = self._settings.request_timeout_s if timeout_s is None else timeout_s
        deadline = time.monotonic() + timeout_s
        kept = list(records)
        try:
            batches = self._batches(topic, kept, deadline)
        except KafkaError as error:
            raise _about(error, f"write to {topic}") from error
        offsets = [-1] * len(kept)
        for partition, numbers in batches:
            data = encode_log_batch([kept[number] for number in numbers], int(time.time() * 1000))
            base_offset = self._send(partition, data, deadline)
            for at, number in enumerate(numbers):
                offsets[number] = base_offset + at
        return offsets

    def close(self) -> None:
        self._leaders.close()

    def _batches(
        self, topic: str, records: Sequence[LogRecord], deadline: float
    ) -> list[tuple[TopicPartition, list[int]]]:
        """Which records, by number, make a batch: in order within each partition."""
        batches: list[tuple[TopicPartition, list[int]]] = []
        open_batches: dict[int, tuple[list[int], int]] = {}
        for number, record in enumerate(records):
            partition = record.partition
            if partition is None:
                partition = self._partition_of(topic, record.key or b"", deadline)
            size = len(record.key or b"") + len(record.value or b"") + 100
            numbers, filled = open_batches.get(partition, ([], _BATCH_BYTES_MAX))
            if filled + size > _BATCH_BYTES_MAX:
                numbers, filled = [], 0
                batches.append((TopicPartition(topic, partition), numbers))
            numbers.append(number)
            open_batches[partition] = (numbers, filled + size)
        return batches

    def _partition_of(self, topic: str, key: bytes, deadline: float) -> int:
        """As Java's default partitioner chooses."""
        count = len(self._leaders.partitions(topic, _left(deadline)))
        if count == 0:
            raise error_for(UNKNOWN_TOPIC_OR_PARTITION, topic)
        return int((murmur2(key) & 0x7FFFFFFF) % count)

    def _send(self, partition: TopicPartition, data: memoryview, deadline: float) -> int:
        """The batch's base offset."""
        context = f"write to {partition.topic}"
        failures = 0
        while True:
            try:
                self._leaders.learn(partition.topic, _left(deadline))
            except DisconnectedError as error:
                raise _about(error, context) from error
            try:
                connection = self._leaders.connection(partition, _left(deadline))
                answer = self._produce(connection, partition, data, _left(deadline))
                if not answer.error:
                    return answer.base_offset
                failure = error_for(answer.error, context, answer.message)
            except RetriableError as error:
                failure = _about(error, context)
            self._leaders.forget()
            failures += 1
            delay_s = self._backoff.delay_s(failures, random.random())
            if not failure.retriable or time.monotonic() + delay_s > deadline:
                raise failure
            time.sleep(delay_s)

    def _produce(
        self, connection: Connection, partition: TopicPartition, data: memoryview, timeout_s: float
    ) -> ProducedPartition:
        version = connection.version_of(produce.API_KEY, "Produce", produce.VERSION_LOW, produce.VERSION_HIGH)
        correlation_id = connection.next_correlation_id()
        request = encode_produce_request({partition: data}, self._producer, version, correlation_id)
        frame = connection.ask(request, "Produce", timeout_s)
        (answer,) = decode_produce_response(frame, version, correlation_id).partitions
        return answer


class _LogReader:
    """Reads the records of partitions on from their positions."""

    def __init__(self, settings: ConnectionSettings, *, read_committed: bool = False) -> None:
        self._settings = ConsumerSettings(settings, read_committed=read_committed)
        self._reader = PartitionReader(self._settings)
        self.positions: dict[TopicPartition, int] = {}
        self.ends: dict[TopicPartition, int] = {}
        """Where each partition ended at its last answer."""

    def partitions(self, topic: str) -> Sequence[TopicPartition]:
        return self._reader.partitions(topic)

    def fetch(self, partitions: Iterable[TopicPartition], wait_s: float) -> list[LogRecord]:
        """As `PartitionReader.fetch`. Raises KafkaError, CorruptBatchError."""
        offsets = {partition: self.positions.get(partition, 0) for partition in partitions}
        return list(chain.from_iterable(map(self._take, self._reader.fetch(offsets, wait_s))))

    def forget_leaders(self) -> None:
        self._reader.forget_leaders()

    def close(self) -> None:
        self._reader.close()

    def _take(self, fetched: FetchedPartition) -> Iterator[LogRecord]:
        partition = fetched.partition
        position = self.positions.get(partition, 0)
        if fetched.error:
            # Retention and deleted records move the start of a log past a reader; nothing else does.
            start = list_offsets(self._settings, [partition], EARLIEST)[partition]
            if not isinstance(start, int):
                raise start
            self.positions[partition] = start
            return
        committed = self._settings.read_committed
        self.ends[partition] = fetched.last_stable_offset if committed else fetched.high_watermark
        aborted = AbortedTransactions(fetched.aborted)
        for batch in iterate_batches(fetched.records):
            dropped = aborted.drops(batch)
            self.positions[partition] = batch.header.last_offset + 1
            if dropped and committed:
                continue
            for record in decode_log_batch(batch, partition.partition):
                if record.offset >= position:
                    yield record


def read_topic(
    settings: ConnectionSettings, topic: str, *, deadline_s: float = 60.0, read_committed: bool = False
) -> Iterator[LogRecord]:
    """Everything in a topic up to the end it has now, partition by partition interleaved.

    Raises KafkaError, also for a topic that doesn't exist; RetriableError when the end isn't reached in time.
    """
    reader = _LogReader(settings, read_committed=read_committed)
    try:
        partitions = reader.partitions(topic)
        if not partitions:
            raise error_for(UNKNOWN_TOPIC_OR_PARTITION, topic)
        yield from _read_to_end(reader, partitions, deadline_s)
    except (KafkaError, CorruptBatchError) as error:
        raise _about(error, f"read {topic}") from error
    finally:
        reader.close()


def _read_to_end(
    reader: _LogReader, partitions: Sequence[TopicPartition], deadline_s: float
) -> Iterator[LogRecord]:
    """Up to where each partition ends when it's asked for the first time."""
    deadline = time.monotonic() + deadline_s
    ends: dict[TopicPartition, int] = {}
    left = list(partitions)
    while left:
        if time.monotonic() > deadline:
            raise RetriableError("its end was not reached in time")
        yield from reader.fetch(left, 0.0)
        for partition in left:
            if partition in reader.ends:
                ends.setdefault(partition, reader.ends[partition])
        left = [
            partition
            for partition in left
            if partition not in ends or reader.positions.get(partition, 0) < ends[partition]
        ]


class TopicTail:
    """Follows partition 0 of a topic. Not thread-safe: one owner."""

    def __init__(self, settings: ConnectionSettings, topic: str, from_offset: int = 0) -> None:
        self._partition = TopicPartition(topic, 0)
        patience_s = min(settings.request_timeout_s, _TAIL_ANSWER_TIMEOUT_S)
        self._settings = replace(settings, request_timeout_s=patience_s)
        self._reader = _LogReader(self._settings)
        self._reader.positions[self._partition] = from_offset

    def poll(self, timeout_s: float) -> list[LogRecord]:
        """What arrived, at once if there is something; nothing while the topic doesn't exist.

        An answer proves that the partition's leader was reached. Raises KafkaError, CorruptBatchError.
        """
        try:
            if self._partition not in self._reader.partitions(self._partition.topic):
                time.sleep(min(timeout_s, self._settings.retry_backoff_max_s))
                self._reader.forget_leaders()
                return []
            return self._reader.fetch([self._partition], timeout_s)
        except (KafkaError, CorruptBatchError) as error:
            raise _about(error, f"read {self._partition.topic}") from error

    def read_to_end(self, deadline_s: float) -> Iterator[LogRecord]:
        """Everything up to the end it has now. Raises KafkaError; RetriableError if it takes too long."""
        try:
            yield from _read_to_end(self._reader, [self._partition], deadline_s)
        except (KafkaError, CorruptBatchError) as error:
            raise _about(error, f"read {self._partition.topic}") from error

    def close(self) -> None:
        self._reader.close()


def _left(deadline: float) -> float:
    """Raises DisconnectedError when nothing is left of the time."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise DisconnectedError("no answer in time")
    return left


def _about(error: KafkaError | CorruptBatchError, context: str) -> KafkaError:
    """The same error, saying what was tried."""
    if isinstance(error, KafkaError):
        return type(error)(f"{context}: {error}", error.code)
    return KafkaError(f"{context}: {error}")
