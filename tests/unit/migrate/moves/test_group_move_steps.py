from dataclasses import replace

import pytest

from sparkmirror.domain.ids import Alias, Flow, GroupId, TopicPartition
from sparkmirror.migrate.moves.group_move_steps import (
    GroupMove,
    GroupRollback,
    MoveState,
    NotMirrored,
    PartitionMove,
    PartitionRollback,
    RollbackState,
)
from sparkmirror.migrate.steps import Step, StepState
from sparkmirror.storage.written_offsets import WrittenOffset

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
PRESERVED = replace(SETTLED, translated=90, is_preserved=True)
DONE, WAITING, TO_DO, IMPOSSIBLE = StepState.DONE, StepState.WAITING, StepState.TO_DO, StepState.IMPOSSIBLE


def move(*partitions: PartitionMove) -> GroupMove:
    return GroupMove(FLOW, GROUP, partitions)


def states(found: GroupMove | GroupRollback) -> list[StepState]:
    return [step.state for step in found.steps()]


def step(found: GroupMove | GroupRollback, name: str) -> Step:
    return next(step for step in found.steps() if step.name == name)


@pytest.mark.parametrize(
    ("target_offset", "state"),
    [(None, MoveState.TO_WRITE), (96, MoveState.TO_WRITE), (97, MoveState.WRITTEN), (98, MoveState.AHEAD)],
)
def test_an_offset_is_written_only_forward(target_offset: int | None, state: MoveState) -> None:
    assert replace(SETTLED, target_offset=target_offset).state is state


def test_nothing_is_written_while_the_translation_may_become_more_exact() -> None:
    unsettled = replace(SETTLED, is_settled=False, target_offset=3)
    assert unsettled.state is MoveState.NOT_MIRRORED
    assert states(move(unsettled)) == [DONE, DONE, WAITING, TO_DO, TO_DO]
    assert "orders-0 up to 90" in step(move(unsettled), "mirror").text


def test_lags_count_from_the_next_offset_of_the_group() -> None:
    assert (SETTLED.source_lag, SETTLED.target_lag) == (10, 10)
    assert replace(SETTLED, target_offset=101).target_lag == 6
    assert replace(SETTLED, translated=None).target_lag is None


def test_the_steps_of_a_group_that_moves() -> None:
    active = replace(move(SETTLED), has_members_on_source=True)
    assert states(active) == [DONE, WAITING, DONE, TO_DO, TO_DO]
    assert states(move(SETTLED)) == [DONE, DONE, DONE, TO_DO, TO_DO]
    assert states(move(replace(SETTLED, target_offset=97))) == [DONE] * 5


def test_offsets_that_are_preserved_are_written_as_they_are() -> None:
    assert step(move(SETTLED), "sync").text == "write 1 offset on B"
    assert step(move(SETTLED, PRESERVED), "sync").text == "write 2 offsets on B, 1 of them as they are on A"


def test_a_group_that_has_read_further_on_the_target_is_done() -> None:
    moved = replace(move(replace(SETTLED, target_offset=105)), has_members_on_target=True)
    assert states(moved) == [DONE] * 5
    assert "it is ahead there in A.orders-0" in step(moved, "sync").text


def test_members_on_the_target_block_writing() -> None:
    blocked = replace(move(replace(SETTLED, target_offset=5)), has_members_on_target=True)
    check = step(blocked, "check")
    assert check.state is IMPOSSIBLE
    assert "its offsets there are behind in A.orders-0" in check.text


def test_untranslated_offsets_block_unless_left_out() -> None:
    unknown = move(replace(SETTLED, translated=None), replace(SETTLED, target_offset=97))
    assert step(unknown, "check").state is IMPOSSIBLE
    assert "orders-0 offset 90" in step(unknown, "check").text
    assert states(replace(unknown, leave_untranslated=True)) == [DONE] * 5


@pytest.mark.parametrize("obstacle", [None, "it is no consumer group"])
def test_a_group_that_cannot_be_moved_names_the_reason(obstacle: str | None) -> None:
    check = step(replace(move(), obstacle=obstacle), "check")
    assert check.state is IMPOSSIBLE
    assert check.text == (obstacle or "it has committed nothing on A that this flow mirrors")


def test_partitions_that_are_not_mirrored_are_named() -> None:
    found = replace(
        move(SETTLED),
        without_offset=[TopicPartition("orders", 1)],
        not_mirrored=[NotMirrored(TopicPartition("payments", 0), "the topic filter does not select it")],
    )
    assert step(found, "check").text == (
        "1 partition of 1 topic, 10 records of lag on A; "
        "it has no offset for orders-1: auto.offset.reset decides there; "
        "this flow does not mirror payments-0 (the topic filter does not select it)"
    )


def test_an_offset_beyond_the_end_of_the_log_is_impossible() -> None:
    beyond = move(replace(SETTLED, target_offset=108))
    assert step(beyond, "verify") == Step(
        "verify", IMPOSSIBLE, "the log on B ends before A.orders-0 offset 108"
    )


def rollback(earlier: int | None, current: int | None) -> PartitionRollback:
    return PartitionRollback(WrittenOffset(TARGET, 97, earlier), current)


@pytest.mark.parametrize(
    ("earlier", "current", "state"),
    [
        (90, 97, RollbackState.TO_RESTORE),
        (90, 120, RollbackState.TO_RESTORE),
        (90, None, RollbackState.TO_RESTORE),
        (None, 97, RollbackState.TO_REMOVE),
        (90, 90, RollbackState.RESTORED),
        (None, None, RollbackState.RESTORED),
    ],
)
def test_a_rollback_restores_or_removes_offsets(
    earlier: int | None, current: int | None, state: RollbackState
) -> None:
    assert rollback(earlier, current).state is state


def test_the_steps_of_a_rollback() -> None:
    both = GroupRollback(FLOW, GROUP, [rollback(90, 97), rollback(None, 97)])
    assert states(replace(both, has_members_on_target=True)) == [DONE, WAITING, TO_DO]
    assert step(both, "restore").text == "set 1 offsets back and remove 1 that were not there before on B"
    assert states(GroupRollback(FLOW, GROUP, [rollback(90, 90)], has_members_on_target=True)) == [DONE] * 3
    assert states(GroupRollback(FLOW, GROUP)) == [DONE] * 3
    assert states(replace(both, obstacle="not allowed"))[0] is IMPOSSIBLE


def test_a_rollback_warns_of_records_read_again_and_of_offset_syncs() -> None:
    read_on = GroupRollback(FLOW, GROUP, [rollback(90, 120)], syncs_by_itself=True)
    text = step(read_on, "check").text
    assert "it has read further there since, in A.orders-0, and will read these records again" in text
    assert "sync.group.offsets.enabled" in text


def test_of_an_unknown_group_no_step_is_done() -> None:
    found = [each.state for each in replace(move(), obstacle="no such group").steps()]
    assert found == [StepState.IMPOSSIBLE, *[StepState.TO_DO] * 4]


def test_members_are_named() -> None:
    waiting = replace(move(SETTLED), has_members_on_source=True).with_members(["till-7 at 10.0.0.1"], [])
    (wait,) = (each for each in waiting.steps() if each.name == "wait")
    assert wait.text.startswith("it has members on A (till-7 at 10.0.0.1): stop its consumers there")
