from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from sparkmirror.domain.ids import Alias, Flow, GroupId, TopicPartition
from sparkmirror.migrate.moves.group_move_steps import GroupMove, PartitionMove
from sparkmirror.migrate.moves.topic_drain_steps import HeartbeatsSeen, PartitionDrain, TopicsDrain
from sparkmirror.migrate.promote.promotion_steps import Ends, PromotionRollback, TopicsPromotion, rows_of
from sparkmirror.migrate.steps import Step, StepState
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.storage.promotions import Parting, Promotion, Stage

FLOW = Flow(Alias("A"), Alias("B"))
PLACE = TopicPartition("orders", 0)
COPIED = CopyPartition(PLACE, "orders", preserves_offsets=True)
DONE, WAITING, TO_DO, IMPOSSIBLE = StepState.DONE, StepState.WAITING, StepState.TO_DO, StepState.IMPOSSIBLE
ORDER = ["check", "start", "stop", "drain", "switch", "groups", "verify"]
PROMOTED = Promotion(Stage.PROMOTED, 1_795_600_000_000, b"", {0: Parting(100, 100)})


def drain(*, is_drained: bool = True, still_s: float = 10.0) -> TopicsDrain:
    beats = HeartbeatsSeen(float("inf"), None, None, now_ms=1, waited_s=0)
    mirrored = 100 if is_drained else 90
    partition = PartitionDrain(PLACE, PLACE, 100, mirrored, is_drained, mirrored, mirrored)
    return TopicsDrain(FLOW, [partition], beats, still_s, still_for_s=10.0)


READY = TopicsPromotion(FLOW, [COPIED], {}, {PLACE: Ends(100, 100)}, drain(), moves=[])


def at(stage: Stage) -> TopicsPromotion:
    promotion = PROMOTED if stage is Stage.PROMOTED else Promotion(stage, 1, b"", {})
    return replace(READY, promotions={"orders": promotion})


def states(found: TopicsPromotion) -> Mapping[str, StepState]:
    steps = found.steps()
    assert [step.name for step in steps] == ORDER, "whatever was found"
    return {step.name: step.state for step in steps}


def step(found: TopicsPromotion, name: str) -> Step:
    return next(step for step in found.steps() if step.name == name)


def move(**others: object) -> GroupMove:
    partition = PartitionMove(PLACE, PLACE, 90, 100, 90, is_settled=True, target_offset=None, target_end=100)
    return replace(GroupMove(FLOW, GroupId("billing"), [partition]), **others)  # type: ignore[arg-type]  # its fields


def test_what_is_drained_is_switched_next() -> None:
    assert states(READY) == dict.fromkeys(ORDER[:4], DONE) | dict.fromkeys(ORDER[4:], TO_DO)


def test_what_is_promoted_is_done() -> None:
    found = at(Stage.PROMOTED)
    assert set(states(found).values()) == {DONE}
    assert step(found, "switch").text == "since 2026-11-25 09:46:40+00:00 the flow can't write them on B"
    assert rows_of(found)[0] == {
        "source": "orders-0",
        "source_end": 100,
        "lag": 0,
        "target": "orders-0",
        "target_end": 100,
        "parted_at": 100,
        "state": "promoted",
    }


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"translated": [PLACE]}, "orders-0 have other offsets on B than on A: use sparkmirror migrate"),
        ({"longer": [PLACE], "ends": {PLACE: Ends(90, 95)}}, "orders-0 (95, and 90 on A)"),
        ({"obstacle": "no topic"}, "no topic"),
    ],
)
def test_what_is_in_the_way_is_named_first(change: Mapping[str, object], text: str) -> None:
    found = replace(READY, **change)  # type: ignore[arg-type]  # its fields
    assert states(found) == {"check": IMPOSSIBLE} | dict.fromkeys(ORDER[1:], TO_DO)
    assert text in step(found, "check").text


