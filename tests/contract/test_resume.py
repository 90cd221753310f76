"""A crash loses the last second of positions: what the target has of it is found, and not repeated.

Nor is what a successor wrote that fenced a task which still lived.
"""

import asyncio
import re
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from sparkmirror.batches.producer import ProducerState
from sparkmirror.copy.copy_loop import CopyLoop
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import UNKNOWN_LOGS, TopicPartition
from sparkmirror.kafka.error_codes import INVALID_PRODUCER_EPOCH
from sparkmirror.storage.positions import Position
from tests.contract.copying import Bench, Watch, remote, running, store, stored
from tests.contract.looping import batch_of
from tests.support.broker_data import (
    append,
    create_topic,
    delete_records,
    delete_topic,
    keyed,
    numbered,
)
from tests.support.broker_requests import asking, stored_batches
from tests.support.waiting import await_value

WAIT_S = 30.0


@pytest.fixture
def topic(bench: Bench, request: pytest.FixtureRequest) -> str:
    name = "contract." + re.sub(r"\W+", "-", request.node.name)
    bench.create(name)
    return name


def copy_some(bench: Bench, topic: str, count: int, *, already: int = 0) -> Position:
    """Run until so many more records are copied, and stop in order; the position that this stored."""
    expected = [*bench.copied(topic), *numbered(count, len(bench.written(topic)))]
    bench.source_has(topic, count)
    with running(bench.plan(TopicPartition(topic, 0))):
        bench.await_copied(topic, expected)
    position = stored(bench, topic)
    assert position.offset == already + count - 1
    return position


def state_of(position: Position) -> ProducerState:
    assert position.producer is not None
    return position.producer


def test_the_first_position_is_stored_before_the_first_record(bench: Bench, topic: str) -> None:
    """Nothing is there to copy: still whoever comes next must know under which id the first one came."""
    with running(bench.plan(TopicPartition(topic, 0))):
        await_value(lambda: bench.position(TopicPartition(topic, 0)) == -1, WAIT_S, lambda: "no position")
    begun = stored(bench, topic)
    assert begun.offset == -1
    assert state_of(begun).next_sequence == state_of(begun).next_offset == 0
    copied = copy_some(bench, topic, 5)
    assert state_of(copied) == state_of(begun).after(5, 5)
    (batch,) = stored_batches(bench.target, remote(topic))
    assert (batch.header.producer_id, batch.header.producer_epoch) == state_of(begun).producer


@pytest.mark.parametrize("lost", [0, 1, 30], ids="positions of the last {} records are lost".format)
def test_records_after_the_last_position_are_not_repeated(bench: Bench, topic: str, lost: int) -> None:
    known = copy_some(bench, topic, 20)
    for at in range(lost):  # one batch each
        append(bench.source, topic, numbered(1, 20 + at))
    with running(bench.plan(TopicPartition(topic, 0))):
        bench.await_copied(topic, numbered(20 + lost))
    store(bench, topic, known)
    bench.source_has(topic, 7)
    with running(bench.plan(TopicPartition(topic, 0))):
        bench.await_copied(topic, numbered(27 + lost))
    assert bench.copied(topic) == numbered(27 + lost)
    assert state_of(stored(bench, topic)) == state_of(known).after(7 + lost, 27 + lost)


def test_a_crash_before_any_position_but_the_first_repeats_nothing(bench: Bench, topic: str) -> None:
    with running(bench.plan(TopicPartition(topic, 0))):
        await_value(lambda: bench.position(TopicPartition(topic, 0)) == -1, WAIT_S, lambda: "no position")
    begun = stored(bench, topic)
    copy_some(bench, topic, 12)
    store(bench, topic, begun)
    bench.source_has(topic, 3)
    with running(bench.plan(TopicPartition(topic, 0))):
        bench.await_copied(topic, numbered(15))


def test_other_writers_on_the_target_do_not_confuse_it(bench: Bench, topic: str) -> None:
    known = copy_some(bench, topic, 4)
    with running(bench.plan(TopicPartition(topic, 0))):
        for at in range(4, 10):
            append(bench.source, topic, numbered(1, at))
            await_ours(bench, topic, at + 1)
            append(bench.target, remote(topic), [(b"foreign", b"%d" % at)])
    store(bench, topic, known)
    append(bench.source, topic, numbered(2, 10))
    with running(bench.plan(TopicPartition(topic, 0))):
        await_ours(bench, topic, 12)
    assert ours(bench, topic) == numbered(12)


def await_ours(bench: Bench, topic: str, count: int) -> None:
    await_value(lambda: len(ours(bench, topic)) >= count, WAIT_S, lambda: f"{len(ours(bench, topic))} copied")


