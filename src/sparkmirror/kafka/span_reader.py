"""Reads the batches between two offsets of a partition, as many bytes as are allowed and no more."""

from collections.abc import Iterator
from dataclasses import replace

from sparkmirror.batches.aborted_transactions import AbortedTransactions
from sparkmirror.batches.record_batch import FetchedBatch, iterate_batches
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.partition_reader import PartitionReader

_FETCH_BYTES = 256 << 10
"""What is looked for is near, as a rule."""
_ANSWER_TIMEOUT_S = 5.0


class SpanReader:
    """Not thread-safe: one owner. Connects when it's first asked."""

    def __init__(self, settings: ConsumerSettings) -> None:
        """Without what was aborted if they say `read_committed`."""
        patience_s = min(settings.connection.request_timeout_s, _ANSWER_TIMEOUT_S)
        connection = replace(settings.connection, request_timeout_s=patience_s)
        settings = replace(settings, connection=connection)
        self._read_committed = settings.read_committed
        self._reader = PartitionReader(settings, _FETCH_BYTES)
        self.bytes_read = 0

    def read(self, partition: TopicPartition, begin: int, end: int, bytes_max: int) -> Iterator[FetchedBatch]:
        """Whole batches, control batches included, that hold something between the offsets.

        Ends early after so many bytes, and where the log does not reach. Raises KafkaError and
        CorruptBatchError.
        """
        offset, stop = begin, self.bytes_read + bytes_max
        while offset < end and self.bytes_read < stop:
            (fetched,) = self._reader.fetch({partition: offset}, 0.0)
            self.bytes_read += len(fetched.records)
            aborted, before = AbortedTransactions(fetched.aborted), offset
            for batch in iterate_batches(fetched.records):
                dropped = aborted.drops(batch) and self._read_committed
                if not offset <= batch.header.last_offset or batch.header.base_offset >= end:
                    continue
                offset = batch.header.last_offset + 1
                if not dropped:
                    yield batch
            if offset == before:
                return

    def close(self) -> None:
        self._reader.close()
