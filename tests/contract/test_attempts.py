"""Attempts follow each other: what is fenced, what the target's log shows of it, and which record decides."""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Final

import confluent_kafka as confluent
import pytest

from sparkmirror.batches.record_batch import CONTROL, rewrite_header
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.topic_log import TopicWriter, read_topic
from sparkmirror.kafka.wire.error_codes import INVALID_PRODUCER_EPOCH
from sparkmirror.storage.attempts import KnownAttempts, Stage
from tests.contract.copying import (
    ATTEMPTS,
    CONNECTOR,
    POSITIONS,
    Bench,
    ProgressReports,
    remote,
    running,
    store,
    stored,
)
from tests.support.broker_data import Keyed, append, configure, delete_records, numbered
from tests.support.broker_requests import asking, stored_batches
from tests.support.connections import connection
from tests.support.waiting import await_value

WAIT_S = 30.0
SAME: Final[list[Keyed]] = [(b"ping", b"pong")] * 10


@pytest.fixture
def topic(bench: Bench, request: pytest.FixtureRequest) -> str:
    name = "contract." + re.sub(r"\W+", "-", request.node.name)
    bench.create(name, target_config={"message.timestamp.type": "LogAppendTime"})
    return name


def markers(bench: Bench, topic: str) -> int:
    headers = [batch.header for batch in stored_batches(bench.target, remote(topic))]
    return sum(bool(header.attributes & CONTROL) for header in headers)


def stages(bench: Bench, topic: str) -> list[Stage]:
    known = KnownAttempts(f"{POSITIONS}-{CONNECTOR}")
    known.add(read_topic(connection(bench.target), ATTEMPTS))
    return [each.stage for each in known.of(TopicPartition(topic, 0))]


@contextmanager
def crashing(bench: Bench, topic: str) -> Iterator[None]:
    """Like `running`, but at the end the state topics say what they said before it stopped in order."""
    with running(bench.plan(TopicPartition(topic, 0))):
        yield
        await_value(lambda: Stage.OPEN in stages(bench, topic), WAIT_S, lambda: f"{stages(bench, topic)}")
        attempts = [*read_topic(connection(bench.target), ATTEMPTS)]
        position = stored(bench, topic)
    newest = [record for record in attempts if record.key is not None and topic.encode() in record.key][-1:]
    with closing(TopicWriter(connection(bench.target))) as writer:
        writer.write(ATTEMPTS, newest)
    store(bench, topic, position)


def in_a_transaction(bench: Bench, topic: str, records: Sequence[Keyed]) -> None:
    """Write them to the source, where the transaction's marker makes a gap behind them."""
    producer = confluent.Producer(
        {"bootstrap.servers": bench.source.bootstrap_servers, "transactional.id": topic, "log_level": 0}
    )
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    for key, value in records:
        producer.produce(topic, value, key, 0)
    producer.commit_transaction(WAIT_S)


def test_an_orderly_restart_closes_the_attempt_and_writes_no_marker(bench: Bench, topic: str) -> None:
    for count in (5, 10):
        append(bench.source, topic, numbered(5, count - 5))
        with running(bench.plan(TopicPartition(topic, 0))):
            bench.await_copied(topic, numbered(count))
        assert stages(bench, topic) == [Stage.CLOSED]
    assert markers(bench, topic) == 0


def test_a_successor_fences_an_attempt_that_still_runs(bench: Bench, topic: str) -> None:
    plan = bench.plan(TopicPartition(topic, 0))
    with ExitStack() as attempts:
        attempts.enter_context(running(plan))
        bench.await_copied(topic, bench.source_has(topic, 5))
        attempts.enter_context(running(plan))
        await_value(lambda: markers(bench, topic) == 1, WAIT_S, lambda: "no marker")
        bench.source_has(topic, 5)
        bench.await_copied(topic, numbered(10))
    header = stored_batches(bench.target, remote(topic))[0].header
    with asking(bench.target) as asker:  # what the first one has sent last arrives once more
        batch = stored_batches(bench.target, remote(topic))[0]
        error = asker.produce_one(TopicPartition(remote(topic), 0), memoryview(batch.data)).error
    assert error != 0, f"epoch {header.producer_epoch} can still write"


