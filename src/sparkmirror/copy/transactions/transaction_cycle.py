"""Writes a task's records and their positions together, transaction after transaction (KIP-618).

A cycle: batches flow; when the transaction is due the writer is held until everything in flight is
acknowledged, changed positions are written, the transaction is committed, and the writer continues in the
next one. Fetching continues meanwhile. An unclear outcome loses the transaction: the task then initialises
the transactional id again and resumes from the committed positions.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Protocol, TypeVar

from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerId, ProducerState
from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.state_writer import StateWriter
from sparkmirror.copy.transactions.position_log import PositionLog
from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.errors import FencedError, SparkmirrorError, UnclearTransactionError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.batch_writer import BatchWriter
from sparkmirror.kafka.data.transaction_scope import TransactionScope
from sparkmirror.kafka.data.writer_listener import WriterListener
from sparkmirror.kafka.transactions.transaction_runs import Transactions
from sparkmirror.storage.positions import Position

_log = logging.getLogger(__name__)

_POLL_S = 0.05
"""The least duration of a transaction: ending one costs a few requests."""

_LOADED_MIN_S, _LOADED_MAX_S = 0.25, 2.0
_END_SHARE = 0.1
"""A transaction under load lasts until its end takes this share of it, within the limits above. An end takes
40 to 60 ms beside brokers that share two busy cores, and three round trips to a far target."""

_IDLE_S = 1.0
"""Positions that moved without a copied record are written after this time."""

_CHECK_S = 0.01
_SETTLE_SHARE = 0.5
"""The share of the time-out to wait for batches in flight. An open transaction holds back read_committed
consumers of all its partitions."""

_FENCED = Backoff(5.0, 60.0)
"""A fenced task waits this long to be ended before it takes the id over; longer each time, in case two tasks
fence each other in turn."""

_LOST = Backoff(0.1, 5.0)

T = TypeVar("T")


class TransactionOwner(WriterListener, Protocol):
    """The copy loop, which listens for its own partitions; `sequence_lost` is never called on it."""

    @property
    def copies(self) -> Collection[PartitionCopy]: ...

    @property
    def has_outstanding(self) -> bool:
        """Whether there are batches that are not acknowledged."""
        ...

    def transaction_failed(self, error: SparkmirrorError | None) -> None:
        """The error that keeps all partitions waiting; None when it is over."""


class TransactionCycle:
    """Listens to the writer whose batches are in the transactions. On the loop's thread."""

    def __init__(
        self,
        plan: TaskPlan,
        loop: asyncio.AbstractEventLoop,
        owner: TransactionOwner,
        state: StateWriter,
        cycles: CycleDetection,
        coordinator: Executor | None = None,
    ) -> None:
        """`coordinator` runs one call at a time; `finish` shuts it down."""
        assert plan.transaction is not None
        self._plan = plan
        self._settings = plan.transaction
        self._loop = loop
        self._owner = owner
        self._state = state
        self._cycles = cycles
        self._transactions = Transactions(
            plan.producer.connection, self._settings.transactional_id, self._settings.timeout_s
        )
        # One call at a time, in order: an EndTxn under way completes before the next initialisation.
        self._coordinator = coordinator or ThreadPoolExecutor(
            1, thread_name_prefix="sparkmirror-transactions"
        )
        self._scope = TransactionScope(self._settings.transactional_id, self._wants)
        self._log = PositionLog(plan)
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        self._finishing = asyncio.Event()
        self._used = asyncio.Event()
        self._changed = asyncio.Event()
        self._wanted: set[TopicPartition] = set()
        self._wanting = asyncio.Event()
        self._moved: dict[TopicPartition, None] = {}
        self._unwritten = 0
        self._end_s = 0.0
        self._is_lost = self._has_failed = False
        self._on_lost: Callable[[], None] | None = None
        self._losses = self._fences = 0
        self.writer = self._new_writer()
        """The writer of the transactions since the last initialisation."""

    # life

    def _new_writer(self) -> BatchWriter:
        return BatchWriter(self._plan.writer_settings, self._loop, self, self._scope)

    async def open(self, on_lost: Callable[[], None]) -> None:
        """Initialise the transactional id, however long that takes; `writer` is for its transactions then.

        An open transaction of the id is aborted. A former writer must not be used any more.
        """
        self._on_lost = on_lost
        for task in self._tasks:
            task.cancel()
        self._state.aborted()
        self._moved.clear()
        self._wanted.clear()
        self._used.clear()
        self._turn = asyncio.Lock()
        if self._losses:
            await asyncio.sleep(_LOST.delay_s(self._losses, random.random()))
        await self._initialise()
        self._is_lost = False
        self.writer = self._new_writer()

    def start(self) -> None:
        """Begin transactions as soon as there is something for one. The positions must be read."""
        writer = self.writer
        writer.start([*(copied.target for copied in self._plan.partitions), *self._log.ends])
        for partition, end in self._log.ends.items():
            writer.begin(partition, ProducerState(NOT_IDEMPOTENT, 0, end))
        self._spawn(self._cycle(writer))
        self._spawn(self._add_wanted(writer))

    async def finish(self, timeout_s: float) -> None:
        """Commit what is in flight, if that works in time."""
        self._finishing.set()
        if self._tasks:
            # `_add_wanted` is needed for the last commit, and never ends by itself.
            await asyncio.wait(self._tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks:
            task.cancel()
        self._coordinator.submit(self._transactions.close)
        self._coordinator.shutdown(wait=False)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except SparkmirrorError as error:
            self._lose(error)
        except Exception as error:  # noqa: BLE001 - the loop's handler ends the task with it
            self._loop.call_exception_handler({"message": "transaction cycle", "exception": error})

    def _lose(self, error: SparkmirrorError) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        self._losses += 1
        _log.warning("transaction lost: %s; resuming from the committed positions", error)
        self._fail(error)
        # Not at once: the writer may be handling a response with other partitions.
        assert self._on_lost is not None, "nothing is lost before `open`"
        self._loop.call_soon(self._on_lost)

    def _fail(self, error: SparkmirrorError) -> None:
        self._has_failed = True
        self._owner.transaction_failed(error)

    async def _initialise(self) -> None:
        failures, take_over = 0, False
        while True:
            try:
                producer = await self._call(partial(self._init, take_over=take_over))
                await self._loop.run_in_executor(None, self._log.find)
            except FencedError as error:
                self._fail(error)
                self._fences += 1
                delay_s = _FENCED.delay_s(self._fences, random.random())
                _log.warning(
                    "%s; another task owns the transactional id; this one takes it over in %.0f s",
                    error,
                    delay_s,
                )
                await asyncio.sleep(delay_s)
                take_over = True
            except SparkmirrorError as error:
                self._fail(error)
                failures += 1
                _log.warning("transactions can't begin: %s; retrying", error)
                await asyncio.sleep(_LOST.delay_s(failures, random.random()))
            else:
                self._scope.begin(producer, is_version_2=self._transactions.is_version_2)
                return

    def _init(self, *, take_over: bool) -> ProducerId:
        return self._recorded(self._transactions.init(take_over=take_over))

    def _recorded(self, producer: ProducerId) -> ProducerId:
        """Record the id for cycle detection: every end may bring a new one, when its epochs are used up."""
        self._cycles.record([producer.id])
        return producer

    async def _call(self, call: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._coordinator, call)

    # the cycle

    async def _cycle(self, writer: BatchWriter) -> None:
        while not self._finishing.is_set():
            await self._commit(writer, acknowledged_only=await self._due())
        await self._commit(writer, acknowledged_only=False)

    async def _due(self) -> bool:
        """Wait until the transaction is due. Returns whether only acknowledged partitions can have moved."""
        if not await _within(_IDLE_S, self._used):
            return False
        if self._settings.interval_s is not None:
            await _within(self._settings.interval_s, self._finishing)
            return False
        lasts_s = min(max(self._end_s / _END_SHARE, _LOADED_MIN_S), _LOADED_MAX_S)
        deadline = self._loop.time() + min(lasts_s, self._settings.timeout_s * _SETTLE_SHARE)
        await _within(_POLL_S, self._finishing)
        while (
            self._owner.has_outstanding
            and self._loop.time() < deadline
            and not await _within(_CHECK_S, self._finishing)
        ):
            pass
        return True

    def _may_have_moved(self, *, acknowledged_only: bool) -> Iterable[PartitionCopy]:
        if not acknowledged_only:
            return self._owner.copies
        by_target = {copy.plan.target: copy for copy in self._owner.copies}
        return [by_target[target] for target in self._moved]

    async def _commit(self, writer: BatchWriter, *, acknowledged_only: bool) -> None:
        async with self._turn:
            copies = self._may_have_moved(acknowledged_only=acknowledged_only)
            if not self._scope.partitions and not self._state.moved_positions(copies):
                self._used.clear()
                return
            held_at = self._loop.time()
            writer.hold(self._log.ends)
            await self._until(lambda: writer.is_settled)
            self._used.clear()
            # All batches acknowledged so far are committed: so must be their positions.
            copies = self._may_have_moved(acknowledged_only=acknowledged_only)
            positions = self._state.moved_positions(copies)
            self._moved.clear()
            await self._write(writer, positions)
            producer = await self._call(partial(self._end, frozenset(self._scope.partitions)))
            self._scope.begin(producer, is_version_2=self._transactions.is_version_2)
            writer.release()
            self._end_s = self._loop.time() - held_at
        self._state.committed(positions)
        self._losses = self._fences = 0
        if self._has_failed:
            self._has_failed = False
            self._owner.transaction_failed(None)

    def _end(self, partitions: Collection[TopicPartition]) -> ProducerId:
        self._transactions.add(partitions)
        return self._recorded(self._transactions.end(commit=True))

    async def _write(self, writer: BatchWriter, positions: Mapping[TopicPartition, Position]) -> None:
        batches = self._log.batches(positions)
        self._unwritten = len(batches)
        missing = {partition for partition, _ in batches} - self._scope.partitions
        if missing and not self._scope.adds_by_producing:
            await self._call(partial(self._transactions.add, missing))
            self._scope.add(missing)
        for partition, batch in batches:
            writer.append(partition, batch)
        writer.flush()
        await self._until(lambda: not self._unwritten)

    async def _until(self, holds: Callable[[], bool]) -> None:
        timeout_s = self._settings.timeout_s * _SETTLE_SHARE
        deadline = self._loop.time() + timeout_s
        while not holds():
            if self._loop.time() > deadline:
                raise UnclearTransactionError(
                    f"transactional id {self._settings.transactional_id}: batches are not acknowledged "
                    f"after {timeout_s:g} s; initialise it again and read the positions again"
                )
            self._changed.clear()
            await _within(_CHECK_S, self._changed)

    # partitions that must be added first: version 1 of the protocol

    def _wants(self, partition: TopicPartition) -> None:
        self._wanted.add(partition)
        self._wanting.set()

    async def _add_wanted(self, writer: BatchWriter) -> None:
        while await self._wanting.wait():
            async with self._turn:
                self._wanting.clear()
                wanted, self._wanted = self._wanted, set()
                await self._add(writer, wanted)

    async def _add(self, writer: BatchWriter, wanted: set[TopicPartition]) -> None:
        """Add partitions and those of their positions. One that can't be added must not delay the others."""
        added = wanted | {self._log.partition_of(partition) for partition in wanted}
        try:
            await self._call(partial(self._transactions.add, added))
        except (FencedError, UnclearTransactionError):
            raise
        except SparkmirrorError as error:
            topics = {partition.topic for partition in wanted}
            if len(topics) > 1:
                for topic in topics:
                    await self._add(writer, {partition for partition in wanted if partition.topic == topic})
                return
            for partition in wanted:
                writer.refuse(partition, error)
        else:
            self._scope.add(added)
            writer.admit(wanted)

    # the writer's listener

    def acknowledged(
        self, partition: TopicPartition, batch: OutgoingBatch, base_offset: int, *, completes: bool
    ) -> None:
        self._changed.set()
        if partition in self._log.ends:
            self._unwritten -= 1
            return
        self._moved[partition] = None
        self._used.set()
        self._owner.acknowledged(partition, batch, base_offset, completes=completes)

    def write_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        if partition in self._log.ends:
            self._fail(error)
        else:
            self._owner.write_failed(partition, error)

    def write_possible(self, partition: TopicPartition) -> None:
        if partition not in self._log.ends:
            self._owner.write_possible(partition)

    def write_refused(self, partition: TopicPartition, error: SparkmirrorError, batch: OutgoingBatch) -> None:
        self._used.set()  # the request may have added the partition to the transaction, which must end then
        if partition in self._log.ends:
            self._lose(error)
        else:
            self._owner.write_refused(partition, error, batch)

    def sequence_lost(self, partition: TopicPartition, error: SparkmirrorError) -> None:  # noqa: ARG002
        self._lose(error)

    def leaders_changed(self, partitions: Collection[TopicPartition]) -> None:
        """The coordinator fences here, and no entry of a log."""

    def target_recreated(self, partition: TopicPartition) -> None:
        if partition in self._log.ends:
            self._lose(UnclearTransactionError(f"{partition.topic} was deleted and created again"))
        else:
            self._owner.target_recreated(partition)


async def _within(timeout_s: float, event: asyncio.Event) -> bool:
    """Whether the event is set in time."""
    if event.is_set():
        return True
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            return await event.wait()
    return False
