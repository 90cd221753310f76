"""Uses small topics as logs: writes records and waits for them, reads a topic to its end, follows its tail.

For state (positions, syncs, heartbeats, progress), a few records a second; not for mirrored data. Everything
blocks, and every wait is bounded.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain

from sparkmirror.batches.aborted_transactions import AbortedTransactions
from sparkmirror.batches.log_records import LogRecord, decode_log_batch, encode_log_batch
from sparkmirror.batches.record_batch import iterate_batches
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings, ProducerSettings
from sparkmirror.domain.errors import (
    CorruptBatchError,
    DisconnectedError,
    KafkaError,
    RetriableError,
    SparkmirrorError,
)
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.data.keyed_batches import assign
from sparkmirror.kafka.data.partition_offsets import EARLIEST, require_offsets
from sparkmirror.kafka.data.partition_reader import PartitionReader
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.retries import Retries
from sparkmirror.kafka.wire import produce
from sparkmirror.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION, error_for
from sparkmirror.kafka.wire.fetch import FetchedPartition
from sparkmirror.kafka.wire.produce import ProducedPartition, decode_produce_response, encode_produce_request

_TAIL_RESPONSE_TIMEOUT_S = 5.0
_READ_DEADLINE_S = 60.0
"""The callers that follow a tail need to know soon when it's cut off."""