def test_filler_and_writers_and_lag_are_waited_for() -> None:
    busy = replace(READY, filled=[PLACE], drain=drain(is_drained=False, still_s=1.0))
    assert [states(busy)[name] for name in ("start", "stop", "drain")] == [WAITING] * 3
    missing = replace(READY, ends={PLACE: Ends(0, None)})
    assert step(missing, "start") == Step(
        "start", WAITING, "the mirror has to make orders-0 on B; it must run"
    )
    now = replace(busy, stops_at_now=True)
    assert states(now)["stop"] is DONE
    assert "may stay there alone" in step(now, "stop").text


def test_records_written_behind_a_stopped_flow_need_a_decision() -> None:
    late = replace(at(Stage.STOPPING), drain=drain(is_drained=False))
    assert (
        "--roll-back lets the mirror copy them, --stop-at-now leaves them there" in step(late, "check").text
    )
    left_there = replace(late, stops_at_now=True)
    assert states(left_there)["switch"] is TO_DO
    assert states(left_there)["drain"] is DONE
    assert states(replace(at(Stage.SWITCHING), drain=drain(is_drained=False)))["drain"] is DONE


def test_groups_are_copied_where_they_have_no_members() -> None:
    def groups(*moves: GroupMove) -> Step:
        return step(replace(at(Stage.PROMOTED), moves=moves), "groups")

    def text(*moves: GroupMove) -> str:
        return groups(*moves).text

    assert text(move()) == "copy 1 offset of 1 group to B, as they are"
    assert text(move(has_members_on_source=True)) == (
        "copy 1 offset of 1 group to B, as they are; billing still have members on A: stop them, then run "
        "this once more"
    )
    assert "billing have members on B, and offsets behind" in text(move(has_members_on_target=True))
    assert "not copied: billing (no)" in text(move(obstacle="no"))
    assert groups(move(obstacle="no")) == Step(
        "groups", DONE, "the offsets of 1 group are on B; not copied: billing (no)", is_partial=True
    )
    assert not groups().is_partial
    assert "emits no checkpoints" in step(replace(READY, moves=None), "groups").text


def test_a_source_that_is_gone_is_waited_for_by_no_step() -> None:
    gone = replace(READY, ends={PLACE: Ends(None, 90)}, moves=None, is_source_gone=True)
    assert states(gone) == dict.fromkeys(ORDER[:4], DONE) | {"switch": TO_DO, "groups": DONE, "verify": TO_DO}
    parted = {"orders": PROMOTED._replace(partings={0: Parting(90, None)})}
    text = step(replace(gone, promotions=parted), "verify").text
    assert text == "1 partition can be written; A is not asked what else it has"


@pytest.mark.parametrize(
    ("ends", "state", "text"),
    [
        (Ends(100, 101), DONE, "1 of 1 partition have all that A has"),
        (Ends(103, 101), DONE, "these have more on A, which is not on B: orders-0 (3 offsets)"),
        (Ends(100, 99), IMPOSSIBLE, "B has lost records of orders-0"),
    ],
)
def test_ends_are_compared_with_the_parting(ends: Ends, state: StepState, text: str) -> None:
    late = replace(at(Stage.PROMOTED), ends={PLACE: ends})
    found = step(late, "verify")
    assert found.state is state
    assert text in found.text
    assert found.is_partial is ((ends.source or 0) > 100)
    if found.is_partial:
        whole = step(replace(late, ended=[PLACE]), "verify")
        assert (whole.text, whole.is_partial) == ("1 of 1 partition have all that A has", False)


@pytest.mark.parametrize(
    ("stage", "gone", "expected"),
    [
        (Stage.STOPPING, [], [DONE, TO_DO]),
        (Stage.SWITCHING, [], [IMPOSSIBLE, TO_DO]),
        (Stage.PROMOTED, [], [IMPOSSIBLE, TO_DO]),
        (Stage.PROMOTED, ["orders"], [DONE, TO_DO]),
    ],
)
def test_only_what_is_not_fenced_is_copied_again(
    stage: Stage, gone: Sequence[str], expected: Sequence[StepState]
) -> None:
    rollback = PromotionRollback(FLOW, at(stage).promotions, gone)
    assert [step.state for step in rollback.steps()] == expected
    assert bool(rollback.to_undo) is (expected[0] is DONE)
    assert all(step.state is DONE for step in PromotionRollback(FLOW, {}).steps())
