import json

from sparkmirror.cli.commands.migrate.execution import plan_lines
from sparkmirror.cli.commands.migrate.report import (
    Reported,
    drain_rows,
    move_rows,
    rollback_rows,
    table_lines,
    to_json,
)
from sparkmirror.domain.ids import Alias, Flow, GroupId, TopicPartition
from sparkmirror.migrate.moves.group_move_steps import (
    GroupMove,
    GroupRollback,
    PartitionMove,
    PartitionRollback,
)
from sparkmirror.migrate.moves.topic_drain_steps import HeartbeatsSeen, PartitionDrain, TopicsDrain
from sparkmirror.migrate.steps import Step, StepState
from sparkmirror.storage.written_offsets import WrittenOffset

FLOW = Flow(Alias("target"), Alias("east"))
"""An alias may be any word, also one that a column's name has."""
SOURCE, TARGET = TopicPartition("orders", 0), TopicPartition("target.orders", 0)
MOVE = GroupMove(
    FLOW,
    GroupId("billing"),
    [
        PartitionMove(
            SOURCE,
            TARGET,
            source_offset=1090,
            source_end=1100,
            translated=1097,
            is_settled=True,
            target_offset=None,
            target_end=1107,
        )
    ],
)


def table(reported: Reported) -> list[list[str]]:
    return [line.split() for line in table_lines(FLOW, reported) if line]


def test_a_table_calls_the_clusters_by_their_names_and_cuts_nothing() -> None:
    assert table_lines(FLOW, Reported("group billing", MOVE.steps(), move_rows(MOVE))) == [
        "group billing",
        "  target    target offset  target lag  east             east offset  east lag  translated  state",
        "  orders-0          1,090          10  target.orders-0            -        10       1,097  to write",
        "",
    ]
    assert table_lines(FLOW, Reported("group nobody", [], [])) == []


def test_json_calls_them_source_and_target() -> None:
    steps = [Step("check", StepState.DONE, "fine"), Step("wait", StepState.WAITING, "members")]
    reported = Reported("group billing", steps, move_rows(MOVE), "not within 5 s")
    assert json.loads(to_json(FLOW, [reported], is_dry_run=False)) == {
        "flow": "target->east",
        "dry_run": False,
        "done": False,
        "migrations": [
            {
                "name": "group billing",
                "steps": [
                    {"step": "check", "state": "done", "text": "fine"},
                    {"step": "wait", "state": "waiting", "text": "members"},
                ],
                "partitions": [
                    {
                        "source": "orders-0",
                        "source_offset": 1090,
                        "source_lag": 10,
                        "target": "target.orders-0",
                        "target_offset": None,
                        "target_lag": 10,
                        "translated": 1097,
                        "state": "to write",
                    }
                ],
                "failure": "not within 5 s",
            }
        ],
    }


def test_a_dry_run_has_done_nothing() -> None:
    found = json.loads(to_json(FLOW, [Reported("group billing", [], [])], is_dry_run=True))
    assert (found["dry_run"], found["done"]) == (True, False)


def test_the_other_tables() -> None:
    rollback = GroupRollback(
        FLOW, GroupId("billing"), [PartitionRollback(WrittenOffset(TARGET, 97, None), 99)]
    )
    assert table(Reported("back", [], rollback_rows(rollback)))[-1] == [
        *("target.orders-0", "99", "97", "-", "to", "remove")
    ]
    heartbeats = HeartbeatsSeen(1.0, None, None, 0, 0.0)
    drained = PartitionDrain(SOURCE, TARGET, 100, 100, is_drained=True, target_next=107, target_end=107)
    drain = TopicsDrain(FLOW, [drained], heartbeats, 10.0, 10.0)
    assert table(Reported("drain", [], drain_rows(drain)))[-1] == [
        *("orders-0", "100", "100", "0", "target.orders-0", "107", "107")
    ]


def test_a_plan_shows_what_is_done_and_what_is_not() -> None:
    steps = [
        Step("check", StepState.DONE, "fine"),
        Step("wait", StepState.WAITING, "members"),
        Step("sync", StepState.TO_DO, "write"),
        Step("verify", StepState.DONE, "1 of 2", is_partial=True),
    ]
    assert plan_lines("A->B: move", [("group billing", steps)])[:7] == [
        "A->B: move",
        "",
        "group billing",
        "  ✓ check     fine",
        "  … wait      members",
        "  → sync      write",
        "  ! verify    1 of 2",
    ]
