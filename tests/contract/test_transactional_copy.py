"""Records and their positions are copied in one transaction: consumers see both or none (KIP-618).

New clusters use version 2 of the protocol; for version 1 the frail cluster is downgraded.
"""

import multiprocessing
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Final

import pytest

from sparkmirror.batches.record_batch import CONTROL, TRANSACTIONAL
from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST
from sparkmirror.copy.copy_loop import CopyLoop
from sparkmirror.copy.copy_plan import TaskPlan, TransactionPlan
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import OnBadBatch, Reactions
from sparkmirror.kafka.data.partition_offsets import LATEST, require_offsets
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.kafka.transactions.transaction_runs import fence
from sparkmirror.settings.source import CopySettings
from sparkmirror.storage.positions import Position, position_record, read_positions
from tests.contract.copying import (
    ATTEMPTS,
    CONNECTOR,
    DEAD_LETTERS,
    POSITIONS,
    PROGRESS,
    SOURCE,
    Bench,
    remote,
    running,
)
from tests.contract.transaction_version import finalize
from tests.support.broker_data import (
    Keyed,
    append,
    create_topic,
    delete_topic,
    ensure_compacted_topic,
    numbered,
)
from tests.support.broker_requests import asking, stored_batches
from tests.support.connections import connection
from tests.support.isolation import committed
from tests.support.proxy import Api, Disruption, Moment, Proxy, proxied
from tests.support.traffic import flowing
from tests.support.waiting import await_value

WAIT_S: Final = 30.0
TIMEOUT_S: Final = 60.0
RATE: Final = 2000


@pytest.fixture(scope="module")
def old_bench(real_bench: Bench, frail_cluster: LocalCluster) -> Iterator[Bench]:
    """Clusters whose target has transaction version 1."""
    made = Bench(real_bench.source, frail_cluster)
    for name in (POSITIONS, PROGRESS, ATTEMPTS, DEAD_LETTERS):
        ensure_compacted_topic(frail_cluster.bootstrap_servers, name)
    with asking(frail_cluster) as asker:
        finalize(asker, 1)
        yield made
        finalize(asker, 2)


@pytest.fixture(params=["old_bench", "real_bench"], ids=["version-1", "version-2"])
def side(request: pytest.FixtureRequest) -> Bench:
    made = request.getfixturevalue(request.param)
    assert isinstance(made, Bench)
    return made


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return "contract." + re.sub(r"\W+", "-", request.node.name)[-100:]


def transactional(plan: TaskPlan, interval_s: float | None = None) -> TaskPlan:
    """The plan with transactions, under a transactional id that contains the topic."""
    name = f"{CONNECTOR}-{plan.partitions[0].source.topic}"
    return replace(plan, transaction=TransactionPlan(name, TIMEOUT_S, interval_s))


def committed_end(side: Bench, topic: str) -> int:
    """Read the last stable offset of partition 0 at the target."""
    partition = TopicPartition(remote(topic), 0)
    settings = ConsumerSettings(connection(side.target), read_committed=True)
    return require_offsets(settings, [partition], LATEST)[partition]


def await_growth(side: Bench, topic: str, offsets: int = 1) -> None:
    """Wait until the last stable offset has grown by `offsets`."""
    before = committed_end(side, topic)
    await_value(lambda: committed_end(side, topic) >= before + offsets, WAIT_S, lambda: "nothing comes")


def await_committed(side: Bench, topic: str, expected: list[Keyed], partition: int = 0) -> None:
    """Wait until exactly these records are committed, in this order."""
    seen: list[Keyed] = []

    def holds() -> bool:
        seen[:] = committed(side.target, remote(topic), partition)
        return len(seen) >= len(expected)

    await_value(holds, WAIT_S, lambda: f"{len(seen)} of {len(expected)} records of {topic}")
    assert seen == expected


def stored(side: Bench, topic: str, partition: int = 0) -> Position | None:
    """Read the committed position; waits for open transactions."""
    source = TopicPartition(topic, partition)
    return read_positions(connection(side.target), POSITIONS, CONNECTOR, SOURCE, [source]).get(source)