def test_records_that_are_all_the_same_are_counted_right(bench: Bench, topic: str) -> None:
    """And stamped by the target: nothing in them tells one from another."""
    append(bench.source, topic, SAME)
    with running(bench.plan(TopicPartition(topic, 0))):
        bench.await_copied(topic, SAME)
    known = stored(bench, topic)
    append(bench.source, topic, SAME)
    with running(bench.plan(TopicPartition(topic, 0))):
        bench.await_copied(topic, SAME * 2)
    store(bench, topic, known)  # as if the second attempt had died before it stored one
    append(bench.source, topic, SAME * 3)
    with running(bench.plan(TopicPartition(topic, 0))):
        bench.await_copied(topic, SAME * 5)
    assert bench.copied(topic) == SAME * 5


def test_equal_records_behind_what_retention_removed_from_the_source_are_copied(
    bench: Bench, topic: str, watch: ProgressReports
) -> None:
    """And what it removed before it was copied is an incident with its count."""
    append(bench.source, topic, SAME)
    with crashing(bench, topic):
        bench.await_copied(topic, SAME)
    known = stored(bench, topic)
    append(bench.source, topic, SAME)
    with crashing(bench, topic):
        bench.await_copied(topic, SAME * 2)
    store(bench, topic, known)  # the second one died before it stored a position
    append(bench.source, topic, SAME * 2)
    lost = 5
    delete_records(bench.source, topic, 2 * len(SAME) + lost)
    left = [*SAME, *SAME[lost:]]
    with running(bench.plan(TopicPartition(topic, 0))):
        bench.await_copied(topic, [*SAME * 2, *left])
        report = watch.await_progress(topic, lambda report: report.lost > 0)
    assert report.incidents == {"records-lost": 1}
    assert report.lost == lost


def test_what_the_target_begins_to_stamp_under_way_is_copied_once(bench: Bench, topic: str) -> None:
    """Batches behind the stored position look different there."""
    configure(bench.target, remote(topic), {"message.timestamp.type": "CreateTime"})
    append(bench.source, topic, numbered(5))
    with crashing(bench, topic):
        bench.await_copied(topic, numbered(5))
        known = stored(bench, topic)
        configure(bench.target, remote(topic), {"message.timestamp.type": "LogAppendTime"})
        append(bench.source, topic, numbered(5, 5))
        bench.await_copied(topic, numbered(10))
    store(bench, topic, known)
    append(bench.source, topic, numbered(5, 10))
    with running(bench.plan(TopicPartition(topic, 0))):
        bench.await_copied(topic, numbered(15))


def test_a_late_batch_of_a_dead_attempt_is_refused_before_its_successor_has_written(
    bench: Bench, topic: str
) -> None:
    """It has the sequences that the successor's first batch would have had under the same epoch."""
    in_a_transaction(bench, topic, numbered(5))
    with crashing(bench, topic):
        bench.await_copied(topic, numbered(5))
    dead = stored_batches(bench.target, remote(topic))[-1]
    late, header = memoryview(bytearray(dead.data)), dead.header
    rewrite_header(late, header.producer_id, header.producer_epoch, header.last_sequence + 1)
    with running(bench.plan(TopicPartition(topic, 0))):
        await_value(lambda: markers(bench, topic) == 1, WAIT_S, lambda: "no marker")
        with asking(bench.target) as asker:
            error = asker.produce_one(TopicPartition(remote(topic), 0), late).error
        in_a_transaction(bench, topic, numbered(5, 5))
        bench.await_copied(topic, numbered(10))
    assert error == INVALID_PRODUCER_EPOCH


def test_a_target_whose_retention_passed_the_stored_offset_gets_no_record_twice(
    bench: Bench, topic: str
) -> None:
    append(bench.source, topic, numbered(5))
    with crashing(bench, topic):
        bench.await_copied(topic, numbered(5))
    known = stored(bench, topic)
    for first in (5, 10):  # two batches: one is left
        append(bench.source, topic, numbered(5, first))
        with crashing(bench, topic):
            bench.await_copied(topic, numbered(first + 5))
    store(bench, topic, known)
    copies = [batch.header for batch in stored_batches(bench.target, remote(topic))]
    delete_records(bench.target, remote(topic), copies[-1].base_offset + 2)
    append(bench.source, topic, numbered(5, 15))
    with running(bench.plan(TopicPartition(topic, 0))):
        bench.await_copied(topic, numbered(8, 12))
