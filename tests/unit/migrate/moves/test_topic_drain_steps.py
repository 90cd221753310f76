from dataclasses import replace

import pytest

from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.migrate.moves.topic_drain_steps import (
    HeartbeatsSeen,
    PartitionDrain,
    TopicsDrain,
    UnchangedEnds,
)
from sparkmirror.migrate.steps import Step, StepState

FLOW = Flow(Alias("A"), Alias("B"))
SOURCE, TARGET = TopicPartition("orders", 0), TopicPartition("A.orders", 0)
DRAINED = PartitionDrain(
    SOURCE, TARGET, source_end=100, mirrored_to=100, is_drained=True, target_next=107, target_end=107
)
BEHIND = replace(DRAINED, mirrored_to=90, is_drained=False)
BEATING = HeartbeatsSeen(interval_s=1.0, first_ms=1000, last_ms=2000, now_ms=2500, waited_s=2.0)
NEVER = float("inf")
DONE, WAITING, TO_DO, IMPOSSIBLE = StepState.DONE, StepState.WAITING, StepState.TO_DO, StepState.IMPOSSIBLE


def drain(*partitions: PartitionDrain, still_s: float = 10.0) -> TopicsDrain:
    return TopicsDrain(FLOW, partitions, BEATING, still_s=still_s, still_for_s=10.0)


def states(found: TopicsDrain) -> list[StepState]:
    return [step.state for step in found.steps()]


def step(found: TopicsDrain, name: str) -> Step:
    return next(step for step in found.steps() if step.name == name)


def test_ends_are_unchanged_since_their_last_change() -> None:
    still, other = UnchangedEnds(), TopicPartition("orders", 1)
    assert still.observe({SOURCE: 1, other: 1}, 100.0) == 0
    assert still.observe({SOURCE: 1, other: 1}, 103.0) == 3
    assert not still.changed
    assert still.observe({SOURCE: 1, other: 2}, 104.0) == 0
    assert still.changed == [other]
    assert still.observe({SOURCE: 1, other: 2}, 109.0) == 5
    assert not still.changed


def test_a_new_partition_counts_as_a_change() -> None:
    still = UnchangedEnds()
    still.observe({}, 0.0)
    assert still.observe({SOURCE: 0}, 5.0) == 0


def test_all_is_done_when_producers_have_stopped_and_records_are_mirrored() -> None:
    assert states(drain(DRAINED)) == [DONE] * 5
    assert step(drain(DRAINED), "verify").text == (
        "in 1 of 1 partitions the last record on B is the copy of the source's last"
    )


def test_producers_have_to_stop_first() -> None:
    writing = replace(drain(DRAINED, still_s=0), changed=[SOURCE])
    assert step(writing, "stop") == Step(
        "stop", WAITING, "stop the producers of orders on A; records are still written to orders-0"
    )
    assert "must not change for 10 s" in step(drain(DRAINED, still_s=3), "stop").text


def test_drain_waits_for_records_that_are_not_mirrored() -> None:
    assert states(drain(DRAINED, BEHIND)) == [DONE, DONE, WAITING, DONE, TO_DO]
    text = step(drain(BEHIND), "drain").text
    assert text == "the mirror has to copy 10 more records: orders-0 up to 100; it must run"
    failed = replace(BEHIND, error="MESSAGE_TOO_LARGE")
    assert step(drain(failed), "drain").text.endswith("It reports for orders-0: MESSAGE_TOO_LARGE")


def test_transaction_markers_do_not_count_as_lag() -> None:
    assert replace(DRAINED, mirrored_to=99).lag == 0
    assert BEHIND.lag == 10
    assert replace(BEHIND, mirrored_to=None).lag == 100


@pytest.mark.parametrize(("target_next", "target_end"), [(105, 107), (None, 107), (None, None)])
def test_an_unknown_end_is_not_reported_as_exact(target_next: int | None, target_end: int | None) -> None:
    found = drain(replace(DRAINED, target_next=target_next, target_end=target_end))
    assert states(found) == [DONE] * 5
    assert step(found, "verify").text.startswith("in 0 of 1 partitions the last record on B")


def test_a_target_that_has_lost_records_is_impossible() -> None:
    short = drain(replace(DRAINED, target_end=106))
    assert step(short, "verify").state is IMPOSSIBLE
    assert "A.orders-0 (at 106, not 107)" in step(short, "verify").text


def test_no_topic_is_impossible() -> None:
    assert states(replace(drain(), obstacle="no topic"))[0] is IMPOSSIBLE


@pytest.mark.parametrize(
    ("seen", "state", "words"),
    [
        (BEATING, DONE, "the last one on B was emitted 0.5 s ago"),
        (replace(BEATING, last_ms=1000), WAITING, "wait for the next one"),
        (replace(BEATING, first_ms=None, last_ms=None), WAITING, "there is none on B"),
        (replace(BEATING, last_ms=1000, waited_s=9.0), DONE, "the mirror is not running any more"),
        (replace(BEATING, interval_s=NEVER, last_ms=None), DONE, "this flow emits no heartbeats"),
    ],
)
def test_heartbeats_show_whether_the_mirror_runs(seen: HeartbeatsSeen, state: StepState, words: str) -> None:
    found = seen.step("B")
    assert found.state is state
    assert words in found.text


def test_extra_records_on_the_target_are_named() -> None:
    found = drain(replace(DRAINED, target_next=105, target_end=20_107))
    assert "these end at much higher offsets than their source" in step(found, "verify").text
    assert "A.orders-0 (20,007 more)" in step(found, "verify").text


def test_without_a_topic_no_step_is_done() -> None:
    assert (
        states(TopicsDrain(FLOW, (), BEATING, 10.0, 10.0, obstacle="no topic"))[1:] == [StepState.TO_DO] * 4
    )
