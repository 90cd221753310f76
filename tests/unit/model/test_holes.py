"""Traces that broke drafts of the protocol; each is why one of its rules exists."""

from collections.abc import Callable
from typing import Final, NamedTuple

import pytest

from tests.model.incidents import RECORDS_LOST, RUNS_LOST, SOURCE_TRUNCATED, TARGET_LOST, UNCERTAIN
from tests.model.rules import DESIGNED, Rules
from tests.model.state import Faults
from tests.unit.model.script import Script, ViolationError

APPEND: Final = "a record is appended to the source"


def older_history_returns(rules: Rules) -> Script:
    """The answer names an epoch that was never copied: the next Fetch has to claim the epoch before it."""
    script = Script(rules, Faults(append=3, elect=1, cut=1, revive=1), records=1)
    script.do(
        "the source elects a leader",
        APPEND,
        APPEND,
        "the source elects an unclean leader whose log ends at 1",
        APPEND,
    )
    script.resume(1)
    script.copy(1)
    script.copy(1)
    script.do("the source elects the leader of before, unclean")
    script.finish(1)
    return script


def gap_behind_the_last_record(rules: Rules) -> Script:
    """A control batch of a newer epoch: claiming the record's epoch behind it looks like a truncation."""
    script = Script(rules, Faults(elect=1, control=1, append=1), records=1)
    script.do("the source elects a leader", "a control batch is appended to the source")
    script.resume(1)
    script.copy(1)
    script.do("A1 reads past a gap", APPEND)
    script.finish(1)
    return script


def truncated_target_is_filled_again(rules: Rules) -> Script:
    """To just the length that the newest attempt expects: the fence is gone, and no base offset shows it."""
    script = Script(rules, Faults(truncate=1), records=2)
    script.resume(1)
    script.copy(1)
    script.resume(2)
    script.do("A2 copies a batch of 1", "the target elects an unclean leader whose log ends at 2")
    script.do("A1 finds a new leader of the target", "A1 copies a batch of 1")
    script.arrive()
    script.finish(2)
    return script


def position_outlives_a_truncation(rules: Rules) -> Script:
    """The log is long again, with records of others, when the position is read."""
    script = Script(rules, Faults(truncate=1, foreign=2, crash=1), records=3)
    script.resume(1)
    script.copy(1)
    script.copy(1)
    script.do("A1 crashes", "the target elects an unclean leader whose log ends at 1")
    script.do("a foreign record is appended to the target", "a foreign record is appended to the target")
    script.finish(2)
    return script


def marker_stands_again_where_it_was(rules: Rules) -> Script:
    """The coordinator repeats a marker that the target has lost with records before it, at the same place."""
    script = Script(rules, Faults(truncate=1, foreign=1, mark_again=1, crash=2), records=2)
    script.resume(1)
    script.copy(1)
    script.do("A1 crashes")
    script.resume(2)
    script.do("A2 crashes", "the target elects an unclean leader whose log ends at 1")
    script.do("a foreign record is appended to the target", "the coordinator writes its last marker again")
    script.finish(3)
    return script


def divergence_is_followed_and_then_expires(rules: Rules) -> Script:
    """Nothing was copied after the incident, so only a stored start tells the next attempt of it."""
    script = Script(rules, Faults(cut=1, append=2, expire=1, crash=1), records=2)
    script.resume(1)
    script.copy(1, 2)
    script.do("the source elects an unclean leader whose log ends at 0")
    script.do("A1 learns that the source was truncated", "A1 crashes", APPEND, APPEND)
    script.do("the source's log starts at 2")
    script.finish(2)
    return script


def source_is_truncated_before_batches_that_get_lost(rules: Rules) -> Script:
    """The start behind them is the only trace: the record that came since has expired."""
    script = Script(rules, Faults(cut=1, append=1, expire=1, crash=1), records=2)
    script.resume(1)
    script.write(1)
    script.do("A1 copies a batch of 1", "the source elects an unclean leader whose log ends at 0")
    script.do("A1 learns that the source was truncated", "A1 crashes", APPEND, "the source's log starts at 1")
    script.finish(2)
    return script


def source_and_then_target_are_truncated(rules: Rules) -> Script:
    """The target ends with records that the source had lost before, and what came since has expired."""
    script = Script(rules, Faults(cut=1, append=1, expire=1, crash=2, truncate=1), records=1)
    script.resume(1)
    script.copy(1)
    script.do("A1 crashes", "the source elects an unclean leader whose log ends at 0")
    script.resume(2)
    script.do("A2 learns that the source was truncated", "A2 crashes")
    script.do(
        "the target elects an unclean leader whose log ends at 2", APPEND, "the source's log starts at 1"
    )
    script.finish(3)
    return script


def transactional_id_expires_under_a_live_attempt(rules: Rules) -> Script:
    """The next attempt gets another producer id, whose markers fence nobody."""
    script = Script(rules, Faults(expire_id=1, crash=1), records=2)
    script.resume(1)
    script.do("A1 copies a batch of 1", "the transactional id expires", "A2 begins", "A2 asks for an epoch")
    if script.can("A2 adds the partition to a transaction"):
        script.resume(2)
    script.arrive()
    script.do("A1 crashes")
    script.finish(2)
    return script