def store(side: Bench, topic: str, position: Position) -> None:
    writer = TopicWriter(connection(side.target))
    writer.write(POSITIONS, [position_record(CONNECTOR, SOURCE, TopicPartition(topic, 0), position)])
    writer.close()


def test_records_and_positions_are_committed_together(side: Bench, topic: str) -> None:
    side.create(topic, partitions=2)
    expected = [side.source_has(topic, 50, partition=number) for number in range(2)]
    plan = transactional(side.plan(*(TopicPartition(topic, number) for number in range(2))))
    with running(plan):
        for number in range(2):
            await_committed(side, topic, expected[number], number)
        for at in range(3):  # in separate transactions, with consecutive sequences
            append(side.source, topic, numbered(2, 50 + 2 * at))
            await_committed(side, topic, numbered(52 + 2 * at))
    assert [
        position and (position.offset, position.producer)
        for position in (stored(side, topic, 0), stored(side, topic, 1))
    ] == [(55, None), (49, None)]
    data = [batch.header for batch in stored_batches(side.target, remote(topic))]
    assert all(header.attributes & TRANSACTIONAL for header in data)
    assert sum(bool(header.attributes & CONTROL) for header in data) >= 4
    with running(plan):
        append(side.source, topic, numbered(1, 56))
        await_committed(side, topic, numbered(57))


def test_transactions_are_committed_at_the_configured_interval(bench: Bench, topic: str) -> None:
    bench.create(topic)
    with running(transactional(bench.plan(TopicPartition(topic, 0)), interval_s=1.0)):
        bench.source_has(topic, 3)
        bench.await_copied(topic, numbered(3))
        before = time.monotonic()
        await_committed(bench, topic, numbered(3))
        assert time.monotonic() - before > 0.3


def run_copy_loop(plan: TaskPlan) -> None:
    CopyLoop(plan).run()


