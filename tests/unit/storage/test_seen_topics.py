"""The records of what a source had when a connector first started."""

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.storage.attempts import KnownAttempts
from sparkmirror.storage.seen_topics import (
    SeenTopic,
    first_start_forgotten,
    is_new,
    seen_records,
    seen_topics,
)

OWNER = "mm2-offsets.A.internal-source"
FIRST = {"a": SeenTopic(2, b"1" * 16), "b": SeenTopic(1)}


def test_what_was_written_is_read() -> None:
    records = seen_records(OWNER, None, FIRST)
    assert seen_topics(OWNER, records) == FIRST
    assert seen_topics(OWNER, records[:-1]) is None, "the first start's record is the last"
    assert seen_topics("another", records) is None
    later = {"b": SeenTopic(3), "c": SeenTopic(1)}
    changes = seen_records(OWNER, FIRST, later)
    assert len(changes) == 3
    assert seen_topics(OWNER, [*records, *changes]) == later
    assert seen_topics(OWNER, [*records, first_start_forgotten(OWNER)]) is None


def test_nothing_is_written_where_nothing_has_changed() -> None:
    assert seen_records(OWNER, FIRST, dict(FIRST)) == []


@pytest.mark.parametrize("value", [b"", b"{", b"{}", b'{"partitions":1,"id":"x"}', b'{"partitions":"1"}'])
def test_what_can_not_be_read_was_not_seen(value: bytes) -> None:
    records = seen_records(OWNER, None, FIRST)
    spoilt = [LogRecord(record.key, value) if record.value else record for record in records[:1]]
    assert seen_topics(OWNER, [*spoilt, *records[1:]]) == {"b": SeenTopic(1)}


def test_attempts_beside_them_are_read_as_before() -> None:
    known = KnownAttempts(OWNER)
    known.add(seen_records(OWNER, None, FIRST))
    assert known.of(TopicPartition("a", 0)) == []


@pytest.mark.parametrize(
    ("topic", "partition", "now", "is_it_new"),
    [
        ("a", 1, SeenTopic(2, b"1" * 16), False),
        ("a", 1, SeenTopic(2), False),
        ("a", 2, SeenTopic(3, b"1" * 16), True),
        ("a", 0, SeenTopic(2, b"2" * 16), True),
        ("b", 0, SeenTopic(1, b"3" * 16), False),
        ("c", 0, SeenTopic(1), True),
    ],
)
def test_new_partitions(topic: str, partition: int, now: SeenTopic, *, is_it_new: bool) -> None:
    assert is_new(TopicPartition(topic, partition), FIRST, {topic: now}) is is_it_new
