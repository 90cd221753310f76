"""Brings fresh logs to the offset where their source begins: filler, then DeleteRecords.

Partitions are filled side by side, a batch each at a time. A log that is filled in part continues where it
ends, and not before its followers have what its leader has. Two attempts that fill one log write the same
numbers, and the broker keeps one of each, as long as it knows the producer: filler is as old as can be, so a
leader forgets it when it looks for expired producers.
"""

import logging
import threading
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sparkmirror.batches.filler import FILLER_RECORDS_MAX, filler_batch, is_filler
from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.preserve.preserved_tail import Bounds, unreplicated
from sparkmirror.domain.client_settings import ConsumerSettings, ProducerSettings
from sparkmirror.domain.errors import AuthorizationError, KafkaError, RetriableError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.preserving import FILLER_BYTES
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.data.log_starts import move_log_starts
from sparkmirror.kafka.data.partition_offsets import LATEST, offsets_by
from sparkmirror.kafka.data.partition_reader import SpanReader
from sparkmirror.kafka.data.single_batches import produce_batches
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.wire.error_codes import (
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    POLICY_VIOLATION,
    RECORD_LIST_TOO_LARGE,
    SEQUENCE_UNKNOWN,
)

_log = logging.getLogger(__name__)

_ESTIMATED_AFTER_S: Final = 3.0
_RECORDS_MIN: Final = 1000
"""A broker that refuses batches of so few empty records refuses all, or they would take too long."""
_FILLER_EPOCH: Final = 0


class Beginning(NamedTuple):
    """A log that ends at `at`, with nothing but filler, and whose records begin at `start`."""

    producer_id: int
    at: int
    start: int


@dataclass(slots=True)
class _Filling:
    """`at` is where the log ends now."""

    beginning: Beginning
    at: int
    keyed: bool = False
    records_max: int = FILLER_RECORDS_MAX


@dataclass(frozen=True, slots=True)
class PreservedStarts:
    """Fills beginnings. Blocks.

    `ended` makes it return soon; `fill_timeout_s` is the longest that a beginning may take.
    """

    producer: ProducerSettings
    fill_timeout_s: float
    ended: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def of(cls, plan: TaskPlan) -> "PreservedStarts":
        return cls(plan.producer, plan.settings.preserving.fill_timeout_s)

    def fill(
        self, beginnings: Mapping[TopicPartition, Beginning]
    ) -> Mapping[TopicPartition, SparkmirrorError | None]:
        """Fill target partitions up to their start and move their log starts there. What hinders it, by each.

        Raises RetriableError when no broker responds.
        """
        network = network_of(self.producer.connection)
        began = network.time()
        left = {partition: _Filling(each, each.at) for partition, each in beginnings.items()}
        with closing(Cluster(self.producer.connection)) as cluster:
            errors = self._hindrances(cluster, beginnings)
            while due := {at: each for at, each in left.items() if at not in errors}:
                if self.ended.is_set():
                    return {**errors, **{at: _waiting(at, each) for at, each in due.items()}}
                for at in [at for at, each in due.items() if each.at >= each.beginning.start]:
                    errors[at] = None
                    del due[at]
                errors.update(self._fill_on(cluster, due))
                took_s = network.time() - began
                if took_s >= _ESTIMATED_AFTER_S:
                    errors.update(self._too_long(due, errors, took_s))
        self._log_filled(beginnings, errors, network.time() - began)
        filled = {at: beginnings[at].start for at, error in errors.items() if error is None}
        return {**errors, **self.move(filled)}

    def move(self, starts: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, SparkmirrorError | None]:
        """Let consumers see nothing before these offsets."""
        moved = move_log_starts(self.producer.connection, starts)
        return {
            at: _unmoved(at, starts[at], found) if isinstance(found, SparkmirrorError) else None
            for at, found in moved.items()
        }

    def _hindrances(
        self, cluster: Cluster, beginnings: Mapping[TopicPartition, Beginning]
    ) -> dict[TopicPartition, SparkmirrorError | None]:
        settings = ConsumerSettings(self.producer.connection)
        ends = offsets_by(cluster, settings, beginnings, LATEST, unreplicated=True)
        found = {at: unreplicated(at, each.at, ends[at]) for at, each in beginnings.items()}
        return {at: error for at, error in found.items() if error is not None}

    def _fill_on(
        self, cluster: Cluster, due: Mapping[TopicPartition, _Filling]
    ) -> Mapping[TopicPartition, SparkmirrorError]:
        """Write a batch to each; the errors of those that can't continue now."""
        batches = {partition: _next_batch(filling) for partition, filling in due.items()}
        written = produce_batches(
            cluster, self.producer, {partition: batch.data for partition, batch in batches.items()}
        )
        errors: dict[TopicPartition, SparkmirrorError] = {}
        for partition, result in written.items():
            filling, count = due[partition], len(batches[partition].offsets)
            if not isinstance(result, SparkmirrorError):
                if result == filling.at:
                    filling.at += count
                else:
                    text = (
                        f"{partition} ends at {result} instead of {filling.at}: another producer writes to it"
                    )
                    errors[partition] = KafkaError(text)
            elif not _adapts(filling, count, result):
                errors[partition] = _explained(partition, filling, result)
        return errors

    def _too_long(
        self,
        due: Mapping[TopicPartition, _Filling],
        errors: Mapping[TopicPartition, SparkmirrorError | None],
        took_s: float,
    ) -> Mapping[TopicPartition, SparkmirrorError]:
        """The error for those that take longer than they may, as far as can be told by now."""
        found: dict[TopicPartition, SparkmirrorError] = {}
        for partition, filling in due.items():
            begin, start = filling.beginning.at, filling.beginning.start
            left_s = (start - filling.at) * took_s / max(filling.at - begin, 1)
            if partition not in errors and took_s + left_s > self.fill_timeout_s:
                text = (
                    f"{partition}: its source starts at {start}, and to fill the offsets from {filling.at} "
                    f"on takes about {left_s:.0f} s: raise offsets.preserve.fill.timeout.ms, or leave it "
                    "out of offsets.preserve.topics"
                )
                found[partition] = KafkaError(text)
        return found

    def _log_filled(
        self,
        beginnings: Mapping[TopicPartition, Beginning],
        errors: Mapping[TopicPartition, SparkmirrorError | None],
        took_s: float,
    ) -> None:
        for partition, each in beginnings.items():
            if errors[partition] is None:
                _log.info(
                    "%s begins at offset %d as its source: %d offsets filled in %.1f s",
                    partition,
                    each.start,
                    each.start - each.at,
                    took_s,
                )


