"""Compares records with KafkaStatusBackingStore's bytes, and checks its rules for stale statuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.connect.topics.status_records import (
    StatusFold,
    connector_status_record,
    is_safe,
    removed_topic_record,
    task_status_record,
    topic_record,
)
from sparkmirror.domain.connect import State, Status
from sparkmirror.domain.errors import MalformedRecordError

RUNNING = Status(State.RUNNING, "host:8083", 3)
FAILED = Status(State.FAILED, "h:1", 4, '"x"\n\t\x1f', "4.3.1")


def test_records_have_the_bytes_of_connect() -> None:
    connector = connector_status_record("mm2-msc", RUNNING)
    assert connector.key == b"status-connector-mm2-msc"
    assert connector.value == (
        b'{"state":"RUNNING","trace":null,"worker_id":"host:8083","generation":3,"version":null}'
    )
    assert connector.partition is None
    task = task_status_record("mm2-msc", 10, FAILED)
    assert task.key == b"status-task-mm2-msc-10"
    assert task.value == (
        b'{"state":"FAILED","trace":"\\"x\\"\\n\\t\\u001F","worker_id":"h:1","generation":4,"version":"4.3.1"}'
    )
    topic = topic_record("mm2-msc", "A.orders", 0, 1_700_000_000_123)
    assert topic.key == b"status-topic-A.orders:connector-mm2-msc"
    assert topic.value == (
        b'{"topic":{"name":"A.orders","connector":"mm2-msc","task":0,"discoverTimestamp":1700000000123}}'
    )
    for forgotten in (
        connector_status_record("c", None),
        task_status_record("c", 0, None),
        removed_topic_record("c", "t"),
    ):
        assert forgotten.value is None


def test_statuses_of_workers_before_4_1_have_no_version() -> None:
    older = LogRecord(
        b"status-connector-c", b'{"state":"RUNNING","trace":null,"worker_id":"w","generation":1}'
    )
    assert folded(older).connectors == {"c": Status(State.RUNNING, "w", 1)}


def test_the_fold_keeps_the_last_status() -> None:
    fold = folded(
        connector_status_record("c-1", RUNNING),
        connector_status_record("c-1", FAILED),
        task_status_record("c-1", 0, RUNNING),
        task_status_record("c-1", 12, FAILED),
        task_status_record("c", 1, RUNNING),
        topic_record("c-1", "t", 0, 5),
        topic_record("c-1", "u", 1, 6),
        removed_topic_record("c-1", "t"),
    )
    assert fold.connectors == {"c-1": FAILED}
    assert fold.tasks == {"c-1": {0: RUNNING, 12: FAILED}, "c": {1: RUNNING}}
    assert fold.topics == {"c-1": {"u"}}


def test_removed_connectors_need_no_memory() -> None:
    fold = folded(
        connector_status_record("c", RUNNING),
        task_status_record("c", 0, RUNNING),
        topic_record("c", "t", 0, 1),
        task_status_record("c", 0, None),
        connector_status_record("c", None),
        removed_topic_record("c", "t"),
    )
    assert (fold.connectors, fold.tasks, fold.topics) == ({}, {}, {})


def test_a_removed_connector_has_no_tasks() -> None:
    fold = folded(
        connector_status_record("c", RUNNING),
        task_status_record("c", 0, RUNNING),
        task_status_record("c", 1, RUNNING),
        connector_status_record("c", None),
        task_status_record("c", 1, RUNNING),
        task_status_record("c", 2, None),
    )
    assert fold.connectors == {}
    assert fold.tasks == {"c": {1: RUNNING}}


@pytest.mark.parametrize(("generation", "counts"), [(2, False), (3, False), (4, True)])
def test_a_late_unassigned_does_not_replace_running(generation: int, counts: bool) -> None:
    given_up = Status(State.UNASSIGNED, "other:8083", generation)
    fold = folded(task_status_record("c", 0, RUNNING), task_status_record("c", 0, given_up))
    assert fold.tasks == {"c": {0: given_up if counts else RUNNING}}
    paused = Status(State.PAUSED, "host:8083", 3)
    fold = folded(task_status_record("c", 0, paused), task_status_record("c", 0, given_up))
    assert fold.tasks == {"c": {0: given_up}}


@pytest.mark.parametrize(
    ("known", "safe"),
    [
        (None, True),
        (Status(State.RUNNING, "me", 9), True),
        (Status(State.RUNNING, "other", 5), True),
        (Status(State.RUNNING, "other", 6), False),
    ],
)
def test_the_status_of_a_newer_generation_is_not_overwritten(known: Status | None, safe: bool) -> None:
    assert is_safe(known, Status(State.UNASSIGNED, "me", 5)) is safe


@pytest.mark.parametrize(
    "record",
    [
        LogRecord(None, b"{}"),
        LogRecord(b"other", b"{}"),
        LogRecord(b"status-connector-", b'{"state":"RUNNING","worker_id":"w","generation":1}'),
        LogRecord(b"status-connector-c", b"{"),
        LogRecord(b"status-connector-c", b"[]"),
        LogRecord(b"status-connector-c", b'{"state":"RUNNING","worker_id":"w"}'),
        LogRecord(b"status-connector-c", b'{"state":"DANCING","worker_id":"w","generation":1}'),
        LogRecord(b"status-task-c", b'{"state":"RUNNING","worker_id":"w","generation":1}'),
        LogRecord(b"status-task-c-x", b'{"state":"RUNNING","worker_id":"w","generation":1}'),
        LogRecord(b"status-task-c-0", b'{"state":5,"worker_id":"w","generation":1}'),
        LogRecord(b"status-topic-t", b"{}"),
        LogRecord(b"status-topic-:connector-c", b"{}"),
        LogRecord(b"status-topic-t:connector-", None),
    ],
)
def test_malformed_records_change_nothing(record: LogRecord) -> None:
    fold = StatusFold()
    with pytest.raises(MalformedRecordError):
        fold.take(record)
    assert (fold.connectors, fold.tasks, fold.topics) == ({}, {}, {})


TEXTS = st.none() | st.text()
STATUSES = st.builds(Status, st.sampled_from(State), st.text(), st.integers(0, 2**31 - 1), TEXTS, TEXTS)


@given(st.text(min_size=1), STATUSES, st.integers(0, 2**31 - 1))
def test_statuses_are_read_back(name: str, status: Status, task: int) -> None:
    fold = folded(connector_status_record(name, status), task_status_record(name, task, status))
    assert fold.connectors == {name: status}
    assert fold.tasks == {name: {task: status}}


def folded(*records: LogRecord) -> StatusFold:
    fold = StatusFold()
    for record in records:
        fold.take(record)
    return fold
