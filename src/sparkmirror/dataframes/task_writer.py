"""Writes the rows of one task: idempotently, in a transaction or without one. Every wait is bounded."""

import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from sparkmirror.batches.arrow import from_arrow
from sparkmirror.batches.compression import CODECS
from sparkmirror.batches.key_partitions import key_partitions
from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import SEQUENCE_MODULUS, OutgoingBatch, rewrite_header
from sparkmirror.batches.reencoding import Encoding
from sparkmirror.dataframes.write_options import WriteOptions
from sparkmirror.domain.errors import ConfigError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.data.single_batches import produce_batches
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.retries import Retries
from sparkmirror.kafka.transactions.transaction_coordinator import COMPLETING
from sparkmirror.kafka.transactions.transaction_runs import Transactions
from sparkmirror.kafka.wire import produce
from sparkmirror.kafka.wire.error_codes import (
    CONCURRENT_TRANSACTIONS,
    DUPLICATE_SEQUENCE_NUMBER,
    UNKNOWN_TOPIC_OR_PARTITION,
)

_BATCH_BYTES_MAX: Final = 1_000_000
"""A little below what brokers accept by default."""


class TaskWriter:
    """Writes a task's rows. `transactions` must be initialised; the transaction stays open."""

    def __init__(
        self, options: WriteOptions, producer: ProducerId, transactions: Transactions | None, task: int
    ) -> None:
        settings = options.producer
        self._options = options
        self._settings = settings
        self._producer = producer
        self._transactions = transactions
        self._cluster = Cluster(settings.connection)
        self._network = network_of(settings.connection)
        codec = CODECS.index(settings.compression or "none")
        self._encoding = Encoding(codec, min(settings.request_bytes_max, _BATCH_BYTES_MAX))
        self._sequences: dict[TopicPartition, int] = {}
        self._turn = task
        """Rows without a key go to one partition after the other."""
        self.last_offset = -1
        """The offset of the last batch that was acknowledged; -1 if it is unknown."""
        self._last: TopicPartition | None = None

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that were written to, that of the last batch at the end."""
        return sorted(self._sequences, key=lambda partition: (partition == self._last, partition))

    def write(self, records: pa.RecordBatch) -> None:
        """Write rows, and wait until they are acknowledged. Raises KafkaError and ConfigError."""
        now_ms = int(time.time() * 1000)
        waiting = {
            partition: deque(from_arrow(rows, self._encoding, now_ms))
            for topic, of_topic in self._by_topic(records)
            for partition, rows in self._by_partition(topic, of_topic)
        }
        while round_ := {partition: batches.popleft() for partition, batches in waiting.items() if batches}:
            self._produce(round_)

    def close(self) -> None:
        self._cluster.close()

    def _by_topic(self, records: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        if self._options.topic is not None:
            yield self._options.topic, records
            return
        topics = records.column("topic").dictionary_encode()
        if topics.null_count:
            raise ConfigError(
                "topic", None, "a row has none: fill the column, or name one topic by the option"
            )
        for number, topic in enumerate(topics.dictionary.to_pylist()):
            yield topic, records.take(pa.array(np.flatnonzero(topics.indices.to_numpy() == number)))

    def _by_partition(
        self, topic: str, records: pa.RecordBatch
    ) -> Iterator[tuple[TopicPartition, pa.RecordBatch]]:
        chosen = self._chosen(topic, records)
        numbers = np.unique(chosen).tolist()
        for number in numbers:
            rows = records if len(numbers) == 1 else records.take(pa.array(np.flatnonzero(chosen == number)))
            yield (
                TopicPartition(topic, number),
                rows.drop_columns([n for n in ("offset",) if n in rows.schema.names]),
            )

    def _chosen(self, topic: str, records: pa.RecordBatch) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        """The partition of each row: its own, else that of its key, else the next in turn."""
        count = self._count(topic)
        names = records.schema.names
        found = np.full(records.num_rows, -1, np.int64)
        if "partition" in names:
            found = records.column(names.index("partition")).cast(pa.int64()).fill_null(-1).to_numpy().copy()
            if found.max(initial=-1) >= count or found.min(initial=0) < -1:
                wrong = found[(found >= count) | (found < -1)][0]
                raise ConfigError("partition", int(wrong), f"{topic} has {count} partitions")
        if "key" in names and (found < 0).any():
            of_keys = key_partitions(records.column(names.index("key")).cast(pa.binary()), count)
            found = np.where(found < 0, of_keys, found)
        self._turn += 1
        return np.where(found < 0, self._turn % count, found)

    def _count(self, topic: str) -> int:
        """Brokers learn of a topic one after the other."""
        connection = self._settings.connection
        retries = Retries(connection, self._network.time() + connection.request_timeout_s / 3)
        while not (partitions := self._cluster.partitions(topic)):
            self._cluster.forget()
            retries.wait(self._cluster.error(UNKNOWN_TOPIC_OR_PARTITION, f"write to {topic}"))
        return len(partitions)

    def _produce(self, batches: Mapping[TopicPartition, OutgoingBatch]) -> None:
        """Send until all are acknowledged: a batch that was written before is not written again."""
        if self._transactions is not None:
            self._transactions.add(batches.keys())
        for partition, batch in batches.items():
            self._stamp(partition, batch)
        connection = self._settings.connection
        retries = Retries(connection, self._network.time() + 4 * connection.request_timeout_s)
        left = {partition: batch.data for partition, batch in batches.items()}
        while left:
            errors: list[SparkmirrorError] = []
            for partition, result in self._sent(left).items():
                if isinstance(result, int) or result.code == DUPLICATE_SEQUENCE_NUMBER:
                    del left[partition]
                    self._note(partition, batches[partition], result)
                else:
                    errors.append(result)
            if errors:
                worst = min(errors, key=lambda error: error.retriable)
                retries.wait(worst, COMPLETING if worst.code == CONCURRENT_TRANSACTIONS else None)

    def _sent(
        self, left: Mapping[TopicPartition, memoryview]
    ) -> Mapping[TopicPartition, int | SparkmirrorError]:
        found = self._transactions
        return produce_batches(
            self._cluster,
            self._settings,
            left,
            None if found is None else found.transactional_id,
            produce.VERSION_HIGH if found is None else found.produce_version_max,
        )

    def _stamp(self, partition: TopicPartition, batch: OutgoingBatch) -> None:
        sequence = self._sequences.get(partition, 0)
        transactional = self._transactions is not None
        rewrite_header(batch.data, *self._producer, sequence, transactional=transactional)
        self._sequences[partition] = (sequence + len(batch.offsets)) % SEQUENCE_MODULUS

    def _note(self, partition: TopicPartition, batch: OutgoingBatch, base: int | SparkmirrorError) -> None:
        if isinstance(base, int) and base >= 0:
            self._last, self.last_offset = partition, base + len(batch.offsets) - 1
