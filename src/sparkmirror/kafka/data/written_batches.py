"""Checks in the background which batches of a producer a log holds, after their Produce responses were lost.

A resend is not always recognized: a restarted broker remembers one batch of a producer instead of five, and
none whose records are older than `producer.id.expiration.ms`.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import NamedTuple, Protocol

from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import iterate_batches
from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import AuthorizationError, RetriableError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_offsets import LATEST, list_offsets
from sparkmirror.kafka.data.partition_queue import PartitionQueue, Route
from sparkmirror.kafka.data.partition_reader import PartitionReader


class Wanted(NamedTuple):
    """A producer whose batches are searched for, and the offset to begin at."""

    producer: ProducerId
    from_offset: int


class Written(NamedTuple):
    """A batch that is in the log below its high watermark."""

    sequence: int
    record_count: int
    base_offset: int


def written_batches(
    settings: ConnectionSettings, wanted: Mapping[TopicPartition, Wanted]
) -> Mapping[TopicPartition, list[Written] | SparkmirrorError]:
    """The batches found in each partition, in order, or why it can't be read. Blocks. Raises KafkaError."""
    consumer = ConsumerSettings(settings)
    ends, errors = _ends(consumer, list(wanted))
    written: dict[TopicPartition, list[Written]] = {partition: [] for partition in ends}
    offsets = {partition: wanted[partition].from_offset for partition in ends}
    with closing(PartitionReader(consumer)) as reader:
        while left := {
            partition: offset for partition, offset in offsets.items() if offset < ends[partition]
        }:
            for fetched in reader.fetch(left, 0.0):
                partition, before = fetched.partition, left[fetched.partition]
                for header in (batch.header for batch in iterate_batches(fetched.records)):
                    if header.last_offset < before:
                        continue
                    offsets[partition] = header.last_offset + 1
                    if wanted[partition].producer.wrote(header):
                        found = Written(header.base_sequence, header.record_count, header.base_offset)
                        written[partition].append(found)
                if fetched.error:  # out of range: retention has been here
                    offsets[partition] = ends[partition]
            if all(offsets[partition] == offset for partition, offset in left.items()):
                break  # a new leader has less: the ends are not what they were
    return {**written, **errors}


def _ends(
    consumer: ConsumerSettings, partitions: Sequence[TopicPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, SparkmirrorError]]:
    """The ends of the logs that are replicated up to there, and errors for the others.

    What was appended and is not replicated can't be read: it would be taken for missing, and sent again.
    """
    ends: dict[TopicPartition, int] = {}
    errors: dict[TopicPartition, SparkmirrorError] = {}
    log_ends = list_offsets(consumer, partitions, LATEST, unreplicated=True)
    for partition, replicated in list_offsets(consumer, partitions, LATEST).items():
        log_end = log_ends[partition]
        if isinstance(replicated, SparkmirrorError):
            errors[partition] = replicated
        elif isinstance(log_end, SparkmirrorError):
            errors[partition] = log_end
        elif replicated < log_end:
            text = f"{log_end - replicated} records are not replicated yet: waiting for the followers"
            errors[partition] = RetriableError(f"{partition}: {text}")
        else:
            ends[partition] = replicated
    return ends, errors


class LogCheckOwner(Protocol):
    """The writer. All calls come on the loop's thread."""

    def log_checked(self, queue: PartitionQueue, written: list[Written], error: SparkmirrorError) -> None:
        """Take the batches that the log holds of what the queue had sent; the error made that unclear."""

    def log_check_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        """The check is retried with back-off."""


class LogChecks:
    """Checks together what goes to one connection, so that a slow broker delays no other partitions."""

    def __init__(
        self, settings: ConnectionSettings, loop: asyncio.AbstractEventLoop, owner: LogCheckOwner
    ) -> None:
        self._settings = settings
        self._loop = loop
        self._owner = owner
        self._backoff = Backoff(settings.retry_backoff_s, settings.retry_backoff_max_s)
        self._unclear: dict[Route | None, dict[PartitionQueue, SparkmirrorError]] = {}
        self._tasks: dict[Route | None, asyncio.Task[None]] = {}

    def start(self, queue: PartitionQueue, error: SparkmirrorError) -> None:
        """Check what the queue had sent. Nothing of it may be in flight, nor be sent before the end."""
        self._unclear.setdefault(queue.route, {})[queue] = error
        if queue.route not in self._tasks:
            self._tasks[queue.route] = self._loop.create_task(self._check(queue.route))

    def cancel(self, queue: PartitionQueue) -> None:
        """Report no result: what the queue had sent was given up."""
        for unclear in self._unclear.values():
            unclear.pop(queue, None)

    def stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    async def _check(self, route: Route | None) -> None:
        failures = 0
        unclear = self._unclear[route]
        while unclear:
            errors = {queue.partition: (queue, error) for queue, error in unclear.items()}
            wanted = {
                partition: Wanted(queue.producer, queue.next_offset)
                for partition, (queue, _) in errors.items()
                if queue.producer is not None
            }
            try:
                found = await self._loop.run_in_executor(None, written_batches, self._settings, wanted)
            except SparkmirrorError as error:
                found = dict.fromkeys(wanted, error)
            for partition, written in found.items():
                queue, cause = errors[partition]
                if unclear.get(queue) is not cause:
                    continue  # given up meanwhile
                if isinstance(written, SparkmirrorError) and not isinstance(written, AuthorizationError):
                    self._owner.log_check_failed(partition, written)
                    continue
                # Without the right to read only what the broker remembers protects from duplicates.
                there = [] if isinstance(written, SparkmirrorError) else written
                del unclear[queue]
                self._owner.log_checked(queue, there, cause)
            failures += 1
            if unclear:
                await asyncio.sleep(self._backoff.delay_s(failures, random.random()))
        del self._tasks[route]
