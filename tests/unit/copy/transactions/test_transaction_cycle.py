"""TransactionCycle on clusters in memory, in virtual time: commits, aborts, lost ends and fences."""

import random
import time
from collections.abc import Collection, Iterator
from concurrent.futures import Executor

import pytest

from sparkmirror.batches.batch_copying import CopyRules
from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerState
from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_events import Start
from sparkmirror.copy.state_writer import StateWriter
from sparkmirror.copy.transactions.transaction_cycle import TransactionCycle
from sparkmirror.copy.write_strategy import WriteStrategy
from sparkmirror.domain.errors import FencedError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.batch_writer import BatchWriter
from sparkmirror.kafka.transactions.transaction_runs import Transactions
from sparkmirror.kafka.wire.fetch import FetchedPartition
from tests.memory.client_run import ClientRun, client_run
from tests.memory.network import Fate
from tests.memory.stage import Shape, Stage
from tests.support.batches import joined
from tests.unit.copy.copied_records import SOURCE, TARGET

END_TXN = 26
PRODUCE = 0
AFTER_TIMEOUT_S = 120.0


class CycleWorld:
    """One partition: its source's batches go to the writer of the transactions as a pipeline sends them."""

    def __init__(self, run: ClientRun, stage: Stage, coordinator: Executor) -> None:
        self.run = run
        self.stage = stage
        plan = stage.plan()
        self.copies = [PartitionCopy(plan.partitions[0], CopyRules(), read_committed=False)]
        self.errors: list[SparkmirrorError | None] = []
        self.losses = 0
        self.refused: list[list[int]] = []
        self.recreated: list[TopicPartition] = []
        self._state = StateWriter(plan)
        self.cycle = TransactionCycle(plan, run.loop, self, self._state, CycleDetection(plan), coordinator)

    @property
    def copy(self) -> PartitionCopy:
        return self.copies[0]

    @property
    def writer(self) -> BatchWriter:
        return self.cycle.writer

    def open(self) -> None:
        """Initialise the transactional id and continue from the stored position."""
        self.run.wait_for(self.cycle.open(self._lost))
        position = self.stored_position
        self.copy.discard()
        self.copy.begin(Start(position + 1, ProducerState(NOT_IDEMPOTENT, 0, 0)), WriteStrategy())

        def start() -> None:
            self.cycle.start()
            self.writer.begin(TARGET, ProducerState(NOT_IDEMPOTENT, 0, self.stage.target.log(TARGET).end))

        self.run.call(start)

    def reopen(self) -> None:
        self.run.call(self.writer.stop)
        self.open()

    def recover(self) -> None:
        """Wait for all time-outs; if the transaction was lost, open the next one and send again."""
        self.run.run_for(AFTER_TIMEOUT_S)
        if self.losses:
            self.reopen()
            self.send()

    def write(self, count: int) -> None:
        """A batch of so many records of the source, and all before it that were not sent yet."""
        self.stage.write(0, count)
        self.send()

    def send(self) -> None:
        log = self.stage.source.log(SOURCE)
        batches = [stored.data for stored in log.batches if stored.last_offset >= self.copy.fetch_position]
        fetched = FetchedPartition(SOURCE, 0, log.end, log.end, 0, [], -1, joined(batches))

        def send() -> None:
            for batch in self.copy.take(fetched):
                self.writer.append(TARGET, batch)
            self.writer.flush()

        self.run.call(send)

    @property
    def stored_position(self) -> int:
        """The offset of the committed position, -1 for none."""
        state = StateWriter(self.stage.plan())
        stored = self.stage.time.executor().submit(state.read_positions)
        assert self.run.run_until(stored.done)
        position = stored.result().get(SOURCE)
        return -1 if position is None else position.offset

    def assert_commits(self, records: int, within_s: float = 5.0) -> None:
        """Records and their position, each record once."""
        assert self.run.run_until(lambda: len(self.stage.copied(0)) >= records, within_s), self.errors
        assert self.stage.copied(0) == list(range(records))
        assert self.stored_position == records - 1
        self.stage.check_committed()
        assert not self.stage.violations

    def _lost(self) -> None:
        self.losses += 1

    # the owner of the cycle

    @property
    def has_outstanding(self) -> bool:
        return self.copy.outstanding_bytes > 0

    def transaction_failed(self, error: SparkmirrorError | None) -> None:
        self.errors.append(error)

    def acknowledged(
        self, partition: TopicPartition, batch: OutgoingBatch, base_offset: int, *, completes: bool
    ) -> None:
        assert partition == TARGET
        self.copy.acknowledged(batch, base_offset, time.time() * 1000, completes=completes)

    def write_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None: ...

    def write_possible(self, partition: TopicPartition) -> None: ...

    def write_refused(self, partition: TopicPartition, error: SparkmirrorError, batch: OutgoingBatch) -> None:
        del partition, error
        self.refused.append(list(batch.offsets))
        self.copy.discard()

    def sequence_lost(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        raise AssertionError(f"{partition}: {error}")

    def leaders_changed(self, partitions: Collection[TopicPartition]) -> None: ...

    def target_recreated(self, partition: TopicPartition) -> None:
        self.recreated.append(partition)


@pytest.fixture(params=[1, 2], ids="transaction.version {}".format)
def world(request: pytest.FixtureRequest) -> Iterator[CycleWorld]:
    shape = Shape(partitions=1, is_transactional=True, transaction_version=request.param)
    stage = Stage(random.Random(1), shape)
    with client_run(stage.network) as run:
        coordinator = stage.network.executor(1)
        world = CycleWorld(run, stage, coordinator)
        world.open()
        yield world
        run.call(world.writer.stop)
        coordinator.abandon()


def other_owner(world: CycleWorld) -> Transactions:
    """Another task with the same transactional id."""
    plan = world.stage.plan()
    assert plan.transaction is not None
    return Transactions(
        plan.producer.connection, plan.transaction.transactional_id, plan.transaction.timeout_s
    )


def initialise_elsewhere(world: CycleWorld) -> None:
    taken = world.stage.time.executor().submit(other_owner(world).init)
    assert world.run.run_until(taken.done)
    taken.result()


def test_records_and_their_position_are_committed_together(world: CycleWorld) -> None:
    world.write(3)
    world.write(1)
    world.assert_commits(4)
    world.write(2)
    world.assert_commits(6)
    assert world.losses == 0


def test_an_idle_cycle_begins_no_transaction(world: CycleWorld) -> None:
    world.write(1)
    world.assert_commits(1)
    requests = world.run.faults.requests[END_TXN]
    world.run.run_for(30.0)
    assert world.run.faults.requests[END_TXN] == requests


def test_finish_commits_what_is_in_flight(world: CycleWorld) -> None:
    world.write(3)
    world.run.wait_for(world.cycle.finish(10.0))
    world.assert_commits(3)


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.RESPONSE_LOST, Fate.SILENCE])
def test_a_failed_end_of_a_transaction_commits_each_record_once(world: CycleWorld, fate: Fate) -> None:
    world.run.faults.inject(END_TXN, fate)
    world.write(3)
    world.recover()
    assert world.run.faults.is_used
    world.assert_commits(3, AFTER_TIMEOUT_S)
    world.write(2)
    world.assert_commits(5, AFTER_TIMEOUT_S)


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.RESPONSE_LOST, Fate.SILENCE])
def test_a_failed_produce_commits_each_record_once(world: CycleWorld, fate: Fate) -> None:
    world.run.faults.inject(PRODUCE, fate)
    world.write(3)
    world.recover()
    assert world.run.faults.is_used
    world.assert_commits(3, AFTER_TIMEOUT_S)


