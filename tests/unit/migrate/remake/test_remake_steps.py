"""The steps that recreate a mirrored topic with its source's offsets."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from sparkmirror.domain.ids import Alias, Flow, GroupId, TopicPartition
from sparkmirror.migrate.remake.remake_steps import GroupPlace, PartitionRemake, TopicRemake, rows_of
from sparkmirror.migrate.steps import Step, StepState, are_done
from sparkmirror.storage.remakes import Remake, Remembered

FLOW = Flow(Alias("A"), Alias("B"))
SOURCE, TARGET = TopicPartition("orders", 0), TopicPartition("A.orders", 0)
BILLING = GroupId("billing")
DONE, WAITING, TO_DO, IMPOSSIBLE = StepState.DONE, StepState.WAITING, StepState.TO_DO, StepState.IMPOSSIBLE
ORDER = ["check", "stop", "switch", "copy", "groups", "verify"]
OTHER = PartitionRemake(SOURCE, TARGET, 100, 1000, 0, 880, is_begun=True)
DUE = TopicRemake(
    FLOW,
    "orders",
    [OTHER],
    b"old",
    groups=[GroupPlace(BILLING, SOURCE, TARGET, 5, 6)],
    size_bytes=12_300_000,
)
RECORD = Remake(b"old", 1, {}, {0: 1000}, (Remembered(BILLING, 0, 6, ""),))
DELETED = replace(
    DUE,
    partitions=[replace(OTHER, target_start=None, target_end=None, is_begun=False, was_begun=True)],
    target_id=b"",
    remake=RECORD,
    groups=(),
)
FILLING = replace(
    DELETED,
    partitions=[replace(OTHER, target_end=50, is_begun=False, was_begun=True)],
    target_id=b"new",
)
COPIED = replace(
    FILLING, partitions=[replace(OTHER, target_start=100, target_end=1000, is_same=True, is_begun=True)]
)


def states(found: TopicRemake) -> Mapping[str, StepState]:
    steps = found.steps()
    assert [step.name for step in steps] == ORDER, "whatever was found"
    return {step.name: step.state for step in steps}


def step(found: TopicRemake, name: str) -> Step:
    return next(step for step in found.steps() if step.name == name)


def test_a_topic_with_other_offsets_is_deleted() -> None:
    assert DUE.is_due
    assert states(DUE) == dict.fromkeys(ORDER[:2], DONE) | dict.fromkeys(ORDER[2:], TO_DO)
    assert step(DUE, "check").text == (
        "1 of 1 partition have other offsets on B; 12.3 MB of A will be copied again, behind 100 offsets "
        "that are filled first"
    )
    assert step(DUE, "switch").text == ("remember 1 offset of groups, delete the topic on B, and recreate it")
    assert rows_of(DUE)[0]["state"] == "other offsets"


@pytest.mark.parametrize(
    ("found", "next_one"),
    [(DELETED, ("switch", TO_DO)), (FILLING, ("copy", WAITING)), (COPIED, ("groups", TO_DO))],
)
def test_what_is_due_follows_from_the_record_and_the_topic_that_is_there(
    found: TopicRemake, next_one: tuple[str, StepState]
) -> None:
    assert not found.is_due
    assert next((name, state) for name, state in states(found).items() if state is not DONE) == next_one


def test_a_run_that_was_interrupted_before_the_deletion_deletes() -> None:
    assert replace(DUE, remake=RECORD).is_due


def test_it_is_done_without_a_record_only() -> None:
    done = replace(COPIED, remake=None)
    assert are_done(done.steps())
    assert step(done, "verify").text == "1 of 1 partition end on B where A does"
    behind = replace(done, partitions=[replace(COPIED.partitions[0], source_end=1001)])
    assert step(behind, "verify").text.endswith("A->B continues with A.orders-0 at 1000")


def test_a_topic_that_its_source_has_outrun_is_recreated_if_wanted() -> None:
    outrun = replace(OTHER, source_start=900, is_same=True, older=880)
    found = replace(DUE, partitions=[outrun], recreates=True)
    assert not replace(found, recreates=False).is_due
    assert "880 records that A has removed since. --delete accepts that" in step(found, "check").text
    assert step(replace(found, deletes=True), "check").text == (
        "1 of 1 partition end on B before A begins; 12.3 MB of A will be copied again, behind 900 offsets "
        "that are filled first"
    )
    assert rows_of(found)[0]["state"] == "ends before its source"
    again = replace(outrun, target_start=900, target_end=900, older=0)
    assert not replace(found, partitions=[again]).is_due


def test_a_topic_whose_position_is_not_stored_yet_is_waited_for_and_not_deleted() -> None:
    late = replace(COPIED.partitions[0], is_same=False, is_begun=False, was_begun=True)
    for remake in (RECORD, None):
        found = replace(COPIED, partitions=[late], remake=remake)
        assert not found.is_due
        assert step(found, "copy").state is WAITING


@pytest.mark.parametrize(
    "there",
    [
        replace(OTHER, target_end=100, is_begun=False),
        replace(OTHER, target_start=None, target_end=None, is_begun=False),
        replace(OTHER, target_start=100, target_end=900, is_same=True),
    ],
)
def test_what_begins_as_its_source_or_has_not_begun_is_left_alone(there: PartitionRemake) -> None:
    assert are_done(replace(DUE, partitions=[there]).steps())


def test_a_flow_that_copies_as_before_is_named() -> None:
    again = replace(COPIED.partitions[0], is_same=False)
    found = step(replace(COPIED, partitions=[again]), "copy")
    assert (found.state, found.text) == (
        IMPOSSIBLE,
        "A->B copies A.orders-0 with other offsets: restart it with this file, and run this again",
    )


def test_losses_are_put_to_the_user() -> None:
    lossy = replace(DUE, partitions=[replace(OTHER, older=7, foreign=1)])
    assert step(lossy, "check") == Step(
        "check",
        IMPOSSIBLE,
        "B would lose 1 record that others than A->B have written, and up to 7 records that A has removed "
        "since. --delete accepts that",
    )
    unknown = replace(DUE, partitions=[replace(OTHER, older=None)])
    assert "perhaps records that A has removed since" in step(unknown, "check").text
    assert states(replace(lossy, deletes=True))["check"] is DONE
    lost = replace(DUE, groups=[replace(DUE.groups[0], place=None)])
    assert "where these groups are on A: billing in A.orders-0 at 5" in step(lost, "check").text
    assert states(replace(lost, leave_untranslated=True))["check"] is DONE


def test_groups_with_members_and_inexact_places_are_said() -> None:
    assert step(replace(DUE, active=[BILLING]), "stop").state is WAITING
    assert step(replace(COPIED, active=[BILLING]), "stop").state is WAITING
    again = replace(DUE, groups=[replace(DUE.groups[0], again=3)])
    assert "of which some read up to 3 records again" in step(again, "switch").text
    unclear = replace(DUE, groups=[replace(DUE.groups[0], again=None)])
    assert "some begin earlier than they are" in step(unclear, "switch").text


def test_an_obstacle_is_all_that_is_said() -> None:
    found = TopicRemake(FLOW, "orders", obstacle="it is promoted")
    assert step(found, "check") == Step("check", IMPOSSIBLE, "it is promoted")
