"""Reads one range of a partition as Arrow record batches, in a task. Every wait is bounded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import pyarrow as pa

from sparkmirror.batches.aborted_transactions import AbortedTransactions
from sparkmirror.batches.arrow import to_arrow
from sparkmirror.batches.columns import index_records
from sparkmirror.batches.record_batch import (
    CODEC_MASK,
    CONTROL,
    LOG_APPEND_TIME,
    FetchedBatch,
    has_valid_crc,
    iterate_batches,
)
from sparkmirror.dataframes.planning import OffsetRange
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import CorruptBatchError, KafkaError, RetriableError, SparkmirrorError
from sparkmirror.kafka.data.partition_reader import PartitionReader
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.wire.fetch import FetchedPartition
from sparkmirror.kafka.wire.primitives import NO_EPOCH

_WAIT_S: Final = 0.5
_TOGETHER_BYTES: Final = 4 << 20
"""A smaller limit costs more CPU for records of 1 KB, a larger one for records of 100 B."""
_COMPRESSED_RATIO: Final = 4
_DECOMPRESSED_BYTES_MAX: Final = 1 << 30
"""The most bytes of batches that become one record batch; Spark's own source has no limit."""


class TimeRange(NamedTuple):
    """Times in ms; both ends are within."""

    first: int = -(1 << 63)
    last: int = (1 << 63) - 1


EVERY_TIME: Final = TimeRange()


@dataclass(frozen=True, slots=True)
class Reading:
    """The settings with which all tasks of a query read."""

    consumer: ConsumerSettings
    columns: Sequence[str]
    fails_on_data_loss: bool
    timeout_s: float
    """The longest time without a record while some are left."""
    times: TimeRange = EVERY_TIME
    """Batches without a record of these times are skipped; of others every record is read."""


def read_range(reading: Reading, wanted: OffsetRange, reader: PartitionReader) -> Iterator[pa.RecordBatch]:
    """The records of the range. Raises KafkaError and CorruptBatchError, which name the partition."""
    for first, batches in _together(_Batches(reading, wanted, reader).read()):
        offsets = range(first, wanted.end)
        try:
            found = to_arrow(batches, wanted.partition, reading.columns, offsets, _DECOMPRESSED_BYTES_MAX)
        except CorruptBatchError as error:
            base = batches[0].header.base_offset
            raise CorruptBatchError(f"{wanted.partition}, batches from offset {base} on: {error}") from error
        if found.num_rows:
            yield found


def _together(placed: Iterator["_Placed"]) -> Iterator[tuple[int, list[FetchedBatch]]]:
    """Batches that become one record batch, by about what they have decompressed, and its first offset."""
    first, found, size = 0, list[FetchedBatch](), 0
    for position, batch in placed:
        taken = len(batch.data) * (_COMPRESSED_RATIO if batch.header.attributes & CODEC_MASK else 1)
        if found and (size + taken > _TOGETHER_BYTES or batch.header.base_offset < position):
            yield first, found
            found, size = [], 0
        if not found:
            first = position
        found.append(batch)
        size += taken
    if found:
        yield first, found


class _Placed(NamedTuple):
    """A batch, and the first offset that is wanted of it."""

    position: int
    batch: FetchedBatch


class _Batches:
    """The batches that reach into a range, without control, aborted, empty ones, and those of other times."""

    def __init__(self, reading: Reading, wanted: OffsetRange, reader: PartitionReader) -> None:
        self._reading = reading
        self._wanted = wanted
        self._partition = wanted.partition
        self._reader = reader
        self._network = network_of(reading.consumer.connection)
        self._position = wanted.first
        self._epoch = wanted.epoch
        """The leader epoch of the last batch that was read, or a later one in which the log had it."""

    def read(self) -> Iterator[_Placed]:
        last_found = self._network.time()
        while self._position < self._wanted.end:
            before = self._position
            (fetched,) = self._reader.fetch({self._partition: self._position}, _WAIT_S, self._epoch)
            if fetched.diverged_at is not None:
                # Equal where a leader had an epoch to which it wrote nothing.
                if fetched.diverged_at < self._position:
                    self._lose(
                        f"the log was truncated at offset {fetched.diverged_at}, which was read before"
                    )
                self._epoch = NO_EPOCH
            elif fetched.error:
                self._skip_lost()
            else:
                yield from self._take(fetched)
            if self._position > before:
                last_found = self._network.time()
            elif self._network.time() > last_found + self._reading.timeout_s:
                self._give_up(fetched)

    def _take(self, fetched: FetchedPartition) -> Iterator[_Placed]:
        committed = self._reading.consumer.read_committed
        aborted = AbortedTransactions(fetched.aborted)
        for batch in iterate_batches(fetched.records):
            header = batch.header
            is_dropped = aborted.drops(batch) and committed
            if header.last_offset < self._position:
                continue
            if header.base_offset >= self._wanted.end:
                self._position = self._wanted.end
                return
            if self._reading.consumer.check_crcs and not has_valid_crc(batch):
                raise CorruptBatchError(f"{self._partition}, offset {header.base_offset}: its CRC is wrong")
            placed = _Placed(self._position, batch)
            self._position, self._epoch = header.last_offset + 1, header.leader_epoch
            if is_dropped or header.attributes & CONTROL or not header.record_count:
                continue
            if _reaches_into(batch, self._reading.times):
                yield placed

    def _skip_lost(self) -> None:
        """Continue at the log's start where that has passed the position; else the log ends before it."""
        start = self._reader.starts([self._partition])[self._partition]
        if isinstance(start, SparkmirrorError):
            raise start
        if start > self._position:
            self._lose(f"offsets {self._position} to {min(start, self._wanted.end) - 1} were deleted")
            self._position = min(start, self._wanted.end)
        else:
            self._lose(f"the log ends before offset {self._position}")
            self._position = self._wanted.end

    def _give_up(self, fetched: FetchedPartition) -> None:
        end = fetched.last_stable_offset if self._reading.consumer.read_committed else fetched.high_watermark
        if 0 <= end <= self._position:
            self._lose(f"the log ends at offset {end}, and {self._wanted.end} was its end before")
            self._position = self._wanted.end
            return
        raise RetriableError(
            f"{self._partition}: no records received from offset {self._position} on for "
            f"{self._reading.timeout_s:g} s (kafkaConsumer.pollTimeoutMs)"
        )

    def _lose(self, what: str) -> None:
        if self._reading.fails_on_data_loss:
            raise data_loss([f"{self._partition}: {what}"])


def _reaches_into(batch: FetchedBatch, times: TimeRange) -> bool:
    """Whether a record may be of these times. The header has the newest one, the oldest is inside."""
    header = batch.header
    if header.max_timestamp < times.first:
        return False
    first = header.max_timestamp if header.attributes & LOG_APPEND_TIME else header.base_timestamp
    if first <= times.last:
        return True
    oldest = index_records([batch], _DECOMPRESSED_BYTES_MAX).timestamps.min()
    return bool(oldest <= times.last)


def data_loss(what: Sequence[str]) -> KafkaError:
    """The error for records that can't be read any more."""
    return KafkaError(
        f"{'; '.join(what)}; with failOnDataLoss=false the query continues without these records"
    )
