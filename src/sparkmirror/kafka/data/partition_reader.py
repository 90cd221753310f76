"""Fetches whole batches of partitions, for a caller that may block. Every wait is bounded.

For state topics, and to read what the end of a log holds; the copy loop reads through `BatchReader`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from sparkmirror.batches.aborted_transactions import AbortedTransactions
from sparkmirror.batches.record_batch import BatchHeader, FetchedBatch, iterate_batches
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import DisconnectedError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.data.partition_offsets import EARLIEST, offsets_by
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.net.metadata import Metadata
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.retries import Retries
from sparkmirror.kafka.wire import fetch
from sparkmirror.kafka.wire.error_codes import OFFSET_OUT_OF_RANGE
from sparkmirror.kafka.wire.fetch import (
    FetchedPartition,
    FetchPosition,
    decode_fetch_response,
    encode_fetch_request,
)
from sparkmirror.kafka.wire.primitives import NO_EPOCH

_FETCH_BYTES_MAX = 8 << 20
_SPAN_FETCH_BYTES = 256 << 10
"""Records that are searched for are near, as a rule."""
_ALL = 1 << 62
TOGETHER_MAX = 100
"""Partitions in a Fetch ahead of the questions: each brings a batch at least."""
_SPAN_RESPONSE_TIMEOUT_S = 5.0
_SPAN = 100
"""Offsets that are read first where a log is read backwards."""
_SPAN_GROWTH = 8


class PartitionReader:
    """Reads batches of the partitions that are asked for. Not thread-safe: one owner."""

    def __init__(
        self,
        settings: ConsumerSettings,
        fetch_bytes_max: int = _FETCH_BYTES_MAX,
        metadata: Metadata | None = None,
    ) -> None:
        """A partition brings at most so many bytes at once, or one batch. `metadata` as in `list_offsets`."""
        self._settings = replace(settings, partition_fetch_bytes_max=fetch_bytes_max, fetch_bytes_min=1)
        self._bytes_max = fetch_bytes_max
        self._timeout_s = settings.connection.request_timeout_s
        self._cluster = Cluster(settings.connection, metadata)
        self._network = network_of(settings.connection)
        self._throttled_s = 0.0
        """The longest throttle time of the last answers, which may lack partitions then."""

    def partitions(self, topic: str) -> Sequence[TopicPartition]:
        """The topic's partitions, none for a topic that doesn't exist. Raises KafkaError."""
        return self._cluster.partitions(topic)

    def fetch(
        self, offsets: Mapping[TopicPartition, int], wait_s: float, read_epoch: int = NO_EPOCH
    ) -> list[FetchedPartition]:
        """The batches from these offsets on: those that are there, else those that arrive within `wait_s`.

        Has each partition, with or without batches: where a quota keeps an answer back, it is asked for again
        after the throttle time. A partition's error is 0 or OFFSET_OUT_OF_RANGE. Where the record before was
        read in the leader epoch `read_epoch`, the response says if the log has diverged since.

        Retries what may pass until the request's time-out has passed; raises at once when no broker responds.
        Raises KafkaError.
        """
        retries = Retries(self._settings.connection, self._network.time() + wait_s + self._timeout_s)
        found: dict[TopicPartition, FetchedPartition] = {}
        while left := [partition for partition in offsets if partition not in found]:
            self._throttled_s = 0.0
            answers = self._cluster.ask_leaders(
                left, lambda connection, led: self._exchange(connection, led, offsets, wait_s, read_epoch)
            )
            errors = [answer for answer in answers.values() if isinstance(answer, SparkmirrorError)]
            found |= {at: answer for at, answer in answers.items() if isinstance(answer, FetchedPartition)}
            if errors:
                retries.wait(min(errors, key=lambda error: error.retriable))
            elif self._throttled_s > 0:
                retries.throttled(self._throttled_s)
        return list(found.values())

    def starts(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, int | SparkmirrorError]:
        """The start of each log, or the error for it. Raises RetriableError when no broker responds."""
        return offsets_by(self._cluster, self._settings, partitions, EARLIEST)

    def forget_leaders(self) -> None:
        self._cluster.forget()

    def close(self) -> None:
        self._cluster.close()

    def _exchange(
        self,
        connection: Connection,
        led: Sequence[TopicPartition],
        offsets: Mapping[TopicPartition, int],
        wait_s: float,
        read_epoch: int,
    ) -> Mapping[TopicPartition, FetchedPartition | SparkmirrorError]:
        version = connection.version_of(fetch.API_KEY, "Fetch", fetch.VERSION_LOW, fetch.VERSION_HIGH_BY_NAME)
        correlation_id = connection.next_correlation_id()
        settings = replace(self._settings, fetch_wait_max_s=wait_s)
        wanted = {
            partition: FetchPosition(offsets[partition], NO_EPOCH, self._bytes_max, read_epoch)
            for partition in led
        }
        bytes_max = max(self._bytes_max, min(len(led) * self._bytes_max, _FETCH_BYTES_MAX))
        request = encode_fetch_request(wanted, settings, version, correlation_id, bytes_max)
        frame = connection.ask(request, "Fetch", wait_s + self._timeout_s)
        response = decode_fetch_response(frame, version, correlation_id)
        connection.throttle(response.throttle_s)
        if response.error:
            raise self._cluster.error(response.error, f"Fetch from {connection.address}")
        found = {each.partition: self._checked(each) for each in response.partitions}
        if response.throttle_s > 0:
            self._throttled_s = max(self._throttled_s, response.throttle_s)
            return found
        lacking = DisconnectedError(f"{connection.address} sent a Fetch response that lacks partitions")
        return {**dict.fromkeys(led, lacking), **found}

    def _checked(self, fetched: FetchedPartition) -> FetchedPartition | SparkmirrorError:
        if fetched.error in (0, OFFSET_OUT_OF_RANGE):
            return fetched
        partition = fetched.partition
        return self._cluster.error(fetched.error, str(partition), Need.READ_TOPIC.of(partition.topic))


class _Fetched(NamedTuple):
    """The answer to a Fetch of one partition, its batches without the one that is cut off."""

    partition: TopicPartition
    begin: int
    size_bytes: int
    batches: Sequence[FetchedBatch]
    aborted: Sequence[tuple[int, int]]

    @property
    def end(self) -> int:
        return self.batches[-1].header.last_offset + 1 if self.batches else self.begin

    def has(self, partition: TopicPartition, offset: int) -> bool:
        return self.partition == partition and self.begin <= offset < self.end


class SpanReader:
    """Reads the batches between two offsets of a partition, up to a number of bytes.

    What one Fetch brought is kept for the next span, since spans follow each other, as a rule. Not
    thread-safe: one owner. Connects on demand.
    """

    def __init__(self, settings: ConsumerSettings, metadata: Metadata | None = None) -> None:
        """Settings with `read_committed` leave aborted records out. `metadata` as in `list_offsets`."""
        timeout_s = min(settings.connection.request_timeout_s, _SPAN_RESPONSE_TIMEOUT_S)
        settings = replace(settings, connection=replace(settings.connection, request_timeout_s=timeout_s))
        self._read_committed = settings.read_committed
        self._reader = PartitionReader(settings, _SPAN_FETCH_BYTES, metadata)
        self._kept: _Fetched | None = None
        self._expected: dict[TopicPartition, int] = {}
        self._ahead: dict[TopicPartition, _Fetched] = {}
        self.bytes_read = 0

    def expect(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Fetch these partitions together: they are read soon, in this order and first from there."""
        self._expected = dict(offsets)

    def read(
        self, partition: TopicPartition, begin: int, end: int, bytes_max: int = _ALL
    ) -> Iterator[FetchedBatch]:
        """Whole batches, control batches included, that have a record between the offsets.

        Ends early after so many bytes, and where the log does not reach. Raises KafkaError and
        CorruptBatchError.
        """
        offset, stop = begin, self.bytes_read + bytes_max
        while offset < end and self.bytes_read < stop:
            fetched = self._fetched(partition, offset)
            aborted, before = AbortedTransactions(fetched.aborted), offset
            for batch in fetched.batches:
                dropped = aborted.drops(batch) and self._read_committed
                if not offset <= batch.header.last_offset or batch.header.base_offset >= end:
                    continue
                offset = batch.header.last_offset + 1
                if not dropped:
                    yield batch
            if offset == before:
                return

    def headers_backwards(
        self, partition: TopicPartition, begin: int, end: int
    ) -> Iterator[list[BatchHeader]]:
        """The headers of the batches between the offsets by spans that grow, from the last to the first.

        What is looked for is near the end, as a rule. Raises as `read`.
        """
        span = _SPAN
        while begin < end:
            middle = max(begin, end - span)
            yield [batch.header for batch in self.read(partition, middle, end)]
            end, span = middle, span * _SPAN_GROWTH

    def starts(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, int | SparkmirrorError]:
        """Do as `PartitionReader.starts`."""
        return self._reader.starts(partitions)

    def forget(self) -> None:
        """Fetch everything again: the log may have changed."""
        self._kept = None
        self._expected.clear()
        self._ahead.clear()

    def close(self) -> None:
        self._reader.close()

    def _fetched(self, partition: TopicPartition, offset: int) -> _Fetched:
        if self._kept is None or not self._kept.has(partition, offset):
            self._kept = self._next(partition, offset)
            self.bytes_read += self._kept.size_bytes
        return self._kept

    def _next(self, partition: TopicPartition, offset: int) -> _Fetched:
        if partition in self._expected:
            self._fetch_ahead(partition)
        ahead = self._ahead.pop(partition, None)
        if ahead is not None and ahead.has(partition, offset):
            return ahead
        (found,) = self._fetch({partition: offset})
        return found

    def _fetch_ahead(self, partition: TopicPartition) -> None:
        """Fetch the partition with those that are expected next. None of them fails for another's sake."""
        first = {partition: self._expected.pop(partition)}
        some = list(islice(self._expected, TOGETHER_MAX - 1))
        try:
            found = self._fetch({**first, **{each: self._expected.pop(each) for each in some}})
        except SparkmirrorError:
            self._expected.clear()
        else:
            self._ahead = {fetched.partition: fetched for fetched in found}

    def _fetch(self, offsets: Mapping[TopicPartition, int]) -> list[_Fetched]:
        return [
            _Fetched(
                fetched.partition,
                offsets[fetched.partition],
                len(fetched.records),
                list(iterate_batches(fetched.records)),
                fetched.aborted,
            )
            for fetched in self._reader.fetch(offsets, 0.0)
        ]