@contextmanager
def copying_in_another_process(plan: TaskPlan) -> Iterator[None]:
    """Copy in another process, which is killed at the end of the block."""
    process = multiprocessing.get_context("spawn").Process(target=run_copy_loop, args=(plan,), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def test_positions_and_records_agree_after_a_kill_and_no_record_is_repeated(side: Bench, topic: str) -> None:
    side.create(topic, partitions=2)
    plan = transactional(side.plan(*(TopicPartition(topic, number) for number in range(2))))
    with flowing(side.source, topic, rate=RATE, partitions=2):
        for kill in range(2):
            with copying_in_another_process(plan):
                await_growth(side, topic)
                time.sleep(0.1 * kill)  # at different points of a transaction
            for number in range(2):
                await_agreement(side, topic, number)
    with running(plan):
        for number in range(2):
            await_committed(side, topic, side.written(topic, number), number)


def await_agreement(side: Bench, topic: str, partition: int) -> None:
    """Abort the open transaction; then positions and records must agree."""
    fence(connection(side.target), [f"{CONNECTOR}-{topic}"])
    position = stored(side, topic, partition)
    expected = 0 if position is None else position.offset + 1
    assert len(committed(side.target, remote(topic), partition)) == expected


def test_overlapping_attempts_copy_each_record_once(side: Bench, topic: str) -> None:
    """The later attempt fences the earlier one, which pauses for seconds."""
    side.create(topic)
    plan = transactional(side.plan(TopicPartition(topic, 0)))
    with ExitStack() as attempts:
        with flowing(side.source, topic, rate=RATE):
            for attempt in range(1, 4):
                attempts.enter_context(running(plan))
                await_growth(side, topic, 100 * attempt)
        await_committed(side, topic, side.written(topic))


def lose_response(proxy: Proxy, api: Api, moment: Moment) -> None:
    disruptions = proxy.figures.disruptions
    proxy.disrupt_next(api, moment, Disruption.RESET)
    proxy.await_figures(lambda figures: figures.disruptions > disruptions, WAIT_S)


@pytest.mark.parametrize("moment", [Moment.REQUEST_HALF_SENT, Moment.ANSWER_DUE])
def test_lost_end_txn_response_repeats_no_record(side: Bench, topic: str, moment: Moment) -> None:
    side.create(topic)
    plan = transactional(side.plan(TopicPartition(topic, 0)))
    with proxied((HOST, side.target.brokers[0].port)) as (proxy,):
        through = replace(plan.producer, connection=ConnectionSettings((proxy.address,)))
        with running(replace(plan, producer=through)), flowing(side.source, topic, rate=RATE):
            for _ in range(2):
                lose_response(proxy, Api.END_TXN, moment)
                lose_response(proxy, Api.PRODUCE, Moment.ANSWER_DUE)
                await_growth(side, topic)
        with running(replace(plan, producer=through)):
            await_committed(side, topic, side.written(topic))


def test_transactions_can_be_switched_on_and_off_after_a_crash(bench: Bench, topic: str) -> None:
    """Records after the stored position were copied before the change and are not repeated."""
    bench.create(topic)
    partition = TopicPartition(topic, 0)
    with running(bench.plan(partition)):
        bench.source_has(topic, 5)
        bench.await_copied(topic, numbered(5))
    known = stored(bench, topic)
    assert known is not None
    with running(bench.plan(partition)):
        bench.source_has(topic, 4)
        bench.await_copied(topic, numbered(9))
    store(bench, topic, known)
    with running(transactional(bench.plan(partition))):
        await_value(
            lambda: stored(bench, topic) == Position(8, None, known.logs),
            WAIT_S,
            lambda: f"{stored(bench, topic)}",
        )
        bench.source_has(topic, 4)
        await_committed(bench, topic, numbered(13))
    with copying_in_another_process(transactional(bench.plan(partition), interval_s=30.0)):
        bench.source_has(topic, 4)
        bench.await_copied(topic, numbered(17))  # but not committed
    fence(connection(bench.target), [f"{CONNECTOR}-{topic}"])
    with running(bench.plan(partition)):
        await_committed(bench, topic, numbered(17))
    position = stored(bench, topic)
    assert position is not None
    assert position.offset == 16
    assert position.producer is not None


@pytest.mark.parametrize("reaction", [OnBadBatch.FAIL, OnBadBatch.SKIP])
def test_refused_batch_affects_only_its_partition(side: Bench, topic: str, reaction: OnBadBatch) -> None:
    side.create(topic, partitions=2, target_config={"cleanup.policy": "compact"})
    append(
        side.source,
        topic,
        [*numbered(3), (None, b"no key"), *numbered(3, 3)],
        settings={"batch.num.messages": "1"},
    )
    well = side.source_has(topic, 10, partition=1)
    plan = side.plan(*(TopicPartition(topic, number) for number in range(2)))
    plan = transactional(replace(plan, settings=CopySettings(Reactions(on_bad_batch=reaction))))
    copied, offset = (3, 2) if reaction is OnBadBatch.FAIL else (6, 6)
    with running(plan):
        await_committed(side, topic, well, 1)
        await_committed(side, topic, numbered(copied))
        well = side.source_has(topic, 10, partition=1)
        await_committed(side, topic, well, 1)
    position = stored(side, topic)
    assert position is not None
    assert position.offset == offset


def test_copy_continues_into_recreated_topics(bench: Bench, topic: str) -> None:
    bench.create(topic, partitions=2)
    partitions = [TopicPartition(topic, number) for number in range(2)]
    with running(transactional(bench.plan(*partitions))):
        bench.source_has(topic, 5)
        await_committed(bench, topic, numbered(5))
        delete_topic(bench.target, remote(topic))
        create_topic(bench.target.bootstrap_servers, remote(topic), partitions=2)
        bench.source_has(topic, 4)
        await_committed(bench, topic, numbered(4, 5))
        delete_topic(bench.source, topic)
        create_topic(bench.source.bootstrap_servers, topic, partitions=2)
        append(bench.source, topic, numbered(3, 100))
        await_committed(bench, topic, [*numbered(4, 5), *numbered(3, 100)])
        await_value(lambda: offset_of(stored(bench, topic)) == 2, WAIT_S, lambda: f"{stored(bench, topic)}")


def offset_of(position: Position | None) -> int | None:
    return None if position is None else position.offset
