from collections.abc import Mapping
from typing import Any, Final

from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.metrics.looks import ConnectorLook, EventsLook, PartitionLook
from sparkmirror.storage.progress import PartitionState
from sparkmirror.storage.verified import Verified
from sparkmirror.view.flows import FlowView
from sparkmirror.view.groups import groups_of
from sparkmirror.view.making import Node, view_of
from sparkmirror.view.moves import Answer, group_answers, topic_answer
from tests.support.mirror_looks import behind, group_partition, groups, look, source

NODE: Final = Node("node-1", "1.0")
Compared = Mapping[TopicPartition, Verified]


def flow(*connectors: ConnectorLook) -> FlowView:
    return view_of(NODE, connectors, 0.0).flows[0]


def compared(partition: int = 0, upto: int | None = 1000, differences: int = 0) -> Compared:
    return {TopicPartition("orders", partition): Verified(1_700_000_000.0, upto, differences)}


def topic(*partitions: PartitionLook, report_age_s: float = 0.5, verified: Compared | None = None) -> Answer:
    known = {**compared(0), **compared(1)} if verified is None else verified
    events = EventsLook((), verified=known)
    made = flow(source(*partitions, report_age_s=report_age_s, events=events))
    return topic_answer(made, made.topics[0])


def held(answer: Answer) -> dict[str, bool | None]:
    return {check.name: check.holds for check in answer.checks}


def test_producers_may_move_when_all_is_copied_and_nothing_was_added() -> None:
    answer = topic(look(partition=0), look(partition=1, quiet_since=-31.0))
    assert answer.may_move
    assert [check.fact for check in answer.checks] == [
        "2 of 2 partitions are copied to their end",
        "no record was added for 31 s",
        "all that is copied was equal on 2023-11-14 22:13:20 UTC",
    ]


def test_records_that_are_missing_or_just_came_keep_producers() -> None:
    answer = topic(look(partition=0), behind("orders", 1, 77, closed=5))
    assert held(answer) == {"drained": False, "producers quiet": False, "verified": True}
    assert answer.checks[0].fact == "77 records to copy in orders-1"
    assert not topic(look(quiet_since=-29.0)).may_move


def test_what_is_not_known_is_no_yes() -> None:
    unknown = {"drained": None, "producers quiet": None, "verified": None}
    cut_off = topic(look(), report_age_s=60.0)
    assert held(cut_off) == {**unknown, "verified": True}
    unreported = topic(PartitionLook(look().source, 0))
    assert held(unreported) == unknown
    failing = topic(look(reported={"state": PartitionState.FAILED, "error": "no", "lag": 0}))
    assert held(failing)["drained"] is None
    assert not any(answer.may_move for answer in (cut_off, unreported, failing))


def verified(known: Compared, **reported: Any) -> tuple[bool | None, str]:
    (check,) = [it for it in topic(look(reported=reported), verified=known).checks if it.name == "verified"]
    return check.holds, check.fact


def test_all_that_is_copied_must_have_been_compared() -> None:
    on = "2023-11-14 22:13:20 UTC"
    never = (None, "not compared by sparkmirror verify yet: orders-0")
    assert verified({}) == never
    assert verified(compared(1)) == never
    assert verified(compared(upto=None)) == never
    assert verified(compared(upto=1001)) == never, "another topic of that name, or a position set back"
    assert verified(compared(upto=940)) == (None, f"equal on {on}; at most 60 records were copied since")
    assert verified(compared(upto=0), position=None) == (True, f"all that is copied was equal on {on}")
    wrong = (False, "sparkmirror verify found differences in orders-0")
    assert verified(compared(differences=2)) == wrong
    assert verified(compared(upto=None, differences=1000)) == wrong
    assert not topic(look(), verified={}).may_move


def test_groups_of_the_topic_may_move_when_they_are_translated_and_nobody_is_there() -> None:
    made = flow(
        source(look()),
        groups(
            group_partition("ready"),
            group_partition("late", behind_max=40),
            group_partition("unwritten", written=None, checkpoint=850),
            group_partition("moved"),
            group_partition("new", translated=None, behind_max=None, why="no sync yet", checkpoint=None),
            group_partition("elsewhere", "payments"),
            active=frozenset({GroupId("moved")}),
        ),
    )
    answers = {answer.what: held(answer) for answer in group_answers(groups_of(made), "orders")}
    exact, nobody = "translated exactly", "nobody on the target"
    assert answers == {
        "late": {exact: False, nobody: True},
        "moved": {exact: True, nobody: False},
        "new": {exact: None, nobody: True},
        "ready": {exact: True, nobody: True},
        "unwritten": {exact: False, nobody: True},
    }


def test_without_offset_sync_it_is_not_known_who_is_on_the_target() -> None:
    made = flow(source(look()), groups(group_partition("g"), reads_target=False))
    (answer,) = group_answers(groups_of(made), "orders")
    assert held(answer)["nobody on the target"] is None
    assert answer.checks[1].fact.endswith("sync.group.offsets.enabled is false")


def test_without_checkpoints_there_are_no_groups() -> None:
    assert not group_answers(groups_of(flow(source(look()))), "orders")
