"""Resume after a crash: records copied after the stored position are found by read-back and not repeated.

The same holds for records of a successor that fenced the task.
"""

import asyncio
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

import pytest

from sparkmirror.batches.producer import ProducerState
from sparkmirror.copy.copy_loop import CopyLoop
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import UNKNOWN_LOGS, TopicPartition
from sparkmirror.kafka.wire.error_codes import INVALID_PRODUCER_EPOCH
from sparkmirror.storage.positions import Position
from sparkmirror.storage.progress import PartitionState
from tests.contract.copying import Bench, ProgressReports, remote, running, store, stored
from tests.contract.event_loop import batch_of
from tests.support.broker_data import (
    append,
    create_topic,
    delete_records,
    delete_topic,
    end_offsets,
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
    """Copy `count` more records and stop in order; returns the stored position."""
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
    """A successor would otherwise not know the producer id of the first records."""
    with running(bench.plan(TopicPartition(topic, 0))):
        await_value(lambda: bench.position(TopicPartition(topic, 0)) == -1, WAIT_S, lambda: "no position")
    begun = stored(bench, topic)
    assert begun.offset == -1
    assert state_of(begun).next_sequence == state_of(begun).next_offset == 0
    copied = copy_some(bench, topic, 5)
    assert state_of(copied) == state_of(begun).in_next_epoch(0).after(5, 5)
    (batch,) = stored_batches(bench.target, remote(topic))
    assert (batch.header.producer_id, batch.header.producer_epoch) == state_of(copied).producer


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
    after = state_of(stored(bench, topic))
    # Behind a marker if the second attempt was stopped before it had begun: the third one fences it then.
    (end,) = end_offsets(bench.target, [remote(topic)]).values()
    assert (after.producer.id, after.next_offset) == (state_of(known).producer.id, end)
    assert after.next_sequence == 7  # of the last attempt


def test_crash_after_the_first_position_repeats_no_record(bench: Bench, topic: str) -> None:
    with running(bench.plan(TopicPartition(topic, 0))):
        await_value(lambda: bench.position(TopicPartition(topic, 0)) == -1, WAIT_S, lambda: "no position")
    begun = stored(bench, topic)
    copy_some(bench, topic, 12)
    store(bench, topic, begun)
    bench.source_has(topic, 3)
    with running(bench.plan(TopicPartition(topic, 0))):
        bench.await_copied(topic, numbered(15))


def test_resume_ignores_records_of_other_producers_on_the_target(bench: Bench, topic: str) -> None:
    known = copy_some(bench, topic, 4)
    with running(bench.plan(TopicPartition(topic, 0))):
        for at in range(4, 10):
            append(bench.source, topic, numbered(1, at))
            await_copied_records(bench, topic, at + 1)
            append(bench.target, remote(topic), [(b"foreign", b"%d" % at)])
    store(bench, topic, known)
    append(bench.source, topic, numbered(2, 10))
    with running(bench.plan(TopicPartition(topic, 0))):
        await_copied_records(bench, topic, 12)
    assert copied_records(bench, topic) == numbered(12)


def await_copied_records(bench: Bench, topic: str, count: int) -> None:
    await_value(
        lambda: len(copied_records(bench, topic)) >= count,
        WAIT_S,
        lambda: f"{len(copied_records(bench, topic))} copied",
    )


def copied_records(bench: Bench, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    return [pair for pair in keyed(bench.target, remote(topic)) if pair[0] != b"foreign"]


def test_resume_is_correct_after_the_source_lost_records(bench: Bench, topic: str) -> None:
    """Comparing contents, or counting the target's records, may skip records that were never copied."""
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
    assert state_of(stored(bench, topic)).next_sequence == 3


def test_position_written_by_java_is_continued_under_a_new_producer_epoch(bench: Bench, topic: str) -> None:
    known = copy_some(bench, topic, 5)
    store(bench, topic, Position(known.offset))
    copy_some(bench, topic, 5, already=5)
    assert bench.copied(topic) == numbered(10)
    assert state_of(stored(bench, topic)).producer == state_of(known).producer.next_epoch()


def test_target_that_lost_records_gets_new_records_without_duplicates(
    bench: Bench, watch: ProgressReports, topic: str
) -> None:
    known = copy_some(bench, topic, 5)
    store(bench, topic, known._replace(logs=UNKNOWN_LOGS))  # as with brokers without topic ids
    delete_topic(bench.target, remote(topic))
    create_topic(bench.target.bootstrap_servers, remote(topic))
    bench.source_has(topic, 3)
    with running(bench.plan(TopicPartition(topic, 0))):
        bench.await_copied(topic, numbered(3, 5))
    assert state_of(stored(bench, topic)).producer == state_of(known).producer.next_epoch()
    report = watch.await_progress(topic, lambda report: report.position == 7)
    assert "acknowledged up to 5: the target lost 5 records, or was recreated" in (report.notice or "")
    assert report.incidents == {"target-truncated": 1}


def test_without_the_topic_of_attempts_records_behind_the_position_are_copied_again(
    bench: Bench, watch: ProgressReports, topic: str
) -> None:
    """At least once, as Java MirrorMaker 2 does."""
    plan = bench.plan(TopicPartition(topic, 0))
    plan = replace(plan, state=replace(plan.state, attempts_topic=None))
    for count in (5, 3):
        known = stored(bench, topic) if bench.copied(topic) else None
        with running(plan):
            bench.await_copied(topic, bench.source_has(topic, count))
    assert known is not None
    assert known.offset == 4
    store(bench, topic, known)
    bench.source_has(topic, 2)
    with running(plan):
        bench.await_copied(topic, [*numbered(8), *numbered(5, 5)])
        report = watch.await_progress(topic, lambda report: report.position == 9)
    assert report.incidents == {"unfenced": 1}
    assert stored(bench, topic).offset == 9


def test_overlapping_attempts_copy_each_record_once(bench: Bench, topic: str) -> None:
    """Spark has lost an executor whose task still runs beside its next attempt."""
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


def test_fenced_task_continues_where_its_successor_was(
    bench: Bench, watch: ProgressReports, topic: str
) -> None:
    with running(bench.plan(TopicPartition(topic, 0)), fenced_pause_s=1.0):
        known = copied_first(bench, topic, 5)
        copy_as_successor(bench, topic, known, 3)
        bench.source_has(topic, 6)
        report = watch.await_progress(topic, lambda report: "has claimed it" in (report.error or ""))
        assert report.state is PartitionState.RETRYING
        bench.await_copied(topic, numbered(11))
    assert_continues_behind_the_successor(bench, topic, known)


Event = Callable[[CopyLoop, TopicPartition], None]


def fenced(loop: CopyLoop, partition: TopicPartition) -> None:
    target = TopicPartition(remote(partition.topic), partition.partition)
    loop.parts.target.sequence_lost(target, KafkaError("fenced", INVALID_PRODUCER_EPOCH))


def out_of_range(loop: CopyLoop, partition: TopicPartition) -> None:
    loop.parts.source.offset_out_of_range(partition)


@pytest.mark.parametrize("events", [(fenced, out_of_range), (out_of_range, fenced)], ids=["first", "last"])
def test_fenced_task_does_not_resume_for_another_reason(
    bench: Bench, watch: ProgressReports, topic: str, events: tuple[Event, Event]
) -> None:
    """A resume for the other reason would use the successor's sequences, and resume twice."""
    partition = TopicPartition(topic, 0)
    running_on = asyncio.new_event_loop()
    with running(bench.plan(partition), loop=running_on, fenced_pause_s=1.0) as loop:
        known = copied_first(bench, topic, 5)
        copy_as_successor(bench, topic, known, 3)
        running_on.call_soon_threadsafe(lambda: [event(loop, partition) for event in events])
        bench.source_has(topic, 6)
        bench.await_copied(topic, numbered(11))
        report = watch.await_progress(topic, lambda report: report.position == 10)
    assert (report.lost, report.notice) == (0, None)
    assert_continues_behind_the_successor(bench, topic, known)


def assert_continues_behind_the_successor(bench: Bench, topic: str, known: Position) -> None:
    """The coordinator knows nothing of the successor's epoch, so the task claims a second one."""
    after = state_of(stored(bench, topic)).producer
    assert after == state_of(known).producer.next_epoch().next_epoch()


def copied_first(bench: Bench, topic: str, count: int) -> Position:
    """Let the running task copy `count` records of an empty topic; returns the stored position."""
    bench.await_copied(topic, bench.source_has(topic, count))
    partition = TopicPartition(topic, 0)
    await_value(lambda: bench.position(partition) == count - 1, WAIT_S, lambda: "no position")
    return stored(bench, topic)


def copy_as_successor(bench: Bench, topic: str, known: Position, count: int) -> None:
    """Write `count` records as a successor in the next producer epoch, and its position."""
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
