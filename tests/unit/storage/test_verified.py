"""Results of comparisons are kept as events, and read from them again."""

from dataclasses import replace
from typing import Any

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.storage.events import Event, EventKind, parse_event
from sparkmirror.storage.verified import Verified, verified_events, verified_of


def read_back(event: Event) -> Event:
    parsed = parse_event(event.to_record())
    assert parsed is not None
    return parsed


def test_it_is_read_as_it_was_written() -> None:
    found = {
        TopicPartition("orders", 0): Verified(5.0, 1000, 0),
        TopicPartition("orders", 10): Verified(5.0, None, 3),
        TopicPartition("a\u202e<b>", 2): Verified(5.0, 0, 0),
    }
    (event,) = verified_events(found, "1,000 records are the same", "msc", "host:1")
    assert (event.kind, event.text, event.connector) == (
        EventKind.VERIFIED,
        "1,000 records are the same",
        "msc",
    )
    assert verified_of(read_back(event)) == found
    assert "details" not in event.to_json()


def test_many_partitions_take_several_events() -> None:
    found = {TopicPartition("t" * 249, number): Verified(5.0, number, 0) for number in range(2500)}
    events = list(verified_events(found, "equal", "msc", "host:1"))
    assert [event.text for event in events] == ["equal (1 of 3)", "equal (2 of 3)", "equal (3 of 3)"]
    assert all(len(event.to_record().value or b"") < 1_000_000 for event in events)
    assert {of: it for event in events for of, it in verified_of(read_back(event)).items()} == found


def test_topics_of_long_names_fit_in_a_record() -> None:
    found = {TopicPartition(f"{number:0249}", 0): Verified(5.0, 2**62, 10**9) for number in range(1000)}
    (event,) = verified_events(found, "equal", "msc", "host:1")
    assert len(event.to_record().value or b"") < 1_000_000


def test_what_is_of_another_kind_or_version_tells_nothing() -> None:
    (event,) = verified_events({TopicPartition("t", 0): Verified(5.0, 1, 0)}, "equal", "msc", "host:1")
    assert verified_of(replace(event, kind=EventKind.STARTED)) == {}
    topics: list[Any] = [[], {"t": [[1]]}, {"t": [["x", 1, 1]]}]
    others: list[Any] = [None, {}, [], *({"topics": each} for each in topics)]
    for details in others:
        assert verified_of(replace(event, details=details)) == {}