class TopicWriter:
    """Writes records to a topic. Not thread-safe: one owner. The first write opens the connection."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._producer = ProducerSettings(settings)
        self._network = network_of(settings)
        self._cluster = Cluster(settings)
        self._throttled_s = 0.0
        """The write under way has waited so long for throttle times: its deadline moves by that."""

    def write(
        self, topic: str, records: Iterable[LogRecord], *, timeout_s: float | None = None
    ) -> Sequence[int]:
        """The records' offsets, when every one is acknowledged by all replicas.

        Retries what may pass until `timeout_s` (by default the request's time-out) has passed; raises at once
        when no broker responds. Raises KafkaError, naming the topic; some records may be written all the
        same, even twice.
        """
        timeout_s = self._settings.request_timeout_s if timeout_s is None else timeout_s
        deadline = self._network.time() + timeout_s
        self._throttled_s = 0.0
        kept = list(records)
        offsets = [-1] * len(kept)
        try:
            for batches in self._rounds(topic, kept, deadline):
                data = {
                    partition: encode_log_batch([kept[number] for number in numbers], int(time.time() * 1000))
                    for partition, numbers in batches.items()
                }
                for partition, base_offset in self._send(data, deadline).items():
                    for at, number in enumerate(batches[partition]):
                        offsets[number] = base_offset + at
        except KafkaError as error:
            raise _about(error, f"write to {topic}") from error
        return offsets

    def close(self) -> None:
        self._cluster.close()

    def _rounds(
        self, topic: str, records: Sequence[LogRecord], deadline: float
    ) -> list[dict[TopicPartition, list[int]]]:
        """The records, by number, of each round: at most a batch of each partition, in order within each."""
        count = 0
        if any(record.partition is None for record in records):
            count = self._partition_count(topic, deadline)
        rounds: list[dict[TopicPartition, list[int]]] = []
        for partition, batches in assign(topic, count, records).items():
            for at, numbers in enumerate(batches):
                if at == len(rounds):
                    rounds.append({})
                rounds[at][partition] = numbers
        return rounds

    def _partition_count(self, topic: str, deadline: float) -> int:
        """Brokers learn of a topic one after the other: one that has just been created may be unknown yet."""
        retries = Retries(self._settings, deadline)
        while not (partitions := self._cluster.partitions(topic, self._left(deadline))):
            self._cluster.forget()
            retries.wait(self._cluster.error(UNKNOWN_TOPIC_OR_PARTITION, topic))
        return len(partitions)

    def _send(
        self, batches: Mapping[TopicPartition, memoryview], deadline: float
    ) -> Mapping[TopicPartition, int]:
        """The base offset of each batch: one request to each leader, and again for what failed."""
        done: dict[TopicPartition, int] = {}
        retries = Retries(self._settings, deadline)
        while left := {partition: data for partition, data in batches.items() if partition not in done}:
            timeout_s = self._left(deadline)
            produced = self._cluster.ask_leaders(
                left, lambda connection, led: self._exchange(connection, led, left, deadline), timeout_s
            )
            errors = [found for found in produced.values() if isinstance(found, SparkmirrorError)]
            done.update((at, found) for at, found in produced.items() if isinstance(found, int))
            if errors:
                retries.wait(min(errors, key=lambda error: error.retriable))
        return done

    def _exchange(
        self,
        connection: Connection,
        led: Sequence[TopicPartition],
        batches: Mapping[TopicPartition, memoryview],
        deadline: float,
    ) -> Mapping[TopicPartition, int | SparkmirrorError]:
        version = connection.version_of(produce.API_KEY, "Produce", produce.VERSION_LOW, produce.VERSION_HIGH)
        correlation_id = connection.next_correlation_id()
        share = {partition: batches[partition] for partition in led}
        request = encode_produce_request(share, self._producer, version, correlation_id)
        timeout_s = self._left(deadline)
        self._throttled_s += connection.throttled_s
        frame = connection.ask(request, "Produce", timeout_s)
        response = decode_produce_response(frame, version, correlation_id)
        connection.throttle(response.throttle_s)
        return {produced.partition: self._base_offset(produced) for produced in response.partitions}

    def _base_offset(self, produced: ProducedPartition) -> int | SparkmirrorError:
        if not produced.error:
            return produced.base_offset
        where, right = produced.partition.partition, Need.WRITE_TOPIC.of(produced.partition.topic)
        return self._cluster.error(produced.error, f"partition {where}", right, message=produced.message)

    def _left(self, deadline: float) -> float:
        """Raises DisconnectedError when no time is left."""
        left_s = deadline + self._throttled_s - self._network.time()
        if left_s <= 0:
            raise DisconnectedError("no response in time")
        return left_s


class _LogReader:
    """Reads the records of partitions from their positions on."""

    def __init__(
        self, settings: ConnectionSettings, from_offset: int = 0, *, read_committed: bool = False
    ) -> None:
        self.network = network_of(settings)
        self._settings = ConsumerSettings(settings, read_committed=read_committed)
        self._reader = PartitionReader(self._settings)
        self._from_offset = from_offset
        self.positions: dict[TopicPartition, int] = {}
        self.ends: dict[TopicPartition, int] = {}
        """The end of each partition at its last response."""

    def partitions(self, topic: str) -> Sequence[TopicPartition]:
        return self._reader.partitions(topic)

    def fetch(self, partitions: Iterable[TopicPartition], wait_s: float) -> list[LogRecord]:
        """Do as `PartitionReader.fetch`. Raises KafkaError, CorruptBatchError."""
        offsets = {partition: self.position(partition) for partition in partitions}
        return list(chain.from_iterable(map(self._take, self._reader.fetch(offsets, wait_s))))

    def position(self, partition: TopicPartition) -> int:
        return self.positions.get(partition, self._from_offset)

    def forget_leaders(self) -> None:
        self._reader.forget_leaders()

    def close(self) -> None:
        self._reader.close()

    def _take(self, fetched: FetchedPartition) -> Iterator[LogRecord]:
        partition = fetched.partition
        position = self.position(partition)
        if fetched.error:
            # Retention and deleted records move the start of a log past a reader; nothing else does.
            self.positions[partition] = require_offsets(self._settings, [partition], EARLIEST)[partition]
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


class TopicReader:
    """Reads a whole topic, and later what came since. Not thread-safe: one owner, who closes it."""

    def __init__(self, settings: ConnectionSettings, topic: str, *, read_committed: bool = False) -> None:
        self._topic = topic
        self._reader = _LogReader(settings, read_committed=read_committed)

    def read_to_end(self, deadline_s: float = _READ_DEADLINE_S) -> Iterator[LogRecord]:
        """Return all records up to the present end that were not read before, with partitions interleaved.

        Raises KafkaError, also for a topic that doesn't exist; RetriableError when the end isn't reached in
        time.
        """
        try:
            partitions = self._reader.partitions(self._topic)
            if not partitions:
                raise error_for(UNKNOWN_TOPIC_OR_PARTITION, self._topic)
            yield from _read_to_end(self._reader, partitions, deadline_s)
        except (KafkaError, CorruptBatchError) as error:
            raise _about(error, f"read {self._topic}") from error

    def close(self) -> None:
        self._reader.close()


def read_topic(
    settings: ConnectionSettings,
    topic: str,
    *,
    deadline_s: float = _READ_DEADLINE_S,
    read_committed: bool = False,
) -> Iterator[LogRecord]:
    """Do as `TopicReader.read_to_end`, once."""
    with closing(TopicReader(settings, topic, read_committed=read_committed)) as reader:
        yield from reader.read_to_end(deadline_s)


def _read_to_end(
    reader: _LogReader, partitions: Sequence[TopicPartition], deadline_s: float
) -> Iterator[LogRecord]:
    """Read up to the end of each partition at its first response."""
    deadline = reader.network.time() + deadline_s
    ends: dict[TopicPartition, int] = {}
    left = list(partitions)
    while left:
        if reader.network.time() > deadline:
            raise RetriableError("its end was not reached in time")
        yield from reader.fetch(left, 0.0)
        for partition in left:
            if partition in reader.ends:
                ends.setdefault(partition, reader.ends[partition])
        left = [
            partition
            for partition in left
            if partition not in ends or reader.position(partition) < ends[partition]
        ]


class TopicTail:
    """Follows partition 0 of a topic, or the whole of it. Not thread-safe: one owner."""

    def __init__(
        self,
        settings: ConnectionSettings,
        topic: str,
        from_offset: int = 0,
        *,
        whole: bool = False,
        may_be_missing: bool = False,
    ) -> None:
        """`may_be_missing`: `read_to_end` does not wait for a topic that doesn't exist."""
        self._topic = topic
        self._whole = whole
        self._may_be_missing = may_be_missing
        timeout_s = min(settings.request_timeout_s, _TAIL_RESPONSE_TIMEOUT_S)
        self._settings = replace(settings, request_timeout_s=timeout_s)
        self._reader = _LogReader(self._settings, from_offset)

    def poll(self, timeout_s: float) -> list[LogRecord]:
        """The records that arrived, at once if there are any; none while the topic doesn't exist.

        A response proves that the partition's leader was reached; of a whole topic, each leader is given the
        time. Raises KafkaError, CorruptBatchError.
        """
        try:
            partitions = self._partitions()
            if not partitions:
                self._reader.network.sleep(min(timeout_s, self._settings.retry_backoff_max_s))
                self._reader.forget_leaders()
                return []
            return self._reader.fetch(partitions, timeout_s)
        except (KafkaError, CorruptBatchError) as error:
            raise _about(error, f"read {self._topic}") from error

    def read_to_end(self, deadline_s: float) -> Iterator[LogRecord]:
        """Return all records up to the end. Raises KafkaError; RetriableError if it takes too long."""
        deadline = self._reader.network.time() + deadline_s
        try:
            if self._may_be_missing:
                self._require_topic()
            partitions = self._existing(deadline) if self._whole else [TopicPartition(self._topic, 0)]
            yield from _read_to_end(self._reader, partitions, deadline - self._reader.network.time())
        except (KafkaError, CorruptBatchError) as error:
            raise _about(error, f"read {self._topic}") from error

    def close(self) -> None:
        self._reader.close()

    def _require_topic(self) -> None:
        """A second broker is asked, since a new topic may be unknown to the first."""
        for _ in range(2):
            if self._partitions():
                return
            self._reader.forget_leaders()
        raise error_for(UNKNOWN_TOPIC_OR_PARTITION, self._topic)

    def _existing(self, deadline: float) -> Sequence[TopicPartition]:
        """Brokers learn of a topic one after the other: one that has just been created may be unknown yet."""
        retries = Retries(self._settings, deadline)
        while not (partitions := self._partitions()):
            self._reader.forget_leaders()
            retries.wait(error_for(UNKNOWN_TOPIC_OR_PARTITION, self._topic))
        return partitions

    def _partitions(self) -> Sequence[TopicPartition]:
        partitions = self._reader.partitions(self._topic)
        return partitions if self._whole else partitions[:1]


def _about(error: KafkaError | CorruptBatchError, context: str) -> KafkaError:
    """The same error with its context."""
    if isinstance(error, KafkaError):
        return type(error)(f"{context}: {error}", error.code)
    return KafkaError(f"{context}: {error}")
