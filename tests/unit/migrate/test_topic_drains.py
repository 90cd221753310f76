from dataclasses import replace

import pytest

from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.migrate.steps import Step, StepState
from sparkmirror.migrate.topic_drains import HeartbeatsSeen, PartitionDrain, StandStill, TopicsDrain

FLOW = Flow(Alias("A"), Alias("B"))
SOURCE, TARGET = TopicPartition("orders", 0), TopicPartition("A.orders", 0)
DRAINED = PartitionDrain(
    SOURCE, TARGET, source_end=100, mirrored_to=100, is_drained=True, target_next=107, target_end=107
)
BEHIND = replace(DRAINED, mirrored_to=90, is_drained=False)
BEATING = HeartbeatsSeen(interval_s=1.0, first_ms=1000, last_ms=2000, now_ms=2500, looked_for_s=2.0)
NEVER = float("inf")
DONE, WAITING, TO_DO, IMPOSSIBLE = StepState.DONE, StepState.WAITING, StepState.TO_DO, StepState.IMPOSSIBLE


def drain(*partitions: PartitionDrain, still_s: float = 10.0) -> TopicsDrain:
    return TopicsDrain(FLOW, partitions, BEATING, still_s=still_s, still_for_s=10.0)


def states(found: TopicsDrain) -> list[StepState]:
    return [step.state for step in found.steps()]


def step(found: TopicsDrain, name: str) -> Step:
    return next(step for step in found.steps() if step.name == name)


def test_ends_stand_still_since_they_moved_last() -> None:
    still, other = StandStill(), TopicPartition("orders", 1)
    assert still.observe({SOURCE: 1, other: 1}, 100.0) == 0
    assert still.observe({SOURCE: 1, other: 1}, 103.0) == 3
    assert not still.moved
    assert still.observe({SOURCE: 1, other: 2}, 104.0) == 0
    assert still.moved == [other]
    assert still.observe({SOURCE: 1, other: 2}, 109.0) == 5
    assert not still.moved


def test_a_partition_that_is_new_has_moved() -> None:
    still = StandStill()
    still.observe({}, 0.0)
    assert still.observe({SOURCE: 0}, 5.0) == 0


def test_all_is_done_when_nobody_writes_and_all_has_arrived() -> None:
    assert states(drain(DRAINED)) == [DONE] * 5
    assert step(drain(DRAINED), "verify").text == (
        "1 of 1 partitions end on B exactly where their source does"
    )


def test_producers_have_to_stop_first() -> None:
    writing = replace(drain(DRAINED, still_s=0), moved=[SOURCE])
    assert step(writing, "stop") == Step(
        "stop", WAITING, "stop the producers of orders on A; somebody still writes to orders-0"
    )
    assert "have to stand still for 10 s" in step(drain(DRAINED, still_s=3), "stop").text


def test_what_is_missing_is_waited_for() -> None:
    assert states(drain(DRAINED, BEHIND)) == [DONE, DONE, WAITING, DONE, TO_DO]
    text = step(drain(BEHIND), "drain").text
    assert text == "the mirror has to copy 10 more records: orders-0 up to 100. Does it run?"
    failed = replace(BEHIND, error="MESSAGE_TOO_LARGE")
    assert step(drain(failed), "drain").text.endswith("It says of orders-0: MESSAGE_TOO_LARGE")


def test_markers_are_no_lag() -> None:
    assert replace(DRAINED, mirrored_to=99).lag == 0
    assert BEHIND.lag == 10
    assert replace(BEHIND, mirrored_to=None).lag == 100


@pytest.mark.parametrize(("target_next", "target_end"), [(105, 107), (None, 107), (None, None)])
def test_where_it_is_not_known_exactly_it_is_not_said(
    target_next: int | None, target_end: int | None
) -> None:
    found = drain(replace(DRAINED, target_next=target_next, target_end=target_end))
    assert states(found) == [DONE] * 5
    assert step(found, "verify").text.startswith("0 of 1 partitions end on B exactly")


def test_a_target_that_has_lost_records_is_found() -> None:
    short = drain(replace(DRAINED, target_end=106))
    assert step(short, "verify").state is IMPOSSIBLE
    assert "A.orders-0 (at 106, not 107)" in step(short, "verify").text


def test_no_topic_is_no_migration() -> None:
    assert states(replace(drain(), trouble="no topic"))[0] is IMPOSSIBLE


@pytest.mark.parametrize(
    ("seen", "state", "words"),
    [
        (BEATING, DONE, "the last one on B was emitted 0.5 s ago"),
        (replace(BEATING, last_ms=1000), WAITING, "wait for the next one"),
        (replace(BEATING, first_ms=None, last_ms=None), WAITING, "there is none on B"),
        (replace(BEATING, last_ms=1000, looked_for_s=9.0), DONE, "the mirror does not run any more"),
        (replace(BEATING, interval_s=NEVER, last_ms=None), DONE, "this flow emits no heartbeats"),
    ],
)
def test_heartbeats_tell_whether_the_mirror_runs(seen: HeartbeatsSeen, state: StepState, words: str) -> None:
    found = seen.step("B")
    assert found.state is state
    assert words in found.text
