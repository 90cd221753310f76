"""The copy thread of a task: reads batches, writes batches, keeps positions, all on one asyncio loop.

Joins `BatchReader` and `BatchWriter` through the partitions' states; `task_state` makes it durable.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Collection, Coroutine, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from sparkmirror.batches.batch_copying import MERGED_BYTES_MAX, CopyRules
from sparkmirror.batches.compression import CODECS
from sparkmirror.batches.cycles import CycleError, UnknownWriterError
from sparkmirror.batches.record_batch import OutgoingBatch, end_of_batch, writers
from sparkmirror.copy.batch_refusals import is_about_the_batch, with_mending
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.resume import ResumeReason, Resumption, Start
from sparkmirror.copy.task_state import TaskState
from sparkmirror.copy.throttle import Throttle
from sparkmirror.copy.transaction_cycle import TransactionCycle
from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.errors import CorruptBatchError, KafkaError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import IncidentKind, OnBadBatch, cycle_found
from sparkmirror.kafka.batch_reader import BatchReader
from sparkmirror.kafka.batch_writer import BatchWriter
from sparkmirror.kafka.error_codes import INVALID_PRODUCER_EPOCH
from sparkmirror.kafka.fetch import FetchedPartition
from sparkmirror.policies.rate_limits import RateLimits
from sparkmirror.storage.dead_letters import DeadLetter
from sparkmirror.storage.positions import Position

_log = logging.getLogger(__name__)

_REPORT_INTERVAL_S = 1.0
_DRAIN_TIMEOUT_S = 3.0
"""How long an orderly stop waits for acknowledgements of what is in flight."""

_SETTLE_INTERVAL_S = 0.02
FENCED_PAUSE_S = 5.0
"""How long a copy job's end may take to reach a task that a newer one has fenced."""

_TRIES_TO_EXPLAIN = 12
"""Checks of the target's log before sequence numbers that a broker refuses start again at 0.

They take 36 s: what another attempt wrote shows only when the followers have it, and brokers wait 30 s for
followers that are slow (`replica.lag.time.max.ms`)."""

_UNREACHABLE = Backoff(0.2, 5.0)
_PERSON_NEEDED = Backoff(1.0, 30.0)
"""For what only a person can mend: looked at again all the same, so that mending is enough."""


