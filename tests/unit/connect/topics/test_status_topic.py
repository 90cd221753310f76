"""Checks that written statuses count before they are read back, and are not kept for ever."""

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.connect.topics.status_records import connector_status_record
from sparkmirror.connect.topics.status_topic import UnreadWrites
from sparkmirror.domain.connect import State, Status
from sparkmirror.kafka.data.topic_log import TopicTail
from tests.unit.connect.connect_memory import NOWHERE, status_topic

HERE = Status(State.RUNNING, "here:8083", 3)
THERE = Status(State.PAUSED, "there:8083", 4)


class _Tail(TopicTail):
    """Reads the records that are given to it."""

    def __init__(self) -> None:
        super().__init__(NOWHERE, "statuses")
        self.records: list[LogRecord] = []

    def poll(self, timeout_s: float) -> list[LogRecord]:
        del timeout_s  # nothing to wait for
        records, self.records = self.records, []
        return records


class Topic:
    def __init__(self) -> None:
        self._tail = _Tail()
        self.statuses, self.written = status_topic(self._tail)

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


def test_removed_connectors_have_no_status_task_or_topic(topic: Topic) -> None:
    statuses = topic.statuses
    for number in range(3):
        name = f"c{number}"
        statuses.put_connector(name, HERE)
        statuses.put_task(name, 0, HERE)
        statuses.put_topic(name, "orders", 0, 1)
        statuses.remove_connector(name)
    topic.read(*enumerate(topic.written))
    assert statuses.connectors() == {}
    assert [(statuses.tasks(f"c{number}"), statuses.topics(f"c{number}")) for number in range(3)] == [
        ({}, [])
    ] * 3


def test_writes_that_were_read_back_need_no_memory() -> None:
    unread = UnreadWrites()
    first, second = (connector_status_record("c", HERE)._replace(offset=offset) for offset in (4, 5))
    for record in (first, second):
        unread.note(record.key, record.offset)
    assert [unread.is_news(first), len(unread)] == [False, 1]
    assert [unread.is_news(second), len(unread)] == [False, 0]
    assert unread.is_news(second._replace(offset=6))
