"""The troubles of a connector are kept, logged once, and written for other processes."""

import logging

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.ids import ConnectorName
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.storage.events import EventKind
from sparkmirror.storage.progress import ConnectorTroubles, parse
from sparkmirror.storage.troubles import Troubles

NAME = ConnectorName("MirrorSourceConnector")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def refused(topic: str, why: str = "no", word: TroubleWord = TroubleWord.NOT_CREATED) -> Trouble:
    return Trouble(Cause.of(word, Subject.TOPIC, topic, f"create {topic}: {why}"), topic, partitions=(0, 3))


def test_troubles_are_told_when_they_begin_and_when_they_are_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock, events = Clock(), list[tuple[EventKind, str, object]]()
    troubles = Troubles(
        logging.getLogger("x"), lambda kind, text, about="": events.append((kind, text, about)), clock
    )
    troubles.tell("topics", [refused("a"), refused("b")])
    clock.now = 1060.0
    troubles.tell("topics", [refused("a"), refused("b"), refused("c")])
    troubles.tell("other", [])
    assert [(it.what, it.since) for it in troubles.now] == [("a", 1000), ("b", 1000), ("c", 1060)]
    assert troubles.text == "a, b, c not created: create a: no"
    troubles.tell("topics", [refused("c")])
    assert caplog.messages == [
        "a, b not created: create a: no",
        "c not created: create c: no",
        "a, b not created: over after 1 min",
    ]
    assert events == [
        (EventKind.FAILED, "a, b not created: create a: no", ""),
        (EventKind.FAILED, "c not created: create c: no", "c"),
        (EventKind.RECOVERED, "a, b not created: over after 1 min", ""),
    ]


def test_one_finder_leaves_what_another_has_found() -> None:
    troubles = Troubles(logging.getLogger("x"))
    troubles.tell("topics", [refused("a")])
    troubles.tell("groups", [refused("b")])
    troubles.tell("topics", [])
    assert [it.what for it in troubles.now] == ["b"]


def test_another_reason_is_told_and_begins_when_the_first_did(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    troubles = Troubles(logging.getLogger("x"), clock=clock)
    troubles.tell("topics", [refused("a")])
    clock.now = 2000.0
    troubles.tell("topics", [refused("a", "still no")])
    assert [(it.reason, it.since) for it in troubles.now] == [("create a: still no", 1000.0)]
    assert caplog.messages == ["a not created: create a: no", "a not created: create a: still no"]


def test_five_thousand_topics_take_one_line_and_many_reasons_six(caplog: pytest.LogCaptureFixture) -> None:
    troubles = Troubles(logging.getLogger("x"))
    troubles.tell("topics", [refused(f"t{number}") for number in range(5000)])
    assert len(caplog.messages) == 1
    troubles.tell("others", [refused(f"t{number}", f"reason {number}") for number in range(50)])
    assert len(caplog.messages) == 1 + 6


def test_what_passes_one_by_one_is_told_when_it_begins_and_when_all_of_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    troubles = Troubles(logging.getLogger("x"), clock=lambda: 5.0)
    for left in range(20, -1, -1):
        cause = Cause(TroubleWord.THROTTLED, Subject.TOPIC, "a quota")
        troubles.tell("topics", [Trouble(cause, f"t{number}") for number in range(left)])
        assert len(troubles.now) == left
    assert caplog.messages == [
        "t0, t1, t10, t11, t12 and 15 more throttled: a quota",
        "t0 throttled: over after 1 s",
    ]


def test_what_passes_by_itself_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    troubles = Troubles(logging.getLogger("x"))
    troubles.tell("topics", [refused("a", word=TroubleWord.THROTTLED)])
    assert [record.levelno for record in caplog.records] == [logging.INFO]
    assert troubles.text is None


def test_they_are_written_and_read() -> None:
    of = ConnectorTroubles(
        NAME,
        [
            Trouble(Cause.of(TroubleWord.BLOCKED, Subject.TOPIC, "", "why", "how"), "a", "A.a", 5.0, (1, 4)),
            Trouble(Cause.of(TroubleWord.NOT_COMMITTED, Subject.GROUP, "g", "g: why"), "g", "", 6.5),
        ],
    )
    assert parse(of.to_record()) == of
    assert parse(ConnectorTroubles(NAME, []).to_record()) == ConnectorTroubles(NAME, [])


def test_a_record_of_a_later_version_is_left_out() -> None:
    written = ConnectorTroubles(NAME, [refused("a")]).to_record()
    assert written.value is not None
    later = written.value.replace(b"not created", b"a later word")
    assert parse(LogRecord(written.key, later)) is None


def test_a_record_has_a_limit() -> None:
    of = ConnectorTroubles(NAME, [refused(f"{number:0249}") for number in range(20_000)])
    record = of.to_record()
    assert record.value is not None
    assert len(record.value) < 900_000
    kept = parse(record)
    assert isinstance(kept, ConnectorTroubles)
    assert len(kept.troubles) > 1000
