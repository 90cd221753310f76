from dataclasses import replace

import pytest

from sparkmirror.domain.ids import Alias, Flow, GroupId, TopicPartition
from sparkmirror.migrate.group_moves import (
    BackState,
    GroupBack,
    GroupMove,
    LeftBehind,
    MoveState,
    PartitionBack,
    PartitionMove,
    WrittenOffset,
)
from sparkmirror.migrate.steps import Step, StepState

FLOW = Flow(Alias("A"), Alias("B"))
GROUP = GroupId("billing")
SOURCE, TARGET = TopicPartition("orders", 0), TopicPartition("A.orders", 0)
SETTLED = PartitionMove(
    SOURCE,
    TARGET,
    source_offset=90,
    source_end=100,
    translated=97,
    is_settled=True,
    target_offset=None,
    target_end=107,
)
DONE, WAITING, TO_DO, IMPOSSIBLE = StepState.DONE, StepState.WAITING, StepState.TO_DO, StepState.IMPOSSIBLE


def move(*partitions: PartitionMove) -> GroupMove:
    return GroupMove(FLOW, GROUP, partitions)


def states(found: GroupMove | GroupBack) -> list[StepState]:
    return [step.state for step in found.steps()]


def step(found: GroupMove | GroupBack, name: str) -> Step:
    return next(step for step in found.steps() if step.name == name)


@pytest.mark.parametrize(
    ("target_offset", "state"),
    [(None, MoveState.TO_WRITE), (96, MoveState.TO_WRITE), (97, MoveState.THERE), (98, MoveState.AHEAD)],
)
def test_an_offset_is_written_only_forward(target_offset: int | None, state: MoveState) -> None:
    assert replace(SETTLED, target_offset=target_offset).state is state


def test_nothing_is_written_while_the_mirror_may_tell_better() -> None:
    unsettled = replace(SETTLED, is_settled=False, target_offset=3)
    assert unsettled.state is MoveState.NOT_MIRRORED
    assert states(move(unsettled)) == [DONE, DONE, WAITING, DONE, TO_DO]
    assert "orders-0 up to 90" in step(move(unsettled), "mirror").text


def test_lags_are_from_where_the_group_goes_on() -> None:
    assert (SETTLED.source_lag, SETTLED.target_lag) == (10, 10)
    assert replace(SETTLED, target_offset=101).target_lag == 6
    assert replace(SETTLED, translated=None).target_lag is None


def test_the_steps_of_a_group_that_moves() -> None:
    active = replace(move(SETTLED), has_members_on_source=True)
    assert states(active) == [DONE, WAITING, DONE, TO_DO, TO_DO]
    assert states(move(SETTLED)) == [DONE, DONE, DONE, TO_DO, TO_DO]
    assert states(move(replace(SETTLED, target_offset=97))) == [DONE] * 5


def test_a_group_that_has_read_on_over_there_is_done() -> None:
    moved = replace(move(replace(SETTLED, target_offset=105)), has_members_on_target=True)
    assert states(moved) == [DONE] * 5
    assert "it is ahead there in A.orders-0" in step(moved, "sync").text


def test_members_on_the_target_are_in_the_way_of_writing() -> None:
    blocked = replace(move(replace(SETTLED, target_offset=5)), has_members_on_target=True)
    check = step(blocked, "check")
    assert check.state is IMPOSSIBLE
    assert "is behind there in A.orders-0" in check.text


def test_what_can_not_be_translated_needs_consent() -> None:
    unknown = move(replace(SETTLED, translated=None), replace(SETTLED, target_offset=97))
    assert step(unknown, "check").state is IMPOSSIBLE
    assert "orders-0 offset 90" in step(unknown, "check").text
    assert states(replace(unknown, leave_unknown=True)) == [DONE] * 5


@pytest.mark.parametrize("trouble", [None, "it is no consumer group"])
def test_what_can_not_be_moved_says_why(trouble: str | None) -> None:
    check = step(replace(move(), trouble=trouble), "check")
    assert check.state is IMPOSSIBLE
    assert check.text == (trouble or "it has committed nothing on A that this flow mirrors")


def test_what_stays_behind_is_named() -> None:
    found = replace(
        move(SETTLED),
        without_offset=[TopicPartition("orders", 1)],
        left_behind=[LeftBehind(TopicPartition("payments", 0), "the topic filter does not select it")],
    )
    assert step(found, "check").text == (
        "1 partitions of 1 topics, 10 records not read yet on A; "
        "it has no offset for orders-1: auto.offset.reset decides there; "
        "this flow does not mirror payments-0 (the topic filter does not select it)"
    )


def test_an_offset_behind_the_end_of_the_log_is_found() -> None:
    beyond = move(replace(SETTLED, target_offset=108))
    assert step(beyond, "verify") == Step(
        "verify", IMPOSSIBLE, "the log on B ends before A.orders-0 offset 108"
    )


def back(earlier: int | None, current: int | None) -> PartitionBack:
    return PartitionBack(WrittenOffset(TARGET, 97, earlier), current)


@pytest.mark.parametrize(
    ("earlier", "current", "state"),
    [
        (90, 97, BackState.TO_RESTORE),
        (90, 120, BackState.TO_RESTORE),
        (90, None, BackState.TO_RESTORE),
        (None, 97, BackState.TO_REMOVE),
        (90, 90, BackState.BACK),
        (None, None, BackState.BACK),
    ],
)
def test_what_was_there_before_is_there_again(
    earlier: int | None, current: int | None, state: BackState
) -> None:
    assert back(earlier, current).state is state


def test_the_steps_back() -> None:
    both = GroupBack(FLOW, GROUP, [back(90, 97), back(None, 97)])
    assert states(replace(both, has_members_on_target=True)) == [DONE, WAITING, TO_DO]
    assert step(both, "restore").text == "set 1 offsets back and remove 1 that were not there before on B"
    assert states(GroupBack(FLOW, GROUP, [back(90, 90)], has_members_on_target=True)) == [DONE] * 3
    assert states(GroupBack(FLOW, GROUP)) == [DONE] * 3
    assert states(replace(both, trouble="not allowed"))[0] is IMPOSSIBLE


def test_the_plan_back_says_what_people_may_not_expect() -> None:
    read_on = GroupBack(FLOW, GROUP, [back(90, 120)], syncs_by_itself=True)
    text = step(read_on, "check").text
    assert "it has read on there since, in A.orders-0, and will read that again" in text
    assert "sync.group.offsets.enabled" in text