def ours(bench: Bench, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    return [pair for pair in keyed(bench.target, remote(topic)) if pair[0] != b"foreign"]


def test_records_lost_by_the_source_are_not_counted(bench: Bench, topic: str) -> None:
    """Going so many records forward as the target has would skip some that were never copied."""
    known = copy_some(bench, topic, 4)
    for at in range(4, 12):
        append(bench.source, topic, numbered(1, at))
    with running(bench.plan(TopicPartition(topic, 0))):
        bench.await_copied(topic, numbered(12))
    store(bench, topic, known)
    delete_records(bench.source, topic, 8)
    append(bench.source, topic, numbered(3, 12))
    with running(bench.plan(TopicPartition(topic, 0))):
        bench.await_copied(topic, numbered(15))
    # What a number means has changed, so the numbers have begun anew.
    assert state_of(stored(bench, topic)).producer == state_of(known).producer.next_epoch()
    assert state_of(stored(bench, topic)).next_sequence == 3


def test_position_written_by_java_is_continued_under_a_new_producer_id(bench: Bench, topic: str) -> None:
    known = copy_some(bench, topic, 5)
    store(bench, topic, Position(known.offset))
    copy_some(bench, topic, 5, already=5)
    assert bench.copied(topic) == numbered(10)
    assert state_of(stored(bench, topic)).producer.id != state_of(known).producer.id


def test_target_that_lost_records_gets_new_records_without_duplicates(
    bench: Bench, watch: Watch, topic: str
) -> None:
    known = copy_some(bench, topic, 5)
    store(bench, topic, known._replace(logs=UNKNOWN_LOGS))  # as before brokers had topic ids
    delete_topic(bench.target, remote(topic))
    create_topic(bench.target.bootstrap_servers, remote(topic))
    bench.source_has(topic, 3)
    with running(bench.plan(TopicPartition(topic, 0))):
        bench.await_copied(topic, numbered(3, 5))
    assert state_of(stored(bench, topic)).producer == state_of(known).producer.next_epoch()
    report = watch.await_progress(topic, lambda report: report.position == 7)
    assert "acknowledged up to 5: the target lost 5 records, or was recreated" in (report.notice or "")
    assert report.incidents == {"target-truncated": 1}


def test_attempts_that_overlap_write_one_copy(bench: Bench, topic: str) -> None:
    """As a task whose executor Spark has given up, and its successor."""
    copy_some(bench, topic, 1)
    plan = bench.plan(TopicPartition(topic, 0))
    with ExitStack() as attempts:
        attempts.enter_context(running(plan))
        for at in range(1, 400):
            append(bench.source, topic, numbered(1, at))
            if at == 100:
                attempts.enter_context(running(plan))
        await_value(lambda: len(bench.copied(topic)) >= 400, WAIT_S, lambda: "not all are copied")
    assert bench.copied(topic) == numbered(400)


def test_fenced_task_continues_where_its_successor_was(bench: Bench, watch: Watch, topic: str) -> None:
    with running(bench.plan(TopicPartition(topic, 0)), fenced_pause_s=1.0):
        known = begun_with(bench, topic, 5)
        succeeded_by(bench, topic, known, 3)
        bench.source_has(topic, 6)
        watch.await_progress(topic, lambda report: "produce to" in (report.error or ""))
        bench.await_copied(topic, numbered(11))
    assert state_of(stored(bench, topic)) == state_of(known).in_next_epoch(8).after(6, 11)


Event = Callable[[CopyLoop, TopicPartition], None]


def fenced(loop: CopyLoop, partition: TopicPartition) -> None:
    target = TopicPartition(remote(partition.topic), partition.partition)
    loop.pipeline.sequence_lost(target, KafkaError("fenced", INVALID_PRODUCER_EPOCH))


def out_of_range(loop: CopyLoop, partition: TopicPartition) -> None:
    loop.pipeline.offset_out_of_range(partition)


@pytest.mark.parametrize("events", [(fenced, out_of_range), (out_of_range, fenced)], ids=["first", "last"])
def test_fenced_task_leaves_its_partition_alone_after_other_errors(
    bench: Bench, watch: Watch, topic: str, events: tuple[Event, Event]
) -> None:
    """Beginning for the other reason, it would number what the successor is writing, and begin twice."""
    partition = TopicPartition(topic, 0)
    running_on = asyncio.new_event_loop()
    with running(bench.plan(partition), loop=running_on, fenced_pause_s=1.0) as loop:
        known = begun_with(bench, topic, 5)
        succeeded_by(bench, topic, known, 3)
        running_on.call_soon_threadsafe(lambda: [event(loop, partition) for event in events])
        bench.source_has(topic, 6)
        bench.await_copied(topic, numbered(11))
        report = watch.await_progress(topic, lambda report: report.position == 10)
    assert (report.lost, report.notice) == (0, None)
    assert state_of(stored(bench, topic)) == state_of(known).in_next_epoch(8).after(6, 11)


def begun_with(bench: Bench, topic: str, count: int) -> Position:
    """What a task that runs, and has copied so many records of an empty topic, has stored."""
    bench.await_copied(topic, bench.source_has(topic, count))
    partition = TopicPartition(topic, 0)
    await_value(lambda: bench.position(partition) == count - 1, WAIT_S, lambda: "no position")
    return stored(bench, topic)


def succeeded_by(bench: Bench, topic: str, known: Position, count: int) -> None:
    """Another task, under the next epoch, has copied so many records that the source is about to have."""
    first, end = known.offset + 1, known.offset + 1 + count
    state = state_of(known).in_next_epoch(first)
    batch = batch_of(
        numbered(count, first),
        producer_id=state.producer.id,
        producer_epoch=state.producer.epoch,
        base_sequence=0,
    )
    with asking(bench.target) as asker:
        assert asker.produce_one(TopicPartition(remote(topic), 0), batch).error == 0
    store(bench, topic, known._replace(offset=end - 1, producer=state.after(count, end)))
