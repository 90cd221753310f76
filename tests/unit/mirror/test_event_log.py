"""Events are written in order, and never wait for a target that does not take them."""

import logging
from collections.abc import Iterable

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthorizationError, RetriableError, SparkmirrorError
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.mirror.event_log import EventLog
from sparkmirror.policies.replication import DefaultReplicationPolicy
from sparkmirror.storage.events import Event, EventKind, parse_event

FLOW = Flow(Alias("a"), Alias("b"))


class Topic:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.error: SparkmirrorError | None = None
        self.now = 1000.0

    def write(self, topic: str, events: Iterable[Event]) -> None:
        assert topic == "mm2-events.a.internal"
        if self.error is not None:
            raise self.error
        self.events += events

    def log(self) -> EventLog:
        connection = ConnectionSettings((("localhost", 1),))
        return EventLog(FLOW, ConnectorName("c"), connection, write=self.write, clock=lambda: self.now)


def test_an_event_survives_its_topic() -> None:
    topic = Topic()
    log = topic.log()
    log.note(EventKind.FAILED, "no right", TopicPartition("orders", 3))
    log.flush()
    (event,) = topic.events
    assert (event.kind, event.about, event.text, event.time) == (
        EventKind.FAILED,
        "orders-3",
        "no right",
        1000.0,
    )
    assert parse_event(event.to_record()) == event
    assert parse_event(LogRecord(None, b"{}")) is None
    assert parse_event(LogRecord(None, event.to_record().value.replace(b"failed", b"later"))) is None  # type: ignore[union-attr]


def test_the_topic_is_one_that_is_not_mirrored() -> None:
    assert DefaultReplicationPolicy().is_internal_topic(StateTopic.EVENTS.of(FLOW.source))


def test_what_can_not_be_written_waits_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    topic = Topic()
    log = topic.log()
    topic.error = AuthorizationError("no right")
    log.note(EventKind.STALLED, "first")
    for _ in range(3):
        topic.now += 60
        log.flush()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    topic.error = None
    log.note(EventKind.CONTINUES, "second")
    log.flush()
    assert topic.events == []  # not tried again at once
    topic.now += 60
    log.flush()
    assert [event.text for event in topic.events] == ["first", "second"]
    log.flush()
    assert len(topic.events) == 2


def test_a_failure_that_passes_is_not_said_and_tried_again_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """A new topic has no leader for a moment."""
    topic = Topic()
    log = topic.log()
    log.note(EventKind.STARTED, "first")
    topic.error = RetriableError("no leader")
    log.flush()
    assert not caplog.records
    topic.error, topic.now = None, topic.now + 1
    log.flush()
    assert [event.text for event in topic.events] == ["first"]
    log.note(EventKind.STALLED, "second")
    topic.error = RetriableError("away")
    for _ in range(90):
        topic.now += 1
        log.flush()
    assert len(caplog.records) == 1


def test_events_that_wait_are_bounded_and_those_dropped_are_counted() -> None:
    topic = Topic()
    log = topic.log()
    for number in range(1005):
        log.note(EventKind.INCIDENT, f"{number} {'x' * 5000}")
    log.flush()
    assert len(topic.events) == 1001
    assert topic.events[-1].kind is EventKind.DROPPED
    assert topic.events[-1].text == "5 events could not be written"
    assert max(len(event.text) for event in topic.events) == 2000
    log.note(EventKind.INCIDENT, "next")
    log.flush()
    assert len(topic.events) == 1002
