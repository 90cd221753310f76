"""An event loop in a thread, and a writer and a reader on it that record what they report."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar

from sparkmirror.batches.producer import ProducerState
from sparkmirror.batches.record_batch import OutgoingBatch, iterate_batches
from sparkmirror.domain.client_settings import ConsumerSettings, ProducerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.batch_reader import BatchReader
from sparkmirror.kafka.data.batch_writer import BatchWriter
from sparkmirror.kafka.transactions.transaction_runs import new_producer_id
from sparkmirror.kafka.wire.fetch import FetchedPartition
from sparkmirror.kafka.wire.primitives import NO_TOPIC_ID
from tests.support.batches import Rec, decode, encode
from tests.support.broker_data import Keyed, numbered
from tests.support.waiting import await_value

WAIT_S: Final = 30.0
PLENTY: Final = 32 << 20
BACKLOG_RECORDS: Final = 60

T = TypeVar("T")


@contextmanager
def running_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop in a thread. An unhandled error on it fails the test."""
    loop = asyncio.new_event_loop()
    bugs: list[Mapping[str, object]] = []
    loop.set_exception_handler(lambda _, context: bugs.append(context))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
    assert not bugs, bugs


def on_loop(loop: asyncio.AbstractEventLoop, call: Callable[[], T]) -> T:
    """Make the call on the loop's thread and return its result."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(call())
        except Exception as error:  # noqa: BLE001 - handed to the test's thread
            done.set_exception(error)

    loop.call_soon_threadsafe(run)
    return done.result(WAIT_S)


class Acknowledged(NamedTuple):
    partition: TopicPartition
    base_offset: int
    record_count: int
    completes: bool


class Failure(NamedTuple):
    partition: TopicPartition
    error: SparkmirrorError


class RecordingWriter:
    """A BatchWriter and everything that it has reported. Batches hold numbered records."""

    def __init__(
        self, settings: ProducerSettings, loop: asyncio.AbstractEventLoop, records_age_s: float = 0.0
    ) -> None:
        self._records_age_s = records_age_s
        self.acknowledgements: list[Acknowledged] = []
        self.acknowledged_records: Counter[TopicPartition] = Counter()
        self.failures: list[Failure] = []
        self.refusals: list[Failure] = []
        self.refused_batches: list[OutgoingBatch] = []
        self.lost: list[Failure] = []
        self.recreated: list[TopicPartition] = []
        self.new_leaders: list[TopicPartition] = []
        self._settings = settings
        self._loop = loop
        self.writer = BatchWriter(settings, loop, self)

    def begin(self, partition: TopicPartition) -> None:
        """Begin writing to the partition under a new producer id."""
        state = ProducerState(new_producer_id(self._settings.connection), 0, 0)
        on_loop(self._loop, lambda: self.writer.begin(partition, state))

    def append(self, partition: TopicPartition, *batches: Sequence[Keyed]) -> None:
        """Append the batches and flush."""
        encoded = [outgoing(records, self._records_age_s) for records in batches]

        def run() -> None:
            for batch in encoded:
                self.writer.append(partition, batch)
            self.writer.flush()

        on_loop(self._loop, run)

    def await_acknowledged(self, partition: TopicPartition, records: int) -> None:
        """Wait until exactly this number of records is acknowledged."""
        await_value(
            lambda: self.acknowledged_records[partition] >= records,
            WAIT_S,
            lambda: f"{self.acknowledgements[-3:]}; {self.failures[-3:]}; {self.refusals}",
        )
        assert self.acknowledged_records[partition] == records

    def acknowledged(
        self, partition: TopicPartition, batch: OutgoingBatch, base_offset: int, *, completes: bool
    ) -> None:
        self.acknowledgements.append(Acknowledged(partition, base_offset, len(batch.offsets), completes))
        self.acknowledged_records[partition] += len(batch.offsets)

    def write_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        self.failures.append(Failure(partition, error))

    def write_possible(self, partition: TopicPartition) -> None: ...

    def write_refused(self, partition: TopicPartition, error: SparkmirrorError, batch: OutgoingBatch) -> None:
        self.refusals.append(Failure(partition, error))
        self.refused_batches.append(batch)

    def leaders_changed(self, partitions: Collection[TopicPartition]) -> None:
        self.new_leaders += partitions

    def target_recreated(self, partition: TopicPartition) -> None:
        self.recreated.append(partition)

    def sequence_lost(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        self.lost.append(Failure(partition, error))


@contextmanager
def writing(
    settings: ProducerSettings, partitions: Collection[TopicPartition], *, records_age_s: float = 0.0
) -> Iterator[RecordingWriter]:
    with running_loop() as loop:
        made = RecordingWriter(settings, loop, records_age_s)
        on_loop(loop, lambda: made.writer.start(partitions))
        for partition in partitions:
            made.begin(partition)
        try:
            yield made
        finally:
            on_loop(loop, made.writer.stop)


@contextmanager
def written_continuously(
    writer: RecordingWriter, partitions: Sequence[TopicPartition]
) -> Iterator[dict[TopicPartition, int]]:
    """Keep batches of numbered records in flight; yields the number of records appended to each partition."""
    appended = dict.fromkeys(partitions, 0)
    stopped = threading.Event()

    def write() -> None:
        while not stopped.wait(0.001):
            for partition, count in appended.items():
                if count - writer.acknowledged_records[partition] < BACKLOG_RECORDS:
                    writer.append(partition, *(numbered(3, count + at) for at in range(0, 30, 3)))
                    appended[partition] += 30

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield appended
    finally:
        stopped.set()
        thread.join()


def outgoing(records: Sequence[Keyed], age_s: float = 0.0) -> OutgoingBatch:
    return OutgoingBatch(memoryview(batch_of(records, age_s)), range(len(records)), 0)


def batch_of(records: Sequence[Keyed], age_s: float = 0.0, **header: int) -> bytearray:
    """Encode records with current timestamps, as producer state expires a day after the last one."""
    now_ms = int((time.time() - age_s) * 1000)
    return encode([Rec(at, now_ms, key, value) for at, (key, value) in enumerate(records)], **header)


class RecordingReader:
    """A BatchReader that continues after every response, and everything that it has reported."""

    def __init__(self, settings: ConsumerSettings, loop: asyncio.AbstractEventLoop, budget: int) -> None:
        self.records: dict[TopicPartition, list[Rec]] = {}
        self.response_bytes: list[int] = [0]
        self.failures: list[Failure] = []
        self.out_of_range: list[TopicPartition] = []
        self.recreated: list[TopicPartition] = []
        self.diverged: dict[TopicPartition, int] = {}
        self.asked = 0
        self.budget = budget
        self._next: dict[TopicPartition, int] = {}
        self.loop = loop
        self.reader = BatchReader(settings, loop, self)

    def start(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._next.update(offsets)
        on_loop(self.loop, lambda: self.reader.start(offsets.keys(), offsets))

    def go_to(self, partition: TopicPartition, offset: int) -> None:
        """Continue a paused partition at the offset."""

        def run() -> None:
            self._next[partition] = offset
            self.reader.advance(partition, offset)
            self.reader.fetch_more()

        on_loop(self.loop, run)

    def keyed(self, partition: TopicPartition) -> list[Keyed]:
        return [(record.key, record.value) for record in self.records.get(partition, ())]

    def await_records(self, partition: TopicPartition, expected: Sequence[Keyed]) -> None:
        """Wait until exactly these records have been read, in this order."""
        await_value(
            lambda: len(self.keyed(partition)) >= len(expected),
            WAIT_S,
            lambda: (
                f"{len(self.keyed(partition))} of {len(expected)} records; {self.failures[-3:]}; "
                f"out of range: {self.out_of_range}, diverged: {self.diverged}, {self.recreated}"
            ),
        )
        assert self.keyed(partition) == list(expected)

    def fetched(self, partition: FetchedPartition) -> None:
        self.response_bytes[-1] += len(partition.records)
        for batch in iterate_batches(partition.records):
            fresh = [rec for rec in decode(batch.data) if rec.offset >= self._next[partition.partition]]
            self.records.setdefault(partition.partition, []).extend(fresh)
            self._next[partition.partition] = batch.header.last_offset + 1
        self.reader.advance(partition.partition, self._next[partition.partition])

    def response_taken(self) -> int:
        self.response_bytes.append(0)
        return self.budget_bytes()

    def fetch_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        self.failures.append(Failure(partition, error))

    def fetch_works(self, partition: TopicPartition) -> None:
        """Nothing to do."""

    def source_diverged(self, partition: TopicPartition, at: int, epoch: int) -> None:
        """Continue with the new leader's epoch if nothing was read past the divergence."""
        self.diverged[partition] = at
        if at >= self._next[partition]:
            self.reader.begin(partition, self._next[partition], NO_TOPIC_ID, epoch)
            self.loop.call_soon(self.reader.fetch_more)

    def source_recreated(self, partition: TopicPartition) -> None:
        self.recreated.append(partition)

    def offset_out_of_range(self, partition: TopicPartition) -> None:
        self.out_of_range.append(partition)

    def budget_bytes(self) -> int:
        self.asked += 1
        return self.budget


@contextmanager
def reading(
    settings: ConsumerSettings, offsets: Mapping[TopicPartition, int], *, budget: int = PLENTY
) -> Iterator[RecordingReader]:
    with running_loop() as loop:
        made = RecordingReader(settings, loop, budget)
        made.start(offsets)
        try:
            yield made
        finally:
            on_loop(loop, made.reader.stop)
