"""Events are read while they are asked for, and not otherwise."""

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.errors import AuthorizationError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.looks import EventsLook
from sparkmirror.status.topic_histories import EventHistory
from sparkmirror.storage.events import Event, EventKind
from sparkmirror.storage.verified import Verified, verified_events
from tests.unit.status.polled_topic import CONNECTION, FLOW, PolledTopic


class Topic(PolledTopic):
    def __init__(self) -> None:
        super().__init__()
        self.history = EventHistory(FLOW, CONNECTION, poll=self.poll, clock=self.clock)

    def add(self, *numbers: int) -> None:
        events = (Event(float(it), EventKind.STARTED, "c", "", "text", "node") for it in numbers)
        self.waiting += [event.to_record() for event in events]

    def read(self) -> list[float] | None:
        """The times of the events that a look shows after a read."""
        self.history.read()
        known = self.history.look().newest_first
        return None if known is None else [event.time for event in known]


def test_nothing_is_read_while_nobody_looks() -> None:
    topic = Topic()
    topic.history.read()
    assert topic.polls == 0
    assert topic.history.look() == EventsLook()
    topic.add(1, 2)
    assert topic.read() == [2.0, 1.0]
    topic.now += 31
    before = topic.polls
    topic.history.read()
    assert topic.polls == before


def test_the_last_events_are_kept_newest_first() -> None:
    topic = Topic()
    assert topic.read() is None
    assert topic.read() == []
    topic.add(*range(700))
    topic.waiting.append(LogRecord(None, b"of a later version"))
    known = topic.read()
    assert known is not None
    assert (known[0], known[-1], len(known)) == (699.0, 200.0, 500)


def test_why_nothing_can_be_read_is_said_until_it_can() -> None:
    topic = Topic()
    topic.history.look()
    topic.error = AuthorizationError("no right to READ")
    assert topic.read() is None
    assert topic.history.look() == EventsLook(None, "no right to READ")
    topic.error = None
    topic.read()
    assert topic.polls == 1  # not at once again
    topic.now += 10
    assert topic.read() == []
    assert topic.history.look().trouble is None


def verified(at: float, upto: int, topic: str = "orders") -> LogRecord:
    found = {TopicPartition(topic, 0): Verified(at, upto, 0)}
    return next(verified_events(found, "equal", "c", "node")).to_record()


def test_the_last_comparison_outlives_the_events_that_are_kept() -> None:
    topic = Topic()
    topic.waiting += [verified(1.0, 10), verified(2.0, 20), verified(1.0, 5, "payments")]
    topic.add(*range(700))
    known = {
        TopicPartition("orders", 0): Verified(2.0, 20, 0),
        TopicPartition("payments", 0): Verified(1.0, 5, 0),
    }
    topic.history.look()
    topic.history.read()
    look = topic.history.look()
    assert look.verified == topic.history.verified() == known
    assert {event.details for event in look.newest_first or ()} == {None}


def test_metrics_ask_for_comparisons_now_and_then() -> None:
    topic = Topic()
    topic.waiting.append(verified(1.0, 10))
    assert topic.history.verified() == {}
    topic.history.read()
    assert list(topic.history.verified().values()) == [Verified(1.0, 10, 0)]
    before = topic.polls
    topic.history.read()
    assert topic.polls == before, "not each second"
    topic.now += 30
    topic.history.read()
    assert topic.polls > before
    topic.now += 30
    before = topic.polls
    topic.history.read()
    assert topic.polls == before, "nobody asked"