class Hole(NamedTuple):
    run: Callable[[Rules], Script]
    target: list[int]
    incidents: set[str]
    mutant: Rules


HOLES: Final = [
    Hole(older_history_returns, [0, 201, 101, 102], {SOURCE_TRUNCATED}, Rules(keeps_lineage=False)),
    Hole(gap_behind_the_last_record, [0, 102], set(), Rules(claims_read_epoch=False)),
    Hole(truncated_target_is_filled_again, [0, 1], {TARGET_LOST}, Rules(checks_new_leader=False)),
    Hole(position_outlives_a_truncation, [2], {TARGET_LOST}, Rules(proves_position=False)),
    Hole(marker_stands_again_where_it_was, [1], {TARGET_LOST}, Rules(proves_marker=False)),
    Hole(
        divergence_is_followed_and_then_expires,
        [0, 1],
        {SOURCE_TRUNCATED, RECORDS_LOST},
        Rules(stores_starts=False),
    ),
    Hole(
        source_is_truncated_before_batches_that_get_lost,
        [0],
        {SOURCE_TRUNCATED, RECORDS_LOST},
        Rules(heeds_newer_starts=False),
    ),
    Hole(
        source_and_then_target_are_truncated,
        [0],
        {SOURCE_TRUNCATED, TARGET_LOST, RECORDS_LOST},
        Rules(heeds_newer_starts=False),
    ),
    Hole(transactional_id_expires_under_a_live_attempt, [0, 1], set(), Rules(waits_for_old_id=False)),
]


def name(hole: Hole) -> str:
    return hole.run.__name__


@pytest.mark.parametrize("hole", HOLES, ids=name)
def test_rule_closes_the_hole(hole: Hole) -> None:
    script = hole.run(Rules())
    assert (script.target, script.incidents) == (hole.target, hole.incidents)


@pytest.mark.parametrize("hole", HOLES, ids=name)
def test_hole_is_there_without_the_rule(hole: Hole) -> None:
    with pytest.raises(ViolationError):
        hole.run(hole.mutant)


def test_divergence_never_moves_an_attempt_forward() -> None:
    """An older epoch reached beyond where the newer one ends: that part does not agree either."""
    script = Script(Rules(), Faults(append=1, elect=1, expire=1, cut=2, revive=1, truncate=1), records=3)
    script.do("the source's log starts at 2", "the source elects a leader", APPEND)
    script.resume(1)
    script.do("A1 learns that its offset is out of range")
    script.copy(1)
    script.copy(1)
    script.do(
        "the source elects an unclean leader whose log ends at 2", "A1 learns that the source was truncated"
    )
    script.do("the source elects the leader of before, unclean")
    script.do("the source elects an unclean leader whose log ends at 3")
    script.do("the target elects an unclean leader whose log ends at 0")
    script.finish(2)
    assert script.target == [2]
    assert script.incidents == {RECORDS_LOST, SOURCE_TRUNCATED, TARGET_LOST}


def test_truncation_that_only_a_fenced_attempt_learns_of_explains_no_record_that_expires_later() -> None:
    """A limit: its successor has read the runs already. The incident itself is recorded."""
    script = Script(DESIGNED, Faults(cut=1, append=1, expire=1), records=1)
    script.resume(1)
    script.write(1)
    script.resume(2)
    script.do(
        "the source elects an unclean leader whose log ends at 0", "A1 learns that the source was truncated"
    )
    script.do(APPEND, "the source's log starts at 1")
    script.finish(2)
    assert script.target == [0]
    assert script.incidents == {SOURCE_TRUNCATED}


def with_two_runs(*, is_stored: bool, loss: str) -> Script:
    script = Script(Rules(), Faults(compact=1, lose_runs=1, crash=1), records=4)
    script.do("the source compacts offset 1 away")
    script.resume(1)
    script.copy(1)
    script.write(1)
    if is_stored:
        script.do("A1 takes an acknowledgement", "A1 stores its position")
    script.do("A1 crashes", loss)
    return script


@pytest.mark.parametrize(
    ("is_stored", "loss", "target"),
    [
        (True, "the run store loses its newest record", [0, 2, 3]),
        (True, "the run store is emptied", [0, 2, 3]),
        (False, "the run store is emptied", [0, 2, 2, 3]),
    ],
)
def test_lost_runs_are_an_incident(is_stored: bool, loss: str, target: list[int]) -> None:
    script = with_two_runs(is_stored=is_stored, loss=loss)
    script.finish(2)
    assert script.target == target
    assert script.incidents == {RUNS_LOST, UNCERTAIN}


def test_loss_of_the_newest_run_goes_unseen_while_no_position_follows_it() -> None:
    """A limit: the run store has to be as safe as the data."""
    script = with_two_runs(is_stored=False, loss="the run store loses its newest record")
    with pytest.raises(ViolationError):
        script.finish(2)
