"""The copy thread of a task: reads batches, writes batches, keeps positions, all on one asyncio loop.

Joins `BatchReader` and `BatchWriter` through the partitions' states; `task_state` makes it durable.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.batch_copying import CopyRules
from sparkmirror.domain.client_settings import OffsetReset
from sparkmirror.domain.compression import CODECS
from sparkmirror.domain.copy_plan import TaskPlan
from sparkmirror.domain.errors import CorruptBatchError, KafkaError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.record_batch import OutgoingBatch
from sparkmirror.engine.partition_copy import PartitionCopy
from sparkmirror.engine.task_state import TaskState
from sparkmirror.kafka.batch_reader import BatchReader
from sparkmirror.kafka.batch_writer import BatchWriter
from sparkmirror.kafka.fetch import FetchedPartition
from sparkmirror.kafka.offsets import EARLIEST, LATEST, list_offsets

_log = logging.getLogger(__name__)

_REPORT_INTERVAL_S = 1.0
_DRAIN_TIMEOUT_S = 3.0
"""How long an orderly stop waits for acknowledgements of what is in flight."""

_UNREACHABLE = Backoff(0.2, 5.0)
_PERSON_NEEDED = Backoff(1.0, 30.0)
"""For what only a person can mend: looked at again all the same, so that mending is enough."""


class CopyLoop:
    """`run` blocks its thread until `stop`, which any thread may call. A bug in it raises out of `run`."""

    def __init__(self, plan: TaskPlan) -> None:
        self._plan = plan
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._bug: BaseException | None = None
        self._executor = ThreadPoolExecutor(thread_name_prefix="sparkmirror-io")
        self._reader = BatchReader(plan.consumer, self._loop, self)
        self._writer = BatchWriter(plan.producer, self._loop, self)
        self._state = TaskState(plan)
        self._copies: dict[TopicPartition, PartitionCopy] = {}
        self._by_target: dict[TopicPartition, PartitionCopy] = {}
        self._outstanding_bytes = 0
        self._starved = False
        # A partition far ahead of its acknowledgements must leave room for the others of the task.
        self._partition_bytes_max = max(
            plan.buffer_bytes_max // max(len(plan.partitions), 1), 2 * plan.consumer.partition_fetch_bytes_max
        )

    def run(self) -> None:
        self._loop.set_default_executor(self._executor)
        self._loop.set_exception_handler(self._on_bug)
        try:
            self._loop.run_until_complete(self._main())
        finally:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._loop.close()
        if self._bug is not None:
            raise self._bug

    def stop(self) -> None:
        """End in order: positions of everything acknowledged are written before `run` returns."""
        self._loop.call_soon_threadsafe(self._stopping.set)

    def _on_bug(self, _: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
        error = context.get("exception")
        self._bug = self._bug or (error if isinstance(error, BaseException) else RuntimeError(str(context)))
        self._stopping.set()

    async def _main(self) -> None:
        stored = await self._read_positions()
        if stored is None:
            return
        self._begin(stored)
        report = self._loop.create_task(self._report_forever())
        await self._stopping.wait()
        report.cancel()
        await self._finish()

    async def _read_positions(self) -> Mapping[TopicPartition, int] | None:
        """The stored positions, however long it takes; None when told to stop before."""
        failures = 0
        while not self._stopping.is_set():
            try:
                return await self._loop.run_in_executor(None, self._state.read_positions)
            except SparkmirrorError as error:
                failures += 1
                _log.warning("positions can't be read: %s; trying again", error)
                await self._sleep(_UNREACHABLE.delay_s(failures, random.random()))
        return None

    async def _sleep(self, delay_s: float) -> None:
        """Sleep, but wake up to stop."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), delay_s)

    def _begin(self, stored: Mapping[TopicPartition, int]) -> None:
        rules = CopyRules(
            codec=None
            if self._plan.producer.compression is None
            else CODECS.index(self._plan.producer.compression),
            check_crcs=self._plan.consumer.check_crcs,
        )
        for partition in self._plan.partitions:
            copy = PartitionCopy(
                partition,
                stored.get(partition.source, -1) + 1,
                replace(rules, target_stamps_append_time=partition.target_stamps_append_time),
                read_committed=self._plan.consumer.read_committed,
            )
            self._copies[partition.source] = self._by_target[partition.target] = copy
        self._writer.start(self._by_target.keys())
        self._reader.start(
            self._copies.keys(), {partition: offset + 1 for partition, offset in stored.items()}
        )
        self._find_offsets([partition for partition in self._copies if partition not in stored])

    async def _finish(self) -> None:
        self._reader.stop()
        self._writer.discard_unsent()
        deadline = self._loop.time() + _DRAIN_TIMEOUT_S
        while not self._writer.is_idle and self._loop.time() < deadline:  # noqa: ASYNC110 - bounded, and once
            await asyncio.sleep(0.01)
        self._writer.stop()
        await self._loop.run_in_executor(None, self._state.close, list(self._copies.values()))

    # where to begin, when no position says so

    def _find_offsets(self, partitions: list[TopicPartition]) -> None:
        """Apply `auto.offset.reset`."""
        policy = self._plan.consumer.offset_reset
        if not partitions:
            return
        if policy is OffsetReset.NONE:
            for partition in partitions:
                self._copies[partition].fetch_error = KafkaError(
                    f"{partition} has no valid position and auto.offset.reset is none"
                )
            return
        self._loop.create_task(
            self._ask_offsets(partitions, EARLIEST if policy is OffsetReset.EARLIEST else LATEST)
        )

    async def _ask_offsets(self, partitions: list[TopicPartition], which: int) -> None:
        failures = 0
        while partitions:
            answers = await self._list_offsets(partitions, which)
            for partition, answer in answers.items():
                if isinstance(answer, int):
                    self._copies[partition].restart_at(answer)
                    self._reader.advance(partition, answer)
                else:
                    self._copies[partition].fetch_error = answer
            self._reader.fetch_more()
            partitions = [partition for partition in partitions if not isinstance(answers[partition], int)]
            failures += 1
            if partitions:
                await self._sleep(_UNREACHABLE.delay_s(failures, random.random()))
            if self._stopping.is_set():
                return

    async def _list_offsets(
        self, partitions: list[TopicPartition], which: int
    ) -> Mapping[TopicPartition, int | SparkmirrorError]:
        try:
            return await self._loop.run_in_executor(
                None, list_offsets, self._plan.consumer, partitions, which
            )
        except SparkmirrorError as error:
            return dict.fromkeys(partitions, error)

    # the reader's listener

    def budget_bytes(self) -> int:
        budget = self._plan.buffer_bytes_max - self._outstanding_bytes
        self._starved = budget < self._plan.buffer_bytes_max // 2
        return budget

    def fetched(self, fetched: FetchedPartition) -> None:
        copy = self._copies[fetched.partition]
        copy.fetch_error = None
        read_committed = self._plan.consumer.read_committed
        copy.end_offset = fetched.last_stable_offset if read_committed else fetched.high_watermark
        before = copy.outstanding_bytes
        try:
            for batch in copy.take(fetched):
                self._writer.append(copy.plan.target, batch)
        except CorruptBatchError as error:
            self._reader.pause(fetched.partition)
            self._fail(copy, KafkaError(f"{fetched.partition} on the source: {error}"))
        else:
            self._go_on(copy)
        self._outstanding_bytes += copy.outstanding_bytes - before

    def _go_on(self, copy: PartitionCopy) -> None:
        if copy.outstanding_bytes > self._partition_bytes_max:
            copy.paused = True
            self._reader.pause(copy.plan.source)
        else:
            self._reader.advance(copy.plan.source, copy.fetch_position)

    def response_taken(self) -> None:
        self._writer.flush()

    def fetch_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        self._copies[partition].fetch_error = error

    def offset_out_of_range(self, partition: TopicPartition) -> None:
        copy = self._copies[partition]
        _log.warning(
            "%s: offset %d is gone from the source (retention, truncation or a recreated topic); "
            "auto.offset.reset=%s decides",
            partition,
            copy.fetch_position,
            self._plan.consumer.offset_reset.value,
        )
        self._find_offsets([partition])

    # the writer's listener

    def acknowledged(
        self, partition: TopicPartition, batch: OutgoingBatch, base_offset: int, *, completes: bool
    ) -> None:
        copy = self._by_target[partition]
        before = copy.outstanding_bytes
        copy.acknowledged(batch, time.time() * 1000, completes=completes)
        self._outstanding_bytes += copy.outstanding_bytes - before
        self._state.note_sync(copy.plan.source, batch, base_offset)
        if copy.paused and copy.outstanding_bytes <= self._partition_bytes_max // 2:
            copy.paused = False
            self._reader.advance(copy.plan.source, copy.fetch_position)
            self._starved = True
        if self._starved and self._outstanding_bytes <= self._plan.buffer_bytes_max // 2:
            self._starved = False
            self._loop.call_soon(self._reader.fetch_more)

    def write_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        self._by_target[partition].write_error = error

    def write_possible(self, partition: TopicPartition) -> None:
        copy = self._by_target[partition]
        if copy.write_error is not None and copy.write_error.retriable:
            copy.write_error = None

    def write_refused(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        copy = self._by_target[partition]
        self._outstanding_bytes -= copy.outstanding_bytes
        copy.discard()
        copy.paused = False
        self._reader.pause(copy.plan.source)
        self._fail(copy, error, written=True)

    def _fail(self, copy: PartitionCopy, error: SparkmirrorError, *, written: bool = False) -> None:
        """Report it, and look again later: what a person mended goes on by itself."""
        if written:
            copy.write_error = error
        else:
            copy.fetch_error = error
        copy.failures += 1
        delay_s = _PERSON_NEEDED.delay_s(copy.failures, random.random())
        self._loop.call_later(delay_s, self._try_again, copy)

    def _try_again(self, copy: PartitionCopy) -> None:
        self._reader.advance(copy.plan.source, copy.fetch_position)
        self._reader.fetch_more()

    # once a second

    async def _report_forever(self) -> None:
        while True:
            await asyncio.sleep(_REPORT_INTERVAL_S)
            write = self._state.collect(self._copies.values(), self._loop.time())
            if write is not None:
                self._loop.run_in_executor(None, write)
