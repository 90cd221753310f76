"""Attempts follow each other: what is fenced, what the target's log shows of it, and whose word counts."""

import re
from contextlib import ExitStack
from typing import Final

import pytest

from sparkmirror.batches.record_batch import CONTROL
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.topic_log import read_topic
from sparkmirror.storage.attempts import Stage, attempts_of
from tests.contract.copying import ATTEMPTS, CONNECTOR, POSITIONS, Bench, remote, running, store, stored
from tests.support.broker_data import Keyed, append, numbered
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
    partition = TopicPartition(topic, 0)
    records = read_topic(connection(bench.target), ATTEMPTS)
    return [each.stage for each in attempts_of(records, f"{POSITIONS}-{CONNECTOR}", [partition])[partition]]


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
