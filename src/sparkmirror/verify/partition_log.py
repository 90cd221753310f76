"""Reads one partition as the flow's consumer sees it, up to a given offset; every wait is bounded."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from typing import NamedTuple

from sparkmirror.batches.aborted_transactions import AbortedTransactions
from sparkmirror.batches.agreement.compared_log import END, Record, Records, Span
from sparkmirror.batches.record_batch import CONTROL, FetchedBatch, iterate_batches
from sparkmirror.batches.reencoding import Change, ChangeFailedError, carried
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX, ConsumerSettings
from sparkmirror.domain.errors import CorruptBatchError, KafkaError, RetriableError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_offsets import list_offsets
from sparkmirror.kafka.data.partition_reader import PartitionReader

_WAIT_S = 0.5
_EMPTY_RESPONSES_MAX = 10
_SEARCHED_RECORDS = 10_000
"""The most records of one timestamp among which a certain one is searched."""


class Mirrored(NamedTuple):
    """The source batches that a flow leaves out (see `cycles`), and what it changes of others.

    No batch with more than `decompressed_bytes_max` is opened.
    """

    left_out: frozenset[int] = frozenset()
    change: Change | None = None
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX

    def carry(self, batch: FetchedBatch) -> Sequence[FetchedBatch]:
        """Transform a batch; returns one batch, or none. Raises CorruptBatchError, and KafkaError."""
        if batch.header.producer_id in self.left_out:
            return ()
        if self.change is None:
            return (batch,)
        try:
            return carried(batch, self.change, self.decompressed_bytes_max)
        except ChangeFailedError as error:
            raise KafkaError(f"offset {error.offset} can't be compared: {error}") from error


class PartitionLog:
    """Reads one partition's records. Not thread-safe: one owner. `side`: the cluster's alias, for errors."""

    def __init__(
        self,
        reader: PartitionReader,
        settings: ConsumerSettings,
        partition: TopicPartition,
        side: str,
        mirrored: Mirrored | None = None,
    ) -> None:
        """`mirrored` changes what is read to what the flow copies of it."""
        self._reader = reader
        self._settings = settings
        self._partition = partition
        self._side = side
        self._mirrored = Mirrored() if mirrored is None else mirrored

    def batches(self, span: Span) -> Iterator[FetchedBatch]:
        """The batches that reach into the span, without control, aborted and empty batches.

        Ends with the log when that is shorter. Raises KafkaError and CorruptBatchError.
        """
        offset, empty_responses = span.first, 0
        while offset < span.end:
            (fetched,) = self._reader.fetch({self._partition: offset}, _WAIT_S if empty_responses else 0.0)
            if fetched.error:
                raise KafkaError(
                    f"{self}: offset {offset} was removed by retention meanwhile; run verify again"
                )
            committed = self._settings.read_committed
            aborted = AbortedTransactions(fetched.aborted) if committed else None
            before = offset
            for batch in self._whole(fetched.records):
                header = batch.header
                is_dropped = aborted is not None and aborted.drops(batch)
                if header.last_offset < offset:
                    continue
                if header.base_offset >= span.end:
                    return
                offset = header.last_offset + 1
                if not (is_dropped or header.attributes & CONTROL or header.record_count == 0):
                    yield from self._mirrored.carry(batch)
            if offset >= fetched.high_watermark:
                return
            if offset >= fetched.last_stable_offset and committed:
                raise RetriableError(
                    f"{self}: an open transaction hides the records from offset {offset} on; "
                    "run verify again when it has ended"
                )
            empty_responses = empty_responses + 1 if offset == before else 0
            if empty_responses > _EMPTY_RESPONSES_MAX:
                raise RetriableError(f"{self}: no records received from offset {offset} on; run verify again")

    def first_record(self, span: Span, *, timestamps: bool) -> Record | None:
        """The first record of the first batch that reaches into the span."""
        for batch in self.batches(span):
            opened = self._opened(batch, Span(0, END), timestamps=timestamps)
            if opened:
                return opened[0]
        return None

    def find(self, record: Record, guess: int, span: Span, *, timestamps: bool) -> int | None:
        """The offset in the span of a record of the other side: the guessed one, or found by its timestamp.

        None when it isn't found soon; it may be there all the same.
        """
        if span.first <= guess < span.end and self._is_at(record, guess, timestamps=timestamps):
            return guess
        if not timestamps:
            return None
        found = list_offsets(self._settings, [self._partition], record.timestamp)[self._partition]
        # Records before the first one with that timestamp, or a later one, can be skipped.
        if not isinstance(found, int) or found < 0:
            return None
        searched = Span(max(found, span.first), span.end)
        for candidate in islice(self._records(searched, timestamps=True), _SEARCHED_RECORDS):
            if candidate.key == record.key:
                return candidate.offset
        return None

    def _is_at(self, record: Record, offset: int, *, timestamps: bool) -> bool:
        found = next(self._records(Span(offset, offset + 1), timestamps=timestamps), None)
        return found is not None and found.key == record.key

    def _records(self, span: Span, *, timestamps: bool) -> Iterator[Record]:
        for batch in self.batches(span):
            yield from self._opened(batch, span, timestamps=timestamps)

    def _opened(self, batch: FetchedBatch, span: Span, *, timestamps: bool) -> list[Record]:
        opened = Records(self._mirrored.decompressed_bytes_max)
        opened.add([batch], span, timestamps=timestamps)
        return opened.take(len(opened))

    def _whole(self, records: memoryview) -> Iterator[FetchedBatch]:
        try:
            yield from iterate_batches(records)
        except CorruptBatchError as error:
            raise CorruptBatchError(f"{self}: {error}") from error

    def __str__(self) -> str:
        return f"{self._partition} on {self._side}"


@contextmanager
def open_log(
    settings: ConsumerSettings, partition: TopicPartition, side: str, mirrored: Mirrored | None = None
) -> Iterator[PartitionLog]:
    with closing(PartitionReader(settings)) as reader:
        yield PartitionLog(reader, settings, partition, side, mirrored)