def test_what_a_killed_task_wrote_without_committing_is_aborted_and_copied_again(world: CycleWorld) -> None:
    world.write(2)
    world.assert_commits(2)
    world.write(3)
    assert world.run.run_until(lambda: world.copy.position == 5)
    assert world.stage.copied(0) == [0, 1]
    initialise_elsewhere(world)
    assert world.run.run_until(lambda: bool(world.stage.target.log(TARGET).aborted))
    assert world.stage.copied(0) == [0, 1]
    assert world.stored_position == 1


def test_a_cycle_fenced_by_another_task_loses_its_transaction_and_waits_before_taking_over(
    world: CycleWorld,
) -> None:
    world.write(2)
    world.assert_commits(2)
    initialise_elsewhere(world)
    world.write(3)
    assert world.run.run_until(lambda: world.losses > 0, AFTER_TIMEOUT_S)
    assert world.losses == 1
    began = world.stage.time.time()
    world.reopen()
    fences = [error for error in world.errors if isinstance(error, FencedError)]
    assert fences
    assert world.stage.time.time() - began > 1.0
    world.send()
    world.assert_commits(5, AFTER_TIMEOUT_S)
    assert world.errors[-1] is None


def test_a_refused_record_is_reported_and_what_came_before_it_committed(world: CycleWorld) -> None:
    world.stage.target.topics[TARGET.topic].config["max.message.bytes"] = "90"
    world.write(1)
    world.write(3)
    world.assert_commits(4)  # in parts
    world.stage.target.topics[TARGET.topic].config["max.message.bytes"] = "10"
    world.write(1)
    assert world.run.run_until(lambda: bool(world.refused))
    world.run.run_for(3.0)
    assert world.refused == [[4]]
    world.assert_commits(4)
    assert world.losses == 0