class CopyLoop:
    """`run` blocks its thread until `stop`, which any thread may call. A bug in it raises out of `run`."""

    def __init__(
        self,
        plan: TaskPlan,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        executor: ThreadPoolExecutor | None = None,
        coordinator: Executor | None = None,
        fenced_pause_s: float = FENCED_PAUSE_S,
    ) -> None:
        """`executor` runs what blocks, `coordinator` the calls about transactions, one at a time.

        The loop and both executors are closed when `run` ends.
        """
        self._plan = plan
        self._fenced_pause_s = fenced_pause_s
        self._loop = loop or asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._bug: BaseException | None = None
        self._executor = executor or ThreadPoolExecutor(thread_name_prefix="sparkmirror-io")
        self._reader = BatchReader(plan.consumer, self._loop, self)
        self._writer = BatchWriter(plan.producer, self._loop, self)
        self._state = TaskState(plan)
        self._loops = CycleDetection(plan)
        self._cycle = (
            None
            if plan.transaction is None
            else TransactionCycle(plan, self._loop, self, self._state, self._loops, coordinator)
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._copies: dict[TopicPartition, PartitionCopy] = {}
        self._by_target: dict[TopicPartition, PartitionCopy] = {}
        self._beginning: set[TopicPartition] = set()
        self._unknown_writers: dict[TopicPartition, set[int]] = {}
        self._looking_up: asyncio.Task[None] | None = None
        self._has_begun = False
        self._transaction_error: SparkmirrorError | None = None
        self._writing: asyncio.Future[None] | None = None
        """The newest write of what `TaskState.collect` gave."""
        self._outstanding_bytes = 0
        self._starved = False
        self._pace = Throttle(
            plan.rate_limits,
            plan.rate_shares,
            self._loop,
            go_on=lambda partition: self._go_on(self._copies[partition]),
            fetch_more=self._reader.fetch_more,
        )
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

    def change_limits(self, limits: RateLimits) -> None:
        """Keep to these from now on; any thread may call it."""
        self._loop.call_soon_threadsafe(self._pace.change, limits)

    def _on_bug(self, _: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
        error = context.get("exception")
        self._bug = self._bug or (error if isinstance(error, BaseException) else RuntimeError(str(context)))
        self._stopping.set()

    async def _main(self) -> None:
        self._prepare()
        self._spawn(self._begin())
        reports = self._loop.create_task(self._report_forever())
        reports.add_done_callback(self._despawn)
        await self._stopping.wait()
        reports.cancel()
        self._end_tasks()
        await self._finish()

    async def _begin(self) -> None:
        """Begin all partitions at their stored positions."""
        if self._cycle is not None:
            self._writer = await self._cycle.open()
        stored = await self._read_positions()
        if stored is None:
            return
        self._has_begun = True
        if self._cycle is not None:
            self._cycle.start(self._writer)
        await self._resume({partition: ResumeReason(stored.get(partition)) for partition in self._copies})

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)  # the loop itself holds its tasks weakly
        task.add_done_callback(self._despawn)
        return task

    def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _despawn(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_bug(self._loop, {"exception": error})

    async def _read_positions(self) -> Mapping[TopicPartition, Position] | None:
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

    def _prepare(self) -> None:
        compression = self._plan.producer.compression
        rules = CopyRules(
            codec=None if compression is None else CODECS.index(compression),
            check_crcs=self._plan.consumer.check_crcs,
            merged_bytes_max=MERGED_BYTES_MAX,
        )
        self._resumption = Resumption(
            self._plan,
            {
                partition.source: replace(
                    rules, target_stamps_append_time=partition.target_stamps_append_time
                )
                for partition in self._plan.partitions
            },
            self._loops,
        )
        for partition in self._plan.partitions:
            copy = PartitionCopy(
                partition,
                self._resumption.rules[partition.source],
                read_committed=self._plan.consumer.read_committed,
                loops=self._loops.filter(),
            )
            self._copies[partition.source] = self._by_target[partition.target] = copy
        if self._cycle is None:
            self._writer.start(self._by_target.keys())
        self._reader.start(self._copies.keys(), {})

    async def _finish(self) -> None:
        self._pace.stop()
        self._reader.stop()
        self._writer.discard_unsent()
        deadline = self._loop.time() + _DRAIN_TIMEOUT_S
        if self._cycle is not None:
            await self._cycle.finish(_DRAIN_TIMEOUT_S)
        while not self._writer.is_idle and self._loop.time() < deadline:  # noqa: ASYNC110 - bounded, and once
            await asyncio.sleep(0.01)
        self._writer.stop()
        if self._writing is not None:
            await self._writing
        if self._has_begun:
            await self._loop.run_in_executor(None, self._state.close, list(self._copies.values()))

    # where partitions begin

    async def _resume(self, occasions: Mapping[TopicPartition, ResumeReason]) -> None:
        """Begin partitions, each as soon as that is possible; see `Resumption.starts`."""
        left = dict(occasions)
        failures = 0
        while True:
            is_last_try = failures >= _TRIES_TO_EXPLAIN
            find = partial(self._resumption.starts, dict(left), is_last_try=is_last_try)
            try:
                starts = await self._loop.run_in_executor(None, find)
            except SparkmirrorError as error:
                _log.warning("%d partitions can't begin: %s; trying again", len(left), error)
                starts = dict.fromkeys(left, error)
            for partition, start in starts.items():
                if isinstance(start, SparkmirrorError):
                    self._copies[partition].fetch_error = start
                else:
                    del left[partition]
                    self._start(self._copies[partition], start)
            self._reader.fetch_more()
            if not left:
                return
            failures += 1
            can_heal = any(
                isinstance(start, SparkmirrorError) and start.retriable for start in starts.values()
            )
            await asyncio.sleep(
                (_UNREACHABLE if can_heal else _PERSON_NEEDED).delay_s(failures, random.random())
            )

    def _start(self, copy: PartitionCopy, start: Start) -> None:
        logs = start.logs
        copy.begin(start.position, start.producer, logs)
        if start.incident is not None:
            copy.note(start.incident)
        self._state.go_on_from(copy.plan.source, start.run)
        self._writer.begin(copy.plan.target, start.producer, logs.target_id)
        self._reader.begin(copy.plan.source, start.position, logs.source_id, logs.source_epoch)

    def _begin_again(self, copy: PartitionCopy, occasion: ResumeReason) -> None:
        """For the reason that the occasion has; one at a time: what is still the case then comes again."""
        if copy.plan.source not in self._beginning:
            self._beginning.add(copy.plan.source)
            self._spawn(self._begin_when_settled(copy, occasion))

    async def _begin_when_settled(self, copy: PartitionCopy, occasion: ResumeReason) -> None:
        while copy.outstanding_bytes:  # noqa: ASYNC110 - rare, and bounded by the writer
            await asyncio.sleep(_SETTLE_INTERVAL_S)
        if copy.producer is None:  # fenced, by then
            await asyncio.sleep(self._fenced_pause_s)
            stored = await self._read_positions()
            if stored is None:
                return
            occasion = ResumeReason(stored.get(copy.plan.source))
        else:
            known = copy.known_position
            if occasion.skipped is not None:
                known = known._replace(offset=occasion.skipped.last)
            occasion = occasion._replace(position=known)
        await self._resume({copy.plan.source: occasion})
        self._beginning.discard(copy.plan.source)

    # the transactions' owner

    @property
    def copies(self) -> Collection[PartitionCopy]:
        return self._copies.values()

    @property
    def has_outstanding(self) -> bool:
        return self._outstanding_bytes > 0

    def transaction_failed(self, error: SparkmirrorError | None) -> None:
        for copy in self._copies.values():
            if error is None:
                if copy.write_error is self._transaction_error:
                    copy.write_error = None
            elif copy.write_error is None or copy.write_error.retriable:
                copy.write_error = error  # what needs a person is not hidden by what passes
        self._transaction_error = error

    def transaction_lost(self) -> None:
        """Everything since the last commit is aborted: begin all partitions anew."""
        if self._stopping.is_set():
            return
        self._writer.stop()
        self._end_tasks()
        self._beginning.clear()
        self._unknown_writers.clear()
        for copy in self._copies.values():
            self._discard(copy.plan.target)
            copy.producer = None  # nothing goes on before it has begun
        self._spawn(self._begin())

    # the reader's listener

    def budget_bytes(self) -> int:
        budget = self._plan.buffer_bytes_max - self._outstanding_bytes
        self._starved = budget < self._plan.buffer_bytes_max // 2
        return self._pace.allowed(budget)

    def fetched(self, fetched: FetchedPartition) -> None:
        copy = self._copies[fetched.partition]
        copy.fetch_error = None
        read_committed = self._plan.consumer.read_committed
        copy.end_offset = fetched.last_stable_offset if read_committed else fetched.high_watermark
        epoch = self._reader.read_epoch(fetched.partition)
        if epoch != copy.logs.source_epoch:
            copy.logs = copy.logs._replace(source_epoch=epoch)
        before = copy.outstanding_bytes
        try:
            for batch in copy.take(fetched):
                self._writer.append(copy.plan.target, batch)
        except CorruptBatchError as error:
            self._reader.pause(fetched.partition)
            end = end_of_batch(fetched.records, copy.fetch_position)
            offsets = None if end is None else (copy.fetch_position, end - 1)
            self._refuse(copy, KafkaError(f"{fetched.partition} on the source: {error}"), offsets)
        except UnknownWriterError:
            self._pace.taken(fetched.partition, copy.outstanding_bytes - before)
            self._look_up(fetched)
        except CycleError as error:
            self._reader.pause(fetched.partition)
            self._fail(copy, self._loops.held_up(copy.plan, error))
        else:
            self._pace.taken(fetched.partition, copy.outstanding_bytes - before)
            self._go_on(copy)
        self._outstanding_bytes += copy.outstanding_bytes - before
        if copy.looped:
            self._tell_loop(copy)

    def _go_on(self, copy: PartitionCopy) -> None:
        """Fetch what follows, unless the partition is too far ahead of its acknowledgements, or too fast."""
        source = copy.plan.source
        copy.paused = copy.outstanding_bytes > self._partition_bytes_max
        if self._pace.rests(source) or copy.paused:
            self._reader.pause(source)
        else:
            self._reader.advance(source, copy.fetch_position)

    # records that come back

    def _look_up(self, fetched: FetchedPartition) -> None:
        """The partition rests until it's known who wrote what it has next; then that is fetched again."""
        self._reader.pause(fetched.partition)
        self._unknown_writers[fetched.partition] = writers(fetched.records)
        if self._looking_up is None or self._looking_up.done():
            self._looking_up = self._spawn(self._look_up_writers())

    async def _look_up_writers(self) -> None:
        failures = 0
        while self._unknown_writers:
            unknown = dict(self._unknown_writers)
            try:
                await self._loop.run_in_executor(None, self._loops.look_up, set().union(*unknown.values()))
            except SparkmirrorError as error:
                for partition in unknown:
                    self._copies[partition].fetch_error = error
                failures += 1
                retry = _UNREACHABLE if error.retriable else _PERSON_NEEDED
                await asyncio.sleep(retry.delay_s(failures, random.random()))
                continue
            failures = 0
            for partition in unknown:
                self._unknown_writers.pop(partition, None)
                copy = self._copies[partition]
                if self._loops.unseen is not None and not copy.incidents[self._loops.unseen.kind]:
                    copy.note(self._loops.unseen)
                if copy.producer is not None and partition not in self._beginning:
                    self._go_on(copy)
            self._reader.fetch_more()

    def _tell_loop(self, copy: PartitionCopy) -> None:
        """Once: it's no trouble where two clusters mirror each other."""
        if not copy.incidents[IncidentKind.LOOP]:
            assert copy.loops is not None
            assert copy.loops.first is not None
            copy.note(cycle_found(*copy.loops.first, *self._plan.flow))

    # the reader's listener, continued

    def response_taken(self) -> None:
        self._writer.flush()

    def fetch_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        self._copies[partition].fetch_error = error

    def offset_out_of_range(self, partition: TopicPartition) -> None:
        self._begin_again(self._copies[partition], ResumeReason(is_gone=True))

    def source_diverged(self, partition: TopicPartition, at: int) -> None:
        self._begin_again(self._copies[partition], ResumeReason(diverged_at=at))

    def source_recreated(self, partition: TopicPartition) -> None:
        self._begin_again(self._copies[partition], ResumeReason())

    # the writer's listener

    def acknowledged(
        self, partition: TopicPartition, batch: OutgoingBatch, base_offset: int, *, completes: bool
    ) -> None:
        copy = self._by_target[partition]
        before = copy.outstanding_bytes
        copy.acknowledged(batch, base_offset, time.time() * 1000, completes=completes)
        self._outstanding_bytes += copy.outstanding_bytes - before
        self._state.note_sync(copy.plan.source, batch, base_offset)
        if copy.paused and copy.outstanding_bytes <= self._partition_bytes_max // 2:
            self._go_on(copy)
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

    def write_refused(self, partition: TopicPartition, error: SparkmirrorError, batch: OutgoingBatch) -> None:
        copy = self._discard(partition)
        if is_about_the_batch(error):
            self._refuse(copy, error, (batch.offsets[0], batch.offsets[-1]), written=True)
        else:
            self._fail(copy, error, written=True)

    def sequence_lost(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        copy = self._discard(partition)
        copy.write_error = error
        if error.code == INVALID_PRODUCER_EPOCH:
            # Somebody else has numbered it anew: it's theirs, unless they are gone soon. Whoever was fenced
            # says nothing more of the position.
            copy.producer = None
        self._begin_again(copy, ResumeReason(is_distrusted=True))

    def target_recreated(self, partition: TopicPartition) -> None:
        self._begin_again(self._discard(partition), ResumeReason())

    def _discard(self, target: TopicPartition) -> PartitionCopy:
        """The writer dropped what was outstanding; nothing more is fetched until that is dealt with."""
        copy = self._by_target[target]
        self._outstanding_bytes -= copy.outstanding_bytes
        copy.discard()
        copy.paused = False
        self._pace.forget(copy.plan.source)
        self._reader.pause(copy.plan.source)
        return copy

    def _refuse(
        self,
        copy: PartitionCopy,
        error: SparkmirrorError,
        offsets: tuple[int, int] | None,
        *,
        written: bool = False,
    ) -> None:
        """A batch can't be copied, and it's the batch's fault; None for offsets that can't be told."""
        if self._plan.settings.reactions.on_bad_batch is OnBadBatch.SKIP and offsets is not None:
            letter = DeadLetter(copy.plan.source, *offsets, str(error), time.time())
            self._begin_again(copy, ResumeReason(skipped=letter))
        else:
            self._fail(copy, with_mending(error, copy.plan.target_topic), written=written)

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
        if copy.producer is None:
            return  # it begins anew
        self._reader.advance(copy.plan.source, copy.fetch_position)
        self._reader.fetch_more()

    # once a second

    async def _report_forever(self) -> None:
        while True:
            await asyncio.sleep(_REPORT_INTERVAL_S)
            write = self._state.collect(self._copies.values(), self._loop.time())
            if write is not None:
                self._writing = self._loop.run_in_executor(None, write)
