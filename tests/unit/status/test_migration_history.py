"""Migrations are read while they are asked for; the newest record of each key counts."""

from typing import Final

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.errors import AuthorizationError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.metrics.looks import MigrationsLook
from sparkmirror.status.topic_histories import MigrationHistory
from sparkmirror.storage.migrations import Migrations
from sparkmirror.storage.written_offsets import WrittenOffset, restored_record, written_record
from tests.unit.status.polled_topic import CONNECTION, FLOW, PolledTopic

GROUP: Final = GroupId("billing")
PLACE: Final = TopicPartition("a.orders", 0)


class Topic(PolledTopic):
    def __init__(self) -> None:
        super().__init__()
        self.history = MigrationHistory(FLOW, CONNECTION, "owner", poll=self.poll, clock=self.clock)

    def read(self, *records: LogRecord) -> MigrationsLook:
        self.waiting += records
        self.history.read()
        return self.history.look()


def written(offset: int) -> LogRecord:
    return written_record(GROUP, WrittenOffset(PLACE, offset, None))


def offsets(look: MigrationsLook) -> list[int] | None:
    if look.known is None:
        return None
    return [it.written for moved in look.known.groups.values() for it in moved.offsets]


def test_nothing_is_read_while_nobody_looks() -> None:
    topic = Topic()
    topic.history.read()
    assert topic.polls == 0
    assert topic.history.look() == MigrationsLook()
    assert topic.read() == MigrationsLook(Migrations())
    topic.now += 31
    before = topic.polls
    topic.history.read()
    assert topic.polls == before


def test_the_newest_record_of_a_key_counts() -> None:
    topic = Topic()
    topic.history.look()
    assert offsets(topic.read(written(97), LogRecord(None, b"no key"))) == [97]
    assert offsets(topic.read()) == [97]
    assert offsets(topic.read(written(99))) == [99]
    assert offsets(topic.read(restored_record(GROUP, PLACE))) == []


def test_why_nothing_can_be_read_is_said_until_it_can() -> None:
    topic = Topic()
    topic.history.look()
    topic.read(written(97))
    topic.error = AuthorizationError("no right to READ")
    look = topic.read()
    assert (offsets(look), look.trouble) == ([97], "no right to READ")
    topic.error = None
    before = topic.polls
    topic.read()
    assert topic.polls == before, "not at once again"
    topic.now += 10
    assert topic.read().trouble is None
