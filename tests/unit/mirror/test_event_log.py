"""Events are written in order, and never wait for a target that does not take them."""

import logging
from collections.abc import Iterable

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthorizationError, RetriableError, SparkmirrorError
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.mirror.event_log import EventLog
from sparkmirror.policies.replication import DefaultReplicationPolicy
from sparkmirror.storage.events import Event, EventKind, parse_event
from sparkmirror.storage.progress import ConnectorTroubles

FLOW = Flow(Alias("a"), Alias("b"))


class Topic:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.troubles: list[ConnectorTroubles] = []
        self.error: SparkmirrorError | None = None
        self.now = 1000.0

    def write(self, topic: str, values: Iterable[Event | ConnectorTroubles]) -> None:
        if self.error is not None:
            raise self.error
        self.events += [each for each in values if isinstance(each, Event)]
        self.troubles += [each for each in values if isinstance(each, ConnectorTroubles)]
        assert topic == f"mm2-{'events' if isinstance(next(iter(values)), Event) else 'progress'}.a.internal"

    def log(self, *, is_main: bool = True) -> EventLog:
        return EventLog(
            FLOW,
            ConnectorName("c"),
            ConnectionSettings((("localhost", 1),)),
            is_main=is_main,
            write=self.write,
            clock=lambda: self.now,
        )


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
    topic.now += 120
    log.flush()
    why = "mm2-events.a.internal not written"
    assert [event.text for event in topic.events] == ["first", f"{why}: no right", "second"]
    topic.now += 1
    log.flush()
    assert [event.text for event in topic.events[3:]] == [f"{why}: over after 4 min"]


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


REFUSED = Trouble(Cause.of(TroubleWord.NOT_CREATED, Subject.TOPIC, "a.orders", "no"), "orders", "a.orders")


def test_troubles_are_written_at_the_start_when_they_change_and_when_they_are_over() -> None:
    topic = Topic()
    log = topic.log()
    log.publish()
    log.publish()
    log.troubles.tell("topics", [REFUSED])
    topic.error = RetriableError("no leader")
    log.publish()
    topic.error = None
    for _ in range(3):
        log.publish()
    log.troubles.tell("topics", [])
    log.publish()
    assert [[(it.what, it.since) for it in each.troubles] for each in topic.troubles] == [
        [],
        [("orders", 1000.0)],
        [],
    ]


def test_troubles_of_a_connector_that_is_stopped_in_order_are_withdrawn() -> None:
    topic = Topic()
    log = topic.log()
    log.troubles.tell("topics", [REFUSED])
    log.publish()
    log.thread.close()
    assert [len(each.troubles) for each in topic.troubles] == [1, 0]


def test_a_topic_that_can_t_be_written_is_a_trouble_until_it_can() -> None:
    """Events, and what the log can't do, are known to those who ask the process."""
    topic = Topic()
    log = topic.log()
    topic.error = AuthorizationError("no right")
    log.note(EventKind.STALLED, "first")
    log.flush()
    log.publish()
    assert [(it.what, it.word, it.reason) for it in log.troubles.now] == [
        ("mm2-events.a.internal", "not written", "no right"),
        ("mm2-progress.a.internal", "not written", "no right"),
    ]
    topic.error, topic.now = None, topic.now + 60
    log.flush()
    log.publish()
    assert log.troubles.now == []


def test_denied_writes_become_rare_and_another_connector_s_topics_are_no_trouble_of_its_own() -> None:
    """A source that may only be read has an audit log."""
    topic = Topic()
    log, writes = topic.log(is_main=False), 0
    topic.error = AuthorizationError("no right")

    def counting(_topic: str, _values: object) -> None:
        nonlocal writes
        writes += 1
        raise AuthorizationError("no right")

    log._write = counting
    log.note(EventKind.STALLED, "first")
    for _ in range(24 * 60):
        topic.now += 60
        log.flush()
    assert 24 <= writes <= 40, "a day"
    assert not log.troubles.now