def filler_end(reader: SpanReader, partition: TopicPartition, bounds: Bounds) -> int:
    """Return where the filler at a log's start ends, `bounds.start` if there is none.

    A broker that is killed may come back with an earlier start than it had. Raises KafkaError.
    """
    found = bounds.start
    for batch in reader.read(partition, bounds.start, bounds.end):
        if not is_filler(batch):
            break
        found = batch.header.last_offset + 1
    return found


def _next_batch(filling: _Filling) -> OutgoingBatch:
    # In steps of the same boundaries, so that two attempts make the same batches.
    at, most = filling.at, filling.records_max
    count = min(most - at % most, filling.beginning.start - at)
    producer = ProducerId(filling.beginning.producer_id, _FILLER_EPOCH)
    return filler_batch(at, count, producer, keyed=filling.keyed)


def _adapts(filling: _Filling, count: int, error: SparkmirrorError) -> bool:
    """Whether the batch may be taken in another form."""
    if error.code == INVALID_RECORD and not filling.keyed:
        filling.keyed = True
        return True
    is_too_large = error.code in (MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE) and count > 1
    if is_too_large or (error.code == INVALID_RECORD and count > _RECORDS_MIN):
        filling.records_max = max(count // 2, 1)
        return True
    return False


def _explained(partition: TopicPartition, filling: _Filling, error: SparkmirrorError) -> SparkmirrorError:
    if error.code in SEQUENCE_UNKNOWN:
        return RetriableError(f"{partition}: another attempt fills it too: {error}", error.code)
    if error.retriable or isinstance(error, AuthorizationError):
        return error
    start, left = filling.beginning.start, filling.beginning.start - filling.at
    size_mb = left * FILLER_BYTES / 1e6
    what = "batches of empty records: leave its topic out of offsets.preserve.topics"
    if error.code == INVALID_TIMESTAMP:
        what = (
            "old timestamps: remove message.timestamp.before.max.ms (and "
            f"message.timestamp.difference.max.ms) of {partition.topic} for the time being"
        )
    return KafkaError(
        f"{partition}: its beginning up to offset {start} ({left:,} offsets, {size_mb:,.1f} MB) can't be "
        f"filled, since the target refuses {what} ({error})",
        error.code,
    )


def _unmoved(partition: TopicPartition, start: int, error: SparkmirrorError) -> SparkmirrorError:
    if error.retriable or isinstance(error, AuthorizationError):
        return error
    remedy = "leave its topic out of offsets.preserve.topics"
    if error.code == POLICY_VIOLATION:
        remedy = "add delete to its cleanup.policy there for the time being"
    return KafkaError(
        f"{partition}: its log can't start at offset {start}, since the target refuses to delete records: "
        f"{remedy} ({error})",
        error.code,
    )


def _waiting(partition: TopicPartition, filling: _Filling) -> RetriableError:
    start = filling.beginning.start
    return RetriableError(f"{partition}: its beginning is filled up to {filling.at} of {start} offsets")
