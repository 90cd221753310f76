"""Explanations why a topic is mirrored or not."""

from dataclasses import replace

import pytest

from sparkmirror.domain.explanation import Verdict
from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.setup.topic_explanation import AHEAD, LATER_TOPICS, MirroredPartition, TopicFacts, explain

HERE, THERE = TopicPartition("orders", 0), TopicPartition("us.orders", 0)
PARTITION = MirroredPartition(HERE, THERE, start=0, end=100, mirrored_to=100, target_end=100, state="RUNNING")
FACTS = TopicFacts(
    Flow(Alias("us"), Alias("eu")),
    "orders",
    "us.orders",
    [Verdict("filter", passes=True, why="it is wanted")],
    source_partitions=1,
    target_partitions=1,
    partitions=[PARTITION],
)
REFUSED = Verdict("cycle", passes=False, why="by its name it came from eu, the target")


def test_a_topic_that_is_fine() -> None:
    found = explain(FACTS)
    assert (found.is_fine, found.obstacles, found.notes) == (True, [], [])
    assert (found.partitions[0].numbers["lag"], found.partitions[0].why) == (0, "caught up")


def test_a_rule_that_refuses_is_enough() -> None:
    found = explain(replace(FACTS, verdicts=[*FACTS.verdicts, REFUSED], partitions=[]))
    assert not found.is_fine
    assert found.notes == ["us.orders is on eu, and is not written by this flow"]


def test_a_topic_that_is_not_there() -> None:
    found = explain(replace(FACTS, source_partitions=None, partitions=[], hints=["ask for orders"]))
    assert not found.is_fine
    assert found.obstacles == ["us knows no such topic, or the principal may not DESCRIBE it; ask for orders"]


@pytest.mark.parametrize(
    ("there", "note"),
    [
        (None, "us.orders is not on eu yet: the next refresh creates it"),
        (1, "us.orders has 1 partition and needs 2: the next refresh adds them"),
        (3, "us.orders has 3 partitions and needs 2: the others stay empty"),
    ],
)
def test_numbers_of_partitions(there: int | None, note: str) -> None:
    found = explain(replace(FACTS, source_partitions=2, target_partitions=there))
    assert (found.is_fine, found.notes) == (True, [note])


def test_nothing_is_created_before_the_mirror_starts() -> None:
    facts = replace(FACTS, source_partitions=2, target_partitions=None, waits_for_start=True)
    assert explain(facts).notes == ["us.orders is not on eu yet: the next start of the mirror creates it"]


@pytest.mark.parametrize(
    ("there", "what"),
    [(None, "is not there on eu"), (1, "has 1 partition and needs 2 on eu"), (2, None), (3, None)],
)
def test_without_a_refresh_nothing_is_announced(there: int | None, what: str | None) -> None:
    found = explain(replace(FACTS, source_partitions=2, target_partitions=there, refreshes=False))
    assert found.obstacles == ([] if what is None else [f"us.orders {what}: {LATER_TOPICS}"])
    assert found.is_fine is (what is None)
    assert "next refresh" not in " ".join(found.notes)


@pytest.mark.parametrize(
    ("partition", "why", "is_fine"),
    [
        (replace(PARTITION, end=150), "50 records behind", True),
        (replace(PARTITION, end=None), "its end is unknown", True),
        (replace(PARTITION, end=90), AHEAD, False),
        (replace(PARTITION, mirrored_to=None), "not begun: no position of it is stored", True),
        (replace(PARTITION, mirrored_to=None, end=0), "empty, and not begun", True),
        (replace(PARTITION, start=130, end=150), "30 records behind its position are gone from us", True),
        (replace(PARTITION, state="FAILED", error="no right"), "failed: no right", False),
        (replace(PARTITION, state="RETRYING", error="away", notice="x"), "retrying: away", False),
        (
            replace(PARTITION, incidents={"lost": 2}, notice="2 lost"),
            "caught up; incidents since its task has started: lost: 2; 2 lost",
            True,
        ),
    ],
)
def test_states_of_partitions(partition: MirroredPartition, why: str, *, is_fine: bool) -> None:
    found = explain(replace(FACTS, partitions=[partition]))
    assert (found.partitions[0].why, found.is_fine) == (why, is_fine)


@pytest.mark.parametrize("mirrored_to", [None, 40])
def test_what_stands_by_is_not_behind(mirrored_to: int | None) -> None:
    (found,) = explain(
        replace(FACTS, partitions=[replace(PARTITION, mirrored_to=mirrored_to, state="STANDBY")])
    ).partitions
    assert found.why == "standby: the opposite flow has copied its records, until a failback"
    assert (found.is_fine, found.numbers["lag"]) == (True, 0)


@pytest.mark.parametrize("there", [None, 1])
def test_nothing_is_announced_that_does_not_come(there: int | None) -> None:
    later = replace(PARTITION, source=HERE._replace(partition=1), target=THERE._replace(partition=1))
    lacking = replace(
        FACTS,
        source_partitions=2,
        target_partitions=there,
        partitions=[replace(later, mirrored_to=None, target_end=None)],
    )
    refused = explain(replace(lacking, obstacles=["can't have 3 replicas"]))
    assert not refused.is_fine
    assert not any("refresh" in note for note in refused.notes)
    assert [(it.why, it.is_fine) for it in refused.partitions] == [("not on eu", False)]


def test_what_the_mirror_has_said_about_the_topic_is_there() -> None:
    cause = Cause(
        TroubleWord.NOT_GROWN, Subject.TOPIC, "ALTER is missing on {name}", "kafka-acls --topic {name}"
    )
    said = Trouble(cause, "orders", "us.orders", partitions=(1, 2))
    found = explain(replace(FACTS, troubles=[said]))
    assert found.obstacles == ["not grown: ALTER is missing on us.orders; kafka-acls --topic us.orders"]
    assert not found.is_fine
    waiting = said._replace(cause=Cause(TroubleWord.THROTTLED, Subject.TOPIC, "a quota"))
    found = explain(replace(FACTS, troubles=[waiting]))
    assert (found.is_fine, found.notes) == (True, ["throttled: a quota"])
