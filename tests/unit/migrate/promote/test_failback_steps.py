from collections.abc import Mapping
from dataclasses import replace

import pytest

from sparkmirror.domain.ids import UNKNOWN_LOGS, Alias, Flow, TopicPartition
from sparkmirror.migrate.promote.failback_steps import (
    FailbackRollback,
    PartitionFailback,
    TopicsFailback,
    rows_of,
)
from sparkmirror.migrate.promote.log_comparison import Differences, Kind, Parted
from sparkmirror.migrate.steps import Step, StepState
from sparkmirror.storage.failbacks import Failback

FLOW = Flow(Alias("B"), Alias("A"))
PLACE = TopicPartition("orders", 0)
DONE, WAITING, TO_DO, IMPOSSIBLE = StepState.DONE, StepState.WAITING, StepState.TO_DO, StepState.IMPOSSIBLE
ORDER = ["check", "compare", "stop", "keep", "switch", "verify"]
PARTITION = PartitionFailback(PLACE, PLACE, 23, 20, Parted(20, 20), Differences())
READY = TopicsFailback(FLOW, [PARTITION], 10.0, 10.0)
OWN = Differences({Kind.ALONE: 1, Kind.OTHER: 2, Kind.PASSED: 0}, 20, 22, [b"k20", None, b"\x1b[2J"])
TAKEN = replace(READY, partitions=[replace(PARTITION, target_end=23, differences=OWN)])


def states(found: TopicsFailback) -> Mapping[str, StepState]:
    steps = found.steps()
    assert [step.name for step in steps] == ORDER, "whatever was found"
    return {step.name: step.state for step in steps}


def step(found: TopicsFailback, name: str) -> Step:
    return next(step for step in found.steps() if step.name == name)


def test_logs_that_part_cleanly_are_switched_next() -> None:
    assert states(READY) == dict.fromkeys(ORDER[:4], DONE) | dict.fromkeys(ORDER[4:], TO_DO)
    assert step(READY, "switch").text == "let B->A continue where the logs on A end"
    assert rows_of(READY)[0] == {
        "source": "orders-0",
        "source_end": 23,
        "target": "orders-0",
        "target_end": 20,
        "parted_at": 20,
        "own_records": 0,
        "state": "parted",
    }


def test_a_flow_that_continues_is_done_and_says_how_far_it_is() -> None:
    follows = replace(READY, partitions=[replace(PARTITION, differences=None, follows=True)])
    assert set(states(follows).values()) == {DONE}
    text = "B->A has to copy orders-0 (3 offsets)"
    assert step(follows, "verify").text == text


def test_records_of_one_side_need_a_decision() -> None:
    assert states(TAKEN)["compare"] is IMPOSSIBLE
    assert step(TAKEN, "compare").text == (
        "these can't follow B, since their offsets on A are taken: orders-0 (1 record there alone, 2 records "
        r"in conflict, offsets 20 to 22, keys k20, no key, \x1b[2J). Decide: --delete deletes orders on "
        "A, and the flow copies all of B's records again, --keep-aside TOPIC copies the 3 records of A to a "
        "topic first"
    )


def test_what_is_deleted_is_kept_aside_first_if_that_is_wanted() -> None:
    deleted = replace(TAKEN, deletes=True)
    assert states(deleted)["compare"] is DONE
    assert step(deleted, "keep") == Step("keep", DONE, "3 records of A are not kept (--keep-aside)")
    assert step(deleted, "switch").text.endswith("end, delete orders there, which it recreates")
    kept = replace(deleted, aside="own", kept=2)
    assert step(kept, "keep") == Step("keep", TO_DO, "copy 3 records of A to own there")
    assert kept.must_keep
    assert states(replace(kept, kept=3))["keep"] is DONE


def test_an_end_behind_the_original_is_in_the_way_without_a_record() -> None:
    """A transaction that was aborted there, say."""
    beyond = replace(READY, partitions=[replace(PARTITION, source_end=21, target_end=22)])
    assert "orders-0 (ends at 22, and at 21 on B)" in step(beyond, "compare").text
    assert "--keep-aside" not in step(beyond, "compare").text


def test_writers_are_waited_for() -> None:
    busy = replace(READY, still_s=1.0)
    assert states(busy)["stop"] is WAITING
    assert "must not change for 10 s" in step(busy, "stop").text
    assert "still written to orders-0" in step(replace(busy, changed=[PLACE]), "stop").text


def test_an_obstacle_is_named_first() -> None:
    found = TopicsFailback(FLOW, (), 0.0, 10.0, obstacle="no promotion")
    assert states(found)["check"] is IMPOSSIBLE
    assert step(found, "check").text == "no promotion"
    assert states(found)["switch"] is TO_DO


@pytest.mark.parametrize(("ended", "expected"), [([], [DONE, TO_DO]), (["orders"], [IMPOSSIBLE, TO_DO])])
def test_a_failback_is_undone_until_its_flow_is_promoted(ended: list[str], expected: list[StepState]) -> None:
    rollback = FailbackRollback(FLOW, {"orders": Failback(1, 2, UNKNOWN_LOGS, {0: 20})}, ended)
    assert [step.state for step in rollback.steps()] == expected
    assert all(step.state is DONE for step in FailbackRollback(FLOW, {}).steps())
