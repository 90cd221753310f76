"""Checks that written statuses count before they are read back, and are not kept for ever."""

from collections.abc import Sequence

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.connect.topics.status_records import connector_status_record
from sparkmirror.domain.connect import State, Status
from tests.unit.connect.connect_memory import status_topic

HERE = Status(State.RUNNING, "here:8083", 3)
THERE = Status(State.PAUSED, "there:8083", 4)


class _Tail:
    """Reads what is given to it."""

    def __init__(self) -> None:
        self.records: list[LogRecord] = []

    def poll(self, _timeout_s: float) -> Sequence[LogRecord]:
        records, self.records = self.records, []
        return records


class Topic:
    def __init__(self) -> None:
        self.statuses, self.written = status_topic()
        self._tail = _Tail()
        self.statuses._tail = self._tail  # type: ignore[assignment]

    def read(self, *records: tuple[int, LogRecord]) -> None:
        self._tail.records = [record._replace(offset=offset) for offset, record in records]
        self.statuses.poll(0.0)


@pytest.fixture
def topic() -> Topic:
    return Topic()


def test_older_records_of_others_do_not_replace_own_ones(topic: Topic) -> None:
    topic.statuses.put_connector("other", HERE)
    topic.statuses.put_connector("c", HERE)  # at offset 1
    topic.read((0, connector_status_record("c", THERE)))
    assert topic.statuses.connectors()["c"] == HERE
    topic.read((1, connector_status_record("c", HERE)), (2, connector_status_record("c", THERE)))
    assert topic.statuses.connectors()["c"] == THERE


def test_removed_connectors_need_no_memory(topic: Topic) -> None:
    statuses = topic.statuses
    for number in range(3):
        name = f"c{number}"
        statuses.put_connector(name, HERE)
        statuses.put_task(name, 0, HERE)
        statuses.put_topic(name, "orders", 0, 1)
        statuses.remove_connector(name)
    topic.read(*enumerate(topic.written))
    assert statuses._unread == {}
    assert (statuses._fold.connectors, statuses._fold.tasks, statuses._fold.topics) == ({}, {}, {})
